package wire

import (
	"bytes"
	"fmt"
	"testing"
)

// TestEscapesOverReads reports the same for a string at any cut into reads,
// with any bytes before and after an escape.
func TestEscapesOverReads(t *testing.T) {
	escapes := []string{`\n`, `\"`, `\\`, `\/`, `\u0041`, `\uD83D`, `\uDE00`, `\uD83D\uDE00`, `\uD83D\n\uDE00`, `\q`, "\\\x01", `\u12`, `\é`, "x", "é"}
	for _, first := range escapes {
		for _, second := range escapes {
			for _, gap := range []string{"", "0123456789abcdef0123456789abcdef"} {
				value := "a" + first + gap + second + "b"
				in := []byte(with(`{"name":"`+value+`","arguments":{}}`) + "\n")
				want := fmt.Sprint(newFeeder(Limit).feed(t, in))
				start := bytes.Index(in, []byte(value))
				for cut := start; cut <= start+len(value); cut++ {
					if got := fmt.Sprint(newFeeder(Limit).feed(t, in, cut, len(in))); got != want {
						t.Fatalf("%q cut at %d: told %s\nwant %s", in, cut, got, want)
					}
				}
			}
		}
	}
}

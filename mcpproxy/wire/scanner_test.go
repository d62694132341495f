package wire

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf8"
)

// TestSpecial compares special with a check of each byte in turn: every byte
// value at every place of a few words, from every start, next to bytes that
// differ from special ones in one bit or carry into their neighbours.
func TestSpecial(t *testing.T) {
	const size = 80 // two rounds of 32, one of 8, and a rest
	slow := func(b []byte, i int) (int, bool) {
		wide := false
		for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' '; i++ {
			wide = wide || b[i] >= utf8.RuneSelf
		}
		return i, wide
	}
	check := func(b []byte, i int) {
		t.Helper()
		n, wide := special(b, i)
		if want, wantWide := slow(b, i); n != want || wide != wantWide {
			t.Fatalf("special(%q, %d) = %d, %t; want %d, %t", b, i, n, wide, want, wantWide)
		}
	}
	for _, fill := range []byte(" !#[]^x\x7F\x80\x9F\xA0\xA2\xDC\xFF") {
		b := bytes.Repeat([]byte{fill}, size)
		for at := range b {
			for c := range 256 {
				b[at] = byte(c)
				check(b, 0)
			}
			for _, c := range []byte("\x00\x1F\"\\\xE9") {
				b[at] = c
				for i := range b {
					check(b, i)
					check(b[:i], i/2)
				}
				for next := at + 1; next < min(at+9, size); next++ {
					b[next] = '"'
					check(b, 0)
					b[next] = 0xFF
					check(b, 0)
					b[next] = fill
				}
			}
			b[at] = fill
		}
	}
}

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

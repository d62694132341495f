package jsontext

import (
	"bytes"
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

// TestClean does the same for clean.
func TestClean(t *testing.T) {
	slow := func(s string, i int) int {
		for i < len(s) && s[i] >= ' ' && s[i] < 0x7F && s[i] != '"' && s[i] != '\\' {
			i++
		}
		return i
	}
	b := make([]byte, 24)
	for _, fill := range []byte(" !#[]^x~") {
		for at := range b {
			for c := range 256 {
				for i := range b {
					b[i] = fill
				}
				b[at] = byte(c)
				for _, next := range []byte{fill, '"', 0x7F, 0xFF, 0x1F} {
					if at+1 < len(b) {
						b[at+1] = next
					}
					for i := range 9 {
						if got, want := clean(b, i), slow(string(b), i); got != want || clean(string(b), i) != want {
							t.Fatalf("clean(%q, %d) = %d, want %d", b, i, got, want)
						}
					}
				}
			}
		}
	}
}

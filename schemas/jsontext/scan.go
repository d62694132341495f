package jsontext

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// special returns the index of the first quote, backslash or control character
// in b from i on, or len(b), and whether a byte before it is above 0x7F.
//
// Many strings end within a word of eight bytes, so one is checked first. Then
// plain skips the start of a long text.
func special(b []byte, i int) (int, bool) {
	if i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		if h := hits(x) &^ x & tops; h != 0 {
			n := bits.TrailingZeros64(h) &^ 7
			return i + n>>3, x&(1<<n-1)&tops != 0
		}
		if i += plain(b[i:]); i < len(b) && (b[i] == '"' || b[i] == '\\' || b[i] < ' ') {
			return i, false
		}
	}
	var seen uint64
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if h := hits(x) &^ x & tops; h != 0 {
			n := bits.TrailingZeros64(h) &^ 7
			seen |= x & (1<<n - 1)
			return i + n>>3, seen&tops != 0
		}
		seen |= x
	}
	wide := seen&tops != 0
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"' || c == '\\' || c < ' ':
			return i, wide
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
	return i, wide
}

// clean returns the index of the first byte of s from i on that AppendQuote may
// not copy as it is, or len(s): a quote, a backslash, a control character, DEL
// or a byte above 0x7F.
func clean[T Text](s T, i int) int {
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		// Adding one carries DEL into the top bit.
		if h := (hits(x) | (x + ones) | x) & tops; h != 0 {
			return i + bits.TrailingZeros64(h)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

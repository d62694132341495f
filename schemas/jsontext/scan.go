package jsontext

import "math/bits"

// plain returns the index of the first byte of s from i on that AppendQuote may
// not copy as it is, or len(s). It checks eight bytes at a time.
func plain[T Text](s T, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, slash := x^ones*'"', x^ones*'\\'
		// A hit is a byte below a space, a quote, a backslash, or DEL and above.
		// The lowest hit is exact: borrows and carries go upwards only.
		hits := (x - ones*' ') | (quote-ones)&^quote | (slash-ones)&^slash | (x + ones) | x
		if hits &= tops; hits != 0 {
			return i + bits.TrailingZeros64(hits)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

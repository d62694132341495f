// Package jsontext reads and writes JSON text in memory, by one set of rules.
//
// There are two grammars. The strict one is RFC 8259 in valid UTF-8, at most
// MaxDepth deep: that of records. The lenient one is the superset that some
// server executes, see Lenient: that of the wire. Both share the rules of this
// package for white space, strings and escapes, numbers and words.
//
// Nothing is decoded that the caller does not ask for: a value is the piece of
// text that it was read from.
//
// The files, from the top: strict, number, lenient, string, quote, scan,
// plain_amd64, plain_other, hits, jsontext.
package jsontext

// A Text is JSON text in memory.
type Text interface{ []byte | string }

// Defects are the ways in which text differs from the strict grammar, or reads
// differently in two programs.
type Defects uint8

// The defects of text that the lenient grammar accepts.
const (
	Syntax        Defects = 1 << iota // a trailing comma, an unknown escape, an unknown word, Unicode's white space
	Control                           // a control character, in a string or between values
	BadUTF8                           // a string has bytes that are not UTF-8
	LoneSurrogate                     // an escape for half a surrogate pair
	BOM                               // a byte order mark
	NonFinite                         // NaN, Infinity or -Infinity
)

// Classes of bytes.
const (
	blank      = 1 << iota // white space of RFC 8259
	scalarByte             // in numbers and words
	simple                 // ends an escape that starts with a backslash: \n
)

var classes = func() (t [256]uint8) {
	for c := range t {
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '-' || c == '.' {
			t[c] = scalarByte
		}
	}
	for _, c := range " \t\n\r" {
		t[c] |= blank
	}
	for _, c := range `"\/bfnrt` {
		t[c] |= simple
	}
	return t
}()

// IsSpace reports whether c is white space of RFC 8259.
func IsSpace(c byte) bool { return classes[c]&blank != 0 }

// IsScalar reports whether c can be in a number or a word, such as true and
// NaN, or what is written in their place.
func IsScalar(c byte) bool { return classes[c]&scalarByte != 0 }

// unhex is the value of a hexadecimal digit, 255 for other bytes.
var unhex = func() (t [256]uint8) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		t[c] = uint8(i)
	}
	for i, c := range "ABCDEF" {
		t[c] = uint8(10 + i)
	}
	return t
}()

// hex4 reads four hexadecimal digits.
func hex4[T Text](b T) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for i := range 4 {
		d := unhex[b[i]]
		if d > 15 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

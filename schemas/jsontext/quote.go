package jsontext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuote appends s as a JSON string, quotes included. The result is valid
// UTF-8 on one line: control characters are escaped, so are DEL, U+2028 and
// U+2029, and each maximal part of s that is not UTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := clean(s, 0); i < len(s); i = clean(s, i) {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			n = maximalSubpart(s[i:])
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
			from = i + n
		case r == 0x2028 || r == 0x2029:
			dst = append(append(dst, s[from:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&15])
			from = i + n
		}
		i += n
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendUnquote appends the text of a JSON string literal, its quotes optional,
// as valid UTF-8. It accepts more than RFC 8259 does, because some servers do:
// raw control characters are kept, an unknown escape becomes the character
// after the backslash. A surrogate without its partner and each maximal part
// that is not UTF-8 becomes U+FFFD, as Python and the WHATWG encoding standard
// replace them.
func AppendUnquote[T Text](dst []byte, lit T) []byte {
	if n := len(lit); n > 0 && lit[0] == '"' {
		lit = lit[1:]
		if n > 1 && lit[n-2] == '"' {
			lit = lit[:n-2]
		}
	}
	return appendUnquoted(dst, []byte(lit))
}

// appendUnquoted is AppendUnquote for the text between the quotes. The conversion
// of a string to lit copies nothing, as lit is only read.
func appendUnquoted(dst, lit []byte) []byte {
	from := 0
	for i := 0; i < len(lit); {
		c := lit[i]
		if c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c != '\\' {
			r, n := decodeRune(lit[i:])
			if r == utf8.RuneError && n <= 1 {
				n = maximalSubpart(lit[i:])
				dst = append(append(dst, lit[from:i]...), "\uFFFD"...)
				from = i + n
			}
			i += n
			continue
		}
		dst = append(dst, lit[from:i]...)
		i++
		if i == len(lit) {
			from = i
			break
		}
		switch c := lit[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(lit[i+1:])
			if !ok {
				dst = append(dst, 'u')
				break
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if len(lit) > i+2 && lit[i+1] == '\\' && lit[i+2] == 'u' {
					low, ok = hex4(lit[i+3:])
				}
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					r = pair
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			// A byte above 0x7F is the start of a rune: leave it to the loop.
			if c >= utf8.RuneSelf {
				from = i
				continue
			}
			dst = append(dst, c)
		}
		i++
		from = i
	}
	return append(dst, lit[from:]...)
}

// Unquote returns the text of a JSON string literal that is strict JSON, such
// as a record's.
func Unquote[T Text](lit T) string {
	if s := string(lit); strings.IndexByte(s, '\\') < 0 {
		return strings.Trim(s, `"`)
	}
	return string(AppendUnquote(nil, lit))
}

// decodeRune is utf8.DecodeRune for both.
func decodeRune[T Text](b T) (rune, int) {
	return utf8.DecodeRuneInString(string(b[:min(len(b), utf8.UTFMax)]))
}

// maximalSubpart is the length of the part of b that one U+FFFD replaces: the
// longest prefix of a well-formed sequence, at least one byte (Unicode 16.0,
// section 3.9, "U+FFFD Substitution of Maximal Subparts").
func maximalSubpart[T Text](b T) int {
	lo, hi, want := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case 0xC2 <= c && c <= 0xDF:
		want = 1
	case 0xE0 <= c && c <= 0xEF:
		want = 2
		switch c {
		case 0xE0:
			lo = 0xA0
		case 0xED:
			hi = 0x9F
		}
	case 0xF0 <= c && c <= 0xF4:
		want = 3
		switch c {
		case 0xF0:
			lo = 0x90
		case 0xF4:
			hi = 0x8F
		}
	default:
		return 1
	}
	n := 1
	for ; n <= want && n < len(b); n++ {
		if b[n] < lo || b[n] > hi {
			break
		}
		lo, hi = 0x80, 0xBF
	}
	return n
}

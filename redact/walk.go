package redact

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// The functions below read the superset of JSON that servers execute: raw
// control characters and lone surrogates in strings, bytes that are not UTF-8,
// NaN and Infinity, trailing commas, numbers of any spelling. None of them
// recurses. An index of -1 means that the bytes cannot be read.

// A literal is a string as on the wire.
type literal struct {
	inner     []byte // between the quotes
	continued int    // bytes in it that continue a code point
	escaped   bool
	bad       bool // not UTF-8
}

// plain reports whether the text is the bytes between the quotes.
func (s literal) plain() bool { return !s.escaped && !s.bad }

const (
	ones  = 0x0101010101010101
	highs = ones << 7
)

// readString reads the literal at raw[i], which is a quote, and notes its
// defects.
func (p *pass) readString(i int) (s literal, next int) {
	raw := p.raw
	from, high, control := i+1, false, false
	for i = from; ; {
		// Eight bytes at a time: quotes, backslashes and controls end the
		// stride, continuation bytes (10xxxxxx) are counted.
		for i+8 <= len(raw) {
			x := binary.LittleEndian.Uint64(raw[i:])
			t := x &^ highs
			stop := ^((t ^ '"'*ones) + 0x7f*ones) | ^((t ^ '\\'*ones) + 0x7f*ones) | ^(t + 0x60*ones)
			stop &= highs &^ x
			if stop != 0 {
				n := bits.TrailingZeros64(stop) / 8
				x &= 1<<(8*n) - 1
				i += n
				s.continued += bits.OnesCount64(x &^ (x << 1) & highs)
				high = high || x&highs != 0
				break
			}
			s.continued += bits.OnesCount64(x &^ (x << 1) & highs)
			high = high || x&highs != 0
			i += 8
		}
		if i >= len(raw) {
			return s, -1
		}
		switch c := raw[i]; {
		case c == '"':
			s.inner = raw[from:i]
			s.bad = high && !utf8.Valid(s.inner)
			if s.bad {
				p.flags |= BadUTF8
			}
			if control {
				p.flags |= Control
			}
			return s, i + 1
		case c == '\\':
			s.escaped = true
			if i+1 < len(raw) && raw[i+1] == 'u' && isLoneSurrogate(raw[i:]) {
				p.flags |= Surrogate
			}
			n := escapeLen(raw[i:])
			if n == 1 && i+1 == len(raw) {
				return s, -1
			}
			i += n
		case c < 0x20:
			control = true
			i++
		default:
			high = high || c >= utf8.RuneSelf
			if c&0xC0 == 0x80 {
				s.continued++
			}
			i++
		}
	}
}

// decoded returns s's text, valid UTF-8, in the input's memory or in p.text.
func (p *pass) decoded(s literal) []byte {
	if s.plain() {
		return s.inner
	}
	p.text = appendDecoded(p.text[:0], s)
	return p.text
}

func appendDecoded(dst []byte, s literal) []byte {
	if s.plain() {
		return append(dst, s.inner...)
	}
	return jsontext.AppendUnquote(dst, s.inner)
}

// isPair reports whether lit starts with two \u escapes that are one character.
func isPair(lit []byte) bool {
	high, ok := hex4(lit[2:])
	low, ok2 := hex4(lit[8:])
	return ok && ok2 && utf16.DecodeRune(high, low) != utf8.RuneError
}

func isLoneSurrogate(lit []byte) bool {
	r, ok := hex4(lit[2:])
	return ok && utf16.IsSurrogate(r) && escapeLen(lit) != 12
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		d := unhex[c]
		if d > 15 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unhex is the value of a hexadecimal digit, 255 for other bytes.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range "0123456789" {
		t[c] = byte(i)
	}
	for i, c := range "abcdef" {
		t[c], t[c-32] = byte(10+i), byte(10+i)
	}
	return t
}()

func (p *pass) space(i int) int {
	for i < len(p.raw) && isSpace(p.raw[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// between returns the index of the next member or element from i on, or of the
// end of the container; a container that never closes is -1. Commas are not
// counted.
func (p *pass) between(i int) int {
	for i < len(p.raw) && (p.raw[i] == ',' || isSpace(p.raw[i])) {
		i++
	}
	if i == len(p.raw) {
		return -1
	}
	return i
}

// colon returns the index of the value after a name that ended at i.
func (p *pass) colon(i int) int {
	i = p.space(i)
	if i >= len(p.raw) || p.raw[i] != ':' {
		return -1
	}
	if i = p.space(i + 1); i == len(p.raw) {
		return -1
	}
	return i
}

// scalar returns the token at raw[i], which is neither a string nor a
// container; it is empty if there is none.
func (p *pass) scalar(i int) (token []byte, next int) {
	from := i
	for i < len(p.raw) {
		switch c := p.raw[i]; {
		case c == ',' || c == ':' || c == '"' || c == '[' || c == ']' || c == '{' || c == '}' || isSpace(c):
			return p.raw[from:i], i
		}
		i++
	}
	return p.raw[from:i], i
}

// skip returns the index after the value at raw[i].
func (p *pass) skip(i int) int {
	return p.tokens(i, nil)
}

// tokens reads the value at raw[i]. To visit, if there is one, it hands its
// tokens: strings and scalars, and single bytes of structure, with commas
// where JSON wants them.
func (p *pass) tokens(i int, visit func(structure byte, s literal, scalar []byte)) int {
	depth, comma := 0, false
	for i < len(p.raw) {
		c := p.raw[i]
		switch c {
		case ' ', '\t', '\n', '\v', '\f', '\r', ',':
			if depth == 0 {
				return -1
			}
			i++
			continue
		case '}', ']', ':':
			if depth == 0 {
				return -1
			}
			if visit != nil {
				visit(c, literal{}, nil)
			}
			comma = c != ':'
			i++
			if comma {
				depth--
			}
		default:
			if comma && visit != nil {
				visit(',', literal{}, nil)
			}
			comma = true
			switch c {
			case '{', '[':
				if visit != nil {
					visit(c, literal{}, nil)
				}
				depth++
				comma = false
				i++
			case '"':
				s, next := p.readString(i)
				if next < 0 {
					return -1
				}
				if visit != nil {
					visit(0, s, nil)
				}
				i = next
			default:
				token, next := p.scalar(i)
				if classify(token) == nonFinite {
					p.flags |= NonFinite
				}
				if visit != nil {
					visit(0, literal{}, token)
				}
				i = next
			}
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// writeCompact adds the compact text of the value at raw[i] to the digest: no
// white space, strings and numbers in the form in which records have them.
func (p *pass) writeCompact(i int) int {
	buf := p.spare[:0]
	next := p.tokens(i, func(structure byte, s literal, scalar []byte) {
		switch {
		case structure != 0:
			buf = append(buf, structure)
		case scalar != nil:
			buf = appendScalar(buf, scalar)
		default:
			buf = jsontext.AppendQuote(buf, view(p.decoded(s)))
		}
		if len(buf) > 4096 {
			p.write(buf)
			buf = buf[:0]
		}
	})
	p.write(buf)
	p.spare = buf
	return next
}

package redact

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// appendStr appends Python's str() of the value at raw[i]: libtmux-mcp digests
// that if a value under an object of secrets is not a string.
func (p *pass) appendStr(dst []byte, i, depth int) (out []byte, next int) {
	if p.raw[i] != '"' {
		return p.appendRepr(dst, i, depth)
	}
	s, next := p.readString(i)
	if next < 0 {
		return dst, -1
	}
	return s.Append(dst), next
}

// appendRepr appends Python's repr() of the value at raw[i], which is depth
// levels deep; below maxDepth it is the compact JSON text.
func (p *pass) appendRepr(dst []byte, i, depth int) (out []byte, next int) {
	switch c := p.raw[i]; {
	case c == '"':
		s, next := p.readString(i)
		if next < 0 {
			return dst, -1
		}
		return appendReprText(dst, p.decoded(s)), next
	case c != '[' && c != '{':
		token, next := p.scalar(i)
		if next == i {
			return dst, -1
		}
		return p.appendReprScalar(dst, token), next
	case depth > maxDepth:
		next := p.skip(i)
		if next < 0 {
			return dst, -1
		}
		return append(dst, p.raw[i:next]...), next
	case c == '[':
		return p.appendReprList(dst, i, depth)
	default:
		return p.appendReprDict(dst, i, depth)
	}
}

func (p *pass) appendReprScalar(dst, token []byte) []byte {
	switch classify(token) {
	case nonFinite:
		p.flags |= NonFinite
		return append(dst, "None"...)
	case null:
		return append(dst, "None"...)
	case boolean:
		if token[0] == 't' {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	}
	return appendScalar(dst, token)
}

func (p *pass) appendReprList(dst []byte, i, depth int) (out []byte, next int) {
	dst = append(dst, '[')
	from := len(dst)
	i, more := p.raw.First(i)
	for more {
		if len(dst) > from {
			dst = append(dst, ", "...)
		}
		if dst, i = p.appendRepr(dst, i, depth+1); i < 0 {
			return dst, -1
		}
		i, more = p.raw.Next(i, ']')
	}
	return append(dst, ']'), i
}

func (p *pass) appendReprDict(dst []byte, i, depth int) (out []byte, next int) {
	dst = append(dst, '{')
	m := p.startMembers(len(dst))
	defer m.end()
	i, more := p.raw.First(i)
	for more {
		name, value := p.name(i)
		if value < 0 {
			return dst, -1
		}
		m.open(name, value)
		if len(dst) > m.base {
			dst = append(dst, ", "...)
		}
		from := len(dst)
		dst = append(appendReprText(dst, name), ": "...)
		if dst, i = p.appendRepr(dst, value, depth+1); i < 0 {
			return dst, -1
		}
		m.written(from, len(dst))
		i, more = p.raw.Next(i, '}')
	}
	return append(m.settle(dst, ", "), '}'), i
}

// appendReprText appends Python's repr() of a string. Python and
// unicode.IsPrint agree on what is printable.
func appendReprText(dst, s []byte) []byte {
	quote := byte('\'')
	for _, c := range s {
		if c == '"' {
			quote = '\''
			break
		}
		if c == '\'' {
			quote = '"'
		}
	}
	dst = append(dst, quote)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(r):
			dst = append(dst, s[i:i+n]...)
		case r < 0x100:
			dst = appendHex(append(dst, `\x`...), r, 2)
		case r < 0x10000:
			dst = appendHex(append(dst, `\u`...), r, 4)
		default:
			dst = appendHex(append(dst, `\U`...), r, 8)
		}
		i += n
	}
	return append(dst, quote)
}

func appendHex(dst []byte, r rune, digits int) []byte {
	for n := 4 * (digits - 1); n >= 0; n -= 4 {
		dst = strconv.AppendInt(dst, int64(r>>n&15), 16)
	}
	return dst
}

package redact

import (
	"bytes"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// unwrapper scans decoded text. It is allocated on first use.
type unwrapper struct {
	inner scanner
	text  []byte
	at    []int32 // by byte of text: where it is in the text with escapes
}

func (s *scanner) unwrapper() *unwrapper {
	if s.unwrap == nil {
		s.unwrap = &unwrapper{inner: scanner{names: s.names, open: s.open}}
	}
	return s.unwrap
}

// scanEncoded adds the runs of the text that hold a credential once decoded:
// base64, hexadecimal, percent-encoded, or escaped as in JSON or in C. Such a
// run is replaced as a whole. Only one level is decoded.
func (s *scanner) scanEncoded() {
	s.unwrapper()
	raw := s.found // in order, while more is added behind them; those before the word are gone
	word, run, escapes := 0, 0, false
	for i := 0; i <= len(s.text); i++ {
		c := byte(' ')
		if i < len(s.text) {
			c = s.text[i]
		}
		if classes[c]&isAlnum != 0 {
			continue
		}
		if i-run >= minEncoded && s.hides(s.text[run:i]) {
			s.found = append(s.found, s.encodedRun(run, i))
		}
		run = i + 1
		if classes[c]&isEnd != 0 {
			if escapes {
				s.word(word, i, raw)
			}
			for len(raw) > 0 && raw[0].to <= i {
				raw = raw[1:]
			}
			word, escapes = i+1, false
		} else if (c == '%' || c == '\\') && isEscape(s.text[i:]) {
			escapes = true
		}
	}
	s.merge()
}

// maxLevels is how many strings in strings are looked into.
const maxLevels = 3

// escaped adds the credentials of the strings in the text, in which lines and
// quotes are escapes: their structure shows only after decoding.
func (s *scanner) escaped(levels int) {
	t, u := s.text, s.unwrapper()
	s.merge()
	whole, found := 0, len(s.found) // the next span to compare strings with, and how many there are
	for i := 0; i < len(t); i++ {
		if t[i] != '"' {
			continue
		}
		from := i + 1
		i = s.closing(i, 0)
		if from >= i || bytes.IndexByte(t[from:i], '\\') < 0 {
			continue
		}
		for whole < found && s.found[whole].to < i {
			whole++
		}
		if whole < found && s.found[whole].from <= from {
			continue // it is redacted whole
		}
		u.text, u.at = u.text[:0], u.at[:0]
		for k := from; k < i; k++ {
			c, at := t[k], int32(k)
			if c == '\\' && k+1 < i {
				switch t[k+1] {
				case 'n', 'r', 't':
					c = '\n'
					k++
				case '"', '\\', '/':
					c = t[k+1]
					k++
				}
			}
			u.text, u.at = append(u.text, c), append(u.at, at)
		}
		u.at = append(u.at, int32(i))
		u.inner.found = u.inner.found[:0]
		hint := u.inner.look(u.text)
		u.inner.scan(u.text, hint)
		if levels > 1 && hint&lookEscaped != 0 {
			u.inner.escaped(levels - 1)
		}
		for _, c := range u.inner.found {
			s.found = append(s.found, span{int(u.at[c.from]), int(u.at[c.to])})
		}
	}
	if len(s.found) > found {
		s.merge()
	}
}

// encodedRun widens a run of letters and digits to the other bytes of base64.
func (s *scanner) encodedRun(from, to int) span {
	is := func(c byte) bool {
		return classes[c]&isAlnum != 0 || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
	}
	for to < len(s.text) && is(s.text[to]) {
		to++
	}
	return span{from, to}
}

// hides reports whether a run of letters and digits holds a credential, with
// the encoding starting at any byte.
func (s *scanner) hides(run []byte) bool {
	u := s.unwrap
	for skip := range 4 {
		u.text = appendBase64(u.text[:0], run[skip:])
		if u.finds() {
			return true
		}
	}
	for skip := range 2 {
		u.text = appendUnhex(u.text[:0], run[skip:])
		if u.finds() {
			return true
		}
	}
	return false
}

// finds reports whether the decoded text holds a credential. Noise holds none:
// a credential is surrounded by text.
func (u *unwrapper) finds() bool {
	u.inner.found = u.inner.found[:0]
	if !hasText(u.text) {
		return false
	}
	u.inner.scan(u.text, u.inner.look(u.text)&(lookPlain|lookFormat))
	for _, c := range u.inner.found {
		if isReadable(u.text[c.from:c.to]) {
			return true
		}
	}
	return false
}

// hasText reports whether b may hold a credential: three characters of ASCII in
// a row, "pw=", or a separator behind the letters of another script.
func hasText(b []byte) bool {
	n := 0
	for i, c := range b {
		switch {
		case c >= utf8.RuneSelf || c < ' ' && c != '\t' && c != '\n' && c != '\r':
			n = 0
			continue
		case (c == '=' || c == ':') && i > 0 && (b[i-1] >= utf8.RuneSelf || b[i-1] <= ' '):
			return true
		}
		if n++; n == 3 {
			return true
		}
	}
	return false
}

func isReadable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return utf8.Valid(b)
}

// word adds text[from:to] if decoding its escapes reveals a credential in
// addition to those in raw.
func (s *scanner) word(from, to int, raw []span) {
	u := s.unwrap
	u.inner.found = u.inner.found[:0]
	u.text = u.text[:0]
	done := from
	for _, c := range raw {
		if c.from >= to {
			break
		}
		if c.from > done {
			u.text = append(append(u.text, s.text[done:c.from]...), ';') // which ends a credential
		}
		done = max(done, c.to)
	}
	if done < to {
		u.text = append(u.text, s.text[done:to]...)
	}
	u.text = append(u.text[:0], s.unescaped(u.text)...)
	if u.inner.scan(u.text, u.inner.look(u.text)&(lookPlain|lookFormat)); len(u.inner.found) > 0 {
		s.found = append(s.found, span{from, to})
	}
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

// isEscape reports whether b starts with %41 or \u0041.
func isEscape(b []byte) bool {
	switch {
	case len(b) < 3:
		return false
	case b[0] == '%':
		return unhex[b[1]] < 16 && unhex[b[2]] < 16
	}
	return b[1] == 'u'
}

// unescaped decodes b if it has the escapes of JSON or of URLs, at every level,
// as strings in strings have them: in b's memory or, until the next call, in
// the scanner's.
func (s *scanner) unescaped(b []byte) []byte {
	for n := range 4 {
		json, url := false, false
		for _, c := range b {
			json, url = json || c == '\\', url || c == '%'
		}
		to := &s.decoded[n%2]
		switch {
		case json:
			*to = jsontext.AppendUnquote((*to)[:0], b)
		case url:
			*to = appendPercent((*to)[:0], b)
		default:
			return b
		}
		if len(*to) == len(b) && bytes.Equal(*to, b) {
			break // there is nothing to decode
		}
		b = *to
	}
	return b
}

// appendBase64 appends b decoded from base64, standard or URL-safe (RFC 4648),
// up to the first byte that is neither.
func appendBase64(dst, b []byte) []byte {
	for len(b) >= 4 {
		v0, v1, v2, v3 := base64Values[b[0]], base64Values[b[1]], base64Values[b[2]], base64Values[b[3]]
		if v0|v1|v2|v3 > 63 {
			break
		}
		dst = append(dst, v0<<2|v1>>4, v1<<4|v2>>2, v2<<6|v3)
		b = b[4:]
	}
	var bits, n uint
	for _, c := range b {
		v := base64Values[c]
		if v > 63 {
			break
		}
		bits, n = bits<<6|uint(v), n+6
		if n >= 8 {
			n -= 8
			dst = append(dst, byte(bits>>n))
		}
	}
	return dst
}

// base64Values is the value of a digit of base64, 255 for other bytes.
var base64Values = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for _, digits := range []string{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_"} {
		for i, c := range digits {
			t[c] = byte(64 - len(digits) + i)
		}
	}
	return t
}()

// appendUnhex appends b decoded from hexadecimal, up to the first byte that is
// not hexadecimal.
func appendUnhex(dst, b []byte) []byte {
	for len(b) >= 2 && unhex[b[0]] < 16 && unhex[b[1]] < 16 {
		dst = append(dst, unhex[b[0]]<<4|unhex[b[1]])
		b = b[2:]
	}
	return dst
}

// appendPercent appends b without its percent-encoding (RFC 3986, 2.1).
func appendPercent(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '%' && i+2 < len(b) && unhex[b[i+1]] < 16 && unhex[b[i+2]] < 16 {
			dst = append(dst, unhex[b[i+1]]<<4|unhex[b[i+2]])
			i += 2
			continue
		}
		dst = append(dst, b[i])
	}
	return dst
}

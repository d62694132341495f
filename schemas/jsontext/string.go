package jsontext

import (
	"bytes"
	"unicode/utf8"
)

// A StringScanner scans a string of the lenient grammar, which may come in
// pieces, for its end and its defects. The zero value is behind the opening
// quote.
//
// A string ends at the first quote that no backslash precedes, whatever bytes
// are before it, except for a line feed: no server that reads values over
// several lines was seen to accept one in a string, and an open quote would
// hide all that follows.
type StringScanner struct {
	Defects Defects // so far
	Escaped bool    // the string has an escape; not known after Skip

	esc  uint8  // 0, or 1 + bytes of the escape read so far
	high bool   // the escape before was a high surrogate
	unit uint16 // of the escape \u under way

	part    [utf8.UTFMax]byte // the start of a rune at the end of the last piece
	partLen uint8
}

// Scan scans b, the next piece, from index i on. It returns the index after the
// scanned part, and whether the string ends there. Otherwise that is the end of
// b, or a line feed.
func (s *StringScanner) Scan(b []byte, i int) (next int, ended bool) {
	from, wide := i, s.partLen > 0
	for i < len(b) {
		c := b[i]
		if s.esc > 0 {
			if c == '\n' {
				return i, false
			}
			if s.escape(c) {
				wide = wide || c >= utf8.RuneSelf
				i++
			}
			continue
		}
		if s.high && c != '\\' {
			s.Defects |= LoneSurrogate
			s.high = false
		}
		j, above := special(b, i)
		wide = wide || above
		if i = j; i == len(b) {
			break
		}
		switch b[i] {
		case '"':
			if wide {
				s.checkUTF8(b[from:i], true)
			}
			return i + 1, true
		case '\\':
			s.Escaped = true
			if i+1 < len(b) && !s.high && classes[b[i+1]]&simple != 0 {
				i++ // nothing to remember
			} else {
				s.esc = 1
			}
		case '\n':
			return i, false
		default:
			s.Defects |= Control
		}
		i++
	}
	if wide {
		s.checkUTF8(b[from:], false)
	}
	return i, false
}

// Skip is Scan for callers that need only the end of the string, and whose
// text has no line feed. Scan and Skip are not used for the same string.
func (s *StringScanner) Skip(b []byte, i int) (next int, ended bool) {
	if s.esc > 0 && i < len(b) {
		s.esc = 0
		i++
	}
	for {
		n := bytes.IndexByte(b[i:], '"')
		end := i + n
		if n < 0 {
			end = len(b)
		}
		// An odd number of backslashes before it escapes the byte after them.
		j := end
		for j > i && b[j-1] == '\\' {
			j--
		}
		odd := (end-j)&1 != 0
		if n < 0 {
			if odd {
				s.esc = 1
			}
			return end, false
		}
		i = end + 1
		if !odd {
			return i, true
		}
	}
}

// escape checks the next byte of an escape. It reports whether the byte belongs
// to it: the escape \u12" ends before the quote.
func (s *StringScanner) escape(c byte) bool {
	if s.esc == 1 {
		if c == 'u' {
			s.esc, s.unit = 2, 0
			return true
		}
		if classes[c]&simple == 0 {
			s.Defects |= Syntax
			if c < ' ' {
				s.Defects |= Control
			}
		}
		s.endEscape(0)
		return true
	}
	d := unhex[c]
	if d > 15 {
		s.Defects |= Syntax
		s.endEscape(0)
		return false
	}
	s.unit = s.unit<<4 | uint16(d)
	if s.esc++; s.esc == 6 {
		s.endEscape(s.unit)
	}
	return true
}

// endEscape ends an escape for a UTF-16 code unit, 0 for any other.
func (s *StringScanner) endEscape(unit uint16) {
	high, low := unit&^0x3FF == 0xD800, unit&^0x3FF == 0xDC00
	if s.high != low {
		s.Defects |= LoneSurrogate
	}
	s.high, s.esc = high, 0
}

// checkUTF8 checks the next bytes of the string, of which a rune may continue
// in the next piece unless the string ends with them.
func (s *StringScanner) checkUTF8(b []byte, ends bool) {
	if s.Defects&BadUTF8 != 0 {
		return
	}
	for s.partLen > 0 && len(b) > 0 {
		s.part[s.partLen] = b[0]
		s.partLen++
		b = b[1:]
		if part := s.part[:s.partLen]; utf8.FullRune(part) {
			if s.partLen = 0; !utf8.Valid(part) {
				s.Defects |= BadUTF8
				return
			}
		}
	}
	whole := len(b)
	if !ends {
		whole = wholeRunes(b)
	}
	if !utf8.Valid(b[:whole]) || ends && s.partLen > 0 {
		s.Defects |= BadUTF8
		s.partLen = 0
		return
	}
	s.partLen += uint8(copy(s.part[s.partLen:], b[whole:]))
}

// wholeRunes is the length of b without the start of a rune at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// EscapeLen is the length of the escape at the start of lit, which is a
// backslash; the two halves of a surrogate pair count together. It is 1 for a
// backslash that escapes nothing, and 0 where lit is empty.
func EscapeLen(lit []byte) int {
	switch {
	case len(lit) < 2 || lit[1] >= utf8.RuneSelf:
		return min(len(lit), 1)
	case lit[1] != 'u':
		return 2
	}
	r, ok := hex4(lit[2:])
	switch {
	case !ok:
		return 2
	case r&^0x3FF == 0xD800 && len(lit) >= 12 && lit[6] == '\\' && lit[7] == 'u':
		if low, ok := hex4(lit[8:]); ok && low&^0x3FF == 0xDC00 {
			return 12
		}
	}
	return 6
}

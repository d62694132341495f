package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A window is a piece of a stream: buf[0] is at offset off.
type window struct {
	buf     []byte
	off     int64
	hashing *hashing // reads pieces of buf; nil where nothing is oversize
}

// slice returns the bytes of the stream between two offsets in the window.
func (w *window) slice(from, to int64) []byte {
	return w.buf[from-w.off : to-w.off : to-w.off]
}

// A role is a container's meaning to the visitor. Values directly in a
// container without a role are not visited.
type role uint8

const (
	roleNone    role = iota
	roleTop          // the stream itself, and arrays that hold messages
	roleMessage      // an object directly in roleTop
	roleInner        // the first role that a visitor may use as it likes
)

// A visitor gives the values of a stream a meaning.
type visitor interface {
	// begin reports a value in a container with role r; first is its first
	// byte. For an object or array it returns the role that it has.
	begin(r role, off int64, first byte) role
	// end reports that the value that began last in that container ends before
	// off.
	end(r role, off int64)
	// name reports a member's name in an object with role r; lit has its
	// quotes, it is nil if the name was too long to be kept.
	name(r role, off int64, lit []byte)
	// fail reports that the bytes from off on cannot be read.
	fail(off int64)
}

type state uint8

const (
	atTop    state = iota // between the values of the stream
	atName0               // after an opening brace
	atName                // after a comma in an object
	atColon               // after a name
	atValue               // after a colon
	atElem0               // after an opening bracket
	atElem                // after a comma in an array
	atComma               // after a member or an element
	inString              //
	inScalar              // in a number or a word
	inSpace               // in the UTF-8 form of white space that JSON does not have
	dead                  // after an error
)

// inner is how many levels of containers can have a role: a message, a member
// of it, and a member of that.
const inner = 3

// plainDepth is the nesting that every reader accepts; Python's is the first to
// give up.
const plainDepth = 200

// A scanner walks through a superset of JSON without recursion. It can stop and
// resume at any byte and reads each byte once. It implements the grammar; its
// visitor interprets the values.
//
// The superset is close to what some reader was seen to accept: NaN, words and
// numbers of any form, trailing commas, control characters anywhere, bad
// escapes, invalid UTF-8, white space of Unicode.
type scanner struct {
	w        *window
	v        visitor
	maxDepth int
	quick    bool // look in strings for nothing but their end

	flags Anomaly // anomalies; the visitor reads and clears them
	odd   int64   // offset of the first odd white space since the visitor reset it to -1

	st    state
	after state // the state after a string or odd white space
	named bool  // the string is a member's name
	tok   int64 // start of the string, scalar or white space under way; -1 if it is no longer in the window

	bent bool  // the string has an escape; not known if quick
	esc  uint8 // in a string: 0, or 1 + bytes of the escape read so far
	high bool  // the escape before was a high surrogate
	wide bool  // a byte above 0x7F was seen since utf
	hex  rune
	utf  int64 // all of the string before it is known to be UTF-8, or not to be

	bits    uint64 // one bit for each of the innermost levels, up to 64, set for an object
	outer   levels // those of the levels around them
	depth   int
	message int // depth in the message under way, 0 for none
	role    role
	roles   [inner]role
}

// restart makes s ready for a new value, at the top.
func (s *scanner) restart() {
	s.flags, s.odd = 0, -1
	s.st, s.role = atTop, roleTop
	s.depth, s.message = 0, 0
	s.outer.clear()
	s.esc, s.high, s.wide = 0, false, false
}

// run scans b, which is in the window at offset base. b has no CR or LF:
// carriageReturn and lineFeed handle those.
func (s *scanner) run(b []byte, base int64) {
	for i := 0; i < len(b); {
		switch s.st {
		case inString:
			i = s.string(b, i, base)
			continue
		case inScalar:
			for i < len(b) && scalarByte[b[i]] {
				i++
			}
			if i < len(b) {
				s.endScalar(base + int64(i))
			}
			continue
		case inSpace:
			i++
			s.space(base + int64(i))
			continue
		case dead:
			return
		}
		switch c := b[i]; c {
		case ' ', '\t':
		case '"':
			s.beginString(base + int64(i))
		case '{', '[':
			s.open(base+int64(i), c)
		case '}', ']':
			s.close(base+int64(i), c == '}')
		case ':':
			if s.st != atColon {
				s.fail(base+int64(i), NotJSON)
				return
			}
			s.st = atValue
		case ',':
			if s.st != atComma {
				s.fail(base+int64(i), NotJSON)
				return
			}
			s.st = atElem
			if s.inObject() {
				s.st = atName
			}
		default:
			off := base + int64(i)
			switch {
			case scalarByte[c]:
				if s.begin(off, c) {
					s.st, s.tok = inScalar, off
				}
			case c < ' ':
				s.oddSpace(off, ControlCharacter)
			case c >= utf8.RuneSelf:
				s.after, s.st, s.tok = s.st, inSpace, off
				s.space(off + 1)
			default:
				s.fail(off, NotJSON)
			}
		}
		i++
	}
	if s.st == inString && !s.quick {
		s.checkUTF8(base+int64(len(b)), false)
	}
}

// scalarByte has the bytes of numbers, true, false, null, NaN, Infinity and of
// the words written instead of them.
var scalarByte = func() (t [256]bool) {
	for c := range t {
		t[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '-' || c == '.'
	}
	return t
}()

func (s *scanner) fail(off int64, why Anomaly) {
	s.flags |= why
	s.st = dead
	s.v.fail(off)
	s.message = 0
	s.outer.clear()
}

// begin reports a value where one is allowed, and fails elsewhere.
func (s *scanner) begin(off int64, first byte) bool {
	switch s.st {
	case atTop, atValue, atElem0, atElem:
		if s.role != roleNone {
			s.v.begin(s.role, off, first)
		}
		return true
	}
	s.fail(off, NotJSON)
	return false
}

func (s *scanner) end(off int64) {
	s.st = atComma
	if s.depth == 0 {
		s.st = atTop
	}
	if s.role != roleNone {
		s.v.end(s.role, off)
	}
}

func (s *scanner) open(off int64, c byte) {
	switch s.st {
	case atTop, atValue, atElem0, atElem:
	default:
		s.fail(off, NotJSON)
		return
	}
	switch s.depth {
	case s.maxDepth:
		s.fail(off, Depth)
		return
	case plainDepth:
		s.flags |= Depth
	}
	if s.depth&63 == 0 && s.depth > 0 && !s.outer.push(s.bits) {
		s.fail(off, Depth)
		return
	}
	child := roleNone
	if s.role != roleNone {
		child = s.v.begin(s.role, off, c)
	}
	bit := uint64(1) << (s.depth & 63)
	s.depth++
	if c == '{' {
		s.bits |= bit
		s.st = atName0
	} else {
		s.bits &^= bit
		s.st = atElem0
	}
	if child == roleMessage {
		s.message = s.depth
	}
	s.role = child
	if level := s.depth - s.message; s.message > 0 && level < inner {
		s.roles[level] = child
	}
}

func (s *scanner) close(off int64, object bool) {
	if s.depth == 0 || s.inObject() != object {
		s.fail(off, NotJSON)
		return
	}
	switch s.st {
	case atName0, atElem0, atComma:
	case atName, atElem:
		s.flags |= NotJSON // a trailing comma
	default:
		s.fail(off, NotJSON)
		return
	}
	s.depth--
	if s.depth&63 == 0 && s.depth > 0 {
		s.bits = s.outer.pop()
	}
	if s.message > 0 {
		switch level := s.depth - s.message; {
		case level < 0:
			s.message, s.role = 0, roleTop
		case level < inner:
			s.role = s.roles[level]
		}
	}
	s.end(off + 1)
}

func (s *scanner) inObject() bool {
	return s.bits>>((s.depth-1)&63)&1 != 0
}

func (s *scanner) endScalar(off int64) {
	if s.quick {
		s.end(off)
		return
	}
	if s.tok < 0 {
		s.flags |= NaN
	} else {
		s.flags |= scalarAnomaly(s.w.slice(s.tok, off))
	}
	s.end(off)
}

// oddSpace skips a character that some reader may treat as white space.
func (s *scanner) oddSpace(off int64, why Anomaly) {
	s.flags |= why
	if s.odd < 0 {
		s.odd = off
	}
}

// space checks the part before off of possible odd white space. It has at most
// three bytes, so they are always in the window.
func (s *scanner) space(off int64) {
	switch b := s.w.slice(s.tok, off); string(b) {
	case "\xEF\xBB\xBF":
		s.oddSpace(s.tok, BOM)
	case "\u0085", "\u00A0", "\u2028", "\u2029":
		s.oddSpace(s.tok, NotJSON)
	case "\xC2", "\xE2", "\xE2\x80", "\xEF", "\xEF\xBB":
		return
	default:
		s.fail(s.tok, NotJSON)
		return
	}
	s.st = s.after
}

func (s *scanner) beginString(off int64) {
	s.named = s.st == atName || s.st == atName0
	if !s.named && !s.begin(off, '"') {
		return
	}
	s.st, s.tok, s.utf, s.bent = inString, off, off+1, false
}

func (s *scanner) endString(off int64) {
	if !s.named {
		s.end(off)
		return
	}
	s.st = atColon
	if s.role == roleNone {
		return
	}
	var lit []byte
	if s.tok >= 0 {
		lit = s.w.slice(s.tok, off)
	}
	s.v.name(s.role, off, lit)
}

// string scans a string from b[i] on, to its end or that of b, and returns the
// index after the scanned part.
func (s *scanner) string(b []byte, i int, base int64) int {
	if s.quick {
		return s.skipString(b, i, base)
	}
	for i < len(b) {
		c := b[i]
		if s.esc > 0 {
			if s.escape(c) {
				i++
			}
			continue
		}
		if s.high && c != '\\' {
			s.flags |= LoneSurrogate
			s.high = false
		}
		j, wide := special(b, i)
		s.wide = s.wide || wide
		if i = j; i == len(b) {
			break
		}
		switch b[i] {
		case '"':
			off := base + int64(i)
			if s.wide {
				s.checkUTF8(off, true)
			}
			s.endString(off + 1)
			return i + 1
		case '\\':
			s.bent = true
			if i+1 < len(b) && !s.high && shortEscape[b[i+1]] {
				i++ // nothing to remember
			} else {
				s.esc = 1
			}
		default:
			s.flags |= ControlCharacter
		}
		i++
	}
	return i
}

// skipString is string for callers that need only its end.
func (s *scanner) skipString(b []byte, i int, base int64) int {
	if s.esc > 0 {
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
			return end
		}
		i = end + 1
		if !odd {
			s.endString(base + int64(i))
			return i
		}
	}
}

// shortEscape has the letters of escapes that are over with them.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escape checks the next byte of an escape. It reports whether the byte belongs
// to it: the escape \u12" ends before the quote.
func (s *scanner) escape(c byte) bool {
	if s.esc == 1 {
		if c == 'u' {
			s.esc, s.hex = 2, 0
			return true
		}
		if !shortEscape[c] {
			s.flags |= NotJSON
			if c < ' ' {
				s.flags |= ControlCharacter
			}
			if c >= utf8.RuneSelf {
				s.wide = true
			}
		}
		s.surrogate(0)
		s.esc = 0
		return true
	}
	switch {
	case '0' <= c && c <= '9':
		c -= '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		c = c | 0x20 - 'a' + 10
	default:
		s.flags |= NotJSON
		s.surrogate(0)
		s.esc = 0
		return false
	}
	s.hex = s.hex<<4 | rune(c)
	if s.esc++; s.esc == 6 {
		s.surrogate(s.hex)
		s.esc = 0
	}
	return true
}

// surrogate records the UTF-16 code unit of an escape, 0 for any other.
func (s *scanner) surrogate(unit rune) {
	high, low := unit&^0x3FF == 0xD800, unit&^0x3FF == 0xDC00
	if s.high != low {
		s.flags |= LoneSurrogate
	}
	s.high = high
}

// checkUTF8 checks the string's bytes before off, where it ends or where a rune
// may continue in the next run.
func (s *scanner) checkUTF8(off int64, ends bool) {
	if s.wide {
		b := s.w.slice(s.utf, off)
		if !ends {
			b = b[:wholeRunes(b)]
		}
		if !utf8.Valid(b) {
			s.flags |= InvalidUTF8
		}
		s.utf += int64(len(b))
	}
	if ends || !s.wide {
		s.utf, s.wide = off, false
	}
	s.wide = s.wide && s.utf < off
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

// carriageReturn handles a CR at off that no LF follows: white space, but in a
// string a control character.
func (s *scanner) carriageReturn(off int64) {
	switch s.st {
	case inString:
		if s.esc > 0 {
			s.escape('\r')
			s.esc = 0
		}
		s.surrogate(0)
		s.flags |= ControlCharacter
	case inScalar:
		s.endScalar(off)
	case inSpace:
		s.fail(s.tok, NotJSON)
	}
}

// lineFeed handles a LF at off. In a string it is an error: no reader that
// reads values over several lines was seen to accept it there, and an open
// quote would hide all that follows.
func (s *scanner) lineFeed(off int64) {
	switch s.st {
	case inString:
		s.fail(off, NotJSON)
	case inScalar:
		s.endScalar(off)
	case inSpace:
		s.fail(s.tok, NotJSON)
	}
}

// special returns the index of the first quote, backslash or control character
// in b from i on, or len(b), and whether a byte before it is above 0x7F.
//
// Many strings end within a word of eight bytes, so one is checked first. Then
// plain skips the start of a long text.
func special(b []byte, i int) (int, bool) {
	if i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		if hits := specialBytes(x); hits != 0 {
			n := bits.TrailingZeros64(hits) &^ 7
			return i + n>>3, x&(1<<n-1)&tops != 0
		}
		if i += plain(b[i:]); i < len(b) && (b[i] == '"' || b[i] == '\\' || b[i] < ' ') {
			return i, false
		}
	}
	var seen uint64
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if hits := specialBytes(x); hits != 0 {
			n := bits.TrailingZeros64(hits) &^ 7
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

const ones, tops = 0x0101010101010101, 0x8080808080808080

// specialBytes has the top bit of each quote, backslash and control character
// among the eight bytes of x; only the lowest is exact, which is the first.
//
// Exchanging 0x20 and 0x22 puts the quote right behind the control characters,
// so that one subtraction finds both.
func specialBytes(x uint64) uint64 {
	return ((x ^ ones*2 - ones*0x21) | (x ^ ones*'\\' - ones)) &^ x & tops
}

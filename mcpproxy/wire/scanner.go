package wire

import (
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

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

// A scanner walks through text of the grammar of jsontext.Lenient without
// recursion. Its visitor interprets the values.
//
// Strings, numbers, words and white space are read by the rules of jsontext. The
// loop is the scanner's own, because it can stop and resume at any byte: a value
// may be larger than memory, and the bytes before its end are forwarded while
// they are read. jsontext.Lenient needs the whole text. TestGrammar and
// FuzzGrammar check that both read the same tokens, at any cut.
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

	str jsontext.StringScanner // of the string under way, or of the last one

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
}

// run scans b, which is in the window at offset base. b has no CR or LF:
// carriageReturn and lineFeed handle those.
func (s *scanner) run(b []byte, base int64) {
	for i := 0; i < len(b); {
		switch s.st {
		case inString:
			var ended bool
			if s.quick {
				i, ended = s.str.Skip(b, i)
			} else if i, ended = s.str.Scan(b, i); s.str.Defects != 0 {
				s.flags |= anomalyOf(s.str.Defects)
			}
			if ended {
				s.endString(base + int64(i))
			}
			continue
		case inScalar:
			if i = jsontext.Lenient(b).Scalar(i); i < len(b) {
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
			case jsontext.IsScalar(c):
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
}

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
	switch n, d := jsontext.WideSpace(s.w.slice(s.tok, off)); {
	case n > 0:
		s.oddSpace(s.tok, anomalyOf(d))
		s.st = s.after
	case n == 0:
		s.fail(s.tok, NotJSON)
	}
}

func (s *scanner) beginString(off int64) {
	s.named = s.st == atName || s.st == atName0
	if !s.named && !s.begin(off, '"') {
		return
	}
	s.st, s.tok, s.str = inString, off, jsontext.StringScanner{}
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

// carriageReturn handles a CR at off that no LF follows: white space, but in a
// string a control character.
func (s *scanner) carriageReturn(off int64) {
	switch s.st {
	case inString:
		s.str.Scan([]byte{'\r'}, 0)
		s.flags |= anomalyOf(s.str.Defects)
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

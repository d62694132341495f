package jsontext

import (
	"iter"
	"unicode/utf8"
)

// A Lenient is text of the lenient grammar, read by index. An index of -1 means
// that the text cannot be read. Nothing here recurses.
//
// The lenient grammar accepts what some server was seen to accept in place of
// strict JSON:
//
//   - white space: control characters, a byte order mark, U+0085, U+00A0,
//     U+2028 and U+2029;
//   - a comma before a closing bracket;
//   - in place of a number or a word: NaN, or any other run of letters, digits,
//     plus, minus and point;
//   - in strings: control characters except line feeds, unknown escapes, lone
//     surrogates, bytes that are not UTF-8;
//   - any depth.
type Lenient []byte

// Start returns the index of the first byte from i on that is not white space.
func (b Lenient) Start(i int) int {
	if i < len(b) && b[i]-'!' < utf8.RuneSelf-'!' {
		return i
	}
	return b.skipSpace(i)
}

func (b Lenient) skipSpace(i int) int {
	for i < len(b) {
		switch c := b[i]; {
		case c <= ' ':
			i++
		case c < utf8.RuneSelf:
			return i
		default:
			n, _ := WideSpace(b[i:])
			if n <= 0 {
				return i
			}
			i += n
		}
	}
	return i
}

// WideSpace returns the length of the white space beyond ASCII that b starts
// with, and its defect: 0 if b starts with anything else, -1 if that depends on
// bytes after b.
func WideSpace(b []byte) (n int, d Defects) {
	switch {
	case len(b) > 0 && b[0] == 0xC2:
		if len(b) < 2 {
			return -1, 0
		}
		if b[1] == 0x85 || b[1] == 0xA0 {
			return 2, Syntax
		}
	case len(b) > 0 && (b[0] == 0xE2 || b[0] == 0xEF):
		head, last, d := byte(0x80), byte(0xA8), Syntax // U+2028; U+2029 is next to it
		if b[0] == 0xEF {
			head, last, d = 0xBB, 0xBF, BOM
		}
		switch {
		case len(b) > 1 && b[1] != head:
		case len(b) < 3:
			return -1, 0
		case b[2] == last || d == Syntax && b[2] == last+1:
			return 3, d
		}
	}
	return 0, 0
}

// First returns the index of the first name or element of the object or array
// at b[i], or that after its end, and whether there is one.
func (b Lenient) First(i int) (at int, more bool) {
	closing := b[i] + 2 // ASCII: '{' and '}', '[' and ']' are two apart
	if i = b.Start(i + 1); i == len(b) {
		return -1, false
	}
	if b[i] == closing {
		return i + 1, false
	}
	return i, true
}

// Next returns the index of the name or element after the value that ends at i,
// or that after the closing bracket, and whether there is one.
func (b Lenient) Next(i int, closing byte) (at int, more bool) {
	if i = b.Start(i); i < len(b) && b[i] == ',' {
		if i = b.Start(i + 1); i < len(b) && b[i] != closing {
			return i, true
		}
	}
	if i == len(b) || b[i] != closing {
		return -1, false
	}
	return i + 1, false
}

// Name reads the name of a member at b[i] and returns it and the index of the
// member's value.
func (b Lenient) Name(i int) (name String, value int) {
	if i >= len(b) || b[i] != '"' {
		return String{}, -1
	}
	if name, i = b.String(i); i < 0 {
		return String{}, -1
	}
	if i = b.Start(i); i == len(b) || b[i] != ':' {
		return String{}, -1
	}
	if i = b.Start(i + 1); i == len(b) {
		return String{}, -1
	}
	return name, i
}

// A String is a string as it is written.
type String struct {
	Inner   []byte // between the quotes
	Escaped bool   // it has an escape
	Defects Defects
}

// Plain reports whether the string's text is Inner.
func (s String) Plain() bool { return !s.Escaped && s.Defects&BadUTF8 == 0 }

// Append appends the text of the string, in valid UTF-8: see AppendUnquote.
func (s String) Append(dst []byte) []byte {
	if s.Plain() {
		return append(dst, s.Inner...)
	}
	return appendUnquoted(dst, s.Inner)
}

// Is reports whether text is the string's text.
func (s String) Is(text string) bool {
	if s.Plain() {
		return string(s.Inner) == text
	}
	var buf [64]byte
	return string(s.Append(buf[:0])) == text
}

// String reads the string at b[i], which is a quote, and returns the index
// after it.
func (b Lenient) String(i int) (s String, next int) {
	if end, wide := special(b, i+1); end < len(b) && b[end] == '"' { // most strings
		s.Inner = b[i+1 : end]
		if wide && !utf8.Valid(s.Inner) {
			s.Defects = BadUTF8
		}
		return s, end + 1
	}
	var scan StringScanner
	next, ended := scan.Scan(b, i+1)
	if !ended {
		return String{}, -1
	}
	return String{b[i+1 : next-1], scan.Escaped, scan.Defects}, next
}

// Scalar returns the index after the number or word at b[i]; that is i if there
// is none.
func (b Lenient) Scalar(i int) int {
	for i < len(b) && classes[b[i]]&scalarByte != 0 {
		i++
	}
	return i
}

// Skip returns the index after the value at b[i].
func (b Lenient) Skip(i int) int { return b.Tokens(i, nil) }

// Members yields the members of the object that b is, in order: of any other
// value none, and of an object that cannot be read those before that place. A
// duplicate name is yielded twice.
func (b Lenient) Members() iter.Seq2[String, []byte] {
	return func(yield func(name String, value []byte) bool) {
		i := b.Start(0)
		if i == len(b) || b[i] != '{' {
			return
		}
		i, more := b.First(i)
		for more {
			name, from := b.Name(i)
			if from < 0 {
				return
			}
			to := b.Skip(from)
			if to < 0 || !yield(name, b[from:to:to]) {
				return
			}
			i, more = b.Next(to, '}')
		}
	}
}

// Elements is Members for an array.
func (b Lenient) Elements() iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := b.Start(0)
		if i == len(b) || b[i] != '[' {
			return
		}
		i, more := b.First(i)
		for more {
			to := b.Skip(i)
			if to < 0 || !yield(b[i:to:to]) {
				return
			}
			i, more = b.Next(to, ']')
		}
	}
}

// Member returns the value of the member with a name, the last one if there are
// several, nil if there is none.
func (b Lenient) Member(name string) (value []byte) {
	for n, v := range b.Members() {
		if n.Is(name) {
			value = v
		}
	}
	return value
}

// Tokens reads the value at b[i] and returns the index after it. To visit, if
// it is not nil, it passes the tokens: the single bytes of structure, without
// a comma before a closing bracket, strings, and numbers or words.
func (b Lenient) Tokens(i int, visit func(structure byte, s String, scalar []byte)) int {
	var open nesting
	for {
		if i < 0 || i == len(b) {
			return -1
		}
		more := false
		switch c := b[i]; c {
		case '{', '[':
			if visit != nil {
				visit(c, String{}, nil)
			}
			open.push(c == '{')
			if i, more = b.First(i); !more && i > 0 {
				if visit != nil {
					visit(c+2, String{}, nil)
				}
				open.pop()
			}
		case '"':
			s, next := b.String(i)
			if visit != nil && next > 0 {
				visit(0, s, nil)
			}
			i = next
		default:
			next := b.Scalar(i)
			if next == i {
				return -1
			}
			if visit != nil {
				visit(0, String{}, b[i:next])
			}
			i = next
		}
		for !more {
			if i < 0 || open.depth == 0 {
				return i
			}
			closing := open.closing()
			if i, more = b.Next(i, closing); i > 0 && visit != nil {
				if more {
					visit(',', String{}, nil)
				} else {
					visit(closing, String{}, nil)
				}
			}
			if !more {
				open.pop()
			}
		}
		if open.closing() == '}' {
			var s String
			if s, i = b.Name(i); visit != nil && i > 0 {
				visit(0, s, nil)
				visit(':', String{}, nil)
			}
		}
	}
}

// A nesting has one bit for each level of containers, set for an object.
type nesting struct {
	bits  uint64 // of the innermost levels
	outer []uint64
	depth int
}

func (n *nesting) push(object bool) {
	if n.depth&63 == 0 && n.depth > 0 {
		n.outer = append(n.outer, n.bits)
	}
	bit := uint64(1) << (n.depth & 63)
	n.bits &^= bit
	if object {
		n.bits |= bit
	}
	n.depth++
}

func (n *nesting) pop() {
	if n.depth--; n.depth&63 == 0 && n.depth > 0 {
		top := len(n.outer) - 1
		n.bits, n.outer = n.outer[top], n.outer[:top]
	}
}

// closing is the byte that closes the innermost level.
func (n *nesting) closing() byte {
	if n.bits>>((n.depth-1)&63)&1 != 0 {
		return '}'
	}
	return ']'
}

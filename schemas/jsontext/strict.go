package jsontext

import (
	"errors"
	"unicode/utf8"
)

// MaxDepth is how many levels strict text may have.
const MaxDepth = 256

// errSyntax is the error for text that is not strict JSON.
var errSyntax = errors.New("not strict JSON")

// Valid reports whether b is one strict JSON value.
func Valid(b []byte) bool {
	i := skip(b, skipBlanks(b, 0), 0)
	return i >= 0 && skipBlanks(b, i) == len(b)
}

// Members calls yield for each member of the strict JSON object obj, in order,
// with the name as written between its quotes and the value's text; both alias
// obj. It ends early when yield returns false. A duplicate name is yielded
// twice. The error may come after some yields.
func Members[T Text](obj T, yield func(name, value T) bool) error {
	i := skipBlanks(obj, 0)
	if i == len(obj) || obj[i] != '{' {
		return errSyntax
	}
	i, more := first(obj, i)
	for more {
		nameFrom := i
		nameTo, from := name(obj, i)
		if from < 0 {
			return errSyntax
		}
		to := skip(obj, from, 1)
		if to < 0 {
			return errSyntax
		}
		if !yield(obj[nameFrom+1:nameTo-1], obj[from:to]) {
			return nil
		}
		i, more = next(obj, to, '}')
	}
	return atEnd(obj, i)
}

// Elements is Members for a JSON array.
func Elements[T Text](arr T, yield func(value T) bool) error {
	i := skipBlanks(arr, 0)
	if i == len(arr) || arr[i] != '[' {
		return errSyntax
	}
	i, more := first(arr, i)
	for more {
		to := skip(arr, i, 1)
		if to < 0 {
			return errSyntax
		}
		if !yield(arr[i:to]) {
			return nil
		}
		i, more = next(arr, to, ']')
	}
	return atEnd(arr, i)
}

func atEnd[T Text](b T, i int) error {
	if i < 0 || skipBlanks(b, i) != len(b) {
		return errSyntax
	}
	return nil
}

// A Strict is strict JSON text that is read by index, for callers that read
// nested values once. An index of -1 means that the text is not strict JSON.
type Strict string

// Start returns the index of the value.
func (s Strict) Start() int { return skipBlanks(string(s), 0) }

// First returns the index of the first name or element of the object or array
// at s[i], or that after its end, and whether there is one.
func (s Strict) First(i int) (at int, more bool) { return first(string(s), i) }

// Next returns the index of the name or element after the value that ends at i,
// or that after the closing bracket, and whether there is one.
func (s Strict) Next(i int, closing byte) (at int, more bool) { return next(string(s), i, closing) }

// Name reads the name of a member at s[i] and returns the index after it and
// that of the member's value.
func (s Strict) Name(i int) (end, value int) { return name(string(s), i) }

// Skip returns the index after the value at s[i], which is in depth objects and
// arrays.
func (s Strict) Skip(i, depth int) int { return skip(string(s), i, depth) }

// The functions below return an index of -1 for text that is not strict JSON.

func skipBlanks[T Text](b T, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func first[T Text](b T, i int) (at int, more bool) {
	closing := b[i] + 2 // ASCII: '{' and '}', '[' and ']' are two apart
	if i = skipBlanks(b, i+1); i == len(b) {
		return -1, false
	}
	if b[i] == closing {
		return i + 1, false
	}
	return i, true
}

func next[T Text](b T, i int, closing byte) (at int, more bool) {
	if i = skipBlanks(b, i); i == len(b) {
		return -1, false
	}
	switch b[i] {
	case closing:
		return i + 1, false
	case ',':
		return skipBlanks(b, i+1), true
	}
	return -1, false
}

func name[T Text](b T, i int) (end, value int) {
	if end = skipString(b, i); end < 0 {
		return -1, -1
	}
	if i = skipBlanks(b, end); i == len(b) || b[i] != ':' {
		return -1, -1
	}
	return end, skipBlanks(b, i+1)
}

// skip returns the index after the value at b[i], which is in depth objects and
// arrays.
func skip[T Text](b T, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	default:
		_, _, end := number(b, i)
		return end
	}
}

func skipNested[T Text](b T, i, depth int) int {
	if depth >= MaxDepth {
		return -1
	}
	closing, object := b[i]+2, b[i] == '{'
	i, more := first(b, i)
	for more {
		if object {
			if _, i = name(b, i); i < 0 {
				return -1
			}
		}
		if i = skip(b, i, depth+1); i < 0 {
			return -1
		}
		i, more = next(b, i, closing)
	}
	return i
}

func skipString[T Text](b T, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i = clean(b, i+1); i < len(b); i = clean(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if i++; i == len(b) {
				return -1
			}
			if b[i] == 'u' {
				if _, ok := hex4(b[i+1:]); !ok {
					return -1
				}
				i += 4
			} else if classes[b[i]]&simple == 0 {
				return -1
			}
			i++
		default: // DEL and non-ASCII bytes
			r, n := decodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
	return -1
}

func skipWord[T Text](b T, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

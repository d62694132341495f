package risk

import (
	"bytes"
	"unsafe"

	"auditproxy/schemas/jsontext"
)

// The functions below read the superset of JSON that servers do: they accept
// whatever they can step over, so that nothing hides behind a small error. Each
// returns the index after the value or token at b[i], at most len(b).

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	i++
	for end := min(i+24, len(b)); i < end && b[i] != '\\'; i++ { // most strings
		if b[i] == '"' {
			return i + 1
		}
	}
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		slashes := 0
		for end-slashes > i && b[end-slashes-1] == '\\' {
			slashes++
		}
		if i = end + 1; slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipValue skips any value, without recursion. It always advances.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
			continue
		default:
			i = skipScalar(b, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

// skipScalar skips a number, a word or whatever else is there, at least a byte.
func skipScalar(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case ',', ':', '}', ']', '"', '{', '[', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

// eachMember calls yield for the members of an object until it returns false.
// name is without its quotes, and not decoded. Anything else has no members.
func eachMember(b []byte, yield func(name, value []byte) bool) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return
	}
	for i++; ; {
		for i = skipSpace(b, i); i < len(b) && b[i] == ','; i = skipSpace(b, i+1) {
		}
		if i == len(b) || b[i] == '}' {
			return
		}
		name, value, next := member(b, i)
		if !yield(name, value) {
			return
		}
		i = next
	}
}

// member reads the member at b[i].
func member(b []byte, i int) (name, value []byte, next int) {
	from := i
	if b[i] == '"' {
		i = skipString(b, i)
		name = unquoted(b[from:i])
	} else {
		i = skipScalar(b, i)
		name = b[from:i]
	}
	if i = skipSpace(b, i); i < len(b) && b[i] == ':' {
		i = skipSpace(b, i+1)
	}
	if i == len(b) || b[i] == '}' || b[i] == ',' {
		return name, nil, i
	}
	next = skipValue(b, i)
	return name, b[i:next], next
}

// eachElement calls yield for the elements of a list until it returns false.
func eachElement(b []byte, yield func(value []byte) bool) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '[' {
		return
	}
	for i++; ; {
		for i = skipSpace(b, i); i < len(b) && b[i] == ','; i = skipSpace(b, i+1) {
		}
		if i == len(b) || b[i] == ']' {
			return
		}
		next := skipValue(b, i)
		if !yield(b[i:next]) {
			return
		}
		i = next
	}
}

// memberOf returns the value of the last member with a name, nil if there is
// none.
func memberOf(b []byte, name string) (value []byte) {
	eachMember(b, func(n, v []byte) bool {
		if string(n) == name || bytes.IndexByte(n, '\\') >= 0 && string(jsontext.AppendUnquote(nil, n)) == name {
			value = v
		}
		return true
	})
	return value
}

// unquoted returns a string literal without its quotes.
func unquoted(lit []byte) []byte {
	lit = lit[1:]
	if n := len(lit); n > 0 && lit[n-1] == '"' {
		lit = lit[:n-1]
	}
	return lit
}

// text returns the text of a string literal, "" for anything else.
func text(lit []byte) string {
	if len(lit) == 0 || lit[0] != '"' {
		return ""
	}
	return string(jsontext.AppendUnquote(nil, lit))
}

// view is b as a string, for calls that do not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

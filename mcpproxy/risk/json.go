package risk

import (
	"unsafe"

	"auditproxy/schemas/jsontext"
)

// The functions below read what they can, and end where a text cannot be read.

// eachMember calls yield for the members of an object until it returns false.
func eachMember(b []byte, yield func(name string, value []byte) bool) {
	in := jsontext.Lenient(b)
	i := in.Start(0)
	if i == len(b) || b[i] != '{' {
		return
	}
	for i, more := in.First(i); more; {
		name, value := in.Name(i)
		if value < 0 {
			return
		}
		end := in.Skip(value)
		if end < 0 || !yield(string(name.Append(nil)), b[value:end]) {
			return
		}
		i, more = in.Next(end, '}')
	}
}

// eachElement calls yield for the elements of a list until it returns false.
func eachElement(b []byte, yield func(value []byte) bool) {
	in := jsontext.Lenient(b)
	i := in.Start(0)
	if i == len(b) || b[i] != '[' {
		return
	}
	for i, more := in.First(i); more; {
		end := in.Skip(i)
		if end < 0 || !yield(b[i:end]) {
			return
		}
		i, more = in.Next(end, ']')
	}
}

// memberOf returns the value of the last member with a name, nil if there is
// none.
func memberOf(b []byte, name string) (value []byte) {
	eachMember(b, func(n string, v []byte) bool {
		if n == name {
			value = v
		}
		return true
	})
	return value
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

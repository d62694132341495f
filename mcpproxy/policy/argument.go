package policy

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// An argument is a value that a policy looks at.
type argument struct {
	value []byte // strict JSON, nil if it is missing
	text  []byte // of a string: decoded once, for all conditions
	// twin means that its name is there in another case or fold too: for servers in Go
	// that is the same one. Or its text has a NUL: for servers in C it ends there.
	twin bool
	odd  bool // it is missing since what should be an object is something else

	counted bool
	chars   [2]charset // of text, and in any case; full for all but texts
}

// maxCounted is the length of the longest text whose characters are looked at
// before it is searched.
const maxCounted = 4096

// count looks at the characters of a, once. One beyond ASCII may fold to any.
func (a *argument) count() {
	if a.counted {
		return
	}
	a.counted = true
	if len(a.value) > 0 && a.value[0] != '"' || len(a.text) > maxCounted || isDocument(a.text) || !a.chars[0].add(a.text) {
		a.chars[0] = charset{math.MaxUint64, math.MaxUint64}
	}
	a.chars[1] = a.chars[0]
	a.chars[1].fold()
}

// lacks reports whether a text has not all characters that a search needs, in any
// case if fold is 1. It is false before count.
func (a *argument) lacks(need charset, fold uint8) bool {
	return a.counted && !a.chars[fold&1].has(need)
}

func argumentOf(value []byte) argument {
	a := argument{value: value}
	if len(value) > 0 && value[0] == '"' {
		a.text = unquote(value)
	}
	return a
}

// isDocument reports whether a text may be JSON, which some servers decode where they
// want more than a text: Python's FastMCP does, unless it is a number, a boolean or a text.
func isDocument(t []byte) bool {
	t = bytes.TrimSpace(t)
	return len(t) > 1 && (t[0] == '[' || t[0] == '{') || string(t) == "null"
}

// decoded returns what a server may decode a text to.
func (a *argument) decoded() (inner argument, ok bool) {
	if len(a.value) == 0 || a.value[0] != '"' || !isDocument(a.text) {
		return argument{}, false
	}
	t := bytes.TrimSpace(a.text)
	if !jsontext.Valid(t) {
		// Python reads lone surrogates, and these words, in lists and objects too.
		strict := true
		end := jsontext.Lenient(t).Tokens(0, func(_ byte, _ jsontext.String, scalar []byte) {
			word := strings.TrimPrefix(string(scalar), "-")
			strict = strict && (scalar == nil || word == "NaN" || word == "Infinity" || jsontext.Valid(scalar))
		})
		if !strict || end != len(t) {
			return argument{}, false
		}
	}
	return argumentOf(t), true
}

func kindOf(v []byte) kind {
	switch v[0] {
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return null
	case '{':
		return object
	case '[':
		return list
	}
	return number
}

// unquote returns the text of a JSON string. It aliases v if it can.
func unquote(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	return jsontext.AppendUnquote(nil, v)
}

// A path is the names that lead to an argument.
type path []string

// values finds the arguments at paths. A path leads
// through objects only. Of duplicate names the last one counts, as it does for
// servers. It returns false for what is not strict JSON: a lenient reader would
// find one of the readings that servers differ in, and each rule that asks for an
// argument denies what has more than one.
func values(arguments []byte, paths []path, found []argument) (ok bool) {
	if len(arguments) == 0 || string(arguments) == "null" {
		return true
	}
	err := jsontext.Members(arguments, func(name, value []byte) bool {
		escaped := bytes.IndexByte(name, '\\') >= 0
		for i, p := range paths {
			if string(name) == p[0] || escaped && named(name, p[0]) {
				found[i].value = value
			} else if isTwin(name, p[0]) {
				found[i].twin = true
			}
		}
		return true
	})
	if err != nil {
		return false
	}
	for i, p := range paths {
		for _, want := range p[1:] {
			inner := found[i].value
			if found[i].value = nil; len(inner) == 0 || inner[0] != '{' {
				found[i].odd = len(inner) > 0 && inner[0] != 'n'
				break
			}
			err := jsontext.Members(inner, func(name, value []byte) bool {
				if named(name, want) {
					found[i].value = value
				} else if isTwin(name, want) {
					found[i].twin = true
				}
				return true
			})
			if err != nil {
				return false
			}
		}
		if v := found[i].value; len(v) > 0 && v[0] == '"' {
			found[i].text = unquote(v)
			found[i].twin = found[i].twin || bytes.Contains(found[i].text, nul)
		}
	}
	return true
}

// isTwin reports whether a name as written between its quotes is another one that
// servers in Go take for the same (encoding/json, Unmarshal), or servers in C, whose
// strings end at a NUL.
func isTwin(name []byte, want string) bool {
	if bytes.IndexByte(name, '\\') >= 0 {
		name = jsontext.AppendUnquote(nil, name)
	} else if len(name) < len(want) || len(name) > utf8.UTFMax*len(want) {
		return false
	}
	before, _, _ := bytes.Cut(name, nul)
	return string(name) != want && bytes.EqualFold(before, []byte(want))
}

var nul = []byte{0}

// named compares a name as written between its quotes.
func named(name []byte, want string) bool {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name) == want
	}
	return string(jsontext.AppendUnquote(nil, name)) == want
}

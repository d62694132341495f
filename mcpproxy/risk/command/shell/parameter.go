package shell

import (
	"path"
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/detector"

	"mvdan.cc/sh/v3/syntax"
)

// A variable is what is known of a variable of the text.
type variable struct {
	values []string // more than one for an array
	known  bool
	from   detector.Set // what running its value would be
	ref    bool         // declared with -n: its value is the name of the variable that is meant
}

func (v variable) equal(w variable) bool {
	return v.known && w.known && len(v.values) == 1 && len(w.values) == 1 && v.values[0] == w.values[0]
}

// element returns the element of an array, or all.
func (v variable) element(index syntax.ArithmExpr) (variable, bool) {
	w, ok := index.(*syntax.Word)
	if !ok {
		return variable{from: v.from}, false
	}
	switch lit := w.Lit(); lit {
	case "@", "*":
		return v, true
	default:
		n, err := strconv.Atoi(lit)
		if err != nil {
			return variable{from: v.from}, false
		}
		if n < 0 {
			n += len(v.values)
		}
		if n < 0 || n >= len(v.values) {
			return variable{values: []string{""}, known: true, from: v.from}, true
		}
		return variable{values: v.values[n : n+1], known: true, from: v.from}, true
	}
}

// A function is one that the text defines.
type function struct {
	body   []*syntax.Stmt
	called bool
	active bool
}

// slice returns ${value:offset:length}. The first character of some variables is
// known, although they are not.
func slice(value string, ok bool, name string, sl *syntax.Slice) (string, bool) {
	offset, okOffset := integer(sl.Offset)
	length, okLength := integer(sl.Length)
	if sl.Length == nil {
		length, okLength = len(value), true
	}
	if !okOffset || !okLength {
		return "", false
	}
	if (name == "PATH" || name == "HOME" || name == "PWD") && offset == 0 && length == 1 {
		return "/", true
	}
	if !ok {
		return "", false
	}
	if offset < 0 {
		offset = max(offset+len(value), 0)
	}
	offset = min(offset, len(value))
	end := offset + length
	if length < 0 {
		end = len(value) + length
	}
	end = min(max(end, offset), len(value))
	return value[offset:end], true
}

func integer(x syntax.ArithmExpr) (int, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		n, err := strconv.Atoi(x.Lit())
		return n, err == nil
	case *syntax.UnaryArithm:
		n, ok := integer(x.X)
		return -n, ok && x.Op == syntax.Minus
	case *syntax.ParenArithm:
		return integer(x.X)
	}
	return 0, false
}

// alter applies an operator such as :- or %%.
// Given says that the variable is set, even if its value is not known.
func alter(op syntax.ParExpOperator, value string, ok, given bool, arg Field) (string, bool) {
	switch op {
	case syntax.DefaultUnset, syntax.AssignUnset:
		if ok || given {
			return value, ok
		}
		return arg.Text, !arg.Unknown
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull:
		if ok && value != "" || !ok && given {
			return value, ok
		}
		return arg.Text, !arg.Unknown
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if ok && value == "" && op == syntax.AlternateUnsetOrNull {
			return "", true
		}
		return arg.Text, !arg.Unknown
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return value, ok
	}
	if !ok {
		return "", false
	}
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(value), arg.Text == ""
	case syntax.LowerAll:
		return strings.ToLower(value), arg.Text == ""
	case syntax.UpperFirst:
		if value != "" {
			value = strings.ToUpper(value[:1]) + value[1:]
		}
		return value, arg.Text == ""
	case syntax.LowerFirst:
		if value != "" {
			value = strings.ToLower(value[:1]) + value[1:]
		}
		return value, arg.Text == ""
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if arg.Unknown || len(value) > 256 || len(arg.Text) > 64 {
			return "", false
		}
		return remove(op, value, arg.Text), true
	}
	return "", false
}

// remove returns value without what the pattern matches at one end.
func remove(op syntax.ParExpOperator, value, pattern string) string {
	// The slash is not special here, as it is for path.Match.
	v, pattern := strings.ReplaceAll(value, "/", "\x01"), strings.ReplaceAll(pattern, "/", "\x01")
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	small := op == syntax.RemSmallPrefix || op == syntax.RemSmallSuffix
	for i := 0; i <= len(v); i++ {
		n := i // the length that is removed
		if !small {
			n = len(v) - i
		}
		if prefix {
			if ok, _ := path.Match(pattern, v[:n]); ok {
				return value[n:]
			}
		} else if ok, _ := path.Match(pattern, v[len(v)-n:]); ok {
			return value[:len(v)-n]
		}
	}
	return value
}

// Package expand has what needs no state of a shell's expansions: the operators of
// parameters, such as ${x:-y} and ${x%%y}, braces, and escapes in $'…'. It is pure.
package expand

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Slice returns ${value:offset:length}. The first character of some variables is
// known, although they are not.
func Slice(value string, ok bool, name string, sl *syntax.Slice) (string, bool) {
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

// Alter applies an operator such as :- or %%.
// Given says that the variable is set, even if its value is not known.
func Alter(op syntax.ParExpOperator, value string, ok, given bool, arg string, known bool) (string, bool) {
	switch op {
	case syntax.DefaultUnset, syntax.AssignUnset:
		if ok || given {
			return value, ok
		}
		return arg, known
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull:
		if ok && value != "" || !ok && given {
			return value, ok
		}
		return arg, known
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if ok && value == "" && op == syntax.AlternateUnsetOrNull {
			return "", true
		}
		return arg, known
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return value, ok
	}
	if !ok {
		return "", false
	}
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(value), arg == ""
	case syntax.LowerAll:
		return strings.ToLower(value), arg == ""
	case syntax.UpperFirst:
		if value != "" {
			value = strings.ToUpper(value[:1]) + value[1:]
		}
		return value, arg == ""
	case syntax.LowerFirst:
		if value != "" {
			value = strings.ToLower(value[:1]) + value[1:]
		}
		return value, arg == ""
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if !known || len(value) > 256 || len(arg) > 64 {
			return "", false
		}
		return remove(op, value, arg), true
	}
	return "", false
}

// Defaults returns what ${x:-arg} and ${x-arg} are if x is one of some values, nil if that is
// not known or the operator is another one.
func Defaults(op syntax.ParExpOperator, values []string, arg string, known bool) (list []string) {
	switch op {
	case syntax.DefaultUnset, syntax.AssignUnset:
		return values
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull:
		for _, v := range values {
			if v == "" && !known {
				return nil
			} else if v == "" {
				v = arg
			}
			list = append(list, v)
		}
	}
	return list
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

// OpenBraces returns the number of braces that open in a word. What they do is found in
// a time that grows with its square: the parts in a brace are copied to the one around it.
func OpenBraces(w *syntax.Word) (n int) {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// Sequence returns the first words of {a..z} or {1..9}.
func Sequence(b *syntax.BraceExp) []*syntax.Word {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	x, errX := strconv.Atoi(from)
	y, errY := strconv.Atoi(to)
	letters := errX != nil || errY != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return b.Elems
		}
		x, y = int(from[0]), int(to[0])
	}
	step := 1
	if y < x {
		step = -1
	}
	var out []*syntax.Word
	for v := x; len(out) < 8 || letters; v += step {
		text := strconv.Itoa(v)
		if letters {
			text = string(rune(v))
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
		if v == y {
			break
		}
	}
	return out
}

// AppendANSI decodes what is between $' and '.
func AppendANSI(b []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b = append(b, v[i])
			continue
		}
		i++
		c := v[i]
		switch c {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v':
			b = append(b, "\a\b\x1b\x1b\f\n\r\t\v"[strings.IndexByte("abeEfnrtv", c)])
		case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
			base, width, from := 16, 2, i+1
			switch c {
			case 'u':
				width = 4
			case 'U':
				width = 8
			case 'x':
			default:
				base, width, from = 8, 3, i
			}
			braced := c == 'x' && from < len(v) && v[from] == '{'
			if braced {
				from, width = from+1, 8
			}
			to := from
			for to < len(v) && to-from < width && isDigit(v[to], base) {
				to++
			}
			n, err := strconv.ParseUint(v[from:to], base, 32)
			if err != nil {
				b = append(b, '\\', c)
				continue
			}
			if braced && to < len(v) && v[to] == '}' {
				to++
			}
			switch {
			case n == 0:
				return b // the word ends at a NUL
			case c == 'u' || c == 'U':
				b = utf8.AppendRune(b, rune(n))
			default:
				b = append(b, byte(n))
			}
			i = to - 1
		case 'c':
			if i++; i < len(v) {
				b = append(b, v[i]&0x1f)
			}
		case '\\', '\'', '"', '?':
			b = append(b, c)
		default:
			b = append(b, '\\', c)
		}
	}
	return b
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

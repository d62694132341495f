package literal

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// parenthesis returns where the text ends that the parenthesis at i encloses, and
// whether one closes it there.
func (r *Reader) parenthesis(i int) (to int, closed bool) {
	t := r.Text
	for depth := 0; i < len(t); i++ {
		switch {
		case t[i] == '(':
			depth++
		case t[i] == ')':
			if depth--; depth == 0 {
				return i, true
			}
		case t[i] == '"' || t[i] == '\'':
			i = r.Closing(i, 0)
		case t[i] == '\n' && depth == 1 && lex.MarkLen(t[i+1:]) > 0:
			return i, false
		}
	}
	return len(t), false
}

// substituted finds SECRET in $(echo SECRET), and in make's $(or $(NAME),SECRET), which starts
// at i.
func (r *Reader) substituted(i int) lex.Span {
	t := r.Text
	from := i + len("$(")
	to := from
	for to < len(t) && 'a' <= t[to] && t[to] <= 'z' {
		to++
	}
	switch string(t[from:to]) {
	case "echo", "printf":
	case "or", "if":
		return r.last(to)
	default:
		return lex.Span{}
	}
	from = to
	for to < len(t) && t[to] != ')' && t[to] != '|' && t[to] != '\n' {
		to++
	}
	r.spend(to - from)
	for from < to && t[from] == ' ' {
		from++
	}
	for from < to && t[to-1] == ' ' {
		to--
	}
	if bytes.Contains(t[from:to], []byte(lex.RedactedMark)) {
		to = from
	}
	return lex.Span{From: from, To: to}
}

// last finds SECRET behind the last comma of a function of make whose name ends at i.
func (r *Reader) last(i int) lex.Span {
	t, open := r.Text, 1
	v := lex.Span{}
	for to := i; to < len(t) && to-i <= maxFunction && t[to] != '\n'; to++ {
		switch t[to] {
		case ',':
			if open == 1 {
				v.From = to + 1
			}
		case '(':
			open++
		case ')':
			if open--; open > 0 {
				continue
			}
			if v.To = to; v.From == 0 || t[v.From] == '$' || lex.MarkLen(t[v.From:]) > 0 {
				return lex.Span{}
			}
			r.spend(to - i)
			return v
		}
	}
	return lex.Span{}
}

// maxFunction limits the arguments of a function of make, in bytes.
const maxFunction = 256

// Part finds the content of a part of a form (RFC 7578) whose name ends at i.
func (r *Reader) Part(i int) lex.Span {
	t := r.Text
	const disposition = "form-data"
	if !bytes.Contains(t[max(0, i-2*names.MaxPairName):i], []byte(disposition)) {
		return lex.Span{}
	}
	for n := 0; n < 8; n++ { // the line's rest, and more headers
		end := bytes.IndexByte(t[i:min(len(t), i+4*names.MaxPairName)], '\n')
		if end < 0 {
			return lex.Span{}
		}
		blank := len(bytes.TrimRight(t[i:i+end], "\r")) == 0
		if i += end + 1; blank && n > 0 {
			break
		}
	}
	to := len(t)
	if n := bytes.Index(t[i:], []byte("\n--")); n >= 0 {
		to = i + n
	}
	for to > i && t[to-1] <= ' ' {
		to--
	}
	if lex.MarkLen(t[i:to]) > 0 {
		return lex.Span{}
	}
	return lex.Span{From: i, To: to}
}

// Argument returns the string that is the argument at i, and where the argument
// ends: -1 if that is more than other bytes behind it. A string counts up to
// most bytes. Arguments of other kinds are empty strings.
func (r *Reader) Argument(i, most, other int) (v lex.Span, next int) {
	t := r.Text
	for i < len(t) && (t[i] <= ' ') {
		i++
	}
	prefix := i
	for i < len(t) && i-prefix < 2 && 'a' <= t[i]|0x20 && t[i]|0x20 <= 'z' {
		i++
	}
	if quote := lex.Backslashes(t, i); quote < len(t) && lex.Classes[t[quote]]&lex.IsQuote != 0 {
		level := quote - i
		r.Text = t[:min(len(t)-quote, most)+quote]
		v = lex.Span{From: quote + 1, To: r.Closing(quote, level)}
		r.Text = t
		i = min(v.To+level+1, len(t))
	}
	depth := 0
	for from := i; i < len(t) && i-from < other; i++ {
		c := t[i]
		if !lex.IsWordBreak(c) {
			continue
		}
		switch {
		case c == '(' || c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ',' || c == ')' || c == ']' || c == '}'):
			return v, i
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ';' && depth == 0:
			return v, i
		}
	}
	return v, -1
}

// InExpression returns the first string in an expression, such as MD5('SECRET'), or
// the whole of one without a string.
func (r *Reader) InExpression(from, to int) lex.Span {
	t := r.Text
	for from < to && t[from] <= ' ' {
		from++
	}
	for i := from; i < to; i++ {
		if lex.Classes[t[i]]&lex.IsQuote != 0 {
			v := lex.Span{From: i + 1, To: min(r.Closing(i, 0), to)}
			if bytes.HasSuffix(t[from:i], []byte("gen_salt(")) { // the name of an algorithm
				i = v.To
				continue
			}
			return v
		}
	}
	for i := from; i < to; i++ {
		if t[i] == '(' {
			return lex.Span{} // now()
		}
	}
	return lex.Span{From: from, To: to}
}

package literal

import (
	"bytes"

	"auditproxy/redact/lex"
)

// Quoted returns the string that the quote at i opens, which has level
// backslashes before it, and text attached behind the closing quote.
func (r *Reader) Quoted(i, level int) lex.Span {
	t := r.Text
	from := i + 1
	to := r.Closing(i, level)
	after := min(to+level+1, len(t))
	if from == to && level == 0 && after < len(t) && t[after] == t[i] { // """SECRET"""
		from = after + 1
		if to = len(t); bytes.Contains(t[from:], t[i:from]) {
			to = from + bytes.Index(t[from:], t[i:from])
		}
		if n := lex.MarkLen(t[from:to]); n == to-from && n > 0 {
			from = to
		}
		return lex.Span{From: from, To: to}
	}
	if n := lex.MarkLen(t[from:to]); n > 0 && (n == to-from || to == len(t) && lex.Classes[t[from+n]]&lex.IsEnd != 0) {
		from = to // it has been redacted, with the quote that closed it
	}
	for level == 0 && from < to && after < len(t) && lex.Classes[t[after]]&lex.IsQuote != 0 { // 'a'"b", as a shell joins them
		next := r.Closing(after, 0)
		if next == len(t) {
			break
		}
		to, after = next, next+1
	}
	for n := 0; n < maxRequoted && level == 0 && t[i] == '\'' && from < to && lex.RequoteLen(t[after-1:]) > 0; n++ { // 'SE'\''CRET' of a shell
		to = r.Closing(after-1+lex.RequoteLen(t[after-1:])-1, 0)
		after = min(to+1, len(t))
	}
	if after < len(t) && (lex.Classes[t[after]]&lex.IsAlnum != 0 || t[after] == '$') {
		if from == to {
			from = after // the empty quotation stays, so that the mark is not within one
		}
		to = lex.CredentialEnd(r.Text, after)
	}
	return lex.Span{From: from, To: to}
}

// Closing returns where the string ends that the quote at i opens, before the
// backslashes of its closing quote: the end of the text if it is not closed.
func (r *Reader) Closing(i, level int) int {
	t := r.Text
	if r.left < 0 {
		return len(t)
	}
	back, k := 0, i+1
	for ; k < len(t); k++ {
		switch {
		case t[k] == '\\':
			back++
			continue
		case t[k] == t[i] && back%(2*(level+1)) == level:
			r.spend(k - i)
			return k - level
		}
		back = 0
	}
	r.spend(k - i)
	return len(t)
}

// Closed returns the index behind the list or object that starts at i.
func (r *Reader) Closed(i int) int {
	t := r.Text
	depth, back, from := 0, 0, i
	for i < len(t) && r.left >= 0 {
		c := t[i]
		i++
		switch {
		case c == '\\':
			back++
			continue
		case c == '"':
			i = min(r.Closing(i-1, back)+back+1, len(t))
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				r.spend(i - from)
				return i
			}
		}
		back = 0
	}
	r.spend(i - from)
	return i
}

// maxRequoted is how many apostrophes a string of a shell has.
const maxRequoted = 16

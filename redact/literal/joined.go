package literal

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
)

// Limits of a secret that is written in parts.
const (
	maxPieces = 16  // strings that are joined
	maxJoined = 256 // bytes of one of them, and of the line before
	maxScheme = 32  // bytes of the word before it in a header
)

// BehindScheme widens the word of an Authorization header to what follows it, if that is
// a scheme of a vendor's own: "GenieKey SECRET".
func (r *Reader) BehindScheme(v lex.Span) lex.Span {
	t := r.Text
	if v.From >= v.To || v.To-v.From > maxScheme || v.To+1 >= len(t) || t[v.To] != ' ' || t[v.To+1] <= ' ' {
		return v
	}
	for _, c := range t[v.From:v.To] {
		if c != '-' && (c|0x20 < 'a' || 'z' < c|0x20) {
			return v
		}
	}
	return r.Line(v.To + 1)
}

// Joined widens a string by those that an operator, a method or a line break joins
// to it, "SE" + "CRET", and a word by the line behind a backslash.
func (r *Reader) Joined(v lex.Span) lex.Span {
	t := r.Text
	if v.From > v.To || v.From == 0 {
		return v
	}
	quote := t[v.From-1]
	if lex.Classes[quote]&lex.IsQuote == 0 {
		if v.From < v.To && v.To+1 < len(t) && t[v.To-1] == '\\' && t[v.To] == '\n' && t[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(t, v.To+1)
		}
		return v
	}
	whole, from, mixed := v, v.From, false
	p := lex.Pieces{Plain: v.From < v.To && v.From > 1 && t[v.From-2] <= ' '} // of Python and C no operator is needed
	for n := 0; n < maxPieces && v.To < len(t) && lex.Classes[t[v.To]]&lex.IsQuote != 0; n++ {
		i := p.Next(t, v.To)
		if i == 0 {
			break
		}
		v = r.Quoted(i, 0)
		if v.From >= v.To || lex.MarkLen(t[v.From:]) > 0 {
			break
		}
		mixed = mixed || t[i] != quote
		if whole.To = v.To; mixed { // with the quotes around: the first one would not be closed
			whole = lex.Span{From: from - 1, To: min(len(t), v.To+1)}
		}
	}
	return whole
}

// Pieces widens the word behind the sign at i by the quotations that a shell joins to it,
// PASSWORD=SE"CR"ET, and by a quotation mark within it: password: don't-tell.
func (r *Reader) Pieces(i int, v lex.Span) lex.Span {
	t := r.Text
	if v.From >= v.To || v.To >= len(t) || bytes.ContainsAny(t[v.From:v.To], "([{<,+") || !r.isQuoted(i, v) {
		return v // of code, or the quotation around it ends
	}
	if t[i] == '=' && v.From == i+1 {
		if to := r.joinedByShell(v.To); to > v.To {
			v.To = to
			return v
		}
	}
	for n := 0; n < maxPieces && r.isWithin(i, v); n++ {
		v.To = lex.CredentialEnd(t, v.To+1)
	}
	return v
}

// PastApostrophes widens v, the line behind the sign at i, by what is behind an apostrophe in
// it: it's SECRET.
func (r *Reader) PastApostrophes(i int, v lex.Span) lex.Span {
	for n := 0; n < maxPieces && r.isWithin(i, v) && lex.Classes[r.Text[v.To-1]]&lex.IsAlnum != 0; n++ {
		v.To = r.Line(v.To + 1).To
	}
	return v
}

// isQuoted reports whether the value v of the separator at i has no quotation mark before it, and
// one behind it that does not end a quotation that began before i in the line.
func (r *Reader) isQuoted(i int, v lex.Span) bool {
	t := r.Text
	return i < v.From && v.From < v.To && v.To < len(t) && (t[v.To] == '"' || t[v.To] == '\'') && lex.Classes[t[v.From-1]]&lex.IsQuote == 0 &&
		bytes.Count(r.lineBefore(i), t[v.To:v.To+1])%2 == 0
}

// isWithin reports whether the same mark is within a word.
func (r *Reader) isWithin(i int, v lex.Span) bool {
	return v.To+1 < len(r.Text) && lex.Classes[r.Text[v.To+1]]&lex.IsAlnum != 0 && r.isQuoted(i, v)
}

// joinedByShell returns where a word ends of which the quotation at i is a part, i if it is
// none.
func (r *Reader) joinedByShell(i int) int {
	t, to := r.Text, i
	for n := 0; n < maxPieces && to < len(t) && (t[to] == '"' || t[to] == '\''); n++ {
		end := bytes.IndexByte(t[to+1:min(len(t), to+1+maxJoined)], t[to])
		if inner := t[to+1 : to+1+max(end, 0)]; end < 0 || bytes.IndexByte(inner, '\n') >= 0 ||
			n == 0 && (end == 0 || formats.IsPlaceholder(inner) || lex.MarkLen(inner) > 0) {
			return i
		}
		to = lex.CredentialEnd(t, to+1+end+1)
	}
	return to
}

// lineBefore returns the line of t[i] up to it, or the end of that.
func (r *Reader) lineBefore(i int) []byte {
	line := r.Text[max(0, i-maxJoined):i]
	return line[bytes.LastIndexByte(line, '\n')+1:]
}

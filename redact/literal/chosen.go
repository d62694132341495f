package literal

import (
	"bytes"
	"slices"
	"strings"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// Chosen adds the strings that the expression behind the separator at i may have as its
// value, by a condition or if another value is not set: c ? "SECRET" : "SECRET",
// os.getenv("X") or "SECRET", ENV.fetch("X") { "SECRET" }. isNone reports that a string is
// no secret.
func (r *Reader) Chosen(found []lex.Span, i int, isNone func([]byte, lex.Span) bool) []lex.Span {
	line := r.Text[i+1 : min(len(r.Text), i+1+maxExpression)]
	n := r.quotes.Next(r.Text, i+1, isQuoteOrEnd) - (i + 1)
	if n <= 0 || n >= len(line) || line[n] == '\n' {
		return found
	}
	if to := bytes.IndexByte(line, '\n'); to > 0 {
		line = line[:to]
	}
	end := -1                                                      // of the expression, where that is asked
	start := len(line) - len(bytes.TrimLeft(line, "=:>~ \t\"'\\")) // what is there is read elsewhere
	for from, read := 0, 0; n >= 0 && read < maxChoices; read++ {
		quote := from + n
		to := bytes.IndexByte(line[quote+1:], line[quote])
		if next := i + 1 + len(line); to < 0 && (line[quote] == '`' || next < len(r.Text) && r.Text[next] == '\n') {
			break // it closes one
		}
		if start < quote && isChoice(line[start:quote]) {
			if end < 0 {
				end = endOf(line)
			}
			if quote >= end {
				break
			}
			if v := r.choice(i+1+quote, isNone); v.From < v.To && !slices.Contains(found[max(0, len(found)-maxJudged):], v) {
				found = append(found, v)
			}
		}
		if to < 0 {
			break
		}
		from = quote + 1 + to + 1
		n = bytes.IndexAny(line[from:], "\"'`")
	}
	return found
}

// choice returns the string that the quote at i opens if it may be a secret. It is judged
// once for all names before it, of which each has an expression that reaches to it.
func (r *Reader) choice(i int, isNone func([]byte, lex.Span) bool) lex.Span {
	for _, c := range r.choices {
		if c.quote == i {
			return c.value
		}
	}
	v := r.Quoted(i, 0)
	if w := r.Text[v.From:max(v.From, v.To)]; len(w) == 0 || len(w) == 1 && lex.Classes[w[0]]&lex.IsAlnum == 0 || lex.MarkLen(w) > 0 || formats.IsPlaceholder(w) ||
		prose.IsLabel(w) || r.Names.IsPairName(&r.name, w) || isNone(r.Text, v) {
		v = lex.Span{}
	}
	if len(r.choices) == maxJudged {
		r.choices = append(r.choices[:0], r.choices[1:]...)
	}
	r.choices = append(r.choices, choice{i, v})
	return v
}

func isQuoteOrEnd(c byte) bool { return c == '"' || c == '\'' || c == '`' || c == '\n' }

// isChoice reports whether the string behind b, the start of an expression, may be its value.
func isChoice(b []byte) bool {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	if len(b) < 2 {
		return false
	}
	switch b[len(b)-1] {
	case '?':
		return true
	case ':':
		return bytes.IndexByte(b, '?') > 0
	case '|', '/':
		return endsIn(b, "||", "//", "|_|")
	case '{':
		return endsIn(b, ") {", "else {") || bytes.HasPrefix(b, []byte("if "))
	case '(':
		return strings.IndexByte("ret", b[len(b)-2]) >= 0 && endsIn(b, "_or(", "Or(", ".or(", "Else(", "_else(", "Default(", "_default(", ".default(")
	case ',': // of Go
		return endsIn(b, "),") && bytes.HasPrefix(b, []byte("cmp.Or("))
	}
	return strings.IndexByte("rden", b[len(b)-1]) >= 0 && endsIn(b, " or", " and", " else", " Else", " then", " Then") && !isSentence(b)
}

// isSentence reports whether b starts with two words, of which none is an operator.
func isSentence(b []byte) bool {
	first, rest, _ := bytes.Cut(b, []byte(" "))
	second, _, more := bytes.Cut(rest, []byte(" "))
	switch string(first) {
	case "if", "If", "not", "await", "new":
		return false
	}
	switch string(second) {
	case "or", "and", "if", "else":
		return false
	}
	return more && lex.IsWords(first) && lex.IsWords(second)
}

func endsIn(b []byte, ends ...string) bool {
	for _, end := range ends {
		if bytes.HasSuffix(b, []byte(end)) {
			return true
		}
	}
	return false
}

// endOf returns where the expression that b starts with ends: with its line, or where
// another name gets a value, or a bracket around it is closed.
func endOf(b []byte) int {
	asked, depth := false, 0
	first := len(b) - len(bytes.TrimLeft(b, "=:>~ \t"))
	first = max(first, lex.After(b, first, "<%=")) // of a template of Ruby
	for k := first; k < len(b); k++ {
		switch b[k] {
		case '\n':
			return k
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return k
			}
		case '?':
			asked = true
		case ';':
			return k
		case ',':
			if depth == 0 {
				return k
			}
		case ':', '=':
			if depth == 0 && !asked && k > first && bytes.IndexByte([]byte("=!<>:"), b[k-1]) < 0 && (k+1 == len(b) || bytes.IndexByte([]byte(":=>~"), b[k+1]) < 0) {
				return k
			}
		}
	}
	return len(b)
}

// maxExpression and maxChoices limit what is read of an expression, in bytes and in strings.
const (
	maxExpression = 256
	maxChoices    = 6
	maxJudged     = 2 * maxChoices // two names can pair the same quotes otherwise
)

// BeforeCommand returns what of the words at v comes before a command that has the variable, or
// the next one: PASSPHRASE=SECRET borg list /srv, PASSPHRASE=SECRET; ls. A passphrase may have
// several words, and signs in them, so the command must have a path, or the sign be behind the
// first word.
func BeforeCommand(t []byte, v lex.Span) lex.Span {
	if v.From >= v.To || lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
		return v
	}
	b := t[v.From:v.To]
	to := bytes.IndexAny(b, " ;|&")
	if to <= 0 {
		return v
	}
	rest := bytes.TrimLeft(b[to:], " ")
	if ends := bytes.TrimLeft(rest, ";|&"); len(ends) < len(rest) && len(ends) > 0 && ends[0] != ' ' {
		return v
	} else if len(ends) == len(rest) && !hasPath(rest) {
		return v
	}
	return lex.Span{From: v.From, To: v.From + to}
}

// hasPath reports whether a word of b behind the first is a path or a URL.
func hasPath(b []byte) bool {
	return bytes.Contains(b, []byte(" /")) || bytes.Contains(b, []byte(" ~/")) || bytes.Contains(b, []byte(" ./")) || bytes.Contains(b, []byte("://"))
}

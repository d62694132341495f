package literal

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// Chosen adds the strings that the expression behind the separator at i may have as its
// value, by a condition or if another value is not set: c ? "SECRET" : "SECRET",
// os.getenv("X") or "SECRET", ENV.fetch("X") { "SECRET" }.
func (r *Reader) Chosen(found []lex.Span, i int) []lex.Span {
	line := r.Text[i+1 : min(len(r.Text), i+1+maxExpression)]
	n := bytes.IndexAny(line, "\"'`\n")
	if n <= 0 || line[n] == '\n' {
		return found
	}
	if end := bytes.IndexByte(line, '\n'); end > 0 {
		line = line[:end]
	}
	for from, strings := 0, 0; n >= 0 && strings < maxChoices; strings++ {
		quote := from + n
		to := bytes.IndexByte(line[quote+1:], line[quote])
		if next := i + 1 + len(line); to < 0 && (line[quote] == '`' || next < len(r.Text) && r.Text[next] == '\n') {
			break // it closes one
		}
		if isChoice(line[:quote]) && !endsExpression(line[:quote]) {
			v := r.Quoted(i+1+quote, 0)
			if w := r.Text[v.From:max(v.From, v.To)]; len(w) > 0 && (len(w) > 1 || lex.Classes[w[0]]&lex.IsAlnum != 0) && lex.MarkLen(w) == 0 && !formats.IsPlaceholder(w) && !prose.IsLabel(w) && !r.Names.IsPairName(&r.name, w) {
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

// isChoice reports whether the string behind b, the start of an expression, may be its value.
// What is at its start is read elsewhere.
func isChoice(b []byte) bool {
	if b = bytes.TrimLeft(bytes.TrimRight(b, " \t"), "=:>~ \t\"'\\"); len(b) < 2 {
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
		return endsIn(b, "_or(", "Or(", ".or(", "Else(", "_else(", "Default(", "_default(", ".default(")
	case ',': // of Go
		return endsIn(b, "),") && bytes.HasPrefix(b, []byte("cmp.Or("))
	}
	return endsIn(b, " or", " and", " else", " Else", " then", " Then") && !isSentence(b)
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

// endsExpression reports whether the expression that b starts with ends in it: another name
// gets a value, or a bracket around it is closed.
func endsExpression(b []byte) bool {
	b = bytes.TrimLeft(b, "=:>~ \t")
	asked, depth := false, 0
	for k, c := range b {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return true
			}
		case '?':
			asked = true
		case ';':
			return true
		case ',':
			if depth == 0 {
				return true
			}
		case ':', '=':
			if depth == 0 && !asked && k > 0 && bytes.IndexByte([]byte("=!<>:"), b[k-1]) < 0 && (k+1 == len(b) || bytes.IndexByte([]byte(":=>~"), b[k+1]) < 0) {
				return true
			}
		}
	}
	return false
}

// maxExpression and maxChoices limit what is read of an expression, in bytes and in strings.
const (
	maxExpression = 256
	maxChoices    = 6
)

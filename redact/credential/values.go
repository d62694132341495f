package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// value finds the value assigned by the separator before i.
func (s *Scanner) value(i int) lex.Span {
	t, separator := s.text, s.text[i-1]
	for i < len(t) && (t[i] == '=' || t[i] == ':' || t[i] == '>' || t[i] == '~') {
		i++
	}
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i < len(t) && (t[i] == '\n' || t[i] == '\r' || t[i] == '|' || t[i] == '>') {
		return s.below(i)
	}
	if n := lex.MarkLen(t[i:]); n > 0 {
		return lex.Span{From: i + n, To: lex.CredentialEnd(s.text, i+n)} // it has been redacted
	}
	open := lex.Backslashes(t, i)
	switch {
	case open == len(t):
		return lex.Span{From: i, To: open}
	case lex.Classes[t[open]]&lex.IsQuote != 0:
		return s.quoted(open, open-i)
	case t[i] == '[' || t[i] == '{':
		to := s.closed(i)
		if t[i] == '[' { // []string{"SECRET"}
			k := to
			for k < len(t) && k-to < 32 && (lex.Classes[t[k]]&lex.IsName != 0 || t[k] == '*') {
				k++
			}
			if k < len(t) && t[k] == '{' && isType(t[to:k]) {
				to = s.closed(k)
			}
		}
		return lex.Span{From: i, To: to}
	case separator == ':' && i+1 < len(t) && (t[i] == '-' || t[i] == '+' || t[i] == '?') && lex.Classes[t[i+1]]&lex.IsQuote != 0: // ${NAME:-"SECRET"}
		return s.quoted(i+1, 0)
	case lex.PrefixLen(t[i:]) > 0:
		return s.quoted(i+lex.PrefixLen(t[i:]), 0)
	case t[i] == '(':
		return lex.Span{From: i, To: s.parenthesis(i)}
	case bytes.HasPrefix(t[i:], []byte("${{")):
		if n := bytes.Index(t[i:min(len(t), i+names.MaxPairName)], []byte("}}")); n > 0 {
			return lex.Span{From: i, To: i + n + len("}}")}
		}
	case t[i] == '$' && i+1 < len(t) && t[i+1] == '(':
		if v := s.substituted(i); v.From < v.To {
			return v
		}
	case (t[i] == '!' || t[i] == '&') && separator == ':' && i+1 < len(t) && (lex.Classes[t[i+1]]&lex.IsAlnum != 0 || t[i+1] == '!'):
		// A tag or an anchor of YAML.
		k := i
		for k < len(t) && t[k] > ' ' {
			k++
		}
		if k+1 < len(t) && t[k] == ' ' && t[k+1] > ' ' && t[k+1] != '#' {
			return lex.Span{From: i, To: max(k, s.value(k+1).To)}
		}
	}
	to := lex.CredentialEnd(s.text, i)
	if to > i && to < len(t) && t[to-1] == '(' && t[to] == ')' && lex.IsWords(t[i:to-1]) {
		return lex.Span{} // getpass.getpass()
	}
	if to > i && to < len(t) && (t[to-1] == '(' || t[to-1] == '[') && lex.Classes[t[to]]&lex.IsQuote != 0 {
		v := s.quoted(to, 0)
		if v.To-v.From <= names.MaxPairName && s.Names.IsPairName(&s.name, t[v.From:v.To]) {
			return lex.Span{} // os.getenv("PASSWORD")
		}
		if t[to-1] == '(' {
			return lex.Span{From: to, To: s.parenthesis(to-1) - 1}
		}
	}
	if isType(t[i:to]) {
		k := to
		for k < len(t) && t[k] == ' ' {
			k++
		}
		if k+1 < len(t) && t[k] == '=' && t[k+1] != '=' {
			return s.value(k + 1)
		}
	}
	if to < len(t) && (t[to] == ' ' || t[to] == '\t') && isScheme(t[i:to]) {
		line := lex.HasFoldSuffix(t[i:to], "digest") || lex.HasFoldSuffix(t[i:to], "sha256") // has members
		for i = to; i < len(t) && (t[i] == ' ' || t[i] == '\t'); i++ {
		}
		if end := lex.CredentialEnd(s.text, i); end > i && end < len(t) && t[end-1] == '=' && t[end] == '"' {
			line = true // Token token="SECRET"
		}
		if line {
			for to = i; to < len(t) && t[to] >= ' '; to++ {
			}
			return lex.Span{From: i, To: to}
		}
		if s.schemes < maxSchemes { // "token token token" is read once
			s.schemes++
			v := s.value(i)
			s.schemes--
			return v
		}
	}
	return lex.Span{From: i, To: to}
}

// maxSchemes is how many schemes are read one behind the other.
const maxSchemes = 3

// below finds the value in the lines under a name, whose line ends at i: YAML's
// block scalars, and a value one line down. It is indented or quoted.
func (s *Scanner) below(i int) lex.Span {
	t := s.text
	block := t[i] == '|' || t[i] == '>'
	for block && i < len(t) && bytes.IndexByte([]byte("|>+-123456789 "), t[i]) >= 0 {
		i++
	}
	line := i
	for i < len(t) && (t[i] == '\r' || t[i] == '\n') {
		i++
	}
	if i == line {
		return lex.Span{}
	}
	first := i
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i == len(t) || t[i] <= ' ' || lex.MarkLen(t[i:]) > 0 {
		return lex.Span{}
	}
	if !block {
		if lex.Classes[t[i]]&lex.IsQuote != 0 {
			return s.quoted(i, 0)
		}
		to := lex.CredentialEnd(s.text, i)
		if i == first || to > i && t[to-1] == ':' || t[i] == '-' || to < len(t) && t[to] > ' ' || to < len(t) && t[to] == ' ' {
			return lex.Span{} // another member, or a sentence
		}
		return lex.Span{From: i, To: to}
	}
	if i == first {
		return lex.Span{}
	}
	from, to := i, i
	for {
		for i < len(t) && t[i] != '\n' {
			i++
		}
		for to = i; i < len(t) && t[i] == '\n'; i++ {
		}
		if i == len(t) || t[i] != ' ' && t[i] != '\t' {
			break
		}
		indent := i
		for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
			i++
		}
		if i-indent < from-first {
			break
		}
	}
	for k := from; k < to; k++ {
		if t[k] == '[' && lex.MarkLen(t[k:]) > 0 {
			return lex.Span{From: from, To: k}
		}
	}
	return lex.Span{From: from, To: to}
}

// shortValue is value for a text that is scanned again if it names nothing:
// only the start of a long one is.
func (s *Scanner) shortValue(i int) lex.Span {
	t := s.text
	s.text = t[:min(len(t), i+names.MaxPairName+32)]
	v := s.value(i)
	s.text = t
	return v
}

// isScheme reports whether b is the scheme before a token in a header (RFC
// 9110, 11.4).
func isScheme(b []byte) bool {
	for _, scheme := range []string{"basic", "bearer", "token", "digest", "negotiate", "apikey", "dpop", "api-token", "oauth", "aws4-hmac-sha256"} {
		if len(b) == len(scheme) && lex.HasFoldSuffix(b, scheme) {
			return true
		}
	}
	return false
}

// quoted returns the string that the quote at i opens, which has level
// backslashes before it, and text attached behind the closing quote.
func (s *Scanner) quoted(i, level int) lex.Span {
	t := s.text
	from := i + 1
	to := s.closing(i, level)
	after := min(to+level+1, len(t))
	if from == to && level == 0 && after < len(t) && t[after] == t[i] { // """SECRET"""
		from = after + 1
		if to = bytes.Index(t[from:], t[i:from]); to < 0 {
			return lex.Span{From: from, To: len(t)}
		}
		to += from
		if n := lex.MarkLen(t[from:to]); n == to-from && n > 0 {
			from = to
		}
		return lex.Span{From: from, To: to}
	}
	if n := lex.MarkLen(t[from:to]); n == to-from && n > 0 {
		from = to // it has been redacted
	}
	if after < len(t) && (lex.Classes[t[after]]&lex.IsAlnum != 0 || t[after] == '$') {
		if from == to {
			from = after // the empty quotation stays, so that the mark is not within one
		}
		to = lex.CredentialEnd(s.text, after)
	}
	return lex.Span{From: from, To: to}
}

// closing returns where the string ends that the quote at i opens, before the
// backslashes of its closing quote: the end of the text if it is not closed.
func (s *Scanner) closing(i, level int) int {
	t := s.text
	back := 0
	for k := i + 1; k < len(t); k++ {
		switch {
		case t[k] == '\\':
			back++
			continue
		case t[k] == t[i] && back%(2*(level+1)) == level:
			return k - level
		}
		back = 0
	}
	return len(t)
}

// closed returns the index behind the list or object that starts at i.
func (s *Scanner) closed(i int) int {
	t := s.text
	depth, back := 0, 0
	for i < len(t) {
		c := t[i]
		i++
		switch {
		case c == '\\':
			back++
			continue
		case c == '"':
			i = min(s.closing(i-1, back)+back+1, len(t))
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
		back = 0
	}
	return i
}

// parenthesis returns the index behind the text that the parenthesis at i
// encloses.
func (s *Scanner) parenthesis(i int) int {
	t := s.text
	for depth := 0; i < len(t); i++ {
		switch {
		case t[i] == '(':
			depth++
		case t[i] == ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case t[i] == '"' || t[i] == '\'':
			i = s.closing(i, 0)
		case t[i] == '\n' && depth == 1 && lex.MarkLen(t[i+1:]) > 0:
			return i
		}
	}
	return len(t)
}

// substituted finds SECRET in $(echo SECRET), which starts at i.
func (s *Scanner) substituted(i int) lex.Span {
	t := s.text
	from := i + len("$(")
	to := from
	for to < len(t) && 'a' <= t[to] && t[to] <= 'z' {
		to++
	}
	if word := string(t[from:to]); word != "echo" && word != "printf" {
		return lex.Span{}
	}
	from = to
	for to < len(t) && t[to] != ')' && t[to] != '|' && t[to] != '\n' {
		to++
	}
	for from < to && t[from] == ' ' {
		from++
	}
	for from < to && t[to-1] == ' ' {
		to--
	}
	return lex.Span{From: from, To: to}
}

// line returns the text from i to the end of the line or quotation: a Cookie
// header holds several credentials with "; " between them.
func (s *Scanner) line(i int) lex.Span {
	t := s.text
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i < len(t) && (t[i] == '\\' && !lex.IsEscape(t[i:]) || lex.Classes[t[i]]&lex.IsQuote != 0 || t[i] == '[' || t[i] == '{') {
		return s.value(i)
	}
	to := i
	for to < len(t) && t[to] >= ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 {
		if next := lex.Backslashes(t, to); next > to {
			if next == len(t) || t[next] != 'u' {
				break // the end of a string or line in a string
			}
			to = next
			continue
		}
		if n := lex.MarkLen(t[to:]); n > 0 {
			if to == i {
				i += n
				to = i
				continue
			}
			break
		}
		to++
	}
	return lex.Span{From: i, To: to}
}

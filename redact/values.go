package redact

import "bytes"

// value finds the value assigned by the separator before i.
func (s *scanner) value(i int) span {
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
	if n := markLen(t[i:]); n > 0 {
		return span{i + n, s.credentialEnd(i + n)} // it has been redacted
	}
	open := backslashes(t, i)
	switch {
	case open == len(t):
		return span{i, open}
	case classes[t[open]]&isQuote != 0:
		return s.quoted(open, open-i)
	case t[i] == '[' || t[i] == '{':
		to := s.closed(i)
		if t[i] == '[' { // []string{"SECRET"}
			k := to
			for k < len(t) && k-to < 32 && (classes[t[k]]&isName != 0 || t[k] == '*') {
				k++
			}
			if k < len(t) && t[k] == '{' && isType(t[to:k]) {
				to = s.closed(k)
			}
		}
		return span{i, to}
	case separator == ':' && i+1 < len(t) && (t[i] == '-' || t[i] == '+' || t[i] == '?') && classes[t[i+1]]&isQuote != 0: // ${NAME:-"SECRET"}
		return s.quoted(i+1, 0)
	case prefixLen(t[i:]) > 0:
		return s.quoted(i+prefixLen(t[i:]), 0)
	case t[i] == '(':
		return span{i, s.parenthesis(i)}
	case bytes.HasPrefix(t[i:], []byte("${{")):
		if n := bytes.Index(t[i:min(len(t), i+maxPairName)], []byte("}}")); n > 0 {
			return span{i, i + n + len("}}")}
		}
	case t[i] == '$' && i+1 < len(t) && t[i+1] == '(':
		if v := s.substituted(i); v.from < v.to {
			return v
		}
	case (t[i] == '!' || t[i] == '&') && separator == ':' && i+1 < len(t) && (classes[t[i+1]]&isAlnum != 0 || t[i+1] == '!'):
		// A tag or an anchor of YAML.
		k := i
		for k < len(t) && t[k] > ' ' {
			k++
		}
		if k+1 < len(t) && t[k] == ' ' && t[k+1] > ' ' && t[k+1] != '#' {
			return span{i, max(k, s.value(k+1).to)}
		}
	}
	to := s.credentialEnd(i)
	if to > i && to < len(t) && t[to-1] == '(' && t[to] == ')' && isWords(t[i:to-1]) {
		return span{} // getpass.getpass()
	}
	if to > i && to < len(t) && (t[to-1] == '(' || t[to-1] == '[') && classes[t[to]]&isQuote != 0 {
		v := s.quoted(to, 0)
		if v.to-v.from <= maxPairName && s.names.isPairName(&s.name, t[v.from:v.to]) {
			return span{} // os.getenv("PASSWORD")
		}
		if t[to-1] == '(' {
			return span{to, s.parenthesis(to-1) - 1}
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
		line := hasFoldSuffix(t[i:to], "digest") || hasFoldSuffix(t[i:to], "sha256") // has members
		for i = to; i < len(t) && (t[i] == ' ' || t[i] == '\t'); i++ {
		}
		if line {
			for to = i; to < len(t) && t[to] >= ' '; to++ {
			}
			return span{i, to}
		}
		return s.value(i)
	}
	return span{i, to}
}

// prefixLen returns the length of the prefix of the string that b starts with:
// b"SECRET", N'SECRET'.
func prefixLen(b []byte) int {
	n := 0
	for n < len(b) && n < 2 && bytes.IndexByte([]byte("bBrRfFuUNEL$@"), b[n]) >= 0 {
		n++
	}
	if n == 0 || n == len(b) || b[n] != '"' && b[n] != '\'' {
		return 0
	}
	return n
}

// below finds the value in the lines under a name, whose line ends at i: YAML's
// block scalars, and a value one line down. It is indented or quoted.
func (s *scanner) below(i int) span {
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
		return span{}
	}
	first := i
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i == len(t) || t[i] <= ' ' || markLen(t[i:]) > 0 {
		return span{}
	}
	if !block {
		if classes[t[i]]&isQuote != 0 {
			return s.quoted(i, 0)
		}
		to := s.credentialEnd(i)
		if i == first || to > i && t[to-1] == ':' || t[i] == '-' || to < len(t) && t[to] > ' ' || to < len(t) && t[to] == ' ' {
			return span{} // another member, or a sentence
		}
		return span{i, to}
	}
	if i == first {
		return span{}
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
		if t[k] == '[' && markLen(t[k:]) > 0 {
			return span{from, k}
		}
	}
	return span{from, to}
}

// shortValue is value for a text that is scanned again if it names nothing:
// only the start of a long one is.
func (s *scanner) shortValue(i int) span {
	t := s.text
	s.text = t[:min(len(t), i+maxPairName+32)]
	v := s.value(i)
	s.text = t
	return v
}

// isScheme reports whether b is the scheme before a token in a header (RFC
// 9110, 11.4).
func isScheme(b []byte) bool {
	for _, scheme := range []string{"basic", "bearer", "token", "digest", "negotiate", "apikey", "dpop", "api-token", "oauth", "aws4-hmac-sha256"} {
		if len(b) == len(scheme) && hasFoldSuffix(b, scheme) {
			return true
		}
	}
	return false
}

// quoted returns the string that the quote at i opens, which has level
// backslashes before it, and text attached behind the closing quote.
func (s *scanner) quoted(i, level int) span {
	t := s.text
	from := i + 1
	to := s.closing(i, level)
	after := min(to+level+1, len(t))
	if n := markLen(t[from:to]); n == to-from && n > 0 {
		from = to // it has been redacted
	}
	if after < len(t) && (classes[t[after]]&isAlnum != 0 || t[after] == '$') {
		if from == to {
			from = after // the empty quotation stays, so that the mark is not within one
		}
		to = s.credentialEnd(after)
	}
	return span{from, to}
}

// closing returns where the string ends that the quote at i opens, before the
// backslashes of its closing quote: the end of the text if it is not closed.
func (s *scanner) closing(i, level int) int {
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
func (s *scanner) closed(i int) int {
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
func (s *scanner) parenthesis(i int) int {
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
		case t[i] == '\n' && depth == 1 && markLen(t[i+1:]) > 0:
			return i
		}
	}
	return len(t)
}

// substituted finds SECRET in $(echo SECRET), which starts at i.
func (s *scanner) substituted(i int) span {
	t := s.text
	from := i + len("$(")
	to := from
	for to < len(t) && 'a' <= t[to] && t[to] <= 'z' {
		to++
	}
	if word := string(t[from:to]); word != "echo" && word != "printf" {
		return span{}
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
	return span{from, to}
}

// line returns the text from i to the end of the line or quotation: a Cookie
// header holds several credentials with "; " between them.
func (s *scanner) line(i int) span {
	t := s.text
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i < len(t) && (t[i] == '\\' && !isEscape(t[i:]) || classes[t[i]]&isQuote != 0 || t[i] == '[' || t[i] == '{') {
		return s.value(i)
	}
	to := i
	for to < len(t) && t[to] >= ' ' && classes[t[to]]&isQuote == 0 {
		if next := backslashes(t, to); next > to {
			if next == len(t) || t[next] != 'u' {
				break // the end of a string or line in a string
			}
			to = next
			continue
		}
		if n := markLen(t[to:]); n > 0 {
			if to == i {
				i += n
				to = i
				continue
			}
			break
		}
		to++
	}
	return span{i, to}
}

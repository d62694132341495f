package credential

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// tagged finds the content of an XML element of a sensitive name, or with an
// attribute that names a secret, whose start tag ends at i.
func (s *Scanner) tagged(i int) lex.Span {
	t := s.text
	first := i
	for first > s.from && lex.Classes[t[first-1]]&lex.IsName != 0 {
		first--
	}
	last := i
	if i > s.from && lex.Classes[t[i-1]]&lex.IsQuote != 0 { // a tag with attributes
		for first = i; first > s.from && i-first < maxPair && t[first-1] != '<' && t[first-1] != '>'; {
			first--
		}
		for last = first; last < i && (lex.Classes[t[last]]&lex.IsName != 0 || t[last] == ':'); {
			last++
		}
	} else if first > s.from && t[first-1] == ':' { // a name space
		for first > s.from && (lex.Classes[t[first-1]]&lex.IsName != 0 || t[first-1] == ':') {
			first--
		}
	}
	if at := bytes.LastIndexByte(t[first:last], ':'); at >= 0 && first > s.from && t[first-1] == '<' {
		first += at + 1
	}
	isTag := first > s.from && (t[first-1] == '<' || t[first-1] == ':') && first < last
	if !isTag && i >= s.pair {
		return lex.Span{}
	}
	from := i + 1
	for from < len(t) && t[from] <= ' ' {
		from++
	}
	const data = "<![CDATA["
	if bytes.HasPrefix(t[from:], []byte(data)) {
		from += len(data)
	}
	to := from
	for to < len(t) && t[to] != '<' && (t[to] != ']' || !bytes.HasPrefix(t[to:], []byte("]]>"))) && t[to] != '[' && t[to] != '>' {
		to++
	}
	if to+1 < len(t) && t[to] == '<' && t[to+1] != '/' && t[to+1] != '!' && bytes.IndexByte(t[from:to], ' ') >= 0 {
		return lex.Span{} // a type parameter: List<Token> tokens = new ArrayList<>()
	}
	closing := bytes.HasPrefix(t[to:], []byte("</"))
	if !closing && i+2 < len(t) && (t[i+1] == ' ' && t[i+2] == ' ' || lex.Classes[t[i+1]]&lex.IsQuote != 0) {
		return lex.Span{} // of a usage: --user <user:password>  The user and the password
	}
	if closing && prose.IsLabel(t[from:to]) {
		return lex.Span{} // <string name="password_hint">Enter your password</string>
	}
	for to > from && t[to-1] <= ' ' {
		to--
	}
	if from == to && isTag && to < len(t) && names.IsValueTag(t[to+1:]) && s.sensitiveName(t[first:last], names.NoWhole) {
		s.pair = min(len(t), to+maxPair) // <password><value>SECRET</value></password>
	}
	if from == to && isTag && last < i && to+1 < len(t) && t[to] == '<' && t[to+1] != '/' && s.Names.IsPairName(&s.name, attribute(t[last:i])) {
		s.element = min(len(t), to+maxPair) // <elementProp name="password"><stringProp name="Argument.value">SECRET
	}
	if from == to || first > s.from && first < i && t[first-1] == '/' {
		return lex.Span{}
	}
	if lex.MarkLen(t[from:]) > 0 {
		s.pair = 0
		return lex.Span{}
	}
	switch {
	case isTag && s.sensitiveName(t[first:last], names.NoWhole):
	case isTag && last < i && i < s.pair && closing: // <property name="PASSWORD">SECRET</property>
		s.pair = 0
	case isTag && last < i && i < s.element && closing && names.RoleOf(attribute(t[last:i])) == names.ValueRole:
	case isTag && names.RoleOf(t[first:last]) == names.NameRole:
		if s.named(lex.Span{From: from, To: to}) {
			s.pair = min(len(t), to+maxPair)
		}
		return lex.Span{}
	case i < s.pair && t[i-1] != '/' && (!isTag || last < i && closing || names.RoleOf(t[first:last]) == names.ValueRole):
		s.pair = 0
	default:
		return lex.Span{}
	}
	return lex.Span{From: from, To: to}
}

// attribute returns the value of the attribute "name" among those of a tag.
func attribute(b []byte) []byte {
	const name = ` name="`
	at := bytes.Index(b, []byte(name))
	if at < 0 {
		return nil
	}
	value, _, _ := bytes.Cut(b[at+len(name):], []byte(`"`))
	return value
}

// manifests adds the values of a Kubernetes Secret under any names, also those of kubectl.
func (s *Scanner) manifests(commands bool) {
	t := s.text
	if !names.IsManifest(t) && (!commands || !bytes.Contains(t, []byte("patch secret"))) { // of kubectl
		return
	}
	for _, name := range []string{"data", "stringData"} {
		for at := 0; ; {
			n := bytes.Index(t[at:], []byte(name))
			if n < 0 {
				break
			}
			at += n + len(name)
			i := at
			for i < len(t) && (lex.Classes[t[i]]&lex.IsQuote != 0 || t[i] == '\\' || t[i] == ' ') {
				i++
			}
			if i == len(t) || t[i] != ':' || at > len(name) && lex.Classes[t[at-len(name)-1]]&lex.IsName != 0 {
				continue
			}
			for i++; i < len(t) && t[i] == ' '; i++ {
			}
			if i < len(t) && t[i] == '{' {
				to := s.values.Closed(i)
				s.found = append(s.found, lex.Span{From: i, To: to})
				at = to
				continue
			}
			if i < len(t) && (t[i] == '\n' || t[i] == '\r') {
				at = s.block(i, lex.IndentAt(t, at-len(name)))
			}
		}
	}
	s.merge()
}

// block adds the values in the lines behind i that are indented by more than
// outer bytes, and returns where they end.
func (s *Scanner) block(i, outer int) int {
	t := s.text
	for i < len(t) {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			return len(t)
		}
		i += end + 1
		stop := bytes.IndexByte(t[i:], '\n')
		if stop < 0 {
			stop = len(t) - i
		}
		line := t[i : i+stop]
		if indent := len(line) - len(bytes.TrimLeft(line, " \t")); indent <= outer && indent < len(bytes.TrimRight(line, "\r")) {
			return i
		}
		colon := bytes.IndexByte(line, ':')
		from := i + colon + 1
		for from < i+stop && (t[from] <= ' ' || lex.Classes[t[from]]&lex.IsQuote != 0) {
			from++
		}
		to := i + stop
		for to > from && (t[to-1] <= ' ' || lex.Classes[t[to-1]]&lex.IsQuote != 0) {
			to--
		}
		if from < to && lex.MarkLen(t[from:]) == 0 && !formats.IsPlaceholder(t[from:to]) {
			s.found = append(s.found, lex.Span{From: from, To: to})
		}
	}
	return i
}

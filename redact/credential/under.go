package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// isPlural reports whether s.name, a sensitive name, is one of several secrets:
// "tokens", "api_keys", but not "pass".
func (s *Scanner) isPlural() bool {
	b := s.name.All
	return len(b) > 3 && b[len(b)-1] == 's' && b[len(b)-2] != 's'
}

// items notes the lines under a plural name whose line ends at i and has its
// separator at colon: each item and each value there is a secret.
func (s *Scanner) items(colon, i int) {
	t := s.text
	if i < s.under.To || !s.isPlural() && string(s.name.All) != "chpasswd" && string(s.name.All) != "stringdata" || t[colon] != ':' {
		return
	}
	s.assigns = ':'
	start := colon
	for start > 0 && colon-start <= 2*names.MaxPairName && t[start-1] != '\n' {
		start--
	}
	indent := indentOf(t, start)
	first := -1
	for i < len(t) {
		for i < len(t) && (t[i] == '\n' || t[i] == '\r') {
			i++
		}
		n := indentOf(t, i)
		switch {
		case i+n == len(t):
		case t[i+n] == '\n' || t[i+n] == '\r' || t[i+n] == '#':
		case first < 0 && n >= indent && t[i+n] == '-', first < 0 && n > indent:
			first = n
			s.under.From = i
		case first < 0 || n < first || n == indent && t[i+n] != '-':
			if first >= 0 {
				s.under.To = i
			}
			return
		}
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			i = len(t)
			break
		}
		i += end
	}
	if first >= 0 {
		s.under.To = i
	}
}

func indentOf(t []byte, i int) int {
	n := 0
	for i+n < len(t) && (t[i+n] == ' ' || t[i+n] == '\t') {
		n++
	}
	return n
}

// section notes the lines of a section of INI or TOML with a plural name, or of a table
// of variables, whose "[" is at i.
func (s *Scanner) section(i int) {
	t := s.text
	if i < s.under.To || i > 0 && t[i-1] != '\n' || i+1 == len(t) || lex.Classes[t[i+1]]&lex.IsName == 0 {
		return
	}
	to := i + 1
	for to < len(t) && to-i <= names.MaxPairName && lex.Classes[t[to]]&lex.IsName != 0 {
		to++
	}
	name := t[i+1 : to]
	hurl, env := string(name) == "BasicAuth", false
	if n := bytes.IndexByte(t[to:min(len(t), to+names.MaxPairName)], '\n'); n > 0 {
		env = bytes.HasSuffix(bytes.TrimRight(t[i:to+n], "\r"), []byte(".env]")) // behind a name that may be in quotes
	}
	switch {
	case env:
	case to+1 >= len(t) || t[to] != ']' || t[to+1] != '\n' && t[to+1] != '\r':
		return
	case !s.sensitiveName(name, names.NoWhole) && string(name) != "admins" || !s.isPlural() && !hurl:
		return
	}
	if s.assigns = '='; hurl { // NAME: SECRET
		s.assigns = ':'
	}
	s.under = lex.Span{From: to + 1, To: len(t)}
	if n := bytes.Index(t[to:], []byte("\n[")); n >= 0 {
		s.under.To = to + n
	}
}

// item finds the item of a list under a plural name, whose "-" is at i.
func (s *Scanner) item(i int) lex.Span {
	t := s.text
	if i+1 == len(t) || t[i+1] != ' ' {
		return lex.Span{}
	}
	for k := i; k > s.under.From && t[k-1] != '\n'; k-- {
		if t[k-1] > ' ' {
			return lex.Span{}
		}
	}
	v := s.values.Value(i + 1)
	if v.From >= v.To || t[v.From] == '{' || v.To < len(t) && t[v.To] == ' ' && t[v.To-1] == ':' ||
		bytes.IndexByte(t[v.From:v.To], ':') > 0 && v.To-v.From < names.MaxPairName {
		return lex.Span{} // of a member
	}
	if s.Names.IsPairName(&s.name, t[v.From:v.To]) {
		return lex.Span{} // the name of one
	}
	return v
}

// member finds the value of a member under a plural name, whose separator is at
// i. Those that describe a secret stay readable.
func (s *Scanner) member(name []byte, i int) lex.Span {
	t := s.text
	switch names.RoleOf(name) {
	case names.NameRole, names.PlainRole:
		return lex.Span{}
	}
	switch string(name) {
	case "file", "external", "environment", "env", "username", "user", "email", "host", "hostname", "port", "database", "server", "region", "driver", "provider",
		"default", "from", "source", "target", "uid", "gid", "secretName", "items", "deprecated", "if", "uses", "run", "list", "expire":
		return lex.Span{}
	}
	if s.values.IsBelow(i + 1) {
		return lex.Span{} // members of its own, each of which would read to the last one's end
	}
	v := s.values.Value(i + 1)
	if v.From >= v.To || v.From > i && bytes.IndexByte(t[i:v.From], '\n') >= 0 || lex.CountDigits(t[v.From:v.To]) == v.To-v.From && v.To-v.From <= 5 ||
		t[v.From] == '[' || t[v.From] == '{' {
		return lex.Span{}
	}
	return v
}

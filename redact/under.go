package redact

import "bytes"

// isPlural reports whether s.name, a sensitive name, is one of several secrets:
// "tokens", "api_keys", but not "pass".
func (s *scanner) isPlural() bool {
	b := s.name.all
	return len(b) > 3 && b[len(b)-1] == 's' && b[len(b)-2] != 's'
}

// items notes the lines under a plural name whose line ends at i and has its
// separator at colon: each item and each value there is a secret.
func (s *scanner) items(colon, i int) {
	t := s.text
	if i < s.under.to || !s.isPlural() || t[colon] != ':' {
		return
	}
	s.assigns = ':'
	start := colon
	for start > 0 && colon-start <= 2*maxPairName && t[start-1] != '\n' {
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
			s.under.from = i
		case first < 0 || n < first || n == indent && t[i+n] != '-':
			if first >= 0 {
				s.under.to = i
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
		s.under.to = i
	}
}

func indentOf(t []byte, i int) int {
	n := 0
	for i+n < len(t) && (t[i+n] == ' ' || t[i+n] == '\t') {
		n++
	}
	return n
}

// section notes the lines of a section of INI or TOML with a plural name, whose
// "[" is at i.
func (s *scanner) section(i int) {
	t := s.text
	if i < s.under.to || i > 0 && t[i-1] != '\n' || i+1 == len(t) || classes[t[i+1]]&isName == 0 {
		return
	}
	to := i + 1
	for to < len(t) && to-i <= maxPairName && classes[t[to]]&isName != 0 {
		to++
	}
	if to+1 >= len(t) || t[to] != ']' || t[to+1] != '\n' && t[to+1] != '\r' || !s.sensitiveName(t[i+1:to], noWhole) || !s.isPlural() {
		return
	}
	s.assigns = '='
	s.under = span{to + 1, len(t)}
	if n := bytes.Index(t[to:], []byte("\n[")); n >= 0 {
		s.under.to = to + n
	}
}

// item finds the item of a list under a plural name, whose "-" is at i.
func (s *scanner) item(i int) span {
	t := s.text
	if i+1 == len(t) || t[i+1] != ' ' {
		return span{}
	}
	for k := i; k > s.under.from && t[k-1] != '\n'; k-- {
		if t[k-1] > ' ' {
			return span{}
		}
	}
	v := s.value(i + 1)
	if v.from >= v.to || v.to < len(t) && t[v.to] == ' ' && t[v.to-1] == ':' || bytes.IndexByte(t[v.from:v.to], ':') > 0 && v.to-v.from < maxPairName {
		return span{} // of a member
	}
	if s.names.isPairName(&s.name, t[v.from:v.to]) {
		return span{} // the name of one
	}
	return v
}

// member finds the value of a member under a plural name, whose separator is at
// i. Those that describe a secret stay readable.
func (s *scanner) member(name []byte, i int) span {
	t := s.text
	switch roleOf(name) {
	case nameRole, plainRole:
		return span{}
	}
	switch string(name) {
	case "file", "external", "environment", "env", "username", "user", "email", "host", "hostname", "port", "database", "server", "region", "driver", "provider",
		"default", "from", "source", "target", "uid", "gid", "secretName", "items", "deprecated", "if", "uses", "run":
		return span{}
	}
	v := s.value(i + 1)
	if v.from >= v.to || v.from > i && bytes.IndexByte(t[i:v.from], '\n') >= 0 || countDigits(t[v.from:v.to]) == v.to-v.from && v.to-v.from <= 5 || t[v.from] == '[' || t[v.from] == '{' {
		return span{}
	}
	return v
}

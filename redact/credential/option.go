package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// option finds the value of --name value, where the option starts at i, also
// where both are strings in a list.
func (s *Scanner) option(i int) lex.Span {
	t := s.text
	from := i + 1
	if from < len(t) && t[from] == '-' {
		from++
	}
	to := from
	for to < len(t) && lex.Classes[t[to]]&lex.IsName != 0 {
		to++
	}
	if c := s.declared(i, to); c.From < c.To {
		return c
	}
	if c := argv.BehindUser(t, i, to); c.From < c.To {
		return c
	}
	v := to
	if v < len(t) && (t[v] == '\\' || lex.Classes[t[v]]&lex.IsQuote != 0) {
		for v < len(t) && (t[v] == '\\' || t[v] == ',' || t[v] == ' ') || v == to {
			v++
		}
		for v < len(t) && (t[v] == ',' || t[v] == ' ') {
			v++
		}
		if v < len(t) && (t[v] == '\n' || t[v] == '\r') && t[v-1] == ',' { // in a list with a line for each
			item := v
			for item < len(t) && item-v < 4*maxGap && t[item] <= ' ' {
				item++
			}
			if item < len(t) && t[item] == t[to] && !bytes.HasPrefix(t[item+1:], []byte("--")) {
				v = item
			}
		}
	}
	for v < len(t) && (t[v] == ' ' || t[v] == '\t') {
		v++
	}
	if next := s.nextItem(i, v); next > 0 {
		v = next
	}
	if v == to || v == len(t) || bytes.HasPrefix(t[v:], []byte("--")) {
		return lex.Span{}
	}
	if lex.Classes[t[to]]&lex.IsQuote != 0 && t[v-1] != t[to] && lex.Classes[t[v]]&lex.IsQuote == 0 && bytes.IndexByte(t[to:v], ',') > 0 {
		return lex.Span{} // of a function: add_argument("--password", help="x")
	}
	name := t[from:to]
	if !s.sensitiveName(name, 0) || about.IsMetavariable(name, t[v:]) || about.IsMention(t[v:]) ||
		string(name) == "secret" && bytes.HasPrefix(t[v:], []byte("id=")) || about.IsSwitch(name) || about.IsGcloudSecret(t, t[i:to], to) ||
		bytes.EqualFold(name, []byte("command")) { // its secrets are found as in any command
		return lex.Span{}
	}
	if at := lex.After(t, v, "<<<"); at > 0 { // of a shell
		for v = at; v < len(t) && v-at < maxGap && t[v] == ' '; {
			v++
		}
	}
	c := s.values.Value(v)
	if t[to] == '`' && i > 0 && t[i-1] == '`' && lex.IsWords(bytes.TrimRight(t[c.From:max(c.From, c.To)], ",;:)")) {
		return lex.Span{} // it is told of: `--password` is required
	}
	if v > to+1 && t[v-2] <= ' ' && about.IsVersion(t[c.From:max(c.From, c.To)]) {
		return lex.Span{} // of a table: since which one there is the option
	}
	if b := t[c.From:max(c.From, c.To)]; len(b) > 0 && (lex.IsOption(b) || lex.IsFlag(b) && t[c.From-1] <= ' ' && !s.sensitiveName(b[1:], 0) || about.IsNameOfSecret(name, b) || about.IsKeyFile(name, b) ||
		(about.IsFile(b) || lex.HasFoldSuffix(name, "shell") && lex.IsWords(b)) && !s.sensitiveName(name, names.NoWhole)) {
		return lex.Span{}
	}
	if bytes.EqualFold(name, []byte("env")) || bytes.EqualFold(name, []byte("environment")) {
		return about.OfEnvironment(t, c)
	}
	return c
}

// nextItem returns the index of the word behind the line break at v, or behind a
// backslash and a line break, that goes on with the arguments of which the option
// at i is one: as the next item of a list of YAML, or of a command. It is 0 if
// there is none.
func (s *Scanner) nextItem(i, v int) int {
	t := s.text
	item := v < len(t) && t[v] == '\n'
	switch {
	case item && (i < 2 || t[i-1] != ' ' || t[i-2] != '-'):
		return 0
	case !item && (v+1 >= len(t) || t[v] != '\\' || t[v+1] != '\n'):
		return 0
	case !item:
		v++
	}
	for v++; v < len(t) && (t[v] == ' ' || t[v] == '\t'); v++ {
	}
	if item {
		if v+2 >= len(t) || t[v] != '-' || t[v+1] != ' ' || t[v+2] <= ' ' {
			return 0
		}
		v += 2
	}
	return v
}

// declared finds SECRET in set -x NAME SECRET and printf -v NAME %s SECRET, where
// the option starts at i and ends at to.
func (s *Scanner) declared(i, to int) lex.Span {
	t := s.text
	switch {
	case to == len(t) || t[to] != ' ':
		return lex.Span{}
	case bytes.HasSuffix(t[:i], []byte("set ")) && (bytes.IndexAny(t[i:to], "xU") > 0 || bytes.HasPrefix(t[i:], []byte("--")) || bytes.HasPrefix(t[to:], []byte(" -"))):
		for n := 0; n < 4 && to+1 < len(t) && t[to] == ' ' && t[to+1] == '-'; n++ {
			from := to
			for to++; to < len(t) && to-from <= names.MaxPairName && t[to] > ' '; to++ {
			}
		}
		if to == len(t) || t[to] != ' ' {
			return lex.Span{}
		}
	case bytes.HasSuffix(t[:i], []byte("printf ")) && string(t[i:to]) == "-v":
	default:
		return lex.Span{}
	}
	from := to + 1
	for to = from; to < len(t) && lex.Classes[t[to]]&lex.IsName != 0; {
		to++
	}
	if to == len(t) || t[to] != ' ' || !s.sensitiveName(t[from:to], names.NoWhole) {
		return lex.Span{}
	}
	for _, format := range []string{"%s", "'%s'", `"%s"`} {
		if next := lex.After(t, to+1, format+" "); next > 0 {
			to = next - 1
			break
		}
	}
	return s.values.Value(to + 1)
}

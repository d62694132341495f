package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/call"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// called finds SECRET in password("SECRET") and login("NAME", "SECRET"), where
// the parenthesis is at i.
func (s *Scanner) called(i int) lex.Span {
	t := s.text
	if i+1 == len(t) {
		return lex.Span{}
	}
	from := i
	for from > s.from && i-from <= names.MaxPairName && (lex.Classes[t[from-1]]&lex.IsName != 0 && t[from-1] != '.' || t[from-1] == '!' && from == i) {
		from--
	}
	name := t[from:i]
	if len(name) < 2 || len(name) > names.MaxPairName {
		return lex.Span{}
	}
	known := false
	if s.found, known = call.Find(s.found, &s.values, &s.name, s.from, from, i); known {
		s.unordered = true
		return lex.Span{}
	}
	if bytes.HasSuffix(bytes.TrimRight(t[max(0, from-4):from], " "), []byte("|")) {
		return lex.Span{} // a filter of a template
	}
	gap := t[i+1 : min(len(t), i+1+4*maxGap)]
	quote := i + 1 + len(gap) - len(bytes.TrimLeft(gap, " \t\r\n"))
	some := lex.After(t, quote, "Some(")
	if some > 0 && some < len(t) {
		quote = some
	}
	quote += lex.PrefixLen(t[quote:])
	if quote == len(t) || lex.Classes[t[quote]]&lex.IsQuote == 0 || about.IsGetter(name) {
		return lex.Span{}
	}
	login := lex.HasFoldSuffix(name, "login") || lex.HasFoldSuffix(name, "authenticate")
	if !login && !s.sensitiveName(name, names.NoWhole) {
		return lex.Span{}
	}
	v := s.values.Quoted(quote, 0)
	end := call.End(t, v.To+1)
	for n := 0; ; n++ { // the second string, or the third one of login(HOST, USER, SECRET)
		more := false
		for (n == 0 || login) && end < len(t) && (t[end] <= ' ' || t[end] == ',') {
			more = more || t[end] == ','
			end++
		}
		if more && n < 2 && end < len(t) && lex.Classes[t[end]]&lex.IsQuote != 0 {
			v = s.values.Quoted(end, 0)
			end = call.End(t, v.To+1)
			continue
		}
		if n == 0 && (more || login) {
			return lex.Span{}
		}
		break
	}
	if end < len(t) && t[end] != ')' && t[end] != ',' || lex.MarkLen(t[v.From:]) > 0 {
		return lex.Span{}
	}
	if v.To-v.From <= names.MaxPairName && s.Names.IsPairName(&s.name, t[v.From:v.To]) {
		return lex.Span{} // the name of one
	}
	return v
}

// initialized finds SECRET in password{"SECRET"}, as C++ initializes a variable, where the brace
// is at i.
func (s *Scanner) initialized(i int) lex.Span {
	t := s.text
	from := i
	for from > s.from && i-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	quote := i + 1 + lex.PrefixLen(t[i+1:])
	if from == i || t[from] == '$' || t[from] == '%' || quote >= len(t) || t[quote] != '"' || !s.sensitiveName(t[from:i], names.NoWhole) {
		return lex.Span{} // an element of a hash of Perl, a block
	}
	v := s.values.Quoted(quote, 0)
	end := s.values.Closing(quote, 0) + 1
	for end < len(t) && end-v.To < 3 && lex.Classes[t[end]]&lex.IsAlnum != 0 { // "SECRET"s
		end++
	}
	if end >= len(t) || t[end] != '}' || lex.MarkLen(t[v.From:]) > 0 {
		return lex.Span{}
	}
	return v
}

package credential

import (
	"bytes"

	"auditproxy/redact/call"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// named reports whether the value at v names a secret, and notes until where a
// member may hold it.
func (s *Scanner) named(v lex.Span) bool {
	t := s.text
	for v.From < v.To && (t[v.To-1] == ',' || t[v.To-1] == '}' || t[v.To-1] == '\\' || t[v.To-1] == '/' || t[v.To-1] == '>') {
		v.To--
	}
	if v.From >= v.To || v.To > len(t) || v.To-v.From > names.MaxPairName {
		return false
	}
	if !s.Names.IsPairName(&s.name, s.values.Unescaped(t[v.From:v.To])) {
		return false
	}
	most := min(len(t), v.To+maxPair)
	s.pair = max(s.pair, v.To) // up to the end of an earlier name's
	for s.pair < most && t[s.pair] != '}' && (t[s.pair] != '<' || names.IsValueTag(t[s.pair+1:])) {
		if t[s.pair] == '\n' && s.pair+1 < len(t) && (t[s.pair+1] == '\n' || t[s.pair+1] == '-') {
			break
		}
		s.pair++
	}
	return true
}

// stringEnd returns where the string ends that is before the comma at i, also behind a space or a
// method without arguments: "NAME".to_string(), 0 without one.
func stringEnd(t []byte, i int) int {
	end := i
	if end > 0 && t[end-1] == ' ' { // ( "NAME" , "SECRET" )
		end--
	} else if bytes.HasSuffix(t[:i], []byte("()")) {
		end -= len("()")
		for end > 0 && i-end < maxGap && lex.Classes[t[end-1]]&lex.IsName != 0 && t[end-1] != '.' {
			end--
		}
		if end == 0 || t[end-1] != '.' {
			return 0
		}
		end--
	}
	if end == 0 || lex.Classes[t[end-1]]&lex.IsQuote == 0 {
		return 0
	}
	return end
}

// listed finds SECRET in ["NAME", "SECRET"] and ("NAME", "SECRET"), where the comma is at i and
// the first string ends at end.
func (s *Scanner) listed(i, end int) lex.Span {
	t := s.text
	if end <= s.from {
		return lex.Span{}
	}
	name, first := s.values.NameBefore(s.from, end)
	if len(name) == 0 || len(name) > names.MaxPairName || first == 0 || t[first-1] != t[end-1] {
		return lex.Span{}
	}
	open := first - 1
	for open > s.from && (t[open-1] == '\\' || t[open-1] == ' ' || t[open-1] == '\n' || t[open-1] == '\t') {
		open--
	}
	if call := t[max(0, open-2*maxGap):open]; bytes.Contains(call, []byte("buildConfigField")) ||
		bytes.Contains(call, []byte("resValue")) { // of Gradle: TYPE, "NAME", "SECRET"
		if quote := i + 1 + len(t[i+1:]) - len(bytes.TrimLeft(t[i+1:], " ")); quote < len(t) && t[quote] == '"' && s.Names.IsPairName(&s.name, name) {
			return s.values.Quoted(quote, 0)
		}
	}
	behind := open > 1 && t[open-1] == ','
	paired := behind && lex.Classes[t[open-2]]&lex.IsQuote != 0 && s.inPairs(open-1)
	if open == 0 || t[open-1] != '[' && t[open-1] != '(' && t[open-1] != '{' && !behind {
		return lex.Span{}
	}
	v := i + 1
	for v < len(t) && (t[v] == ' ' || t[v] == '\n' || t[v] == '\t') {
		v++
	}
	compared := false
	if at := behindOperator(t, v); at > 0 { // ["NAME", "=", "SECRET"]
		v, compared = at, true
	}
	quote := lex.Backslashes(t, v)
	if quote < len(t) && lex.Classes[t[quote]]&lex.IsQuote == 0 && (t[open-1] == '(' || behind) && s.named(lex.Span{From: first, To: first + len(name)}) {
		if n := bytes.IndexByte(t[first:s.pair], ')'); n > 0 { // config("NAME", default="SECRET"), of AWS' CDK: Param(this, "NAME", {default: "SECRET"})
			s.pair = first + n
		}
		return lex.Span{}
	}
	if behind && !paired && !compared {
		return lex.Span{}
	}
	if quote == len(t) || lex.Classes[t[quote]]&lex.IsQuote == 0 || string(name) == "secrets" {
		return lex.Span{} // "secrets" are kinds of objects of Kubernetes
	}
	c := s.values.Quoted(quote, quote-v)
	if !s.Names.IsPairName(&s.name, s.values.Unescaped(name)) && !s.Names.Doubtful(&s.name).IsSecret(t[c.From:c.To]) {
		return lex.Span{}
	}
	if bytes.IndexByte(t[c.From:c.To], '_') > 0 && lex.IsWords(t[c.From:c.To]) && s.Names.IsPairName(&s.name, t[c.From:c.To]) {
		return lex.Span{} // a list of names
	}
	if name[0] == '-' && lex.IsOption(t[c.From:c.To]) {
		return lex.Span{}
	}
	end = call.End(t, c.To+quote-v+1)
	for end < len(t) && (t[end] == ' ' || t[end] == '\n' || t[end] == '\t') {
		end++
	}
	if (paired || compared) && end < len(t) && t[end] == ',' || !paired && end < len(t) && t[end] == ',' && s.pairsFollow(end) {
		return c
	}
	if end >= len(t) || t[end] != ']' && t[end] != ')' && t[end] != '}' && (t[end] != ',' || t[open-1] != '(' || !names.IsVariable(name)) {
		return lex.Span{}
	}
	return c
}

// behindOperator returns where the string starts behind the one at i and its comma, if
// that is an operator, 0 if not.
func behindOperator(t []byte, i int) int {
	if i+2 >= len(t) || lex.Classes[t[i]]&lex.IsQuote == 0 {
		return 0
	}
	n := bytes.IndexByte(t[i+1:min(len(t), i+1+maxOperator)], t[i])
	if n < 1 {
		return 0
	}
	if !names.IsOperator(t[i+1 : i+1+n]) {
		return 0
	}
	at := i + 1 + n + 1
	for at < len(t) && at-i < maxGap && t[at] <= ' ' {
		at++
	}
	if at >= len(t) || t[at] != ',' {
		return 0
	}
	for at++; at < len(t) && at-i < 2*maxGap && t[at] <= ' '; {
		at++
	}
	if at >= len(t) || lex.Classes[t[at]]&lex.IsQuote == 0 {
		return 0
	}
	return at
}

// maxOperator is the longest operator and the quote behind it, in bytes.
const maxOperator = 7

// tuple finds SECRET in {password, "SECRET"}, {password, <<"SECRET">>} and -define(PASSWORD, "SECRET"),
// as Erlang has them, where the comma is at i.
func (s *Scanner) tuple(i int) lex.Span {
	t := s.text
	from := i
	for from > s.from && i-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	if from == i || from == 0 {
		return lex.Span{}
	}
	if t[from-1] == ':' && (from == 1 || t[from-2] <= ' ' || t[from-2] == '(' || t[from-2] == '{') {
		return s.symbol(from, i)
	}
	macro := bytes.HasSuffix(t[:from], []byte("-define("))
	if t[from-1] != '{' && !macro {
		return lex.Span{}
	}
	v := i + 1
	for v < len(t) && (t[v] == ' ' || t[v] == '<') && v-i < 4 {
		v++
	}
	if v == len(t) || t[v] != '"' || !s.sensitiveName(t[from:i], names.NoWhole) {
		return lex.Span{}
	}
	c := s.values.Quoted(v, 0)
	end := min(len(t), c.To+1)
	for end < len(t) && (t[end] == '>' || t[end] == ' ') && end-c.To < 5 {
		end++
	}
	if end == len(t) || t[end] != '}' && (!macro || t[end] != ')') {
		return lex.Span{}
	}
	return c
}

// symbol finds SECRET in set :password, "SECRET", as Ruby and Elixir have it, where the
// symbol's name starts at from and the comma is at i.
func (s *Scanner) symbol(from, i int) lex.Span {
	t := s.text
	quote := lex.After(t, i, ", ")
	if quote == 0 || quote == len(t) || t[quote] != '"' && t[quote] != '\'' || !s.sensitiveName(t[from:i], names.NoWhole) {
		return lex.Span{}
	}
	v := lex.Span{From: quote + 1, To: s.values.Closing(quote, 0)}
	if w := t[v.From:v.To]; v.From == v.To || lex.MarkLen(w) > 0 || v.To+1 < len(t) && bytes.IndexByte([]byte(" ,;)]}\r\n\\"), t[v.To+1]) < 0 ||
		bytes.IndexByte(w, ' ') >= 0 || prose.IsPlain(w) || prose.IsLabel(w) || s.Names.IsPairName(&s.name, w) {
		return lex.Span{} // of a form: label :password, "Password"
	}
	return v
}

// maxTuple is how many variables are assigned at once.
const maxTuple = 8

// tupled adds the secrets of user, password = "ann", "SECRET", also in brackets, where the
// sign is at i, and reports whether the text is such an assignment.
func (s *Scanner) tupled(i int) bool {
	t, to := s.text, i
	if i+1 == len(t) || t[i] == ':' && t[i+1] != '=' || t[i] == '=' && (t[i+1] == '=' || t[i+1] == '>') {
		return false
	}
	for to > s.from && t[to-1] == ' ' {
		to--
	}
	if to == s.from {
		return false
	}
	bracketed := t[to-1] == ')' || t[to-1] == ']' || t[to-1] == '}'
	if bracketed {
		to--
	}
	var list [maxTuple]lex.Span // from the last one
	n := 0
	for ; n < len(list); n++ {
		from := to
		for from > s.from && to-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
			from--
		}
		if from == to || to-from > names.MaxPairName {
			return false
		}
		list[n] = lex.Span{From: from, To: to}
		for to = from; to > s.from && t[to-1] == ' '; {
			to--
		}
		if to == s.from || t[to-1] != ',' {
			break
		}
		for to--; to > s.from && t[to-1] == ' '; {
			to--
		}
	}
	if n++; n < 2 || n > len(list) {
		return false
	}
	if to > 0 && !bracketed && (t[to-1] == '(' || t[to-1] == '[' || t[to-1] == '{') {
		return false // the arguments of a function: f(a, password="SECRET")
	}
	var values [maxTuple]lex.Span
	if !s.values.Tuple(values[:n], i+1) {
		return false
	}
	for k, v := range values[:n] {
		name := list[n-1-k]
		if v.From < v.To && s.sensitiveName(t[name.From:name.To], 0) && lex.MarkLen(t[v.From:]) == 0 && !formats.IsPlaceholder(t[v.From:v.To]) {
			s.found, s.unordered = append(s.found, v), true
		}
	}
	return true
}

// inPairs reports whether the two strings before the comma at i are the name and
// the value of a login: ["user", "ann", "password", "SECRET"].
func (s *Scanner) inPairs(i int) bool {
	value, first := s.values.NameBefore(s.from, i)
	if first == 0 || len(value) == 0 || s.isField(value) {
		return false
	}
	t := s.text
	k := first - 1
	for k > s.from && (t[k-1] == '\\' || t[k-1] <= ' ') {
		k--
	}
	if k == 0 || t[k-1] != ',' {
		return false
	}
	name, _ := s.values.NameBefore(s.from, k-1)
	return prose.IsUser(name) || names.IsLogin(name)
}

// pairsFollow reports whether the two strings behind the comma at i are those.
func (s *Scanner) pairsFollow(i int) bool {
	name, next := s.values.Argument(i+1, names.MaxPairName, maxOther)
	if next < 0 || next >= len(s.text) || s.text[next] != ',' || !names.IsLogin(s.text[name.From:name.To]) && !prose.IsUser(s.text[name.From:name.To]) {
		return false
	}
	value, _ := s.values.Argument(next+1, names.MaxPairName, maxOther)
	return value.From < value.To && !s.isField(s.text[value.From:value.To])
}

// isField reports whether a string is a field's name rather than a value.
func (s *Scanner) isField(b []byte) bool {
	return prose.IsPlain(b) || names.IsColumn(b) || s.Names.IsPairName(&s.name, b)
}

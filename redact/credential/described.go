package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/call"
	"auditproxy/redact/lex"
	"auditproxy/redact/login"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
	"auditproxy/redact/setting"
	"auditproxy/redact/sql"
)

// described finds SECRET in PASSWORD 'SECRET', as SQL and prose have it, and in
// env["PASSWORD"] || "SECRET", where the last white space is at i.
func (s *Scanner) described(i int) lex.Span {
	t := s.text
	if v := call.Bare(&s.values, &s.name, s.from, i); v.From < v.To {
		return v
	}
	if i > 0 && (t[i-1] <= ' ' || bytes.IndexByte([]byte("{>:no"), t[i-1]) >= 0) {
		if v := s.returned(i); v.From < v.To {
			return v
		}
	}
	gap := i // what is before, without white space
	for gap > s.from && i-gap < maxGap && t[gap-1] <= ' ' {
		gap--
	}
	to := s.beforeOperator(gap)
	if to-2 > s.from && t[to-1] == ')' && s.isPlace(to) {
		return s.values.Quoted(i+1, 0)
	}
	if to-2 > s.from && t[to-1] == ']' && bytes.Contains(t[max(s.from, to-maxGap):to], []byte(" :")) { // of Clojure: [:db :password] "SECRET"
		to--
	}
	from := to
	if to-2 > s.from && t[to-1] == '*' && names.IsBinding(t[:to]) { // (defvar *password* "SECRET")
		to--
		from--
	}
	for from > s.from && to-from <= 32 && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	if to-3 > s.from && t[to-1] == ']' && lex.Classes[t[to-2]]&lex.IsQuote != 0 { // ["PASSWORD"] "SECRET"
		name, first := s.values.NameBefore(s.from, to)
		if first > 0 && s.Names.IsPairName(&s.name, name) {
			return s.values.Quoted(i+1, 0)
		}
	}
	if from < to && t[to-1] == '-' || lex.HasFoldSuffix(t[from:to], "send") {
		return s.sent(to, i)
	}
	if to == gap && from > 0 && from < to && t[from-1] == t[i+1] && lex.Classes[t[i+1]]&lex.IsQuote != 0 {
		return s.schemed(i) // "Bearer " + token
	}
	if to-from < 2 || to-from > 32 {
		if to > 0 && t[to-1] == '*' && login.IsOfPPP(t, i) {
			return s.values.Quoted(i+1, 0)
		}
		return s.schemed(i)
	}
	return s.describedBy(lex.Span{From: from, To: to}, i)
}

// beforeOperator returns where the text before an operator ends that ends at to, to if there is
// none. What encloses that text ends with it.
func (s *Scanner) beforeOperator(to int) int {
	t := s.text
	size, isClosed := 0, false // of the operator; a bracket may be before it
	if to-2 > s.from {
		switch two := string(t[to-2 : to]); {
		case two == "||" || two == "??" || two == "?:" || two == "or" && t[to-3] == ' ':
			size, isClosed = len(two), true
		default:
			size = about.ComparisonLen(t[s.from:to])                                                                             // of PowerShell, of SQL
			if size == 0 && to-3 > s.from && t[to-3] == ' ' && (two == "<-" || two == "->" || lex.HasFoldSuffix(t[:to], "to")) { // of R, of Scala, of SQL
				size = len(two)
			}
		}
	}
	if size > 0 {
		for to -= size; to > s.from && (t[to-1] == ' ' || lex.Classes[t[to-1]]&lex.IsQuote != 0 || isClosed && (t[to-1] == ']' || t[to-1] == ')')); {
			to--
		}
	}
	if to-4 > s.from && t[to-1] == '\'' && t[to-2] == ']' { // of a command: '["PASSWORD"]' '"SECRET"'
		to--
	}
	if to-2 > s.from && t[to-1] == '.' && t[to-2] == ' ' { // of Lisp: (password . "SECRET")
		for to--; to > s.from && (t[to-1] == ' ' || t[to-1] == '"'); {
			to--
		}
	}
	return to
}

// describedBy finds SECRET behind the word, if that has the name of a secret or belongs to one.
func (s *Scanner) describedBy(word lex.Span, i int) lex.Span {
	t, from, to := s.text, word.From, word.To
	w := t[from:to]
	if to == i && setting.Declares(w) {
		if v := s.settings.OfCobol(from, i); v.From < v.To {
			return v
		}
	}
	if v := s.settings.OfLogin(i); v.From < v.To {
		return v
	}
	switch {
	case s.sensitiveName(w, names.NoWhole|names.AtEnd) || sql.IsAttached(t, w, from):
		return s.ofSecret(word, i)
	case names.RoleOf(w) == names.NameRole:
		if !s.named(s.values.ShortValue(i+1)) && string(w) == "variable" {
			s.pair = max(s.pair, i+about.SensitiveLen(t[i:min(len(t), i+2*maxPair)]))
		}
	case setting.IsIPsec(t, from, to) || login.IsOfPPP(t, i):
		return s.values.Quoted(i+1, 0)
	}
	return s.schemed(i)
}

// ofSecret returns the string behind the white space at i, before which is the name of a secret.
func (s *Scanner) ofSecret(name lex.Span, i int) lex.Span {
	t, from, to := s.text, name.From, name.To
	isOption := from > 0 && (t[from-1] == '-' || t[from] == '-')
	if about.IsParsed(t, from, i) || about.IsObject(&s.values, from, to, i) || isOption && about.IsSwitch(bytes.TrimLeft(t[from:to], "-")) {
		return lex.Span{}
	}
	v := s.values.Quoted(i+1, 0)
	if v.From == v.To || v.To == v.From+1 && lex.Classes[t[v.From]]&lex.IsAlnum == 0 || lex.MarkLen(t[v.From:]) > 0 || !lex.IsEndAfter(t, v.To+1) ||
		t[v.From] == ' ' && t[v.To-1] == ' ' {
		return lex.Span{} // "token " + name + " is set"
	}
	second := lex.After(t, v.To+1, ", ")
	if second <= 0 || second == len(t) || t[second] != t[i+1] {
		return v
	}
	switch {
	case lex.HasFoldSuffix(t[from:to], "basic_auth"): // of Ruby: basic_auth "ann", "SECRET"
		return s.values.Quoted(second, 0)
	case lex.HasFoldSuffix(t[from:to], "credentials"): // of Perl: credentials 'ann', 'SECRET'
		s.found, s.unordered = append(s.found, v), true
		return s.values.Quoted(second, 0)
	}
	return v
}

// returned finds SECRET in what has the name of a secret and returns it: String getPassword()
// { return "SECRET"; }, let(:password) { "SECRET" }, const getToken = () => "SECRET". The last
// white space before the string is at i.
func (s *Scanner) returned(i int) lex.Span {
	t := s.text
	to := s.skipSpace(i)
	for _, word := range [...]string{"return", "echo"} {
		if bytes.HasSuffix(t[s.from:to], []byte(word)) {
			to = s.skipSpace(to - len(word))
			break
		}
	}
	if to-2 <= s.from {
		return lex.Span{}
	}
	switch {
	case t[to-1] == '{', t[to-1] == ':' && t[to-2] == ')':
		to--
	case t[to-1] == '>' && t[to-2] == '=':
		to -= len("=>")
	default:
		return lex.Span{}
	}
	head := t[max(s.from, to-2*names.MaxPairName):to]
	head = head[bytes.LastIndexAny(bytes.TrimRight(head, " \n"), "\n;}")+1:]
	if close := bytes.LastIndexByte(head, ')'); close > 0 { // behind it is a type
		open := bytes.LastIndexByte(head[:close], '(')
		if open < 0 {
			return lex.Span{}
		}
		if symbol := head[open+1 : close]; len(symbol) > 2 && symbol[0] == ':' && bytes.IndexByte(symbol, ',') < 0 {
			head = symbol
		} else {
			head = bytes.TrimSuffix(bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(head[:open], " "), []byte("async")), " ="), []byte(":"))
		}
	} else if t[to] != '{' {
		return lex.Span{}
	}
	head = bytes.TrimRight(head, " ")
	name := head[bytes.LastIndexAny(head, " .:*")+1:]
	if len(name) < 2 || len(name) > names.MaxPairName || !s.Names.IsPairName(&s.name, name) {
		return lex.Span{}
	}
	v := s.values.Quoted(i+1, 0)
	if w := t[v.From:v.To]; v.From == v.To || lex.MarkLen(w) > 0 || prose.IsLabel(w) || s.Names.IsPairName(&s.name, w) {
		return lex.Span{}
	}
	end := v.To + 1
	for end < len(t) && (t[end] == ' ' || t[end] == ';') {
		end++
	}
	if end < len(t) && t[end] != '}' && t[end] != '\n' && t[end] != '\r' && t[end] != '\\' {
		return lex.Span{}
	}
	return v
}

// skipSpace returns where the text before i ends without the white space there.
func (s *Scanner) skipSpace(i int) int {
	for from := i; i > s.from && from-i < 4*maxGap && s.text[i-1] <= ' '; {
		i--
	}
	return i
}

// isPlace reports whether the parenthesis before i ends a place of Lisp with the name of a
// secret, which is set: (setf (gethash "password" h) "SECRET").
func (s *Scanner) isPlace(i int) bool {
	const set = "(setf "
	before := s.text[max(s.from, i-2*names.MaxPairName):i]
	at := bytes.LastIndex(before, []byte(set))
	if at < 0 {
		return false
	}
	place := before[at+len(set):]
	for from, k := 0, 0; k < len(place); k++ {
		if c := place[k]; c <= ' ' || lex.IsWordBreak(c) || c == ':' {
			if from < k && s.Names.IsPairName(&s.name, place[from:k]) {
				return true
			}
			from = k + 1
		}
	}
	return false
}

// isTokenName reports whether a word behind Bearer is what stands there in a sentence.
func isTokenName(w []byte) bool {
	return bytes.EqualFold(w, []byte("token")) || bytes.EqualFold(w, []byte("tokens")) || bytes.EqualFold(w, []byte("key"))
}

// schemed finds the credential after "Bearer" or "Basic" and white space at i.
func (s *Scanner) schemed(i int) lex.Span {
	t := s.text
	word := 0
	if i == s.from {
		return lex.Span{}
	}
	switch c := t[i-1] | 0x20; {
	case c != 'r' && c != 'c':
		return lex.Span{}
	case lex.HasFoldSuffix(t[s.from:i], "bearer"):
		word = 6
	case lex.HasFoldSuffix(t[s.from:i], "basic"):
		word = 5
	default:
		return lex.Span{}
	}
	if i > word && lex.Classes[t[i-word-1]]&lex.IsAlnum != 0 {
		return lex.Span{}
	}
	from := i + 1
	for from < len(t) && (t[from] == ' ' || t[from] == '\t') {
		from++
	}
	to := lex.CredentialEnd(s.text, from)
	if string(t[from:to]) == "realm=" || lex.IsOption(t[from:to]) { // of what a server asks for; --token-type bearer --verbose
		return lex.Span{}
	}
	if to > from && t[to-1] == ':' && (t[i] == '\n' || isTokenName(t[from:to-1])) { // the next name, Bearer token: SECRET
		return lex.Span{}
	}
	if at := bytes.IndexByte(t[from:to], '='); at > 0 && len(bytes.TrimLeft(t[from+at:to], "=")) > 0 && lex.IsWords(t[from:from+at]) {
		return lex.Span{} // another name: token_type=Bearer status=ok
	}
	if word == 5 && !lex.IsBasic(t[from:to]) || word == 6 && !lex.IsBearer(t[from:to]) {
		return lex.Span{}
	}
	return lex.Span{From: from, To: to}
}

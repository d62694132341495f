package credential

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
)

// assigned finds the value of NAME=value and NAME: value, where the separator
// is at i, at any level of strings in strings.
func (s *Scanner) assigned(i int) lex.Span {
	name, first := s.nameBefore(i)
	if i+1 == s.password.From {
		return lex.Span{}
	}
	if len(name) == 0 {
		if s.text[i] == ':' && i > 0 && s.text[i-1] == '*' {
			return s.dataSource(name, first, i)
		}
		if i > 0 && s.text[i-1] == ')' {
			return s.prompted(i)
		}
		return lex.Span{}
	}
	var more names.Sections
	if first > 0 && (s.text[first-1] == '?' || s.text[first-1] == '&') {
		more = names.InQuery
	}
	if s.text[i] == ':' && i+1 < len(s.text) && s.text[i+1] > ' ' && s.text[i-1] > ' ' && lex.Classes[s.text[i-1]]&lex.IsQuote == 0 {
		more |= names.AtEnd // "secrets-operator:1.2" is an image
	}
	if string(name) == "add-mask" && bytes.HasPrefix(s.text[i:], []byte("::")) { // ::add-mask::SECRET
		return lex.Span{From: i + 2, To: lex.CredentialEnd(s.text, i+2)}
	}
	if lex.HasFoldSuffix(name, "env") && s.isDrive(name, i) {
		return lex.Span{}
	}
	if s.text[i] == ':' && (name[0] == '$' && i+1 < len(s.text) && s.text[i+1] == '/' || string(name) == "PASS" && bytes.HasSuffix(s.text[:first], []byte("--- "))) {
		return lex.Span{} // a mount, a result
	}
	if s.text[i] == '=' && literal.IsType(name) {
		name = s.typed(name, first)
	}
	if s.isSubject(name, i) || s.text[i] == ':' && i+2 < len(s.text) && s.text[i+1] == ':' && lex.Classes[s.text[i+2]]&lex.IsAlnum != 0 {
		return lex.Span{} // token::Type
	}
	if s.under.From <= i && i < s.under.To && s.text[i] == s.assigns && s.startsLine(first) {
		if v := s.member(name, i); v.From < v.To {
			return v
		}
	}
	decoded := s.unescaped(name)
	if i < s.pair && names.RoleOf(decoded) == names.ValueRole {
		return s.values.Value(i + 1)
	}
	if !s.sensitive(decoded, more) {
		if names.RoleOf(decoded) == names.NameRole {
			s.named(s.values.ShortValue(i + 1))
		}
		if string(name) == "stringData" { // of a Secret of Kubernetes
			if v := s.values.Value(i + 1); v.From < v.To && s.text[v.From] == '{' {
				return v
			}
		}
		if v := s.dataSource(name, first, i); v.From < v.To {
			return v
		}
		return s.prompted(i)
	}
	if s.wordy() {
		return s.values.Line(i + 1)
	}
	v := s.values.Value(i + 1)
	if v.From >= v.To {
		if i+1 < len(s.text) && s.text[i+1] <= ' ' && s.startsLine(first) && s.sensitiveName(name, more|names.NoWhole) {
			s.items(i, i+1)
		}
		return v
	}
	if s.text[v.To-1] == ',' && s.text[i] == ':' && s.startsLine(first) && s.sensitiveName(name, more) && s.isPlural() { // a, b, c
		for v.To+1 < len(s.text) && s.text[v.To-1] == ',' && s.text[v.To] == ' ' && s.text[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(s.text, v.To+1)
		}
	}
	return v
}

// isDrive reports whether the colon at i belongs to PowerShell's $env:NAME,
// Env:NAME or env:\NAME.
func (s *Scanner) isDrive(name []byte, i int) bool {
	t := s.text
	return t[i] == ':' && (len(name) == 4 && name[0] == '$' || len(name) == 3 && i+2 < len(t) && (t[i+1] == '\\' || 'A' <= t[i+1] && t[i+1] <= 'Z' && 'A' <= t[i+2] && t[i+2] <= '_'))
}

// isSubject reports whether the colon at i ends the topic of a commit message:
// "auth: refuse empty tokens".
func (s *Scanner) isSubject(name []byte, i int) bool {
	switch string(name) {
	case "auth", "tokens", "secrets", "cookies", "credentials":
	default:
		return false
	}
	words, t := 0, s.text[i+1:]
	for words < 2 && len(t) > 1 && t[0] == ' ' && 'a' <= t[1] && t[1] <= 'z' {
		n := 1
		for n < len(t) && 'a' <= t[n] && t[n] <= 'z' {
			n++
		}
		t = t[n:]
		words++
	}
	return words == 2 && (len(t) == 0 || t[0] <= ' ' || t[0] == ',' || t[0] == '.' || lex.Classes[t[0]]&lex.IsQuote != 0)
}

// said adds SECRET in "the password is SECRET" and "password SECRET": the text
// after the word, if it mixes letters and digits as no word of a language does.
func (s *Scanner) said() {
	t := s.text
	for i := 0; i < len(t); i++ {
		run := i
		for i < len(t) && lex.Classes[t[i]]&lex.IsAlnum != 0 {
			i++
		}
		if i-run < 2 || !argv.WordStarts.Has(t[run:i]) || argv.WordAt(t, run)&argv.PassWord == 0 {
			continue
		}
		from := i
		if v := s.clause(run, i); v.From < v.To {
			s.found = append(s.found, v)
			i = v.To - 1
			continue
		}
		for words := 0; words < 2; words++ {
			gap := from
			for from < len(t) && from-gap < maxGap && (t[from] == ' ' || t[from] == '\t') {
				from++
			}
			if from == gap {
				break
			}
			next := from
			for next < len(t) && next-from < 3 && t[next] > ' ' {
				next++
			}
			switch string(t[from:next]) {
			case "is", "was", "to", "->", "<-", "=>":
				from = next
				continue
			}
			break
		}
		to := from
		for to < len(t) && (lex.Classes[t[to]]&lex.IsAlnum != 0 || bytes.IndexByte([]byte("_-.!@#^*+~?"), t[to]) >= 0) {
			to++
		}
		if from == i || to < len(t) && lex.Classes[t[to]]&lex.IsEnd == 0 && t[to] != ',' && t[to] != '\\' {
			continue
		}
		for to > from && (t[to-1] == '.' || t[to-1] == '?') {
			to--
		}
		if isSaid(t[from:to]) && string(t[run:i]) != "PASS" || from < to && !literal.IsType(t[from:to]) && behindLogin(t, run) { // "PASS test1" is a result
			s.found = append(s.found, lex.Span{From: from, To: to})
			i = to - 1
		}
	}
	s.merge()
}

// typed returns the name before a type, as in "var password string =": the type
// itself if there is none.
func (s *Scanner) typed(kind []byte, first int) []byte {
	t := s.text
	to := first
	for to > s.from && (t[to-1] == ' ' || t[to-1] == ':' || t[to-1] == '*' || t[to-1] == '[' || t[to-1] == ']') {
		to--
	}
	from := to
	for from > s.from && to-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	if from == to || to == first {
		return kind
	}
	return t[from:to]
}

// called finds SECRET in password("SECRET") and login("NAME", "SECRET"), where
// the parenthesis is at i.
func (s *Scanner) called(i int) lex.Span {
	t := s.text
	if i+1 == len(t) {
		return lex.Span{}
	}
	from := i
	for from > s.from && i-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 && t[from-1] != '.' {
		from--
	}
	name := t[from:i]
	if len(name) < 2 || len(name) > names.MaxPairName || s.positional(from, i) {
		return lex.Span{}
	}
	if lex.Classes[t[i+1]]&lex.IsQuote == 0 || isGetter(name) {
		return lex.Span{}
	}
	login := lex.HasFoldSuffix(name, "login") || lex.HasFoldSuffix(name, "authenticate")
	if !login && !s.sensitiveName(name, names.NoWhole) {
		return lex.Span{}
	}
	v := s.values.Quoted(i+1, 0)
	end := v.To + 1
	second := false
	for end < len(t) && (t[end] == ' ' || t[end] == ',') {
		second = second || t[end] == ','
		end++
	}
	if second && end < len(t) && lex.Classes[t[end]]&lex.IsQuote != 0 {
		v = s.values.Quoted(end, 0)
		end = v.To + 1
	} else if second || login {
		return lex.Span{}
	}
	if end < len(t) && t[end] != ')' && t[end] != ',' || lex.MarkLen(t[v.From:]) > 0 {
		return lex.Span{}
	}
	if v.To-v.From <= names.MaxPairName && s.Names.IsPairName(&s.name, t[v.From:v.To]) {
		return lex.Span{} // the name of one
	}
	return v
}

// isGetter reports whether a function of that name expects the name of a
// secret, or describes one.
func isGetter(name []byte) bool {
	for _, verb := range []string{"get", "has", "is", "find", "fetch", "load", "read", "list", "show", "print", "log", "delete", "remove", "describe", "create", "new", "generate", "parse", "t"} {
		if len(name) >= len(verb) && name[0]|0x20 == verb[0] && bytes.EqualFold(name[:len(verb)], []byte(verb)) && (len(name) == len(verb) || name[len(verb)] < 'a' || name[len(verb)] > 'z') {
			return true
		}
	}
	return false
}

// wordy reports whether the value of s.name has several words: a Cookie header
// holds several credentials, a passphrase is one with spaces in it.
func (s *Scanner) wordy() bool {
	for _, end := range []string{"cookie", "cookies", "passphrase", "phrase", "mnemonic"} {
		if bytes.HasSuffix(s.name.All, []byte(end)) {
			return true
		}
	}
	return false
}

// nameBefore returns the name that ends before the separator at i, and where
// it starts. A name in quotes may hold anything but a separator.
func (s *Scanner) nameBefore(i int) (name []byte, first int) {
	t := s.text
	equals := t[i] == '='                                     // also of ?=, += and .=
	if i > s.from+1 && t[i-1] == ']' && lex.IsDigit(t[i-2]) { // NAME[0]=
		at := i - 2
		for at > s.from && i-at < 6 && lex.IsDigit(t[at-1]) {
			at--
		}
		if at-2 > s.from && t[at-1] == '[' && t[at-2] == 's' {
			i = at - 1
		}
	}
	for i > s.from && (t[i-1] == ' ' || t[i-1] == '\t' || t[i-1] == ']' || t[i-1] == '[' && i < len(t) && t[i] == ']' || t[i-1] == '+' || equals && (t[i-1] == '?' || t[i-1] == '.')) {
		i--
	}
	if equals && i > s.from && t[i-1] == '}' { // ${env:NAME} =
		if at := bytes.LastIndexByte(t[max(s.from, i-names.MaxPairName):i], '{'); at >= 0 && lex.After(t, max(s.from, i-names.MaxPairName)+at, "{env:") > 0 {
			i--
		}
	}
	if i > s.from && lex.Classes[t[i-1]]&lex.IsQuote != 0 {
		quote := t[i-1]
		i--
		for i > s.from && t[i-1] == '\\' {
			i--
		}
		first = i
		for first > s.from && t[first-1] != quote && t[first-1] != '=' && t[first-1] != ':' && t[first-1] != ',' {
			first--
		}
		return t[first:i], first
	}
	first = i
	for first > s.from && (lex.Classes[t[first-1]]&lex.IsName != 0 || t[first-1] == '\\') {
		first--
	}
	return t[first:i], first
}

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
	v := to
	if v < len(t) && (t[v] == '\\' || lex.Classes[t[v]]&lex.IsQuote != 0) {
		for v < len(t) && (t[v] == '\\' || t[v] == ',' || t[v] == ' ') || v == to {
			v++
		}
		for v < len(t) && (t[v] == ',' || t[v] == ' ') {
			v++
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
	if !s.sensitiveName(t[from:to], 0) {
		return lex.Span{}
	}
	return s.values.Value(v)
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
	case bytes.HasSuffix(t[:i], []byte("set ")) && (bytes.IndexAny(t[i:to], "xU") > 0 || bytes.HasPrefix(t[to:], []byte(" -"))):
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
	if !s.Names.IsPairName(&s.name, s.unescaped(t[v.From:v.To])) {
		return false
	}
	most := min(len(t), v.To+maxPair)
	s.pair = max(s.pair, v.To) // up to the end of an earlier name's
	for s.pair < most && t[s.pair] != '}' && (t[s.pair] != '<' || isValueTag(t[s.pair+1:])) {
		if t[s.pair] == '\n' && s.pair+1 < len(t) && (t[s.pair+1] == '\n' || t[s.pair+1] == '-') {
			break
		}
		s.pair++
	}
	return true
}

// listed finds SECRET in ["NAME", "SECRET"] and ("NAME", "SECRET"), where the
// comma is at i.
func (s *Scanner) listed(i int) lex.Span {
	t := s.text
	if i == s.from || lex.Classes[t[i-1]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	name, first := s.nameBefore(i)
	if len(name) == 0 || len(name) > names.MaxPairName || first == 0 || t[first-1] != t[i-1] {
		return lex.Span{}
	}
	open := first - 1
	for open > s.from && (t[open-1] == '\\' || t[open-1] == ' ' || t[open-1] == '\n' || t[open-1] == '\t') {
		open--
	}
	if open == 0 || t[open-1] != '[' && t[open-1] != '(' && t[open-1] != '{' {
		return lex.Span{}
	}
	v := i + 1
	for v < len(t) && (t[v] == ' ' || t[v] == '\n' || t[v] == '\t') {
		v++
	}
	quote := lex.Backslashes(t, v)
	if quote == len(t) || lex.Classes[t[quote]]&lex.IsQuote == 0 || !s.Names.IsPairName(&s.name, s.unescaped(name)) {
		return lex.Span{}
	}
	c := s.values.Quoted(quote, quote-v)
	end := c.To + quote - v + 1
	for end < len(t) && (t[end] == ' ' || t[end] == '\n' || t[end] == '\t') {
		end++
	}
	if end >= len(t) || t[end] != ']' && t[end] != ')' && t[end] != '}' && (t[end] != ',' || t[open-1] != '(' || !names.IsVariable(name)) {
		return lex.Span{}
	}
	return c
}

// webhooks are addresses whose path is the credential.
var webhooks = [...]string{"hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot", "conda.anaconda.org/t/"}

// url reads the authority (RFC 3986, 3.2) of the URL whose "://" is at i, and
// notes where its password is.
func (s *Scanner) url(i int) lex.Span {
	t := s.text
	from := i + len("://")
	for _, host := range &webhooks {
		if bytes.HasPrefix(t[from:], []byte(host)) {
			path := from + len(host)
			to := lex.CredentialEnd(t[:min(len(t), path+maxPair)], path)
			if n := bytes.IndexByte(t[path:to], '/'); n > 0 && (host[len(host)-1] != '/' || host[len(host)-2] == 't') {
				return lex.Span{From: path, To: path + n} // the method, the channel
			}
			return lex.Span{From: path, To: lex.CredentialEnd(t, to)}
		}
	}
	to := from
	for to < len(t) && t[to] != '/' && t[to] != '?' && t[to] != '#' && !isURLEnd(t[to]) {
		to++
	}
	userinfo := bytes.LastIndexByte(t[from:to], '@')
	colon := bytes.IndexByte(t[from:to], ':')
	if userinfo < 0 && colon >= 0 && !isPort(t[from+colon+1:to]) {
		// A password with a "/" in it that should have been escaped.
		if at := s.at.Next(s.text, to, func(c byte) bool { return c == '@' }); at < s.end.Next(s.text, to, isURLEnd) {
			userinfo = at - from
		}
	}
	switch {
	case userinfo < 0:
		return lex.Span{}
	case colon < 0 || colon > userinfo:
		s.password = lex.Span{From: from, To: from + userinfo}
	case colon+1 == userinfo || string(t[from+colon+1:from+userinfo]) == "x-oauth-basic": // a token in the user's place
		s.password = lex.Span{From: from, To: from + colon}
	default:
		s.password = lex.Span{From: from + colon + 1, To: from + userinfo}
	}
	if lex.MarkLen(t[s.password.From:s.password.To]) == s.password.To-s.password.From {
		s.password = lex.Span{From: -1, To: -1}
	}
	return lex.Span{}
}

package redact

import "bytes"

// ahead caches the position of the next matching byte, so that repeated lookups
// stay linear.
type ahead struct{ from, to int }

// assigned finds the value of NAME=value and NAME: value, where the separator
// is at i, at any level of strings in strings.
func (s *scanner) assigned(i int) span {
	name, first := s.nameBefore(i)
	if i+1 == s.password.from {
		return span{}
	}
	if len(name) == 0 {
		if s.text[i] == ':' && i > 0 && s.text[i-1] == '*' {
			return s.dataSource(name, first, i)
		}
		if i > 0 && s.text[i-1] == ')' {
			return s.prompted(i)
		}
		return span{}
	}
	var more sections
	if first > 0 && (s.text[first-1] == '?' || s.text[first-1] == '&') {
		more = inQuery
	}
	if s.text[i] == ':' && i+1 < len(s.text) && s.text[i+1] > ' ' && s.text[i-1] > ' ' && classes[s.text[i-1]]&isQuote == 0 {
		more |= atEnd // "secrets-operator:1.2" is an image
	}
	if string(name) == "add-mask" && bytes.HasPrefix(s.text[i:], []byte("::")) { // ::add-mask::SECRET
		return span{i + 2, s.credentialEnd(i + 2)}
	}
	if hasFoldSuffix(name, "env") && s.isDrive(name, i) {
		return span{}
	}
	if s.text[i] == '=' && isType(name) {
		name = s.typed(name, first)
	}
	if s.isSubject(name, i) || s.text[i] == ':' && i+2 < len(s.text) && s.text[i+1] == ':' && classes[s.text[i+2]]&isAlnum != 0 {
		return span{} // token::Type
	}
	if s.under.from <= i && i < s.under.to && s.text[i] == s.assigns && s.startsLine(first) {
		if v := s.member(name, i); v.from < v.to {
			return v
		}
	}
	decoded := s.unescaped(name)
	if i < s.pair && roleOf(decoded) == valueRole {
		return s.value(i + 1)
	}
	if !s.sensitive(decoded, more) {
		if roleOf(decoded) == nameRole {
			s.named(s.shortValue(i + 1))
		}
		if string(name) == "stringData" { // of a Secret of Kubernetes
			if v := s.value(i + 1); v.from < v.to && s.text[v.from] == '{' {
				return v
			}
		}
		if v := s.dataSource(name, first, i); v.from < v.to {
			return v
		}
		return s.prompted(i)
	}
	if s.wordy() {
		return s.line(i + 1)
	}
	v := s.value(i + 1)
	if v.from >= v.to {
		if i+1 < len(s.text) && s.text[i+1] <= ' ' && s.startsLine(first) && s.sensitiveName(name, more|noWhole) {
			s.items(i, i+1)
		}
		return v
	}
	if s.text[v.to-1] == ',' && s.text[i] == ':' && s.startsLine(first) && s.sensitiveName(name, more) && s.isPlural() { // a, b, c
		for v.to+1 < len(s.text) && s.text[v.to-1] == ',' && s.text[v.to] == ' ' && s.text[v.to+1] > ' ' {
			v.to = s.credentialEnd(v.to + 1)
		}
	}
	return v
}

// isDrive reports whether the colon at i belongs to PowerShell's $env:NAME or
// Env:NAME.
func (s *scanner) isDrive(name []byte, i int) bool {
	t := s.text
	return t[i] == ':' && (len(name) == 4 && name[0] == '$' || len(name) == 3 && i+2 < len(t) && 'A' <= t[i+1] && t[i+1] <= 'Z' && 'A' <= t[i+2] && t[i+2] <= '_')
}

// isSubject reports whether the colon at i ends the topic of a commit message:
// "auth: refuse empty tokens".
func (s *scanner) isSubject(name []byte, i int) bool {
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
	return words == 2 && (len(t) == 0 || t[0] <= ' ' || t[0] == ',' || t[0] == '.' || classes[t[0]]&isQuote != 0)
}

// said adds SECRET in "the password is SECRET" and "password SECRET": the text
// after the word, if it mixes letters and digits as no word of a language does.
func (s *scanner) said() {
	t := s.text
	for i := 0; i < len(t); i++ {
		run := i
		for i < len(t) && classes[t[i]]&isAlnum != 0 {
			i++
		}
		if i-run < 2 || !wordStarts.has(t[run:i]) || wordAt(t, run)&passWord == 0 {
			continue
		}
		from := i
		if v := s.clause(run, i); v.from < v.to {
			s.found = append(s.found, v)
			i = v.to - 1
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
		for to < len(t) && (classes[t[to]]&isAlnum != 0 || bytes.IndexByte([]byte("_-.!@#^*+~?"), t[to]) >= 0) {
			to++
		}
		if from == i || to < len(t) && classes[t[to]]&isEnd == 0 && t[to] != ',' && t[to] != '\\' {
			continue
		}
		for to > from && (t[to-1] == '.' || t[to-1] == '?') {
			to--
		}
		if isSaid(t[from:to]) || from < to && !isType(t[from:to]) && behindLogin(t, run) {
			s.found = append(s.found, span{from, to})
			i = to - 1
		}
	}
	s.merge()
}

// isSaid distinguishes a password in prose from the word that follows
// "password".
func isSaid(b []byte) bool {
	for _, scheme := range []string{"sha", "base64", "argon2", "pbkdf2", "bcrypt", "md5", "oauth", "utf"} {
		if len(b) >= len(scheme) && bytes.EqualFold(b[:len(scheme)], []byte(scheme)) {
			return false
		}
	}
	digit, letter := false, false
	for _, c := range b {
		digit = digit || isDigit(c)
		letter = letter || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return len(b) >= 6 && digit && letter
}

// isWords reports whether b is a name of letters, such as that of a function.
func isWords(b []byte) bool {
	for _, c := range b {
		if c != '.' && c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) {
			return false
		}
	}
	return true
}

// isType reports whether b is a type of text in a declaration.
func isType(b []byte) bool {
	if n := len(b); n > 0 && (b[n-1] == '?' || b[n-1] == ']') {
		b = bytes.TrimRight(b, "?[]")
	}
	switch string(b) {
	case "string", "String", "str", "char", "text", "varchar", "byte", "bytes", "any", "Any", "object", "Object", "NSString", "SecretStr", "SecureString":
		return true
	}
	return false
}

// typed returns the name before a type, as in "var password string =": the type
// itself if there is none.
func (s *scanner) typed(kind []byte, first int) []byte {
	t := s.text
	to := first
	for to > s.from && (t[to-1] == ' ' || t[to-1] == ':' || t[to-1] == '*' || t[to-1] == '[' || t[to-1] == ']') {
		to--
	}
	from := to
	for from > s.from && to-from <= maxPairName && classes[t[from-1]]&isName != 0 {
		from--
	}
	if from == to || to == first {
		return kind
	}
	return t[from:to]
}

// called finds SECRET in password("SECRET") and login("NAME", "SECRET"), where
// the parenthesis is at i.
func (s *scanner) called(i int) span {
	t := s.text
	if i+1 == len(t) {
		return span{}
	}
	from := i
	for from > s.from && i-from <= maxPairName && classes[t[from-1]]&isName != 0 && t[from-1] != '.' {
		from--
	}
	name := t[from:i]
	if len(name) < 2 || len(name) > maxPairName || s.positional(from, i) {
		return span{}
	}
	if classes[t[i+1]]&isQuote == 0 || isGetter(name) {
		return span{}
	}
	login := hasFoldSuffix(name, "login") || hasFoldSuffix(name, "authenticate")
	if !login && !s.sensitiveName(name, noWhole) {
		return span{}
	}
	v := s.quoted(i+1, 0)
	end := v.to + 1
	second := false
	for end < len(t) && (t[end] == ' ' || t[end] == ',') {
		second = second || t[end] == ','
		end++
	}
	if second && end < len(t) && classes[t[end]]&isQuote != 0 {
		v = s.quoted(end, 0)
		end = v.to + 1
	} else if second || login {
		return span{}
	}
	if end < len(t) && t[end] != ')' && t[end] != ',' || markLen(t[v.from:]) > 0 {
		return span{}
	}
	if v.to-v.from <= maxPairName && s.names.isPairName(&s.name, t[v.from:v.to]) {
		return span{} // the name of one
	}
	return v
}

// isGetter reports whether a function of that name expects the name of a
// secret, or describes one.
func isGetter(name []byte) bool {
	for _, verb := range []string{"get", "has", "is", "find", "fetch", "load", "read", "list", "show", "print", "log", "delete", "remove", "describe", "create", "new", "generate", "parse", "t"} {
		if len(name) >= len(verb) && bytes.EqualFold(name[:len(verb)], []byte(verb)) && (len(name) == len(verb) || name[len(verb)] < 'a' || name[len(verb)] > 'z') {
			return true
		}
	}
	return false
}

// sensitiveName reports whether name is sensitive, and leaves it in s.name.
func (s *scanner) sensitiveName(name []byte, more sections) bool {
	return s.sensitive(s.unescaped(name), more)
}

// sensitive is sensitiveName for a name without escapes.
func (s *scanner) sensitive(name []byte, more sections) bool {
	s.name.fold(name)
	return s.names.sensitive(&s.name, more|keyed(name))
}

// wordy reports whether the value of s.name has several words: a Cookie header
// holds several credentials, a passphrase is one with spaces in it.
func (s *scanner) wordy() bool {
	for _, end := range []string{"cookie", "cookies", "passphrase", "phrase", "mnemonic"} {
		if bytes.HasSuffix(s.name.all, []byte(end)) {
			return true
		}
	}
	return false
}

// nameBefore returns the name that ends before the separator at i, and where
// it starts. A name in quotes may hold anything but a separator.
func (s *scanner) nameBefore(i int) (name []byte, first int) {
	t := s.text
	equals := t[i] == '='                                 // also of ?=, += and .=
	if i > s.from+1 && t[i-1] == ']' && isDigit(t[i-2]) { // NAME[0]=
		at := i - 2
		for at > s.from && i-at < 6 && isDigit(t[at-1]) {
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
		if at := bytes.LastIndexByte(t[max(s.from, i-maxPairName):i], '{'); at >= 0 && after(t, max(s.from, i-maxPairName)+at, "{env:") > 0 {
			i--
		}
	}
	if i > s.from && classes[t[i-1]]&isQuote != 0 {
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
	for first > s.from && (classes[t[first-1]]&isName != 0 || t[first-1] == '\\') {
		first--
	}
	return t[first:i], first
}

// option finds the value of --name value, where the option starts at i, also
// where both are strings in a list.
func (s *scanner) option(i int) span {
	t := s.text
	from := i + 1
	if from < len(t) && t[from] == '-' {
		from++
	}
	to := from
	for to < len(t) && classes[t[to]]&isName != 0 {
		to++
	}
	if c := s.declared(i, to); c.from < c.to {
		return c
	}
	v := to
	if v < len(t) && (t[v] == '\\' || classes[t[v]]&isQuote != 0) {
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
	if v == to || v == len(t) || bytes.HasPrefix(t[v:], []byte("--")) {
		return span{}
	}
	if !s.sensitiveName(t[from:to], 0) {
		return span{}
	}
	return s.value(v)
}

// declared finds SECRET in set -x NAME SECRET and printf -v NAME %s SECRET, where
// the option starts at i and ends at to.
func (s *scanner) declared(i, to int) span {
	t := s.text
	switch {
	case to == len(t) || t[to] != ' ':
		return span{}
	case bytes.HasSuffix(t[:i], []byte("set ")) && (bytes.IndexAny(t[i:to], "xU") > 0):
	case bytes.HasSuffix(t[:i], []byte("printf ")) && string(t[i:to]) == "-v":
	default:
		return span{}
	}
	from := to + 1
	for to = from; to < len(t) && classes[t[to]]&isName != 0; {
		to++
	}
	if to == len(t) || t[to] != ' ' || !s.sensitiveName(t[from:to], noWhole) {
		return span{}
	}
	for _, format := range []string{"%s", "'%s'", `"%s"`} {
		if next := after(t, to+1, format+" "); next > 0 {
			to = next - 1
			break
		}
	}
	return s.value(to + 1)
}

// maxPair is the largest distance in bytes from a name to its value.
const maxPair = 256

// named reports whether the value at v names a secret, and notes until where a
// member may hold it.
func (s *scanner) named(v span) bool {
	t := s.text
	for v.from < v.to && (t[v.to-1] == ',' || t[v.to-1] == '}' || t[v.to-1] == '\\' || t[v.to-1] == '/' || t[v.to-1] == '>') {
		v.to--
	}
	if v.from >= v.to || v.to > len(t) || v.to-v.from > maxPairName {
		return false
	}
	if !s.names.isPairName(&s.name, s.unescaped(t[v.from:v.to])) {
		return false
	}
	most := min(len(t), v.to+maxPair)
	s.pair = max(s.pair, v.to) // up to the end of an earlier name's
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
func (s *scanner) listed(i int) span {
	t := s.text
	if i == s.from || classes[t[i-1]]&isQuote == 0 {
		return span{}
	}
	name, first := s.nameBefore(i)
	if len(name) == 0 || len(name) > maxPairName || first == 0 || t[first-1] != t[i-1] {
		return span{}
	}
	open := first - 1
	for open > s.from && (t[open-1] == '\\' || t[open-1] == ' ' || t[open-1] == '\n' || t[open-1] == '\t') {
		open--
	}
	if open == 0 || t[open-1] != '[' && t[open-1] != '(' && t[open-1] != '{' {
		return span{}
	}
	v := i + 1
	for v < len(t) && (t[v] == ' ' || t[v] == '\n' || t[v] == '\t') {
		v++
	}
	quote := backslashes(t, v)
	if quote == len(t) || classes[t[quote]]&isQuote == 0 || !s.names.isPairName(&s.name, s.unescaped(name)) {
		return span{}
	}
	c := s.quoted(quote, quote-v)
	end := c.to + quote - v + 1
	for end < len(t) && (t[end] == ' ' || t[end] == '\n' || t[end] == '\t') {
		end++
	}
	if end >= len(t) || t[end] != ']' && t[end] != ')' && t[end] != '}' && (t[end] != ',' || t[open-1] != '(' || !isVariable(name)) {
		return span{}
	}
	return c
}

// webhooks are addresses whose path is the credential.
var webhooks = [...]string{"hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot", "conda.anaconda.org/t/"}

// url reads the authority (RFC 3986, 3.2) of the URL whose "://" is at i, and
// notes where its password is.
func (s *scanner) url(i int) span {
	t := s.text
	from := i + len("://")
	for _, host := range &webhooks {
		if bytes.HasPrefix(t[from:], []byte(host)) {
			path := from + len(host)
			to := s.credentialEnd(path)
			if n := bytes.IndexByte(t[path:to], '/'); n > 0 && (host[len(host)-1] != '/' || host[len(host)-2] == 't') {
				to = path + n // the method, the channel
			}
			return span{path, to}
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
		if at := s.next(&s.at, to, func(c byte) bool { return c == '@' }); at < s.next(&s.end, to, isURLEnd) {
			userinfo = at - from
		}
	}
	switch {
	case userinfo < 0:
		return span{}
	case colon < 0 || colon > userinfo:
		s.password = span{from, from + userinfo}
	case colon+1 == userinfo || string(t[from+colon+1:from+userinfo]) == "x-oauth-basic": // a token in the user's place
		s.password = span{from, from + colon}
	default:
		s.password = span{from + colon + 1, from + userinfo}
	}
	if markLen(t[s.password.from:s.password.to]) == s.password.to-s.password.from {
		s.password = span{-1, -1}
	}
	return span{}
}

func isURLEnd(c byte) bool { return c <= ' ' || classes[c]&isQuote != 0 || c == '<' || c == '>' }

func isPort(b []byte) bool { return countDigits(b) == len(b) }

// next returns the index of the next byte from i on for which is holds; i does
// not go back.
func (s *scanner) next(a *ahead, i int, is func(byte) bool) int {
	if a.from <= i && i <= a.to && a.to > 0 {
		return a.to
	}
	a.from, a.to = i, i
	for a.to < len(s.text) && !is(s.text[a.to]) {
		a.to++
	}
	return a.to
}

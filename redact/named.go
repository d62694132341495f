package redact

import "bytes"

// ahead remembers where the next byte of some kind is, so that asking for it
// again and again stays linear.
type ahead struct{ from, to int }

// assigned finds the value of NAME=value and NAME: value, where the separator
// stands at i, at any level of strings in strings.
func (s *scanner) assigned(i int) span {
	name, first := s.nameBefore(i)
	if len(name) == 0 || i+1 == s.password.from {
		return span{}
	}
	var more sections
	if first > 0 && (s.text[first-1] == '?' || s.text[first-1] == '&') {
		more = inQuery
	}
	if s.text[i] == ':' && i+1 < len(s.text) && s.text[i+1] > ' ' && s.text[i-1] > ' ' && classes[s.text[i-1]]&isQuote == 0 {
		more |= atEnd // "secrets-operator:1.2" is an image
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
	if i < s.pair && roleOf(unescaped(name)) == valueRole {
		return s.value(i + 1)
	}
	if !s.sensitiveName(name, more) {
		if roleOf(unescaped(name)) == nameRole {
			s.named(s.shortValue(i + 1))
		}
		return span{}
	}
	if s.wordy() {
		return s.line(i + 1)
	}
	return s.value(i + 1)
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

// said adds SECRET in "the password is SECRET" and "password SECRET": what
// follows the word and has letters and digits, as words of a language have not.
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
		if isSaid(t[from:to]) {
			s.found = append(s.found, span{from, to})
			i = to - 1
		}
	}
	s.merge()
}

// isSaid tells a password in prose from the word that follows "password".
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

// isType reports whether b is what programs declare texts to be.
func isType(b []byte) bool {
	switch string(bytes.TrimRight(b, "?[]")) {
	case "string", "String", "str", "char", "text", "varchar", "byte", "bytes", "any", "Any", "object", "Object", "NSString", "SecretStr", "SecureString":
		return true
	}
	return false
}

// typed returns the name that a type stands behind, as in "var password string
// =": the type itself if there is none.
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
// the parenthesis stands at i.
func (s *scanner) called(i int) span {
	t := s.text
	if i+1 == len(t) || classes[t[i+1]]&isQuote == 0 {
		return span{}
	}
	from := i
	for from > s.from && i-from <= maxPairName && classes[t[from-1]]&isName != 0 && t[from-1] != '.' {
		from--
	}
	name := t[from:i]
	if len(name) < 2 || len(name) > maxPairName || isGetter(name) {
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

// isGetter reports whether a function of that name takes the name of a secret,
// or says something about one.
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
	s.name.fold(unescaped(name))
	return s.names.sensitive(&s.name, more)
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
	equals := t[i] == '=' // also of ?=, += and .=
	for i > s.from && (t[i-1] == ' ' || t[i-1] == '\t' || t[i-1] == ']' || t[i-1] == '[' && i < len(t) && t[i] == ']' || t[i-1] == '+' || equals && (t[i-1] == '?' || t[i-1] == '.')) {
		i--
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

// value finds what is assigned by the separator before i.
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
		return span{i, s.closed(i)}
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
		for i = to; i < len(t) && (t[i] == ' ' || t[i] == '\t'); i++ {
		}
		return s.value(i)
	}
	return span{i, to}
}

// below finds the value in the lines under a name, whose line ends at i: YAML's
// block scalars, and what is written one line down. It is indented or quoted.
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

// shortValue is value for what is looked at again if it names nothing: of a long
// one only the start is.
func (s *scanner) shortValue(i int) span {
	t := s.text
	s.text = t[:min(len(t), i+maxPairName+32)]
	v := s.value(i)
	s.text = t
	return v
}

// maxPair is how far behind a name, in bytes, what it names may stand.
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
	if !s.names.isPairName(&s.name, unescaped(t[v.from:v.to])) {
		return false
	}
	most := min(len(t), v.to+maxPair)
	s.pair = max(s.pair, v.to) // up to where an earlier name's went
	for s.pair < most && t[s.pair] != '}' && (t[s.pair] != '<' || isValueTag(t[s.pair+1:])) {
		if t[s.pair] == '\n' && s.pair+1 < len(t) && (t[s.pair+1] == '\n' || t[s.pair+1] == '-') {
			break
		}
		s.pair++
	}
	return true
}

// isValueTag reports whether t starts with the name of an XML element that holds
// a value.
func isValueTag(t []byte) bool {
	n := 0
	for n < len(t) && n < 16 && classes[t[n]]&isAlnum != 0 {
		n++
	}
	return n < len(t) && t[n] == '>' && roleOf(t[:n]) == valueRole
}

// listed finds SECRET in ["NAME", "SECRET"] and ("NAME", "SECRET"), where the
// comma stands at i.
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
	if quote == len(t) || classes[t[quote]]&isQuote == 0 || !s.names.isPairName(&s.name, unescaped(name)) {
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

// tagged finds the content of an XML element of a sensitive name, or with an
// attribute that names a secret, whose start tag ends at i.
func (s *scanner) tagged(i int) span {
	t := s.text
	first := i
	for first > s.from && classes[t[first-1]]&isName != 0 {
		first--
	}
	last := i
	if i > s.from && classes[t[i-1]]&isQuote != 0 { // a tag with attributes
		for first = i; first > s.from && i-first < maxPair && t[first-1] != '<' && t[first-1] != '>'; {
			first--
		}
		for last = first; last < i && (classes[t[last]]&isName != 0 || t[last] == ':'); {
			last++
		}
	} else if first > s.from && t[first-1] == ':' { // a name space
		for first > s.from && (classes[t[first-1]]&isName != 0 || t[first-1] == ':') {
			first--
		}
	}
	if at := bytes.LastIndexByte(t[first:last], ':'); at >= 0 && first > s.from && t[first-1] == '<' {
		first += at + 1
	}
	isTag := first > s.from && (t[first-1] == '<' || t[first-1] == ':') && first < last
	if !isTag && i >= s.pair {
		return span{}
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
		return span{} // a type parameter: List<Token> tokens = new ArrayList<>()
	}
	closing := bytes.HasPrefix(t[to:], []byte("</"))
	for to > from && t[to-1] <= ' ' {
		to--
	}
	if from == to || first > s.from && first < i && t[first-1] == '/' {
		return span{}
	}
	if markLen(t[from:]) > 0 {
		s.pair = 0
		return span{}
	}
	switch {
	case isTag && s.sensitiveName(t[first:last], noWhole):
	case isTag && roleOf(t[first:last]) == nameRole:
		if s.named(span{from, to}) {
			s.pair = min(len(t), to+maxPair)
		}
		return span{}
	case i < s.pair && t[i-1] != '/' && (!isTag || last < i && closing || roleOf(t[first:last]) == valueRole):
		s.pair = 0
	default:
		return span{}
	}
	return span{from, to}
}

// manifests adds the values of a Secret of Kubernetes, whatever their names
// are.
func (s *scanner) manifests() {
	t := s.text
	if !isManifest(t) {
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
			for i < len(t) && (classes[t[i]]&isQuote != 0 || t[i] == '\\' || t[i] == ' ') {
				i++
			}
			if i == len(t) || t[i] != ':' || at > len(name) && classes[t[at-len(name)-1]]&isName != 0 {
				continue
			}
			for i++; i < len(t) && t[i] == ' '; i++ {
			}
			if i < len(t) && t[i] == '{' {
				to := s.closed(i)
				s.found = append(s.found, span{i, to})
				at = to
				continue
			}
			if i < len(t) && (t[i] == '\n' || t[i] == '\r') {
				at = s.block(i, indentAt(t, at-len(name)))
			}
		}
	}
	s.merge()
}

// isManifest reports whether t has "kind: Secret", as YAML or as JSON.
func isManifest(t []byte) bool {
	for {
		at := bytes.Index(t, []byte("kind"))
		if at < 0 {
			return false
		}
		t = t[at+len("kind"):]
		kind := bytes.TrimLeft(t[:min(len(t), 32)], "\\\"' :\t")
		if len(kind) >= 6 && hasFoldSuffix(kind[:6], "secret") && (len(kind) == 6 || classes[kind[6]]&isName == 0) {
			return true
		}
	}
}

// indentAt returns how many bytes of white space the line of t[i] starts with, 0
// if t[i] is not the first thing behind it.
func indentAt(t []byte, i int) int {
	from := i
	for from > 0 && (t[from-1] == ' ' || t[from-1] == '\t') {
		from--
	}
	if from > 0 && t[from-1] != '\n' {
		return 0
	}
	return i - from
}

// block adds the values in the lines behind i that are indented by more than
// outer bytes, and returns where they end.
func (s *scanner) block(i, outer int) int {
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
		for from < i+stop && (t[from] <= ' ' || classes[t[from]]&isQuote != 0) {
			from++
		}
		to := i + stop
		for to > from && (t[to-1] <= ' ' || classes[t[to-1]]&isQuote != 0) {
			to--
		}
		if from < to && markLen(t[from:]) == 0 && !isPlaceholder(t[from:to]) {
			s.found = append(s.found, span{from, to})
		}
	}
	return i
}

// isScheme reports whether b is what stands before a token in a header
// (RFC 9110, 11.4).
func isScheme(b []byte) bool {
	for _, scheme := range []string{"basic", "bearer", "token", "digest", "negotiate", "apikey", "dpop", "api-token"} {
		if len(b) == len(scheme) && hasFoldSuffix(b, scheme) {
			return true
		}
	}
	return false
}

// quoted returns what the quote at i opens, which has level backslashes before
// it, and what is written on to it behind the closing quote.
func (s *scanner) quoted(i, level int) span {
	t := s.text
	from := i + 1
	to := s.closing(i, level)
	after := min(to+level+1, len(t))
	if n := markLen(t[from:to]); n == to-from && n > 0 {
		from = to // it has been redacted
	}
	if after < len(t) && (classes[t[after]]&isAlnum != 0 || t[after] == '$') {
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

// parenthesis returns the index behind what the parenthesis at i encloses.
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

// line returns what stands from i to the end of the line or quotation: a
// Cookie header holds several credentials with "; " between them.
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

// webhooks are addresses whose path is the credential.
var webhooks = [...]string{"hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}

// url looks at the authority (RFC 3986, 3.2) of the URL whose "://" stands at
// i, and notes where its password is.
func (s *scanner) url(i int) span {
	t := s.text
	from := i + len("://")
	for _, host := range &webhooks {
		if bytes.HasPrefix(t[from:], []byte(host)) {
			path := from + len(host)
			return span{path, s.credentialEnd(path)}
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
	case colon+1 == userinfo:
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

package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/argv"
	"auditproxy/redact/call"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/login"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// maxPlain limits the values, in bytes, that can be plain though their names are those of
// secrets.
const maxPlain = 256

// assigned finds the value of NAME=value and NAME: value, where the separator
// is at i, at any level of strings in strings.
func (s *Scanner) assigned(i int) lex.Span {
	name, first := s.nameBefore(i)
	if i+1 == s.password.From || s.tupled(i) {
		return lex.Span{}
	}
	if len(name) == 0 && first > 0 && s.text[first-1] == ')' {
		name = s.sized(first)
	} else if len(name) == 0 && first > 0 && s.text[first-1] == '}' {
		name = about.Property(s.text, first)
	}
	if len(name) == 0 {
		if s.text[i] == ':' && i > 0 && s.text[i-1] == '*' {
			return login.Find(s.text, name, first, i)
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
	if s.text[i] == '=' && len(name) > 0 && bytes.HasSuffix(bytes.TrimRight(s.text[:i], " |"), []byte("}")) { // of Perl: $h{NAME} =
		if more |= names.NoWhole; name[0] == '$' {
			return lex.Span{}
		}
	}
	if s.text[i] == ':' && i+1 < len(s.text) && s.text[i+1] > ' ' && s.text[i-1] > ' ' && lex.Classes[s.text[i-1]]&lex.IsQuote == 0 {
		more |= names.AtEnd // "secrets-operator:1.2" is an image
	}
	if string(name) == "add-mask" && bytes.HasPrefix(s.text[i:], []byte("::")) { // ::add-mask::SECRET
		return lex.Span{From: i + 2, To: lex.CredentialEnd(s.text, i+2)}
	}
	if s.text[i] == ':' && i+2 < len(s.text) && s.text[i+1] == ':' {
		if v := s.outputs(name, first, i); v.From < v.To {
			return v
		}
	}
	if lex.HasFoldSuffix(name, "env") && about.IsDrive(s.text, name, i) {
		return lex.Span{}
	}
	if s.text[i] == ':' && (name[0] == '$' && i+1 < len(s.text) && s.text[i+1] == '/' || string(name) == "PASS" && bytes.HasSuffix(s.text[:first], []byte("--- "))) {
		return lex.Span{} // a mount, a result
	}
	if s.text[i] == '=' && lex.IsType(name) {
		name = s.typed(name, first)
	}
	if about.IsSubject(s.text, name, i) || about.IsGcloudSecret(s.text, name, i) || s.text[i] == ':' && i+2 < len(s.text) && s.text[i+1] == ':' && lex.Classes[s.text[i+2]]&lex.IsAlnum != 0 {
		return lex.Span{} // token::Type
	}
	if s.under.From <= i && i < s.under.To && s.text[i] == s.assigns && (lex.StartsLine(s.text, first) || first > 1 && s.text[first-2] == '-' && lex.StartsLine(s.text, first-2)) {
		if v := s.member(name, i); v.From < v.To {
			return v
		}
	}
	if string(name) == "Private-Lines" { // of PuTTY, also one that was cut
		key := s.text[i:min(len(s.text), i+maxPrivate)]
		if at := bytes.Index(key, []byte("\nPrivate-MAC")); at > 0 {
			key = key[:at]
		}
		if n := bytes.IndexByte(key, '\n') + 1; n > 0 && n < len(key) && lex.MarkLen(key[n:]) == 0 {
			return lex.Span{From: i + n, To: i + len(key)}
		}
	}
	decoded := s.unescaped(name)
	if i < s.pair && names.RoleOf(decoded) == names.ValueRole {
		return s.values.Value(i + 1)
	}
	if !s.sensitive(decoded, more) {
		if c := s.Names.Doubtful(&s.name); c != names.Clear && (c != names.DoubtfulKey || s.isLong(i+1)) {
			if v := s.values.ShortValue(i + 1); v.From < v.To && c.IsSecret(s.text[v.From:v.To]) {
				return s.values.Value(i + 1)
			}
		}
		if about.IsCompared(s.text, first, first+len(name), i, s.Names, &s.name) {
			s.found, s.unordered = append(s.found, lex.Span{From: first, To: first + len(name)}), true
			return lex.Span{}
		}
		if v := s.asKey(name, first, i); v.From < v.To {
			return v
		}
		var buf [names.MaxPairName]byte
		if name := about.Requoted(buf[:0], s.text, s.from, first, i); len(name) > 0 && s.sensitive(name, names.NoWhole) {
			return s.values.Value(i + 1)
		}
		if v := s.setting(name, first, i); v.From < v.To {
			return v
		}
		if names.RoleOf(decoded) == names.NameRole {
			if v := s.values.ShortValue(i + 1); s.named(v) {
				return s.values.Part(v.To)
			}
		}
		if string(name) == "stringData" { // of a Secret of Kubernetes
			if v := s.values.Value(i + 1); v.From < v.To && s.text[v.From] == '{' {
				return v
			}
			s.items(i, i+1)
		}
		if v := login.Find(s.text, name, first, i); v.From < v.To {
			return v
		}
		if v := s.values.Emphasized(first, i); v.From < v.To {
			return v
		}
		return s.prompted(i)
	}
	if about.IsOther(name, s.text[i:]) || about.IsParsed(s.text, first, i) {
		return lex.Span{}
	}
	if s.wordy() {
		v := s.values.Line(i + 1)
		if v.From < v.To && about.IsState(s.name.All, s.text[v.From:v.To]) {
			return lex.Span{}
		}
		return v
	}
	if (lex.HasFoldSuffix(name, "command") || lex.HasFoldSuffix(name, "passcmd") || lex.HasFoldSuffix(name, "eval")) && s.sensitiveName(name, names.NoWhole) {
		if v := s.values.Line(i + 1); v.From < v.To && s.text[i+1] <= ' ' && lex.Classes[s.text[v.From-1]]&lex.IsQuote == 0 && lex.CredentialEnd(s.text, v.From) < v.To {
			if program, _, _ := bytes.Cut(s.text[v.From:v.To], []byte(" ")); string(program) == "echo" || string(program) == "printf" {
				return v
			}
			return lex.Span{} // what prints it
		}
	}
	if s.text[i] == ':' && about.ClosesPrompt(s.text, first, i+1) {
		return lex.Span{}
	}
	if v, ok := argv.Document(s.text, i+1); ok {
		return v
	}
	if about.IsAlternative(s.text, first, i) {
		return lex.Span{}
	}
	v := s.joinedStrings(s.values.Value(i + 1))
	if bytes.HasSuffix(s.name.All, []byte("authorization")) && s.text[i] == ':' && i+1 < len(s.text) && s.text[i+1] == ' ' {
		v = s.behindScheme(v)
	}
	// What is longer is hidden: otherwise each name in it would have it read again.
	if b := s.text[v.From:max(v.From, v.To)]; 0 < len(b) && len(b) <= maxPlain && (about.IsCount(s.text, s.name.All, i, v) || about.IsState(s.name.All, b) ||
		about.IsDescription(s.text, v) || about.IsIdentity(b) || about.IsNameOfSecret(name, b) || about.IsItself(s.text, name, first, v) || about.IsVariable(s.text, i, v)) {
		return lex.Span{}
	}
	if v.From < v.To && v.To-v.From <= maxPlain && (about.IsCode(s.text, decoded, i, v) || string(decoded) == "content" && s.text[i] == '=' && about.IsMeta(s.text, first, s.Names, &s.name)) && !s.sensitive(decoded, more|names.NoWhole) {
		return lex.Span{}
	}
	if v.From >= v.To {
		if i+1 < len(s.text) && s.text[i+1] <= ' ' && lex.StartsLine(s.text, first) && s.sensitiveName(name, more|names.NoWhole) {
			s.items(i, i+1)
		}
		return v
	}
	if s.text[v.To-1] == ',' && s.text[i] == ':' && lex.StartsLine(s.text, first) && s.sensitiveName(name, more) && s.isPlural() { // a, b, c
		for v.To+1 < len(s.text) && s.text[v.To-1] == ',' && s.text[v.To] == ' ' && s.text[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(s.text, v.To+1)
		}
	}
	return v
}

// isLong reports whether the line goes on at i for as long as a key is.
func (s *Scanner) isLong(i int) bool {
	return i+maxGap <= len(s.text) && bytes.IndexByte(s.text[i:i+maxGap], '\n') < 0
}

// behindScheme widens the word of an Authorization header to what follows it, if that is
// a scheme of a vendor's own: "GenieKey SECRET".
func (s *Scanner) behindScheme(v lex.Span) lex.Span {
	t := s.text
	if v.From >= v.To || v.To-v.From > 2*maxGap || v.To+1 >= len(t) || t[v.To] != ' ' || t[v.To+1] <= ' ' {
		return v
	}
	for _, c := range t[v.From:v.To] {
		if c != '-' && (c|0x20 < 'a' || 'z' < c|0x20) {
			return v
		}
	}
	return s.values.Line(v.To + 1)
}

// asKey finds SECRET in PRAGMA key = 'SECRET' and, in a configuration of curl, in
// user = "NAME:SECRET", where the separator is at i.
func (s *Scanner) asKey(name []byte, first, i int) lex.Span {
	t := s.text
	if t[i] != '=' {
		return lex.Span{}
	}
	switch string(name) {
	case "user", "proxy-user", "--user", "-u":
		from := i + 1
		for from < len(t) && from-i < maxGap && t[from] == ' ' {
			from++
		}
		if from == len(t) || lex.Classes[t[from]]&lex.IsQuote == 0 {
			return lex.Span{}
		}
		v := s.values.ShortValue(i + 1)
		if v.From >= v.To {
			return lex.Span{}
		}
		user, secret, ok := bytes.Cut(t[v.From:v.To], []byte(":"))
		if !ok || len(user) == 0 || len(secret) == 0 || lex.MarkLen(secret) > 0 || bytes.Equal(user, secret) || lex.CountDigits(secret) == len(secret) && lex.CountDigits(user) == len(user) || secret[0] == '/' {
			return lex.Span{} // a group
		}
		return lex.Span{From: v.From + len(user) + 1, To: v.To}
	}
	if s.isPragma(name, first) {
		return s.values.Value(i + 1)
	}
	return lex.Span{}
}

// joinedStrings widens a string by those that an operator, a method or a line break joins
// to it, "SE" + "CRET", and a word by the line behind a backslash.
func (s *Scanner) joinedStrings(v lex.Span) lex.Span {
	t := s.text
	if v.From > v.To || v.From == 0 {
		return v
	}
	quote := t[v.From-1]
	if lex.Classes[quote]&lex.IsQuote == 0 {
		if v.From < v.To && v.To+1 < len(t) && t[v.To-1] == '\\' && t[v.To] == '\n' && t[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(t, v.To+1)
		}
		return v
	}
	whole, from, mixed := v, v.From, false
	p := lex.Pieces{Plain: v.From < v.To && v.From > 1 && t[v.From-2] <= ' '} // of Python and C no operator is needed
	for n := 0; n < maxPieces && v.To < len(t) && lex.Classes[t[v.To]]&lex.IsQuote != 0; n++ {
		i := p.Next(t, v.To)
		if i == 0 {
			break
		}
		v = s.values.Quoted(i, 0)
		if v.From >= v.To || lex.MarkLen(t[v.From:]) > 0 {
			break
		}
		mixed = mixed || t[i] != quote
		if whole.To = v.To; mixed { // with the quotes around: the first one would not be closed
			whole = lex.Span{From: from - 1, To: min(len(t), v.To+1)}
		}
	}
	return whole
}

// maxPrivate is the length in bytes of the longest key of PuTTY.
const maxPrivate = 8 << 10

// maxPieces is of how many strings a secret is joined.
const maxPieces = 16

// isPragma reports whether the name that starts at first is the key of SQLCipher:
// PRAGMA key.
func (s *Scanner) isPragma(name []byte, first int) bool {
	if at := bytes.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}
	if len(name) < 3 || len(name) > len("hexrekey") || !lex.HasFoldSuffix(name, "key") {
		return false
	}
	before := bytes.TrimRight(s.text[max(0, first-maxGap):first], " \t")
	return lex.HasFoldSuffix(before, "pragma")
}

// wide finds the value behind the colon or the equals sign of Asia at i.
func (s *Scanner) wide(i int) lex.Span {
	const width = 3
	t := s.text
	at := i + width
	for at < len(t) && at-i < maxGap && t[at] == ' ' {
		at++
	}
	for at-i < maxGap && bytes.HasPrefix(t[at:], []byte("\u3000")) {
		at += width
	}
	if at == len(t) || t[at] >= 0xE3 {
		return lex.Span{} // words about it
	}
	first := i
	for first > s.from && i-first < names.MaxPairName && lex.Classes[t[first-1]]&lex.IsName != 0 && (first < width || !lex.IsWide(t[first-width:]) && !prose.IsStop(t[first-width:])) {
		first--
	}
	name := t[first:i]
	if len(name) == 0 || !s.sensitiveName(name, names.NoWhole) {
		head := t[max(s.from, i-maxPrompt):i]
		if !s.isPrompt(head[bytes.LastIndexByte(head, '\n')+1:]) {
			return lex.Span{}
		}
	}
	v := s.values.Value(at)
	for k := v.From; k < v.To; k++ {
		if prose.IsStop(t[k:]) {
			v.To = k
		}
	}
	return v
}

// sized returns the name before a type with a length, which ends at i: password
// VARCHAR(64) := 'SECRET'.
func (s *Scanner) sized(i int) []byte {
	t := s.text
	open := bytes.LastIndexByte(t[max(0, i-8):i], '(')
	if open < 0 {
		return nil
	}
	open += max(0, i-8)
	if size := t[open+1 : i-1]; lex.CountDigits(size) != len(size) && !bytes.EqualFold(size, []byte("max")) {
		return nil
	}
	from := open
	for from > s.from && open-from < maxGap && lex.Classes[t[from-1]]&lex.IsAlnum != 0 {
		from--
	}
	kind := bytes.TrimRight(t[from:open], "2")
	if !lex.HasFoldSuffix(kind, "char") && !lex.HasFoldSuffix(kind, "raw") {
		return nil
	}
	if name := s.typed(nil, from); len(name) > 0 {
		return name
	}
	return nil
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
	if to-from == 2 && lex.HasFoldSuffix(t[from:to], "as") { // Dim NAME As String
		return s.typed(kind, from)
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
	quote := i + 1
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
		for (n == 0 || login) && end < len(t) && (t[end] == ' ' || t[end] == ',') {
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
	if !s.sensitiveName(name, 0) || about.IsMetavariable(name, t[v:]) || about.IsMention(t[v:]) || string(name) == "secret" && bytes.HasPrefix(t[v:], []byte("id=")) || about.IsSwitch(name) || about.IsGcloudSecret(t, t[i:to], to) || bytes.EqualFold(name, []byte("command")) { // its secrets are found as in any command
		return lex.Span{}
	}
	c := s.values.Value(v)
	if c.From < c.To && (about.IsNameOfSecret(name, t[c.From:c.To]) || lex.HasFoldSuffix(name, "shell") && about.IsPlace(t[c.From:c.To])) {
		return lex.Span{}
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

// url reads the authority (RFC 3986, 3.2) of the URL whose "://" is at i, and
// notes where its password is.
func (s *Scanner) url(i int) lex.Span {
	t := s.text
	from := i + len("://")
	if c := formats.Webhook(t, from, maxPair); c.To > 0 {
		return c
	}
	to := from
	for to < len(t) && t[to] != '/' && t[to] != '?' && t[to] != '#' && !lex.IsURLEnd(t[to]) {
		to += max(1, lex.MarkLen(t[to:]))
	}
	scheme := t[max(0, i-len("rtmps")):i]
	if bytes.Contains(scheme, []byte("rtmp")) { // of a stream: its key
		path := to
		for to < len(t) && !lex.IsURLEnd(t[to]) {
			to++
		}
		key := path + 1 + bytes.LastIndexByte(t[path:to], '/')
		if key > path+1 && lex.MarkLen(t[key:]) == 0 {
			return lex.Span{From: key, To: to}
		}
		to = path
	}
	userinfo := bytes.LastIndexByte(t[from:to], '@')
	colon := bytes.IndexByte(t[from:to], ':')
	if userinfo < 0 && colon >= 0 && !lex.IsPort(t[from+colon+1:to]) {
		// A password with a "/" in it that should have been escaped.
		if at := s.at.Next(s.text, to, func(c byte) bool { return c == '@' }); at < s.end.Next(s.text, to, lex.IsURLEnd) {
			userinfo = at - from
		}
	} else if userinfo >= 0 && colon > userinfo && to < len(t) && (t[to] == '#' || t[to] == '?') && !lex.IsPort(t[from+colon+1:to]) {
		// The same behind a user with an "@": https://ann@example.com:SE#CRET@host.
		end := min(s.end.Next(s.text, to, lex.IsURLEnd), to+maxPair)
		if at := bytes.LastIndexByte(t[to:end], '@'); at >= 0 {
			userinfo = to + at - from
		}
	}
	if userinfo < 0 && to < len(t) && t[to] == '/' {
		if v := login.Link(t, to+1); v.From < v.To {
			return v
		}
	}
	switch {
	case userinfo < 0, (colon < 0 || colon > userinfo) && (bytes.HasSuffix(scheme, []byte("ssh")) || bytes.HasSuffix(scheme, []byte("sftp")) || !bytes.Contains(scheme, []byte("http")) && about.IsHumped(t[from:from+userinfo])):
		return lex.Span{} // a user of SSH is no token, nor is the word before spark://Driver@host
	case colon < 0 || colon > userinfo:
		s.password = lex.Span{From: from, To: from + userinfo}
	case colon+1 == userinfo || string(t[from+colon+1:from+userinfo]) == "x-oauth-basic": // a token in the user's place
		s.password = lex.Span{From: from, To: from + colon}
	default:
		s.password = lex.Span{From: from + colon + 1, To: from + userinfo}
	}
	return lex.Span{}
}

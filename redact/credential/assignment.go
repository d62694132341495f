package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/login"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
	"auditproxy/redact/setting"
	"auditproxy/redact/sql"
)

// maxPlain limits the values, in bytes, that can be plain though their names are those of
// secrets.
const maxPlain = 256

// An assignment is NAME=value or NAME: value.
type assignment struct {
	name    []byte
	first   int    // where the name begins
	sign    int    // where the separator is
	decoded []byte // the name without escapes
	more    names.Sections
}

// assigned finds the value of NAME=value and NAME: value, where the separator
// is at i, at any level of strings in strings.
func (s *Scanner) assigned(i int) lex.Span {
	a := assignment{sign: i}
	a.name, a.first = s.values.NameBefore(s.from, i)
	if i+1 == s.password.From || s.tupled(i) {
		return lex.Span{}
	}
	if len(a.name) == 0 {
		a.name = s.nameBefore(a.first)
	}
	if len(a.name) == 0 {
		return s.unnamed(a.first, i)
	}
	a.more = s.sections(&a)
	if a.more&names.NoWhole != 0 && a.name[0] == '$' {
		return lex.Span{} // $h{$name} = of Perl
	}
	if v := s.runner(&a); v.From < v.To {
		return v
	}
	if s.isNoName(&a) {
		return lex.Span{}
	}
	if s.text[i] == '=' && lex.IsType(a.name) {
		a.name = s.typed(a.name, a.first)
	}
	if s.isReference(&a) {
		return lex.Span{}
	}
	if s.under.From <= i && i < s.under.To && s.text[i] == s.assigns &&
		(lex.StartsLine(s.text, a.first) || a.first > 1 && s.text[a.first-2] == '-' && lex.StartsLine(s.text, a.first-2)) {
		if v := s.member(a.name, i); v.From < v.To {
			return v
		}
	}
	if v := s.privateLines(&a); v.From < v.To {
		return v
	}
	a.decoded = s.values.Unescaped(a.name)
	if i < s.pair && names.RoleOf(a.decoded) == names.ValueRole {
		return s.values.Value(i + 1)
	}
	if s.sensitive(a.decoded, a.more) {
		return s.secret(&a)
	}
	return s.ordinary(&a)
}

// nameBefore returns the name behind which a type or an index ends before i.
func (s *Scanner) nameBefore(i int) []byte {
	if i == 0 {
		return nil
	}
	switch s.text[i-1] {
	case ')':
		return s.sized(i)
	case '}':
		return about.Property(s.text, i)
	}
	return nil
}

// unnamed finds the value behind the separator at i that has no name: that of a prompt, of a
// login. The name would begin at first.
func (s *Scanner) unnamed(first, i int) lex.Span {
	for _, form := range [...]string{": PSK 0s", ": PSK 0x"} { // of ipsec.secrets
		if at := lex.After(s.text, i, form); at > 0 && lex.MarkLen(s.text[at:]) == 0 {
			return lex.Span{From: at, To: lex.CredentialEnd(s.text, at)}
		}
	}
	if i == 0 {
		return lex.Span{}
	}
	switch before := s.text[i-1]; {
	case before == '*' && s.text[i] == ':':
		return login.Find(s.text, nil, first, i)
	case before == ')', before == ']' && isMasked(s.text[max(0, i-maxPrompt):i]):
		return s.prompted(i)
	}
	return lex.Span{}
}

// sections returns where the name is, as far as that says what it can mean.
func (s *Scanner) sections(a *assignment) (more names.Sections) {
	t, i := s.text, a.sign
	if a.first > 0 && (t[a.first-1] == '?' || t[a.first-1] == '&') {
		more = names.InQuery
	}
	if t[i] == '=' && bytes.HasSuffix(bytes.TrimRight(t[:i], " |"), []byte("}")) { // of Perl: $h{NAME} =
		more |= names.NoWhole
	}
	if t[i] == ':' && i+1 < len(t) && t[i+1] > ' ' && t[i-1] > ' ' && lex.Classes[t[i-1]]&lex.IsQuote == 0 {
		more |= names.AtEnd // "secrets-operator:1.2" is an image
	}
	return more
}

// runner finds the value of a command to GitHub's runner: ::add-mask::SECRET.
func (s *Scanner) runner(a *assignment) lex.Span {
	i := a.sign
	if !bytes.HasPrefix(s.text[i:], []byte("::")) {
		return lex.Span{}
	}
	if string(a.name) == "add-mask" {
		return lex.Span{From: i + 2, To: lex.CredentialEnd(s.text, i+2)}
	}
	if i+2 == len(s.text) {
		return lex.Span{}
	}
	return s.settings.Output(a.name, a.first, i)
}

// isNoName reports whether the name is a drive, a volume that is mounted, or the result of a
// test.
func (s *Scanner) isNoName(a *assignment) bool {
	t, i := s.text, a.sign
	switch {
	case lex.HasFoldSuffix(a.name, "env") && about.IsDrive(t, a.name, i):
		return true
	case t[i] != ':':
		return false
	}
	return a.name[0] == '$' && i+1 < len(t) && t[i+1] == '/' || string(a.name) == "PASS" && bytes.HasSuffix(t[:a.first], []byte("--- "))
}

// isReference reports whether the name is that of something else which the text is about:
// token::Type.
func (s *Scanner) isReference(a *assignment) bool {
	t, i := s.text, a.sign
	if about.IsSubject(t, a.name, i) || about.IsGcloudSecret(t, a.name, i) {
		return true
	}
	return t[i] == ':' && (about.IsResource(t, a.name, a.first) || i+2 < len(t) && t[i+1] == ':' && lex.Classes[t[i+2]]&lex.IsAlnum != 0)
}

// privateLines finds the key of PuTTY below "Private-Lines", also one that was cut.
func (s *Scanner) privateLines(a *assignment) lex.Span {
	if string(a.name) != "Private-Lines" {
		return lex.Span{}
	}
	key := s.text[a.sign:min(len(s.text), a.sign+maxPrivate)]
	if at := bytes.Index(key, []byte("\nPrivate-MAC")); at > 0 {
		key = key[:at]
	}
	n := bytes.IndexByte(key, '\n') + 1
	if n == 0 || n == len(key) || lex.MarkLen(key[n:]) > 0 {
		return lex.Span{}
	}
	return lex.Span{From: a.sign + n, To: a.sign + len(key)}
}

// ordinary finds the value of a name that is not sensitive, where something else says that it
// is a secret.
func (s *Scanner) ordinary(a *assignment) lex.Span {
	t, first, i := s.text, a.first, a.sign
	switch {
	case s.isDoubtful(i) && !bytes.HasSuffix(t[:first], []byte("public ")):
		return s.values.Value(i + 1)
	case about.IsCompared(t, first, first+len(a.name), i, s.Names, &s.name):
		s.found, s.unordered = append(s.found, lex.Span{From: first, To: first + len(a.name)}), true
		return lex.Span{}
	}
	if v := s.settings.OfUser(a.name, i); v.From < v.To {
		return v
	}
	if t[i] == '=' && sql.IsPragma(t, a.name, first) || string(a.name) == "result" && setting.IsGenerated(t, first) {
		return s.values.Value(i + 1)
	}
	var buf [names.MaxPairName]byte
	if name := about.Requoted(buf[:0], t, s.from, first, i); len(name) > 0 && s.sensitive(name, names.NoWhole) {
		return s.values.Value(i + 1)
	}
	before := len(s.found)
	found, v := s.settings.Find(s.found, a.name, first, i)
	if s.found, s.unordered = found, s.unordered || len(found) > before; v.From < v.To {
		return v
	}
	if names.RoleOf(a.decoded) == names.NameRole {
		if v := s.values.ShortValue(i + 1); s.named(v) {
			return s.values.Part(v.To)
		}
	}
	if string(a.name) == "stringData" { // of a Secret of Kubernetes
		if bytes.HasPrefix(bytes.TrimLeft(t[i+1:min(len(t), i+maxGap)], " \t"), []byte("{")) {
			return s.values.Value(i + 1)
		}
		s.items(i, i+1)
	}
	if v := login.Find(t, a.name, first, i); v.From < v.To {
		return v
	}
	if v := s.values.Emphasized(first, i); v.From < v.To {
		return v
	}
	return s.prompted(i)
}

// isDoubtful reports whether s.name is one that secrets have as well as other things, and the
// value behind the separator at i looks like a secret.
func (s *Scanner) isDoubtful(i int) bool {
	c := s.Names.Doubtful(&s.name)
	if c == names.Clear || c == names.DoubtfulKey && !s.isLong(i+1) || !lex.HasRun(s.text[i+1:min(len(s.text), i+1+names.MaxPairName+maxGap+maxGap)], maxGap) {
		return false
	}
	v := s.values.ShortValue(i + 1)
	return v.From < v.To && c.IsSecret(s.text[v.From:v.To])
}

// secret finds the value of a sensitive name, which s.name is.
func (s *Scanner) secret(a *assignment) lex.Span {
	t, first, i := s.text, a.first, a.sign
	if v := prose.Second(t, first, i+1); v.From < v.To {
		if lex.MarkLen(t[v.From:]) > 0 {
			return lex.Span{}
		}
		return v
	}
	if about.IsOther(a.name, t[i:]) || about.IsParsed(t, first, i) {
		return lex.Span{}
	}
	if s.wordy() {
		return s.words(i)
	}
	if v, ok := s.printer(a); ok {
		return v
	}
	if t[i] == ':' && about.ClosesPrompt(t, first, i+1) || about.IsPrefix(t, first, i) {
		return lex.Span{}
	}
	if v, ok := argv.Document(t, i+1); ok {
		return v
	}
	if about.IsAlternative(t, first, i) {
		return lex.Span{}
	}
	v := s.valueOf(a)
	switch {
	case s.isNoSecret(a, v):
		return lex.Span{}
	case v.From < v.To:
		return s.widened(a, v)
	case i+1 < len(t) && t[i+1] <= ' ' && lex.StartsLine(t, first) && s.sensitiveName(a.name, a.more|names.NoWhole):
		s.items(i, i+1)
	}
	return v
}

// words finds the value behind the separator at i of a name whose value has several words.
func (s *Scanner) words(i int) lex.Span {
	t, isCookie := s.text, bytes.Contains(s.name.All, []byte("cookie"))
	v := s.values.Line(i + 1)
	if v.From < v.To && (t[v.From] == '=' || t[v.From] == '>' || !isCookie) {
		if s.values.ShortValue(i+1).From >= v.To || t[v.From] == '|' { // passphrase := "SECRET", passphrase: |
			v = s.values.Value(i + 1)
		}
	}
	if v.From < v.To && about.IsState(s.name.All, t[v.From:v.To]) {
		return lex.Span{}
	}
	v = s.values.PastApostrophes(i, v)
	if t[i] == '=' && !isCookie {
		v = literal.BeforeCommand(t, s.beforeNext(v))
	}
	return v
}

// printer finds the value of a name that ends in a word for a command, and reports whether the
// value is one: PASSWORD_COMMAND = echo SECRET. Of another command it is none.
func (s *Scanner) printer(a *assignment) (v lex.Span, ok bool) {
	isCommand := lex.HasFoldSuffix(a.name, "command") || lex.HasFoldSuffix(a.name, "passcmd") || lex.HasFoldSuffix(a.name, "eval")
	if !isCommand || !s.sensitiveName(a.name, names.NoWhole) {
		return lex.Span{}, false
	}
	t := s.text
	v = s.values.Line(a.sign + 1)
	if v.From >= v.To || t[a.sign+1] > ' ' || lex.Classes[t[v.From-1]]&lex.IsQuote != 0 || lex.CredentialEnd(t, v.From) >= v.To {
		return lex.Span{}, false
	}
	if program, _, _ := bytes.Cut(t[v.From:v.To], []byte(" ")); string(program) == "echo" || string(program) == "printf" {
		return v, true
	}
	return lex.Span{}, true
}

// valueOf returns the value of a sensitive name. It adds those that the name gets otherwise.
func (s *Scanner) valueOf(a *assignment) lex.Span {
	t, i := s.text, a.sign
	v := s.values.Pieces(i, s.values.Joined(s.values.Value(i+1)))
	if at := max(v.To, i); at < len(t) && t[at] != '\n' {
		if found := s.values.Chosen(s.found, i, about.IsDescription); len(found) > len(s.found) && s.sensitive(a.decoded, a.more|names.NoWhole) {
			s.found, s.unordered = found, true
		}
	}
	if bare := bytes.TrimLeft(a.name, "-"); t[i] == '=' && (bytes.EqualFold(bare, []byte("env")) || bytes.EqualFold(bare, []byte("environment"))) {
		v = about.OfEnvironment(t, v)
	}
	isFunction := v.From < v.To && string(t[v.From:v.To]) == "()" // const getToken = () => "SECRET"
	if !isFunction && bytes.HasSuffix(s.name.All, []byte("authorization")) && t[i] == ':' && i+1 < len(t) && t[i+1] == ' ' {
		v = s.values.BehindScheme(v)
	}
	return v
}

// isNoSecret reports whether v, the value of a sensitive name, says something about a secret.
// What is longer than maxPlain is one: otherwise each name in it would have it read again.
func (s *Scanner) isNoSecret(a *assignment, v lex.Span) bool {
	t, i := s.text, a.sign
	b := t[v.From:max(v.From, v.To)]
	switch {
	case len(b) == 0 || len(b) > maxPlain:
		return false
	case string(b) == "()",
		about.IsCount(t, s.name.All, i, v), about.IsState(s.name.All, b), about.IsDescription(t, v), about.IsIdentity(b),
		about.IsNameOfSecret(a.name, b), about.IsItself(t, a.name, a.first, v), about.IsVariable(t, i, v), about.IsTuple(b), about.IsSyntax(t, i, v),
		about.IsFile(b) && bytes.HasSuffix(t[:a.first], []byte("--from-file=")):
		return true
	case about.IsCode(t, a.decoded, i, v), string(a.decoded) == "content" && t[i] == '=' && about.IsMeta(t, a.first, s.Names, &s.name):
		return !s.sensitive(a.decoded, a.more|names.NoWhole)
	}
	return false
}

// widened returns v, a secret, with the words behind it that belong to it: a phrase, and the
// rest of a list below a plural name.
func (s *Scanner) widened(a *assignment, v lex.Span) lex.Span {
	t, i := s.text, a.sign
	if i+1 < v.From && v.To < len(t) && t[v.To] == ' ' && t[v.From-1] == ' ' && lex.StartsLine(t, a.first) && s.sensitiveName(a.name, a.more|names.NoWhole) {
		v.To = prose.PhraseEnd(t, v)
	}
	if t[v.To-1] == ',' && t[i] == ':' && lex.StartsLine(t, a.first) && s.sensitiveName(a.name, a.more) && s.isPlural() { // a, b, c
		for v.To+1 < len(t) && t[v.To-1] == ',' && t[v.To] == ' ' && t[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(t, v.To+1)
		}
	}
	return v
}

// beforeNext returns what of the words at v comes before an option or another name with a value:
// --passphrase=SECRET --verbose, Passphrase=SECRET;Timeout=3.
func (s *Scanner) beforeNext(v lex.Span) lex.Span {
	t, word := s.text, v.From
	if v.From == 0 || lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
		return v
	}
	for i := v.From; i < v.To; i++ {
		switch {
		case t[i] == ' ' || t[i] == ';':
			word = i + 1
		case word > v.From && (t[i] == '=' && i > word || t[i] == '-' && i == word && i+1 < v.To && lex.Classes[t[i+1]]&lex.IsName != 0):
			return lex.Span{From: v.From, To: v.From + len(bytes.TrimRight(t[v.From:word], " ;"))}
		case lex.Classes[t[i]]&lex.IsName == 0:
			word = v.From // no name
		}
	}
	return v
}

// isMasked reports whether b ends in a default that a prompt does not show: [****ABCD].
func isMasked(b []byte) bool { return bytes.HasPrefix(b[bytes.LastIndexByte(b, '[')+1:], []byte("**")) }

// isLong reports whether the line goes on at i for as long as a key is.
func (s *Scanner) isLong(i int) bool {
	return i+maxGap <= len(s.text) && bytes.IndexByte(s.text[i:i+maxGap], '\n') < 0
}

// maxPrivate is the length in bytes of the longest key of PuTTY.
const maxPrivate = 8 << 10

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
	for first > s.from && i-first < names.MaxPairName && lex.Classes[t[first-1]]&lex.IsName != 0 &&
		(first < width || !lex.IsWide(t[first-width:]) && !prose.IsStop(t[first-width:])) {
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
	if to-from == 2 && lex.HasFoldSuffix(t[from:to], "as") || lex.HasFoldSuffix(t[from:to], "constant") || string(t[from:to]) == "const" && t[to-1] != ' ' && first > to { // Dim NAME As String, NAME CONSTANT VARCHAR2(9), NAME: []const u8
		return s.typed(kind, from)
	}
	return t[from:to]
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

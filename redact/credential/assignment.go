package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/login"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
	"auditproxy/redact/setting"
	"auditproxy/redact/sql"
)

// maxPlain limits the values, in bytes, that can be plain though their names are those of
// secrets.
const maxPlain = 256

// assigned finds the value of NAME=value and NAME: value, where the separator
// is at i, at any level of strings in strings.
func (s *Scanner) assigned(i int) lex.Span {
	name, first := s.values.NameBefore(s.from, i)
	if i+1 == s.password.From || s.tupled(i) {
		return lex.Span{}
	}
	if len(name) == 0 && first > 0 && s.text[first-1] == ')' {
		name = s.sized(first)
	} else if len(name) == 0 && first > 0 && s.text[first-1] == '}' {
		name = about.Property(s.text, first)
	}
	if len(name) == 0 {
		for _, form := range [...]string{": PSK 0s", ": PSK 0x"} { // of ipsec.secrets
			if at := lex.After(s.text, i, form); at > 0 && lex.MarkLen(s.text[at:]) == 0 {
				return lex.Span{From: at, To: lex.CredentialEnd(s.text, at)}
			}
		}
		if s.text[i] == ':' && i > 0 && s.text[i-1] == '*' {
			return login.Find(s.text, name, first, i)
		}
		if i > 0 && (s.text[i-1] == ')' || s.text[i-1] == ']' && isMasked(s.text[max(0, i-maxPrompt):i])) {
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
		if v := s.settings.Output(name, first, i); v.From < v.To {
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
	if about.IsSubject(s.text, name, i) || about.IsGcloudSecret(s.text, name, i) || s.text[i] == ':' && about.IsResource(s.text, name, first) || s.text[i] == ':' && i+2 < len(s.text) && s.text[i+1] == ':' && lex.Classes[s.text[i+2]]&lex.IsAlnum != 0 {
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
	decoded := s.values.Unescaped(name)
	if i < s.pair && names.RoleOf(decoded) == names.ValueRole {
		return s.values.Value(i + 1)
	}
	if !s.sensitive(decoded, more) {
		if c := s.Names.Doubtful(&s.name); c != names.Clear && (c != names.DoubtfulKey || s.isLong(i+1)) && lex.HasRun(s.text[i+1:min(len(s.text), i+1+names.MaxPairName+maxGap+maxGap)], maxGap) {
			if v := s.values.ShortValue(i + 1); v.From < v.To && c.IsSecret(s.text[v.From:v.To]) {
				return s.values.Value(i + 1)
			}
		}
		if about.IsCompared(s.text, first, first+len(name), i, s.Names, &s.name) {
			s.found, s.unordered = append(s.found, lex.Span{From: first, To: first + len(name)}), true
			return lex.Span{}
		}
		if v := s.settings.OfUser(name, i); v.From < v.To {
			return v
		}
		if s.text[i] == '=' && sql.IsPragma(s.text, name, first) || string(name) == "result" && setting.IsGenerated(s.text, first) {
			return s.values.Value(i + 1)
		}
		var buf [names.MaxPairName]byte
		if name := about.Requoted(buf[:0], s.text, s.from, first, i); len(name) > 0 && s.sensitive(name, names.NoWhole) {
			return s.values.Value(i + 1)
		}
		before := len(s.found)
		found, v := s.settings.Find(s.found, name, first, i)
		if s.found, s.unordered = found, s.unordered || len(found) > before; v.From < v.To {
			return v
		}
		if names.RoleOf(decoded) == names.NameRole {
			if v := s.values.ShortValue(i + 1); s.named(v) {
				return s.values.Part(v.To)
			}
		}
		if string(name) == "stringData" { // of a Secret of Kubernetes
			if bytes.HasPrefix(bytes.TrimLeft(s.text[i+1:min(len(s.text), i+maxGap)], " \t"), []byte("{")) {
				return s.values.Value(i + 1)
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
	if v := prose.Second(s.text, first, i+1); v.From < v.To {
		if lex.MarkLen(s.text[v.From:]) > 0 {
			return lex.Span{}
		}
		return v
	}
	if about.IsOther(name, s.text[i:]) || about.IsParsed(s.text, first, i) {
		return lex.Span{}
	}
	if s.wordy() {
		v := s.values.Line(i + 1)
		if v.From < v.To && (s.text[v.From] == '=' || s.text[v.From] == '>' || !bytes.Contains(s.name.All, []byte("cookie"))) {
			if s.values.ShortValue(i+1).From >= v.To || s.text[v.From] == '|' { // passphrase := "SECRET", passphrase: |
				v = s.values.Value(i + 1)
			}
		}
		if v.From < v.To && about.IsState(s.name.All, s.text[v.From:v.To]) {
			return lex.Span{}
		}
		for n := 0; n < maxPieces && s.isWithin(i, v) && lex.Classes[s.text[v.To-1]]&lex.IsAlnum != 0; n++ { // it's SECRET
			v.To = s.values.Line(v.To + 1).To
		}
		if s.text[i] == '=' && !bytes.Contains(s.name.All, []byte("cookie")) {
			v = s.beforeNext(v)
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
	v := s.pieces(i, s.joinedStrings(s.values.Value(i+1)))
	if at := max(v.To, i); at < len(s.text) && s.text[at] != '\n' {
		if found := s.values.Chosen(s.found, i, about.IsDescription); len(found) > len(s.found) && s.sensitive(decoded, more|names.NoWhole) {
			s.found, s.unordered = found, true
		}
	}
	if bare := bytes.TrimLeft(name, "-"); s.text[i] == '=' && (bytes.EqualFold(bare, []byte("env")) || bytes.EqualFold(bare, []byte("environment"))) {
		v = ofEnvironment(s.text, v)
	}
	if v.From < v.To && string(s.text[v.From:v.To]) == "()" { // const getToken = () => "SECRET"
		return lex.Span{}
	}
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
	if i+1 < v.From && v.To < len(s.text) && s.text[v.To] == ' ' && s.text[v.From-1] == ' ' && lex.StartsLine(s.text, first) && s.sensitiveName(name, more|names.NoWhole) {
		v.To = prose.PhraseEnd(s.text, v)
	}
	if s.text[v.To-1] == ',' && s.text[i] == ':' && lex.StartsLine(s.text, first) && s.sensitiveName(name, more) && s.isPlural() { // a, b, c
		for v.To+1 < len(s.text) && s.text[v.To-1] == ',' && s.text[v.To] == ' ' && s.text[v.To+1] > ' ' {
			v.To = lex.CredentialEnd(s.text, v.To+1)
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

// ofEnvironment returns what of c, the value of --env, is a secret: the value of a variable, and
// nothing of the name of a stage.
func ofEnvironment(t []byte, c lex.Span) lex.Span {
	w := t[c.From:max(c.From, c.To)]
	switch string(w) {
	case "prod", "production", "dev", "development", "test", "testing", "staging", "stage", "local", "qa", "uat", "preview", "sandbox", "ci", "demo", "live":
		return lex.Span{}
	}
	at := bytes.IndexByte(w, '=')
	for i := range max(at, 0) {
		if lex.Classes[w[i]]&lex.IsName == 0 {
			return c
		}
	}
	if at <= 0 {
		return c
	}
	if c.From += at + 1; lex.MarkLen(t[c.From:]) > 0 {
		return lex.Span{}
	}
	return c
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

// pieces widens the word behind the sign at i by the quotations that a shell joins to it,
// PASSWORD=SE"CR"ET, and by a quotation mark within it: password: don't-tell.
func (s *Scanner) pieces(i int, v lex.Span) lex.Span {
	t := s.text
	if v.From >= v.To || v.To >= len(t) || bytes.ContainsAny(t[v.From:v.To], "([{<,+") || !s.isQuoted(i, v) {
		return v // of code, or the quotation around it ends
	}
	if t[i] == '=' && v.From == i+1 {
		if to := s.joinedByShell(v.To); to > v.To {
			v.To = to
			return v
		}
	}
	for n := 0; n < maxPieces && s.isWithin(i, v); n++ {
		v.To = lex.CredentialEnd(t, v.To+1)
	}
	return v
}

// isQuoted reports whether the value v of the separator at i has no quotation mark before it, and
// one behind it that does not end a quotation that began before i in the line.
func (s *Scanner) isQuoted(i int, v lex.Span) bool {
	t := s.text
	return i < v.From && v.From < v.To && v.To < len(t) && (t[v.To] == '"' || t[v.To] == '\'') && lex.Classes[t[v.From-1]]&lex.IsQuote == 0 && bytes.Count(s.lineBefore(i), t[v.To:v.To+1])%2 == 0
}

// isWithin reports whether the same mark is within a word.
func (s *Scanner) isWithin(i int, v lex.Span) bool {
	return v.To+1 < len(s.text) && lex.Classes[s.text[v.To+1]]&lex.IsAlnum != 0 && s.isQuoted(i, v)
}

// joinedByShell returns where a word ends of which the quotation at i is a part, i if it is
// none.
func (s *Scanner) joinedByShell(i int) int {
	t, to := s.text, i
	for n := 0; n < maxPieces && to < len(t) && (t[to] == '"' || t[to] == '\''); n++ {
		end := bytes.IndexByte(t[to+1:min(len(t), to+1+maxPair)], t[to])
		if inner := t[to+1 : to+1+max(end, 0)]; end < 0 || bytes.IndexByte(inner, '\n') >= 0 || n == 0 && (end == 0 || formats.IsPlaceholder(inner) || lex.MarkLen(inner) > 0) {
			return i
		}
		to = lex.CredentialEnd(t, to+1+end+1)
	}
	return to
}

// lineBefore returns the line of t[i] up to it, or the end of that.
func (s *Scanner) lineBefore(i int) []byte {
	line := s.text[max(0, i-maxPair):i]
	return line[bytes.LastIndexByte(line, '\n')+1:]
}

// maxPrivate is the length in bytes of the longest key of PuTTY.
const maxPrivate = 8 << 10

// maxPieces is of how many strings a secret is joined.
const maxPieces = 16

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

package about

import (
	"bytes"
	"strings"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// IsCode reports whether the value v of the separator at i is code, a number or a path
// rather than what was typed, under a name such as "value" or "command", which says
// little: value = list(x), input: FlagValue, "value": 0.9, shell: /bin/sh, command: npx -y x.
func IsCode(t, name []byte, i int, v lex.Span) bool {
	b := bytes.TrimRight(t[v.From:v.To], ",;}])[{")
	if len(b) == 0 || string(b) == "/" || t[i] == ':' && t[i+1] == ':' || isAmount(b) || IsPlace(b) {
		return true
	}
	if lex.Classes[t[v.From-1]]&lex.IsQuote != 0 || t[i] == ':' && t[i+1] != ' ' {
		return false
	}
	if t[i] == ':' && lex.HasFoldSuffix(name, "command") && v.To+1 < len(t) && t[v.To] == ' ' && t[v.To+1] > ' ' {
		return isProgram(b) // with its arguments behind it
	}
	switch string(b) {
	case "if", "match", "new", "await", "self", "this", "None", "null", "nil", "true", "false", "True", "False", "function", "return", "lambda", "not", "async", "switch", "case":
		return true
	}
	if b[0] == '{' || b[0] == '%' { // of a format
		return len(b) < maxWord && lex.IsWords(bytes.Trim(b, "{%:?"))
	}
	if (b[0] == '&' || b[0] == '*') && len(b) > 2 {
		b = bytes.TrimPrefix(b[1:], []byte("mut "))
	}
	if at := bytes.Index(b, []byte(" (")); at > 0 && lex.IsWords(b[:at]) { // join ("a", b)
		return true
	}
	n, humps, joints := 0, 0, 0
	for n < len(b) && (lex.Classes[b[n]]&lex.IsAlnum != 0 && !lex.IsDigit(b[n]) && b[n] < 0x80 || b[n] == '_' || b[n] == '.' || b[n] == ':') {
		switch c := b[n]; {
		case c == '_' || c == '.' || c == ':':
			joints++
		case 'A' <= c && c <= 'Z' && n > 0 && b[n-1] >= 'a':
			humps++
		}
		n++
	}
	switch {
	case n == len(b):
		return humps > 0 && joints == 0 || joints > 0 && b[n-1] != ':' && b[0] != '.'
	case n < 2 || bytes.ContainsAny(b, "'\"`") || lex.Classes[t[min(v.To, len(t)-1)]]&lex.IsQuote != 0:
		return false
	}
	return b[n] == '[' && isExpression(b[n+1:], "0123456789-") || (b[n] == '(' || b[n] == '<') && isExpression(b[n+1:], "")
}

// IsSyntax reports whether the value v of the separator at i is a word of a language, a type or
// what opens an object, under any name: token = new Token(x), for _, key := range keys, auth:
// types.Config{Name:, val token: TokenRepository = mockk(), "secrets": {.
func IsSyntax(t []byte, i int, v lex.Span) bool {
	b, isQuoted := t[v.From:v.To], lex.Classes[t[v.From-1]]&lex.IsQuote != 0
	if len(b) == 0 || isClass(bytes.TrimRight(b, ",;")) {
		return len(b) > 0
	}
	if isQuoted || t[v.From-1] > ' ' {
		return false
	}
	if len(bytes.Trim(b, "{[(")) == 0 || isComposite(b) || isDuration(b) || isMember(t, i, v) || b[0] == '(' && isTest(b) || isConstant(bytes.TrimRight(b, ",;")) ||
		b[0] == '.' && isTypeName(b[1:]) || isNumber(b) {
		return true
	}
	if v.To+2 >= len(t) || t[v.To] != ' ' {
		return t[i] == ':' && isPointer(b)
	}
	next := t[v.To+1]
	if lex.Classes[next]&lex.IsQuote != 0 && lex.IsDirective(b) { // PASSWORD: .asciz "SECRET"
		return true
	}
	switch string(b) {
	case "range":
		line := t[max(0, i-maxSchema):i]
		return bytes.Contains(line[bytes.LastIndexByte(line, '\n')+1:], []byte("for ")) && lex.Classes[next]&lex.IsAlnum != 0
	case "new":
		end := v.To + 1
		for end < len(t) && (lex.Classes[t[end]]&lex.IsAlnum != 0 || t[end] == '.' || t[end] == '_') {
			end++
		}
		return 'A' <= next && next <= 'Z' && end < len(t) && (t[end] == '(' || t[end] == '<' || t[end] == '[' || t[end] == '{')
	}
	if b[0] == '(' && b[len(b)-1] == ')' && isTypeName(b[1:len(b)-1]) && lex.IsWords(t[v.To+1:v.To+2]) { // (Token) request.get()
		return true
	}
	return t[i] == ':' && t[v.To+2] == ' ' && (next == '=' && isTypeName(b) || next == '|' && lex.IsType(b))
}

// isConstant reports whether b is a constant with the name of a secret: DEF_TOKEN_SQL.
func isConstant(b []byte) bool {
	named := false
	for i, c := range b {
		if (c < 'A' || 'Z' < c) && c != '_' {
			return false
		}
		named = named || c == '_' && (bytes.HasPrefix(b[i+1:], []byte("TOKEN_")) || bytes.HasPrefix(b[i+1:], []byte("PASSWORD_")) || bytes.HasPrefix(b[i+1:], []byte("SECRET_")))
	}
	return named || bytes.HasPrefix(b, []byte("TOKEN_")) || bytes.HasPrefix(b, []byte("PASSWORD_"))
}

// isNumber reports whether b is a small number of a program, in hexadecimal: 0x52e.
func isNumber(b []byte) bool {
	if len(b) < 3 || len(b) > 6 || b[0] != '0' || b[1] != 'x' {
		return false
	}
	for _, c := range b[2:] {
		if lex.Unhex[c] > 15 {
			return false
		}
	}
	return true
}

// isClass reports whether b is the name of a class of Java with its package: org.acme.TokenStore.
func isClass(b []byte) bool {
	at := bytes.LastIndexByte(b, '.')
	if at < 0 || at+2 > len(b) || bytes.Count(b[:at], []byte(".")) < 2 || b[at+1] < 'A' || 'Z' < b[at+1] || !lex.IsWords(b[at+1:]) {
		return false
	}
	for part := range bytes.SplitSeq(b[:at], []byte(".")) {
		if len(part) < 2 || part[0] < 'a' || 'z' < part[0] || bytes.IndexFunc(part, func(r rune) bool { return 'A' <= r && r <= 'Z' || r == '-' }) >= 0 {
			return false
		}
	}
	return true
}

// isComposite reports whether b opens a value of a type of a package, a map or a list of Go:
// types.Config{Name:, map[string]any{, &Config{.
func isComposite(b []byte) bool {
	kind, inner, ok := bytes.Cut(b, []byte("{"))
	if !ok || bytes.ContainsAny(inner, "\"'`0123456789") {
		return false
	}
	n := len(kind)
	kind = bytes.TrimLeft(kind, "&*")
	isType := len(kind) < n
	for len(kind) > 0 && kind[0] == '[' || bytes.HasPrefix(kind, []byte("map[")) {
		_, rest, ok := bytes.Cut(kind, []byte("]"))
		if !ok {
			return false
		}
		kind, isType = bytes.TrimLeft(rest, "*"), true
	}
	at := bytes.LastIndexByte(kind, '.')
	isType = isType || len(kind) > 2 && 'A' <= kind[0] && kind[0] <= 'Z' && len(inner) > 1 && 'A' <= inner[0] && inner[0] <= 'Z' && inner[len(inner)-1] == ':' || at > 0 && at+1 < len(kind) && 'A' <= kind[at+1] && kind[at+1] <= 'Z' && kind[0] >= 'a'
	return isType && lex.IsWords(kind) && (len(inner) == 0 || inner[len(inner)-1] == ':' || inner[0] == '}' && len(bytes.TrimRight(inner, "},;)")) == 0)
}

// isPointer reports whether b is a type of Go behind a sign: *uint16, []*Key.
func isPointer(b []byte) bool {
	kind := bytes.TrimLeft(b, "*[]")
	return len(kind) < len(b) && (b[0] == '*' || len(b) > 2 && b[0] == '[' && b[1] == ']') && isTypeName(bytes.TrimRight(kind, ",)"))
}

// isTypeName reports whether b is a type, with a package or arguments or without: _t.AuthType, Map<String>.
func isTypeName(b []byte) bool {
	at := bytes.LastIndexByte(b, '.')
	if name := b[at+1:]; len(name) < 2 || name[0] < 'A' || 'Z' < name[0] {
		return false
	}
	for _, c := range b {
		if (c|0x20 < 'a' || 'z' < c|0x20) && strings.IndexByte("_.<>[]?", c) < 0 {
			return false
		}
	}
	return true
}

// isMember reports whether the value v is a variable that a member of an object gets, alone in its line:
// RegistryAuth: encodedAuth,. In YAML a comma ends no line.
func isMember(t []byte, i int, v lex.Span) bool {
	b := t[v.From:v.To]
	if t[i] != ':' || len(b) < 3 || b[len(b)-1] != ',' || v.To < len(t) && t[v.To] != '\n' || b[0] < 'a' || 'z' < b[0] {
		return false
	}
	humps := 0
	for k, c := range b[:len(b)-1] {
		if c|0x20 < 'a' || 'z' < c|0x20 {
			return false
		}
		if k > 0 && c < 'a' && b[k-1] >= 'a' {
			humps++
		}
	}
	return humps > 0
}

// isTest reports whether b compares a variable with none: (token != null).
func isTest(b []byte) bool {
	for _, none := range [...]string{"null)", "nil)", "None)", "undefined)"} {
		if test, ok := bytes.CutSuffix(b, []byte(none)); ok {
			variable := bytes.TrimRight(bytes.TrimRight(test[1:], " "), "!=")
			return len(variable)+1 < len(bytes.TrimRight(test, " ")) && lex.IsWords(bytes.TrimRight(variable, " "))
		}
	}
	return false
}

// isDuration reports whether b is a time of Ruby: 5.days, 4.days.ago.
func isDuration(b []byte) bool {
	n := lex.CountDigits(b)
	if n == 0 || n == len(b) || b[n] != '.' {
		return false
	}
	unit, _, _ := bytes.Cut(bytes.TrimRight(b[n+1:], ",;)"), []byte("."))
	switch string(bytes.TrimSuffix(unit, []byte("s"))) {
	case "second", "minute", "hour", "day", "week", "month", "year":
		return true
	}
	return false
}

// isExpression reports whether b has nothing but variables, and the bytes of also.
func isExpression(b []byte, also string) bool {
	for _, c := range b {
		if c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) && strings.IndexByte(" .,:&*()[]<>", c) < 0 && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return !prose.LooksSecret(b)
}

// IsTuple reports whether b is a tuple of variables: auth=(user, password).
func IsTuple(b []byte) bool {
	return len(b) > 2 && b[0] == '(' && b[len(b)-1] == ')' && bytes.IndexByte(b, ',') > 0 && isExpression(b[1:len(b)-1], "")
}

// isAmount reports whether b is a number of less than four digits, or of parts of one,
// with a unit or none: 260, 0.9, 500m, 30s.
func isAmount(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("-"))
	n := lex.CountDigits(b)
	if n == 0 || n > 3 {
		return false
	}
	if n < len(b) && b[n] == '.' {
		part := lex.CountDigits(b[n+1:])
		if part == 0 || part > 3 {
			return false
		}
		n += 1 + part
	}
	return len(b)-n <= 2 && lex.IsWords(b[n:])
}

// IsPlace reports whether b is a path without digits, which a secret in base64 has.
func IsPlace(b []byte) bool {
	return len(b) > 4 && (b[0] == '/' || bytes.HasPrefix(b, []byte("~/")) || bytes.HasPrefix(b, []byte("./"))) && bytes.IndexByte(b[2:], '/') > 0 && !lex.IsRandom(b) && !bytes.ContainsAny(b, "+=0123456789")
}

// isProgram reports whether b may be the name of a program.
func isProgram(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || 'z' < c) && !lex.IsDigit(c) && c != '-' && c != '_' && c != '.' && c != '/' {
			return false
		}
	}
	return b[0] >= 'a' && len(b) <= maxWord && !lex.IsDigit(b[0])
}

// IsIdentity reports whether b is how Java prints an object, by its type and a number:
// AppToken{a64f992, android.os.Binder@2bd79ce.
func IsIdentity(b []byte) bool {
	at := max(bytes.LastIndexByte(b, '{'), bytes.LastIndexByte(b, '@'))
	if at < 2 {
		return false
	}
	kind, number := b[:at], bytes.TrimRight(b[at+1:], "},")
	if len(number) < 5 || len(number) > 8 || !lex.IsWords(kind) || b[at] == '@' && bytes.IndexByte(kind, '.') < 1 || b[at] == '{' && !bytes.HasSuffix(kind, []byte("Token")) {
		return false
	}
	for _, c := range number {
		if lex.Unhex[c] > 15 || 'A' <= c && c <= 'F' {
			return false
		}
	}
	return true
}

// IsMeta reports whether the attribute content that starts at first says what a page is:
// <meta name="viewport" content="…">. What that of a token says is one.
func IsMeta(t []byte, first int, n *names.Classifier, f *names.Folded) bool {
	before := t[max(0, first-maxSchema):first]
	open := bytes.LastIndexByte(before, '<')
	if open < 0 || !bytes.HasPrefix(before[open:], []byte("<meta ")) {
		return false
	}
	tag := t[first-len(before)+open : min(len(t), first+maxSchema)]
	if end := bytes.IndexByte(tag, '>'); end >= 0 {
		tag = tag[:end]
	}
	for _, attribute := range [...]string{"name=", "property=", "itemprop=", "http-equiv="} {
		at := bytes.Index(tag, []byte(attribute))
		if at < 0 {
			continue
		}
		value := bytes.TrimLeft(tag[at+len(attribute):], "\"'")
		if end := bytes.IndexAny(value, "\"' >"); end >= 0 {
			value = value[:end]
		}
		if len(value) <= names.MaxPairName && n.IsPairName(f, value) {
			return false
		}
	}
	return true
}

// IsCompared reports whether the string t[from:to] is compared with a secret, "SECRET" ==
// password, where the first equals sign is at i.
func IsCompared(t []byte, from, to, i int, n *names.Classifier, f *names.Folded) bool {
	at := lex.After(t, i, "==")
	if at == 0 && (t[i-1] == '!' || t[i-1] == ' ' && (lex.After(t, i, `= "$`) > 0 || lex.After(t, i, "= $") > 0)) { // [ "SECRET" = "$PASSWORD" ]
		at = i + 1
	}
	if at == 0 || to-from < minCompared || from == 0 || lex.Classes[t[from-1]]&lex.IsQuote == 0 || lex.MarkLen(t[from:]) > 0 || formats.IsPlaceholder(t[from:to]) {
		return false
	}
	if at < len(t) && t[at] == '=' {
		at++
	}
	for at < len(t) && at-i < maxWord && t[at] == ' ' {
		at++
	}
	for at+1 < len(t) && at-i < maxWord && (t[at] == '"' && t[at+1] == '$' || t[at] == '$' && t[at+1] == '{' || t[at] == '{' && t[at-1] == '$') { // of a shell
		at++
	}
	end := at
	for end < len(t) && end-at <= names.MaxPairName && (lex.Classes[t[end]]&lex.IsName != 0 || t[end] == '>' || t[end] == '$') {
		if end++; t[end-1] == '>' { // $this->password
			at = end
		}
	}
	if end == at || end < len(t) && t[end] == '(' {
		return false
	}
	f.Fold(t[at:end])
	return n.Sensitive(f, names.NoWhole|names.AtEnd)
}

// ComparisonLen returns the length of the operator of PowerShell or SQL that b ends in, with
// the space before it: -eq, -ceq, -cne, LIKE.
func ComparisonLen(b []byte) int {
	n := len(b)
	if n < len(" -ne") || b[n-1]|0x20 != 'q' && b[n-1]|0x20 != 'e' {
		return 0
	}
	for _, operator := range [...]string{" -eq", " -ceq", " -ieq", " -ne", " -cne", " -ine", " -like", " -clike", " like", " ilike"} {
		if lex.HasFoldSuffix(b, operator) {
			return len(operator)
		}
	}
	return 0
}

// Requoted appends the name before i, which starts at first or before that, as a shell reads
// it: PASS"WORD"=, or one in two quotations. It appends nothing if there are no quotes in it.
func Requoted(dst, t []byte, from, first, i int) []byte {
	isQuote := func(at int) bool { return t[at] == '\'' || t[at] == '"' }
	if t[i] != '=' || first-2 < from || t[i-1] <= ' ' || !isQuote(first-1) || !isQuote(first-2) && lex.Classes[t[first-2]]&lex.IsAlnum == 0 {
		return dst
	}
	for first > from && i-first < names.MaxPairName && (isQuote(first-1) || lex.Classes[t[first-1]]&lex.IsAlnum != 0 || t[first-1] == '_') {
		first--
	}
	if first > from && t[first-1] > ' ' && strings.IndexByte(";&|({", t[first-1]) < 0 {
		return dst
	}
	for ; first < i; first++ {
		if !isQuote(first) {
			dst = append(dst, t[first])
		}
	}
	return dst
}

// minCompared is the length in bytes of the shortest secret that is compared.
const minCompared = 4

// IsHumped reports whether b is the name of a type or an actor: CoarseGrainedScheduler.
func IsHumped(b []byte) bool {
	humps := 0
	for i, c := range b {
		if c|0x20 < 'a' || 'z' < c|0x20 {
			return false
		}
		if i > 0 && c < 'a' && b[i-1] >= 'a' {
			humps++
		}
	}
	return humps > 1
}

const (
	maxWord   = 16  // bytes that are looked at behind a name or a quotation
	maxSchema = 256 // bytes of an object that describes a secret
)

// Package about tells what is said of a secret from one: a type, a prompt, the topic of
// a commit, the name of what has it.
//
// The files, from the top: about, code.
package about

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// IsParsed reports whether the name at first, whose separator is at i, is that of a parser:
// unexpected token: 'x', case token.IDENT:, or one that a program asks for: if not password:.
func IsParsed(t []byte, first, i int) bool {
	if first < len("case ") || t[first-1] != ' ' {
		return false
	}
	before := t[:first]
	return bytes.HasSuffix(before, []byte("nexpected ")) || bytes.HasSuffix(before, []byte(":param ")) || bytes.HasSuffix(before, []byte("case ")) ||
		t[i] == ':' && bytes.HasSuffix(before, []byte("if not ")) && isStatement(t[i+1:])
}

// isStatement reports whether b starts with a statement of Python, behind a condition.
func isStatement(b []byte) bool {
	word := bytes.TrimLeft(b[:min(len(b), 2*maxWord)], " ")
	for n, c := range word {
		if lex.Classes[c]&lex.IsAlnum == 0 {
			if bytes.HasPrefix(word[n:], []byte(" = ")) {
				return true
			}
			word = word[:n]
			break
		}
	}
	switch string(word) {
	case "", "raise", "return", "break", "continue", "pass", "print", "sys", "exit", "abort", "fail", "throw":
		return len(word) > 0 || len(b) == 0 || b[0] == '\n' || b[0] == '\r'
	}
	return false
}

// IsObject reports whether a message is about an object of Kubernetes: secret "db" not
// found, where the word is t[from:to] and the white space before the quotation is at i.
func IsObject(r *literal.Reader, from, to, i int) bool {
	t := r.Text
	if !bytes.HasPrefix(t[from:to], []byte("secret")) || to-from > len("secrets") {
		return false
	}
	v := r.Quoted(i+1, 0)
	rest := t[min(len(t), v.To+1):min(len(t), v.To+maxWord)]
	for _, said := range []string{" not found", " was not found", " deleted", " created", " configured", " patched", " unchanged", " already"} {
		if bytes.HasPrefix(rest, []byte(said)) {
			return true
		}
	}
	return false
}

// IsOther reports whether a shell's variable of that name is set to a path, as "PWD"
// is, which is a password elsewhere, or an error or a file of that name is told.
func IsOther(name, rest []byte) bool {
	if bytes.HasSuffix(name, []byte("Error")) || bytes.HasSuffix(name, []byte("Exception")) || bytes.HasSuffix(name, []byte(".log")) {
		return rest[0] == ':'
	}
	if rest[0] == ':' && (isSource(name) || isFault(rest[1:])) {
		return true
	}
	if string(name) != "PWD" && string(name) != "OLDPWD" || len(rest) < 3 || rest[0] != '=' || rest[1] != '/' {
		return false
	}
	root, _, _ := bytes.Cut(rest[2:lex.CredentialEnd(rest[:min(len(rest), maxWord)], 2)], []byte("/"))
	switch string(root) {
	case "home", "root", "srv", "tmp", "usr", "var", "opt", "etc", "mnt", "app", "workspace", "Users", "private":
		return true
	}
	return false
}

// isTopic reports whether a line tells what a secret is: "access token of the user",
// "password for the database".
func isTopic(line []byte) bool {
	const nouns = " token key secret password passphrase code "
	first, rest, _ := bytes.Cut(line, []byte(" "))
	second, rest, more := bytes.Cut(rest, []byte(" "))
	if !more || len(rest) == 0 || !lex.IsWords(first) {
		return false
	}
	var buf [maxWord]byte
	switch w := lowered(&buf, second); string(w) {
	case "":
		return false
	case " of ", " for ", " to ", " used ":
		w = lowered(&buf, first)
		return len(w) > 0 && strings.Contains(nouns, lex.View(w))
	default:
		return strings.Contains(nouns, lex.View(w))
	}
}

// isSource reports whether name is that of a file of a program, as grep has it before a line.
func isSource(name []byte) bool {
	switch string(name[bytes.LastIndexByte(name, '.')+1:]) {
	case "go", "py", "js", "ts", "jsx", "tsx", "rs", "java", "rb", "cpp", "cs", "php", "kt", "swift", "scala", "vue", "html", "css", "md":
		return bytes.IndexByte(name, '.') > 0
	}
	return false
}

// isFault reports whether b is what a system says of a file that cannot be used.
func isFault(b []byte) bool {
	for _, fault := range [...]string{" No such file", " Permission denied", " Is a directory", " Not a directory", " File exists", " command not found", " not found"} {
		if bytes.HasPrefix(b, []byte(fault)) {
			return true
		}
	}
	return false
}

// IsState reports whether the value b says how something is secured rather than with
// what: auth: basic, MFA: off, API key: missing, pin: latest. A password may be any word.
func IsState(name, b []byte) bool {
	if n := lex.CountDigits(b); n == len(b) && n < 4 && (lex.HasFoldSuffix(name, "auth") || bytes.HasPrefix(name, []byte("authval"))) { // a constant, a level
		return true
	}
	if (lex.HasFoldSuffix(name, "pin") || string(name) == "dsn") && IsVersion(bytes.TrimRight(b, ",")) { // dsn=4.0.0, stat=Deferred is of mail
		return true
	}
	states := ""
	for _, of := range [...]struct{ name, states string }{
		{"auth", " simple ok basic plain passed failed login digest ntlm oidc oauth oauth2 saml ldap kerberos jwt local missing "},
		{"authentication", " simple ok basic plain passed failed login digest ntlm oidc oauth oauth2 saml ldap kerberos jwt local missing "},
		{"mfa", " on off totp missing active "}, {"2fa", " on off totp missing active "}, {"otp", " on off missing active "},
		{"cookie", " strict lax missing secure session "}, {"cookies", " strict lax missing accepted blocked "}, {"passphrase", " ask prompt "},
		{"env", " prod production staging stage dev development test testing qa uat local live sandbox ci preview "},
		{"environment", " prod production staging stage dev development test testing qa uat local live sandbox ci preview "},
		{"key", " missing active inactive valid invalid found expired revoked "}, {"token", " missing active inactive valid invalid expired revoked "}, {"secrets", " inherit missing found "}, {"pin", " latest top bottom left right "},
		{"credential", " default include omit same-origin "}, {"authorization", " rbac abac "},
	} {
		if lex.HasFoldSuffix(name, of.name) {
			states = of.states
		}
	}
	if states == "" {
		return false
	}
	var buf [maxWord]byte
	w := lowered(&buf, b)
	return len(w) > 0 && strings.Contains(states, lex.View(w))
}

// IsCount reports whether the value v of the separator at i is the number of what a plural
// names, API keys: 3, or a sign that a parser compares, token == "(".
func IsCount(t, name []byte, i int, v lex.Span) bool {
	b := t[v.From:v.To]
	if len(b) == 1 && lex.Classes[b[0]]&lex.IsAlnum == 0 && b[0] < utf8.RuneSelf {
		return t[i] == '=' && lex.Classes[t[v.From-1]]&lex.IsQuote != 0
	}
	if string(name) == "tokens" {
		return len(b) < 8 && len(bytes.Trim(b, "0123456789,.kM")) == 0
	}
	if t[i] != ':' || len(b) > 3 || lex.CountDigits(b) < len(b) || lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
		return false
	}
	for _, things := range [...]string{"tokens", "keys", "secrets", "passwords", "cookies", "credentials"} {
		if lex.HasFoldSuffix(name, things) {
			return true
		}
	}
	return false
}

// IsVersion reports whether b is the number of a version: 3.2.1, v2.0.
func IsVersion(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("v"))
	return len(b) > 2 && lex.IsDigit(b[0]) && lex.IsDigit(b[len(b)-1]) && bytes.IndexByte(b, '.') > 0 && len(bytes.Trim(b, ".0123456789")) == 0
}

// lowered returns a word in small letters between spaces, in buf; nothing if it is long or
// has other characters.
func lowered(buf *[maxWord]byte, b []byte) []byte {
	if len(b) > len(buf)-2 {
		return nil
	}
	w := append(buf[:0], ' ')
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if lex.Classes[c]&lex.IsAlnum == 0 {
			return nil
		}
		w = append(w, c)
	}
	return append(w, ' ')
}

// IsDescription reports whether the value v says what a secret is: "the token to use"
// of a comment, or the type that a schema gives it.
func IsDescription(t []byte, v lex.Span) bool {
	b := t[v.From:v.To]
	switch string(b) {
	case "the", "The", "a", "A", "an", "An", "your", "Your":
		return v.To+1 < len(t) && t[v.To] == ' ' && (lex.Classes[t[v.To+1]]&lex.IsAlnum != 0 || t[v.To+1] == '`')
	case "include", "same-origin", "omit": // of fetch
		return true
	}
	if t[v.From] >= utf8.RuneSelf || v.From > 0 && lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
		if prose.IsLabel(b) {
			return true
		}
	} else if v.To < len(t) && t[v.To] == ' ' { // password: Password of the user
		line, _, _ := bytes.Cut(t[v.From:min(len(t), v.From+maxSchema)], []byte("\n"))
		if prose.IsLabel(line) || isTopic(line) {
			return true
		}
	}
	for _, rule := range []string{"required|", "nullable|", "sometimes|"} { // of Laravel
		if bytes.HasPrefix(b, []byte(rule)) {
			return true
		}
	}
	if lex.CountDigits(b) == len(b) && bytes.HasPrefix(t[v.To:], []byte(" bytes")) { // of kubectl
		return true
	}
	for _, rules := range []string{"['required'", "['nullable'", "['sometimes'"} { // of Laravel
		if bytes.HasPrefix(b, []byte(rules)) {
			return true
		}
	}
	if t[v.From] != '{' || v.To-v.From > maxSchema {
		return false
	}
	if isRule(b) {
		return true
	}
	b = bytes.TrimLeft(b[1:], " \n\t\"'\\")
	kind, ok := bytes.CutPrefix(b, []byte("type"))
	if !ok {
		return false
	}
	kind = bytes.TrimLeft(kind, "\"'\\: ")
	for _, other := range []string{"default", "example", "const", "enum", "value"} {
		if bytes.Contains(kind, []byte(other)) {
			return false
		}
	}
	for _, of := range []string{"string", "String", "http", "apiKey", "oauth2", "DataTypes.", "Sequelize.", "Schema."} {
		if bytes.HasPrefix(kind, []byte(of)) {
			return true
		}
	}
	return false
}

// IsMetavariable reports whether an option is shown with a word for its value, as in a
// usage: --password PASSWORD.
func IsMetavariable(name, rest []byte) bool {
	n := 0
	for n < len(rest) && n <= names.MaxPairName && 'a' <= rest[n] && rest[n] <= 'z' {
		n++
	}
	if n > 3 && bytes.HasPrefix(rest[n:], []byte("  ")) && lex.HasFoldSuffix(name, lex.View(rest[:n])) { // --password-command command   what it does
		return true
	}
	n = 0
	for n < len(rest) && n <= names.MaxPairName && ('A' <= rest[n] && rest[n] <= 'Z' || rest[n] == '_') {
		n++
	}
	if n < 3 || n < len(rest) && rest[n] != ' ' && rest[n] != ']' && rest[n] != '\n' {
		return false
	}
	word := rest[bytes.LastIndexByte(rest[:n], '_')+1 : n]
	return len(word) > 0 && lex.HasFoldSuffix(name, lex.View(word))
}

// IsDrive reports whether the colon at i belongs to PowerShell's $env:NAME,
// Env:NAME or env:\NAME.
func IsDrive(t, name []byte, i int) bool {
	return t[i] == ':' && (len(name) == 4 && name[0] == '$' ||
		len(name) == 3 && i+2 < len(t) && (t[i+1] == '\\' || 'A' <= t[i+1] && t[i+1] <= 'Z' && 'A' <= t[i+2] && t[i+2] <= '_'))
}

// IsGcloudSecret reports whether the option that ends at i names a secret for gcloud:
// gcloud secrets versions list --secret=db.
func IsGcloudSecret(t, option []byte, i int) bool {
	if string(option) != "--secret" {
		return false
	}
	before := t[max(0, i-maxSchema):i]
	at := bytes.LastIndex(before, []byte("gcloud secrets "))
	return at >= 0 && !bytes.ContainsAny(before[at:], ";|&\n")
}

// IsResource reports whether the word secret, which starts at first, is the kind of what a name of
// Amazon's clouds tells: arn:aws:secretsmanager:eu-west-1:1:secret:db.
func IsResource(t, name []byte, first int) bool {
	if string(name) != "secret" || first == 0 || t[first-1] != ':' {
		return false
	}
	before := t[max(0, first-maxSchema):first]
	at := bytes.LastIndex(before, []byte("arn:"))
	return at >= 0 && bytes.IndexByte(before[at:], ' ') < 0
}

// IsSubject reports whether the colon at i ends the topic of a commit message:
// "auth: refuse empty tokens".
func IsSubject(t, name []byte, i int) bool {
	switch string(name) {
	case "auth", "tokens", "secrets", "cookies", "credentials":
	default:
		return i > len(name)+1 && t[i-len(name)-1] == '/' && ofPackage(t, name, i)
	}
	words, whole, t := 0, t, t[i+1:]
	for words < 2 && len(t) > 1 && t[0] == ' ' && 'a' <= t[1] && t[1] <= 'z' {
		n := 1
		for n < len(t) && 'a' <= t[n] && t[n] <= 'z' {
			n++
		}
		t = t[n:]
		words++
	}
	return words == 2 && (len(t) == 0 || t[0] <= ' ' || t[0] == ',' || t[0] == '.' || lex.Classes[t[0]]&lex.IsQuote != 0) || ofPackage(whole, name, i)
}

// ofPackage reports whether the name before the colon at i ends the path of a package, and words
// follow: "net/auth: Handle errors", "cli/command: Prompt: trim it".
func ofPackage(t, name []byte, i int) bool {
	first := i - len(name)
	if first < 2 || t[first-1] != '/' || t[first-2] < 'a' || 'z' < t[first-2] || !isScope(name) || i+1 == len(t) || t[i+1] != ' ' {
		return false
	}
	words := t[i+2 : min(len(t), i+maxSchema)]
	at := bytes.Index(words, []byte(": ")) // what of the package it is about
	if at > 0 && lex.IsWords(words[:at]) {
		words = words[at+2:]
	}
	word, rest, ok := bytes.Cut(words, []byte(" "))
	return ok && len(word) > 0 && lex.IsWords(bytes.TrimSuffix(word, []byte("'t"))) && len(rest) > 1 &&
		(lex.IsWords(rest[:1]) || lex.Classes[rest[0]]&lex.IsQuote != 0 || bytes.HasPrefix(rest, []byte("--")))
}

// isScope reports whether name may end the path of a package that a commit is about.
func isScope(name []byte) bool {
	switch string(name) {
	case "auth", "oauth", "tokens", "secrets", "cookies", "credentials", "command", "commands", "prompt", "keys", "session", "input", "content", "shell":
		return true
	}
	return false
}

// ClosesPrompt reports whether a quotation ends at i, behind a name and its colon:
// getpass("Password: ").
func ClosesPrompt(t []byte, first, i int) bool {
	opened := first > 0 && lex.Classes[t[first-1]]&lex.IsQuote != 0 && t[i-2] != t[first-1]
	for from := i; i < len(t) && t[i] == ' ' && i-from < 4; {
		i++
	}
	return i < len(t) && lex.Classes[t[i]]&lex.IsQuote != 0 &&
		(opened && t[i] == t[first-1] && i+1 < len(t) && (t[i+1] == ' ' || t[i+1] == '\n') || i+1 == len(t) || t[i+1] == ')' || t[i+1] == ',' || t[i+1] == ']' || t[i+1] == ';')
}

// IsPrefix reports whether a string ends behind the equals sign at i, which another follows:
// "PASSWORD="+key, HasPrefix(s, "PASSWORD=").
func IsPrefix(t []byte, first, i int) bool {
	if t[i] != '=' || first == 0 || i+2 >= len(t) || lex.Classes[t[first-1]]&lex.IsQuote == 0 || t[i+1] != t[first-1] || t[i-1] <= ' ' {
		return false
	}
	if t[i+1] == '`' && lex.Classes[t[i+2]]&lex.IsAlnum == 0 { // of Markdown: `auth=` over that
		return true
	}
	switch t[i+2] {
	case ')', ',', ']', ';':
		return true
	case '+', ' ':
		rest := bytes.TrimLeft(t[i+2:min(len(t), i+2+maxWord)], " ")
		operand := bytes.TrimLeft(bytes.TrimLeft(rest, "+"), " ")
		return len(operand) > 0 && len(rest) > len(bytes.TrimLeft(rest, "+")) && lex.Classes[operand[0]]&lex.IsAlnum != 0
	}
	return false
}

// IsGetter reports whether a function of that name expects the name of a
// secret, or describes one.
func IsGetter(name []byte) bool {
	for _, verb := range []string{"get", "has", "is", "find", "fetch", "load", "read", "list", "show", "print", "log", "delete", "remove", "describe", "create", "new", "generate", "parse", "t"} {
		if len(name) >= len(verb) && name[0]|0x20 == verb[0] && bytes.EqualFold(name[:len(verb)], []byte(verb)) &&
			(len(name) == len(verb) || name[len(verb)] < 'a' || name[len(verb)] > 'z') {
			return true
		}
	}
	return false
}

// IsReport reports whether a text tells of an error.
func IsReport(head []byte) bool {
	for _, report := range [...]string{"nvalid", "ncorrect", "rong", "rror", "ailed", "denied"} {
		if bytes.Contains(head, []byte(report)) {
			return true
		}
	}
	return false
}

// isRule reports whether b, in braces, says what a form requires, { required: true, minLength: 8 },
// or has a secret looked up: {{ lookup('env', 'NAME') }}.
func isRule(b []byte) bool {
	if rest, ok := bytes.CutPrefix(b, []byte("{{")); ok {
		rest = bytes.TrimLeft(rest, "- ")
		return (bytes.HasPrefix(rest, []byte("lookup(")) || bytes.HasPrefix(rest, []byte("query("))) && !bytes.Contains(rest, []byte("default"))
	}
	word := bytes.TrimLeft(b[1:], " ")
	for _, rule := range [...]string{"required:", "presence:", "minLength:", "min_length:", "nullable:", "allowNull:"} {
		if value, ok := bytes.CutPrefix(word, []byte(rule)); ok {
			value = bytes.TrimLeft(value, " ")
			return len(value) > 0 && (lex.IsDigit(value[0]) || bytes.HasPrefix(value, []byte("true")) || bytes.HasPrefix(value, []byte("false"))) && hasOnlyWords(value)
		}
	}
	return false
}

// hasOnlyWords reports whether b is names and their values, of letters or of digits.
func hasOnlyWords(b []byte) bool {
	for len(b) > 0 {
		n := 0
		for n < len(b) && lex.Classes[b[n]]&lex.IsName != 0 {
			n++
		}
		if w := b[:n]; n > 0 && !lex.IsWords(w) && lex.CountDigits(w) < n || n < len(b) && bytes.IndexByte([]byte(" ,:{}"), b[n]) < 0 {
			return false
		}
		b = b[min(n+1, len(b)):]
	}
	return true
}

// IsItself reports whether the value v is the variable or the type of the same name as
// what it is given to: token: token}, tokenService: TokenService.
func IsItself(t, name []byte, first int, v lex.Span) bool {
	b := bytes.TrimRight(t[v.From:v.To], ",;}")
	own := bytes.HasPrefix(name, []byte("self.")) || bytes.HasPrefix(name, []byte("this."))                                 // self.token = token
	if own && formats.NamesSecret(b) && lex.IsWords(b) && lex.Classes[t[v.From-1]]&lex.IsQuote == 0 && t[v.From-1] == ' ' { // self.password = new_password
		return true
	}
	end := first + len(name)
	name = name[bytes.LastIndexByte(name, '.')+1:]
	if v.From > end+4 || len(b) != len(name) || len(b) == 0 {
		return false
	}
	if bytes.Equal(b, name) {
		end = v.From + len(b)
		return own && (end == len(t) || t[end] == '\n' || t[end] == ';') || end < len(t) && (t[end] == ',' || t[end] == ')' || t[end] == '}')
	}
	humps := 0
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			humps++
		}
	}
	return bytes.EqualFold(b, name) && humps > 1 && humps < len(b) && 'A' <= b[0] && b[0] <= 'Z'
}

// IsAlternative reports whether the colon at i is between the two values of a condition,
// of which the first one starts at first, hidden ? 'password' : 'text', before what is told
// or taken if a variable is set or not, ${PASSWORD:?missing}, ${PASSWORD:+yes}, ${PASSWORD:-$OTHER},
// or in a path, configuration["Jwt:Key"].
func IsAlternative(t []byte, first, i int) bool {
	if t[i] == ':' && first > 1 && lex.Classes[t[first-1]]&lex.IsQuote != 0 && t[first-2] == '[' { // configuration["Jwt:Key"]
		end := i + 1
		for end < len(t) && end-i < names.MaxPairName && (lex.Classes[t[end]]&lex.IsName != 0 || t[end] == ':') {
			end++
		}
		if end+1 < len(t) && t[end] == t[first-1] && t[end+1] == ']' {
			return true
		}
	}
	if t[i] == ':' && i+1 < len(t) && (t[i+1] == '?' || t[i+1] == '+' || bytes.HasPrefix(t[i+1:], []byte("-$"))) && bytes.HasSuffix(t[:first], []byte("${")) {
		return true
	}
	if t[i] != ':' || t[i-1] != ' ' || first < 3 || lex.Classes[t[first-1]]&lex.IsQuote == 0 {
		return false
	}
	before := bytes.TrimRight(t[max(0, first-maxWord):first-1], " ")
	return len(before) > 0 && before[len(before)-1] == '?'
}

// SensitiveLen returns the length of the block of HCL that b starts with the label of, if
// that says what it has is sensitive, 0 if not.
func SensitiveLen(b []byte) int {
	end := bytes.Index(b, []byte("\n}"))
	if end < 0 {
		end = len(b)
	}
	at := bytes.Index(b[:end], []byte("sensitive "))
	if at < 0 || !bytes.HasPrefix(bytes.TrimLeft(b[at+len("sensitive "):], " ="), []byte("true")) {
		return 0
	}
	return end
}

// IsSwitch reports whether an option of that name has no value: --ask-pass,
// -AsSecureString of PowerShell.
func IsSwitch(name []byte) bool {
	word, _, ok := bytes.Cut(name, []byte("-"))
	return string(name) == "AsSecureString" || string(name) == "askpass" || ok && (string(word) == "ask" || string(word) == "no" || string(word) == "skip")
}

// IsNameOfSecret reports whether b, the value of SecretId, of SECRET_FILE and the like, is
// where a secret is: a path, the name of a header. One of SecretId with capitals may be
// base64, which has slashes too.
func IsNameOfSecret(name, b []byte) bool {
	for _, end := range [...]string{"file", "path", "dir", "sock", "kubeconfig", "credentials"} {
		if lex.HasFoldSuffix(name, end) {
			return len(b) > 4 && (b[0] == '/' || bytes.HasPrefix(b, []byte("~/")) || bytes.HasPrefix(b, []byte("./"))) && bytes.IndexByte(b[2:], '/') > 0 &&
				!lex.IsRandom(b) && lex.CountDigits(b[1:]) == 0
		}
	}
	if lex.HasFoldSuffix(name, "header") {
		return bytes.HasPrefix(b, []byte("X-")) && names.IsVariable(b) && !lex.IsRandom(b)
	}
	return (lex.HasFoldSuffix(name, "secretid") || lex.HasFoldSuffix(name, "secret-id")) && bytes.IndexByte(b, '/') > 0 &&
		bytes.IndexFunc(b, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("/-_.:", r))
		}) < 0
}

// IsKeyFile reports whether b, the value of --load-privkey, --creds and the like, is a file
// with a secret in it. A password may look like a path.
func IsKeyFile(name, b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("@"))
	for _, end := range [...]string{"key", "creds", "credentials", "secrets", "cookie", "cookies", "keystore", "jar"} {
		if lex.HasFoldSuffix(name, end) {
			return IsFile(b) && hasEnding(b)
		}
	}
	return false
}

// IsFile reports whether b is a path, or the name of a file with an ending.
func IsFile(b []byte) bool {
	if len(b) < 4 || lex.IsRandom(b) {
		return false
	}
	slashes := 0
	for i, c := range b {
		switch {
		case c == '/' && i > 0:
			slashes++
		case lex.Classes[c]&lex.IsAlnum == 0 && bytes.IndexByte([]byte("/._-~"), c) < 0:
			return false
		}
	}
	return slashes > 0 && (b[0] == '/' || b[0] == '.' || b[0] == '~') || hasEnding(b)
}

// hasEnding reports whether b is a name with the ending of a file: key.pem.
func hasEnding(b []byte) bool {
	at := bytes.LastIndexByte(b, '.')
	return at > 0 && strings.Contains(endings, " "+lex.View(b[at+1:])+" ")
}

const endings = " pem key crt cer der p12 pfx jks pub gpg asc kdbx keystore json yaml yml toml xml ini cfg conf env properties txt log csv md html diff patch sql tar gz zip iso img mp4 mp3 wav png jpg pdf "

// IsVariable reports whether the value v of the separator at i is a variable that is compared,
// token !== other, password == confirm_password, or what a command prints, TOKEN=`pass show x`.
func IsVariable(t []byte, i int, v lex.Span) bool {
	if t[v.From] == '[' && bytes.HasPrefix(t[v.To:], []byte("::")) { // a method of a type of PowerShell
		return true
	}
	if t[v.From-1] == '`' {
		program, _, ok := bytes.Cut(t[v.From:v.To], []byte(" "))
		return ok && v.From == i+2 && t[i] == '=' && t[i-1] > ' ' && t[v.From] >= 'a' && lex.IsWords(program) && string(program) != "echo" && string(program) != "printf"
	}
	if lex.Classes[t[v.From-1]]&lex.IsQuote != 0 || t[i] != '=' || i+2 >= len(t) || t[v.To-1] == '=' {
		return false
	}
	if t[i+1] == '=' && (t[i+2] == '=' || t[i-1] == '!') && lex.IsWords(t[v.From:v.To]) {
		return true
	}
	other := bytes.TrimRight(bytes.TrimRight(t[v.From:v.To], ":;)"), "0123456789")
	return (t[i+1] == '=' || t[i-1] == '!') && lex.IsWords(other) && formats.NamesSecret(other)
}

// Property returns the name of a property of C# whose accessors end at i: PASSWORD
// { get; set; } = "SECRET".
func Property(t []byte, i int) []byte {
	before := t[max(0, i-names.MaxPairName):i]
	open := bytes.LastIndexByte(before, '{')
	if open < 0 || !bytes.HasPrefix(before[open:], []byte("{ get;")) {
		return nil
	}
	before = bytes.TrimRight(before[:open], " ")
	return before[bytes.LastIndexByte(before, ' ')+1:]
}

// IsMention reports whether an option is only spoken of: "--password via the command
// line", or has no value.
func IsMention(rest []byte) bool {
	if len(rest) > 1 && (rest[0] == '<' || rest[0] == '>') && rest[1] == ' ' { // to be read from a file
		return true
	}
	if len(rest) > 2 && rest[0] == '(' && 'a' <= rest[1] && rest[1] <= 'z' { // no word of a shell starts so
		return bytes.IndexByte(rest[:min(len(rest), maxSchema)], ')') > 0
	}
	word, behind, ok := bytes.Cut(rest[:min(len(rest), maxWord)], []byte(" "))
	line, _, _ := bytes.Cut(word, []byte("\n"))
	switch string(bytes.TrimRight(line, ".,;:)")) {
	case "option", "options", "argument", "arguments", "parameter", "parameters", "switch", "flags":
		return true
	}
	if bytes.HasPrefix(rest, []byte("`` ")) || bytes.HasPrefix(rest, []byte("` ")) { // ``--password`` of reStructuredText
		return true
	}
	if ok && bytes.HasPrefix(behind, []byte("--")) && (string(word) == "and" || string(word) == "or") {
		return true
	}
	if bytes.HasPrefix(rest, []byte("](")) || !ok || len(behind) == 0 || behind[0] < 'a' || 'z' < behind[0] { // [`--secret-add`](#secret-add) of Markdown
		return bytes.HasPrefix(rest, []byte("]("))
	}
	switch string(word) {
	case "via", "is", "or", "and", "the", "flag", "for", "in", "to", "with", "was", "if", "when", "can", "must", "should", "as", "from", "by", "take", "takes":
		return true
	}
	return false
}

// OfEnvironment returns what of c, the value of --env, is a secret: the value of a variable, and
// nothing of the name of a stage.
func OfEnvironment(t []byte, c lex.Span) lex.Span {
	w := t[c.From:max(c.From, c.To)]
	switch string(w) {
	case "prod", "production", "dev", "development", "test", "testing", "staging", "stage", "local", "qa", "uat", "preview", "sandbox", "ci", "demo", "live":
		return lex.Span{}
	}
	at := bytes.IndexByte(w, '=')
	if at > 0 && w[0] == '<' && formats.IsPlaceholder(w[:at]) && formats.IsPlaceholder(w[at+1:]) { // <key>=<value>
		return lex.Span{}
	}
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

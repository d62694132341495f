package table

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// maxDirective limits a directive, in bytes.
const maxDirective = 512

// IsDirective reports whether a line may be one of a configuration that sets a name:
// "rcon_password SECRET", "AuthLDAPBindPassword SECRET". In prose no name has two
// words in one.
func IsDirective(line []byte) bool {
	text := inEcho(line)
	line = line[text.From:text.To]
	name, value := directive(line)
	return name.From < name.To && value.From < value.To || chap(line).To > 0 || mapped(line).To > 0 || isKeyword(line)
}

// inEcho returns the text that a shell's command writes, and all of the line without one:
// echo "rcon_password SECRET" >> server.cfg.
func inEcho(line []byte) lex.Span {
	all := lex.Span{From: 0, To: len(line)}
	if len(line) < len("echo 'a b'") {
		return all
	}
	from := bytes.IndexAny(line[:min(len(line), maxDirective)], "'\"")
	if from < len("echo ") {
		return all
	}
	switch before := line[:from]; {
	case bytes.HasSuffix(before, []byte("echo ")), bytes.HasSuffix(before, []byte("echo -e ")), bytes.HasSuffix(before, []byte("echo -n ")),
		bytes.HasSuffix(before, []byte("printf ")), bytes.HasSuffix(before, []byte("<<< ")), bytes.HasSuffix(before, []byte("<<<")):
	default:
		return all
	}
	n := bytes.IndexByte(line[from+1:], line[from])
	if n < 0 {
		return all
	}
	text := bytes.TrimSuffix(line[from+1:from+1+n], []byte(`\n`))
	return lex.Span{From: from + 1, To: from + 1 + len(text)}
}

// community returns the secret of a block of Junos, community NAME {.
func community(line []byte) (v lex.Span) {
	const word = "community "
	v.From = len(line) - len(bytes.TrimLeft(line, " \t"))
	if lex.After(line, v.From, word) == 0 {
		return lex.Span{}
	}
	v.From += len(word)
	v.To = v.From + max(0, bytes.IndexByte(line[v.From:], ' '))
	if lex.After(line, v.To, " {") == 0 || lex.MarkLen(line[v.From:]) > 0 {
		return lex.Span{}
	}
	return v
}

// chap returns the secret of a line of chap-secrets of PPP, CLIENT SERVER SECRET ADDRESS, or of
// one that opens a block of Junos.
func chap(line []byte) (v lex.Span) {
	end := len(line)
	for end > 0 && line[end-1] <= ' ' {
		end--
	}
	// Most lines are none by their first byte or the last one, which is of an address.
	if end == 0 || len(line) > maxDirective || line[end-1] != '*' && !lex.IsDigit(line[end-1]) && line[end-1] != '{' && line[end-1] != '}' || lex.Classes[line[0]]&lex.IsName == 0 && line[0] > ' ' {
		return lex.Span{}
	}
	if line[end-1] == '{' || line[end-1] == '}' {
		return community(line)
	}
	if line[0] <= ' ' {
		return lex.Span{}
	}
	var words [4]lex.Span
	n := 0
	for at := 0; at < len(line); at++ {
		if line[at] <= ' ' {
			continue
		}
		if n == len(words) {
			return lex.Span{}
		}
		words[n].From = at
		for at < len(line) && line[at] > ' ' {
			at++
		}
		words[n].To = at
		n++
	}
	if n != len(words) {
		return lex.Span{}
	}
	switch string(line[words[1].From:words[1].To]) {
	case "*", "pptpd", "l2tpd", "xl2tpd":
	default:
		return lex.Span{}
	}
	secret, address := line[words[2].From:words[2].To], line[words[3].From:words[3].To]
	if string(address) != "*" && (!lex.IsDigit(address[0]) || bytes.IndexByte(address, '.') < 0) || lex.Classes[secret[0]]&lex.IsQuote != 0 || secret[0] == '\\' ||
		len(secret) < 3 || lex.IsPort(secret) || isUpper(secret) || !isSecret(secret, false) {
		return lex.Span{}
	}
	return words[2]
}

// mapped returns the secret of a line of sasl_passwd of Postfix, HOST:PORT NAME:SECRET, and of
// one with nothing but a mail address and the secret, NAME@HOST:SECRET, NAME@HOST|SECRET.
func mapped(line []byte) (v lex.Span) {
	line = bytes.TrimRight(line, " \t\r")
	if len(line) < minMapped || len(line) > maxDirective || lex.Classes[line[0]]&lex.IsAlnum == 0 && line[0] != '[' {
		return v
	}
	from, mail := bytes.IndexAny(line, " \t"), false
	if from > 0 {
		host, port, ok := bytes.Cut(line[:from], []byte(":"))
		mail = string(port) == "25" || string(port) == "465" || string(port) == "587"
		if !ok || bytes.IndexByte(host, '.') < 0 || !lex.IsPort(port) {
			return v
		}
	} else if bytes.IndexByte(line, '@') <= 0 {
		return v
	}
	from += 1 + len(line[from+1:]) - len(bytes.TrimLeft(line[from+1:], " \t"))
	to := from
	for to < len(line) && (lex.Classes[line[to]]&lex.IsName != 0 || line[to] == '@' || line[to] == '+') {
		to++
	}
	if to == from || to == len(line) || line[to] != ':' && (from > 0 || line[to] != '|') {
		return v
	}
	secret := line[to+1:]
	at := bytes.IndexByte(line[from:to], '@')
	if at == 0 || at < 0 && !mail || from == 0 && (at < 0 || bytes.IndexByte(line[at:to], '.') < 0) || bytes.ContainsAny(secret, " \t/:\\") || lex.MarkLen(secret) > 0 ||
		len(secret) < 3 || from == 0 && line[to] == ':' && !prose.LooksSecret(secret) || lex.CountDigits(secret) == len(secret) || !isSecret(secret, false) {
		return v
	}
	return lex.Span{From: to + 1, To: len(line)}
}

// minMapped is the length in bytes of the shortest such line.
const minMapped = len("a@b.c|abc")

// directive returns the parts of "NAME VALUE", also behind a word for setting it, where
// NAME has several words.
func directive(line []byte) (name, value lex.Span) {
	if len(line) > maxDirective || bytes.IndexByte(line, ' ') < 0 && bytes.IndexByte(line, '\t') < 0 {
		return name, value
	}
	at := 0
	word := func() (w lex.Span) {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		w.From = at
		for at < len(line) && line[at] != ' ' && line[at] != '\t' {
			at++
		}
		w.To = at
		return w
	}
	name = word()
	switch first := line[name.From:name.To]; {
	case len(line) > len("d-i a/b password ") && isQuestion(line): // of Debian's packages: d-i passwd/root-password password SECRET
		name = word()
		name.From += bytes.LastIndexByte(line[name.From:name.To], '/') + 1
		word()
	case len(first) == len(".logon") && bytes.EqualFold(first, []byte(".logon")): // of Teradata: .logon HOST/USER,SECRET
		value = word()
		value.From += bytes.IndexByte(line[value.From:value.To], ',') + 1
		for value.To > value.From && (line[value.To-1] == ';' || line[value.To-1] == '\r') {
			value.To--
		}
		return name, value
	case bytes.EqualFold(first, []byte("set-item")) || bytes.EqualFold(first, []byte("new-item")): // of PowerShell: Set-Item env:NAME SECRET
		name = word()
		name.From += bytes.IndexByte(line[name.From:name.To], ':') + 1
		if at = at + indent(line[at:]); bytes.HasPrefix(line[at:], []byte("-Value ")) {
			at += len("-Value ")
		}
		if !isCompound(line[name.From:name.To]) {
			return lex.Span{}, value
		}
	case isSetter(first):
		if name = word(); string(first) == "set" &&
			(endsIn(line[name.From:name.To], "psksecret", "passwd") || isPass(line[name.From:name.To]) || isUpper(line[name.From:name.To])) {
			break // of FortiOS, of expect, of Metasploit
		}
		fallthrough
	default:
		if !isCompound(line[name.From:name.To]) && string(first) != "Password1" && string(first) != "Password2" { // of Tasmota
			return lex.Span{}, value
		}
	}
	if value = word(); isForm(line[value.From:value.To]) {
		if next := word(); next.From < next.To { // of FortiOS: set psksecret ENC SECRET
			value = next
		}
	}
	for value.To > value.From && (line[value.To-1] == ';' || line[value.To-1] == '\r') {
		value.To--
	}
	if rest := word(); rest.From < rest.To {
		return lex.Span{}, value
	}
	return name, value
}

// isQuestion reports whether a line is the answer to a question of debconf with the type of a
// password: PACKAGE PACKAGE/NAME password SECRET.
func isQuestion(line []byte) bool {
	owner, rest, _ := bytes.Cut(line, []byte(" "))
	question, kind, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte(" "))
	of, _, ok := bytes.Cut(question, []byte("/"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(kind, " \t"), []byte("password ")) && (string(owner) == "d-i" || len(of) > 1 && bytes.HasPrefix(owner, of))
}

func indent(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " ")) }

// isSetter reports whether w is the word of a client or a configuration for setting the
// name behind it.
func isSetter(w []byte) bool {
	switch string(w) {
	case "set", "setg", "/set", "seta", "fastcgi_param", "uwsgi_param", "scgi_param", "proxy_set_header", "grpc_set_header", "%env", "%set_env":
		return true
	}
	return false
}

// isUpper reports whether a name is one of a variable, as a shell has it: TOKEN.
func isUpper(name []byte) bool {
	for _, c := range name {
		if c < 'A' || 'Z' < c {
			return false
		}
	}
	return len(name) > 2
}

// isPass reports whether a name is "pass", or its last word is with a capital: SMBPass.
func isPass(name []byte) bool {
	return len(name) == len("pass") && lex.HasFoldSuffix(name, "pass") || bytes.HasSuffix(name, []byte("Pass"))
}

// isCompound reports whether w is a name of several words: rcon_password,
// bind-password, ldap.password, BindPassword.
func isCompound(w []byte) bool {
	parts := false
	for i, c := range w {
		switch {
		case c == '_' || c == '-' || c == '.':
			parts = parts || i > 0
		case lex.Classes[c]&lex.IsAlnum == 0:
			return false
		case 'A' <= c && c <= 'Z' && i > 0 && 'a' <= w[i-1] && w[i-1] <= 'z':
			parts = true
		}
	}
	return parts
}

// set returns the secret of a line that sets one.
func (f *Finder) set(line []byte) lex.Span {
	name, value := directive(line)
	if name.From == name.To || value.From == value.To {
		c := chap(line)
		if c.To == 0 && len(line) >= minMapped {
			c = mapped(line)
		}
		if c.To == 0 && isKeyword(line) {
			c = f.keyword(line)
		}
		return c
	}
	n, v := line[name.From:name.To], line[value.From:value.To]
	if n[0] == '.' && len(n) == len(".logon") && isSecret(v, false) || isQuestion(line) {
		return value
	}
	if lex.Classes[v[0]]&lex.IsAlnum == 0 && v[0] < 0x80 || v[len(v)-1] == ',' || bytes.IndexByte(v, '(') > 0 {
		return lex.Span{} // a path, a type
	}
	isPassword := endsIn(bytes.TrimRight(n, "0123456789"), "password", "passwd", "passphrase", "pwd", "pass", "_pw", "password-again", "password_again", "psksecret")
	if !isPassword && !endsIn(n, "secret", "token", "key") || !isSecret(v, !isPassword) || !f.Names.IsPairName(&f.name, n) {
		return lex.Span{}
	}
	return value
}

// keyword returns the secret in a line of Robot Framework, whose cells have two spaces or
// more between them: Input Password    id:pw    SECRET.
func (f *Finder) keyword(line []byte) (v lex.Span) {
	if len(line) > maxDirective {
		return v
	}
	var cells [5]lex.Span
	n := 0
	for at := 0; at < len(line); {
		if line[at] == ' ' || line[at] == '\t' || line[at] == '\r' {
			at++
			continue
		}
		to := at
		for to < len(line) && line[to] != '\t' && line[to] != '\r' && !bytes.HasPrefix(line[to:], []byte("  ")) {
			to++
		}
		if n == len(cells) {
			return v
		}
		cells[n] = lex.Span{From: at, To: to}
		n++
		at = to
	}
	if n < 2 {
		return v
	}
	last := line[cells[n-1].From:cells[n-1].To]
	if bytes.IndexByte(last, '=') > 0 || last[0] == '$' || last[0] == '%' || !isSecret(last, false) {
		return v
	}
	first := line[cells[0].From:cells[0].To]
	switch {
	case n > 2 && (lex.HasFoldSuffix(first, "input password") || lex.HasFoldSuffix(first, " secret") && isTyped(first)):
		return cells[n-1]
	case n > 2 && (string(first) == "Login" || lex.HasFoldSuffix(first, ".login") || lex.HasFoldSuffix(first, "and log in") || string(first) == "Log In"):
		return cells[n-1]
	case n > 2 && !isTyped(first) && first[0] != '$' && !bytes.HasPrefix(first, []byte("Set ")):
		return v
	}
	name := line[cells[max(0, n-2)].From:cells[max(0, n-2)].To]
	if bytes.HasSuffix(name, []byte("Set Variable")) {
		name = first
	}
	variable := name[0] == '$'
	at := bytes.LastIndexAny(name, ":=")
	if !variable && (at < 0 || n < 3) || variable && n < 3 && len(name) < 4 {
		return v
	}
	if variable {
		name = bytes.Trim(name, "${}= ")
	} else {
		name = name[at+1:]
	}
	if len(name) == 0 || !f.Names.IsPairName(&f.name, name) && !lex.HasFoldSuffix(name, "password_field") {
		return v
	}
	return cells[n-1]
}

// minKeyword is the length in bytes of the shortest line of a keyword and its secret.
const minKeyword = 8

// isKeyword reports whether a line may be one of Robot Framework. Most are none by their
// first letters.
func isKeyword(line []byte) bool {
	if len(line) < minKeyword || line[0] >= 'a' {
		return false
	}
	at := 0
	for at < len(line) && line[at] == ' ' {
		at++
	}
	if at+3 > len(line) {
		return false
	}
	switch string(line[at : at+3]) {
	case "Inp", "Typ", "Fil", "Ent", "Log", "Ope", "Set", "SSH":
	default:
		if line[at] != '$' {
			return false
		}
	}
	return bytes.Contains(line[at:], []byte("    "))
}

// isTyped reports whether a keyword fills in a field.
func isTyped(keyword []byte) bool {
	for _, verb := range [...]string{"Input ", "Type ", "Fill ", "Enter "} {
		if bytes.Contains(keyword, []byte(verb)) {
			return true
		}
	}
	return false
}

// endsIn reports whether a name's last word is one of nouns, in any case. Other words
// make it one of something else: password_encryption, auth_failures.
func endsIn(name []byte, nouns ...string) bool {
	for _, noun := range nouns {
		if lex.HasFoldSuffix(name, noun) {
			return true
		}
	}
	return false
}

// servers are how the lines start before those about a server that checks logins, or about
// keys. One of a client ends in a brace.
var servers = [...]string{"radius server ", "radius {", "radius-server", "tacacs server ", "tacacs {", "tacacs-server", "aaa-server ", "aaa group server ",
	"client ", "config user radius", "config user tacacs", "crypto keyring ", "crypto ikev2 keyring "}

// isServer reports whether the line is one of them.
func isServer(line []byte) bool {
	switch string(line[:min(len(line), 4)]) {
	case "radi", "taca", "aaa-", "aaa ", "clie", "conf", "cryp":
	default:
		return false // most lines
	}
	for _, start := range &servers {
		if bytes.HasPrefix(line, []byte(start)) {
			return start != "client " || bytes.HasSuffix(bytes.TrimRight(line, " \r"), []byte("{"))
		}
	}
	return false
}

// shared returns the secret of an indented line below that: "key 7 SECRET",
// "set secret ENC SECRET", "pre-shared-key address HOST key SECRET".
func shared(line []byte) lex.Span {
	if len(line) > maxDirective {
		return lex.Span{}
	}
	var words [6][]byte
	n := -1
	for w := range bytes.FieldsSeq(bytes.TrimRight(line, "; \r")) {
		if n < 0 && string(w) == "set" {
			continue
		}
		if n++; n == len(words) {
			return lex.Span{}
		}
		words[n] = w
	}
	switch {
	case n < 1:
		return lex.Span{}
	case n > 2 && isShared(words[0]) && string(words[n-1]) == "key":
	case n == 2 && isShared(words[0]) && isForm(words[1]), n == 1 && isShared(words[0]):
	default:
		return lex.Span{}
	}
	from := bytes.LastIndex(line, words[n])
	c := unquoted(line, lex.Span{From: from, To: from + len(words[n])})
	if !isSecret(line[c.From:c.To], false) || line[c.From] == '=' {
		return lex.Span{}
	}
	return c
}

// isShared reports whether w is the word before a secret that two servers share.
func isShared(w []byte) bool {
	switch string(w) {
	case "key", "secret", "shared-secret", "server-key", "pre-shared-key", "ppk":
		return true
	}
	return false
}

// isForm reports whether w is the word of a router for how a secret is written.
func isForm(w []byte) bool {
	switch string(w) {
	case "0", "5", "6", "7", "8", "ENC", "encrypted", "plain", "plaintext", "ascii-text", "hex", "local", "remote":
		return true
	}
	return false
}

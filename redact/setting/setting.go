// Package setting finds the secrets in the files of programs that have a form of their
// own, and in what sets them.
package setting

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// A Finder finds them in one text after the other.
type Finder struct {
	values   *literal.Reader
	name     names.Folded // the name that is being read
	accounts int8         // 1 if the text has accounts of a server, as modules
	modules  int8         // 1 if the text has a login module of Java, -1 if not, 0 if it was not looked for
	granting lex.Span     // the line last looked at for rules of Redis' users
	grants   bool         // whether it has some
}

// Read starts with the text of r.
func (f *Finder) Read(r *literal.Reader) {
	f.values, f.accounts, f.modules, f.granting = r, 0, 0, lex.Span{}
}

// maxGap limits, in bytes, what is looked at for a word next to a name.
const maxGap = 16

// Find finds SECRET behind the separator at i, which ends a name that starts at first. What
// is before that it adds to found.
func (f *Finder) Find(found []lex.Span, name []byte, first, i int) (all []lex.Span, behind lex.Span) {
	t := f.values.Text
	if t[i] == ':' {
		if len(name) == 1 {
			return found, f.ofLetter(name[0], first, i)
		}
		switch string(name) {
		case "with": // of Capybara: fill_in "Password", with: "SECRET"
			if label := f.filledIn(first); len(label) > 0 && f.values.Names.IsPairName(&f.name, label) {
				return found, f.values.Value(i + 1)
			}
		case "example", "default", "Default":
			if lex.StartsLine(t, first) && f.isExample(first) {
				return found, f.values.Value(i + 1)
			}
		case "forKey", "forHTTPHeaderField": // of Swift: set("SECRET", forKey: "password")
			if v := f.values.ShortValue(i + 1); v.From < v.To && f.values.Names.IsPairName(&f.name, t[v.From:v.To]) {
				if v = f.values.Before(first); v.From < v.To {
					return append(found, v), lex.Span{}
				}
			}
		}
		if f.accounts >= 0 && f.isAccount(first, i) {
			return found, f.values.Value(i + 1)
		}
		return found, lex.Span{}
	}
	switch {
	case t[i] != '=':
	case bytes.HasPrefix(name, []byte("user_")) && i+1 < len(t) && t[i+1] == '"' && f.hasModule(): // of Kafka and ZooKeeper
		return found, f.values.Value(i + 1)
	case lex.HasFoldSuffix(name, "key") && (bytes.Contains(t[max(0, first-2*maxGap):i], []byte("wireless.")) ||
		bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("netsh wlan"))): // of OpenWrt, of Windows
		return found, f.values.Value(i + 1)
	case string(name) == "name" && bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("/snmp community ")): // of MikroTik
		return found, f.values.Value(i + 1)
	case string(name) == "data" && bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("secret,")): // of QEMU: secret,id=NAME,data=SECRET
		return found, f.values.Value(i + 1)
	case bytes.HasPrefix(name, []byte("CWJAP")) && i+1 < len(t) && t[i+1] == '"': // of a modem: AT+CWJAP="NETWORK","SECRET"
		if v := f.values.Quoted(i+1, 0); v.To+2 < len(t) && t[v.To+1] == ',' && t[v.To+2] == '"' {
			return found, f.values.Quoted(v.To+2, 0)
		}
	case string(name) == "login": // of Squid: login=NAME:SECRET
		if v := f.values.Behind(i, ':'); v.From < v.To && !bytes.HasPrefix(t[v.From:], []byte("//")) && !lex.IsPort(t[v.From:v.To]) {
			return found, v
		}
	case bytes.HasPrefix(name, []byte("BUNDLE_")): // of Bundler: BUNDLE_HOST="NAME:SECRET"
		if v := f.values.Behind(i, ':'); v.From < v.To && t[v.From] != '/' && !lex.IsPort(t[v.From:v.To]) {
			return found, v
		}
	case string(name) == "register": // of Asterisk: register => NAME:SECRET@HOST
		v := f.values.Behind(i, ':')
		if at := bytes.LastIndexByte(t[v.From:v.To], '@'); at > 0 {
			return found, lex.Span{From: v.From, To: v.From + at}
		}
	case string(name) == "client_send": // of Exim: "^NAME^SECRET"
		return found, f.values.Behind(i, '^')
	case (string(name) == "username" || string(name) == "user") && bytes.Contains(t[max(0, first-2*names.MaxPairName):first], []byte("cifs")):
		v := f.values.Behind(i, '%')
		if comma := bytes.IndexByte(t[v.From:v.To], ','); comma >= 0 {
			v.To = v.From + comma
		}
		return found, v
	}
	return found, lex.Span{}
}

// isAccount reports whether the name at first, whose colon is at i, is a user's and its value
// the secret: gin.Accounts{"ann": "SECRET"}, basicAuth({users: {ann: "SECRET"}}).
func (f *Finder) isAccount(first, i int) bool {
	t := f.values.Text
	if f.accounts == 0 {
		f.accounts = -1
		if bytes.Contains(t, []byte("Accounts{")) || bytes.Contains(t, []byte("asicAuth")) || bytes.Contains(t, []byte("asic_auth")) {
			f.accounts = 1
		}
	}
	value := bytes.TrimLeft(t[i+1:min(len(t), i+maxGap)], " \t")
	if f.accounts < 0 || len(value) == 0 || lex.Classes[value[0]]&lex.IsQuote == 0 {
		return false
	}
	before := t[max(0, first-maxSchema):first]
	open := bytes.LastIndexByte(before, '{')
	if open < 0 || bytes.IndexByte(before[open:], '}') > 0 {
		return false
	}
	head := bytes.TrimRight(before[:open], " \t\n")
	if bytes.HasSuffix(head, []byte("Accounts")) {
		return true
	}
	if !bytes.HasSuffix(head, []byte("map[string]string")) && !bytes.HasSuffix(head, []byte("users:")) && !bytes.HasSuffix(head, []byte(`users":`)) {
		return false
	}
	at := max(bytes.LastIndex(head, []byte("asicAuth")), bytes.LastIndex(head, []byte("asic_auth")))
	return at > 0 && bytes.IndexByte(head[at:], '(') > 0 && bytes.IndexByte(head[at:], ')') < 0
}

// ofLetter finds SECRET behind a name of one letter, which starts at first, and the colon at i.
func (f *Finder) ofLetter(name byte, first, i int) lex.Span {
	t := f.values.Text
	if name == 'P' && first > 0 && t[first-1] == ';' && bytes.Contains(t[max(0, first-4*names.MaxPairName):first], []byte("WIFI:")) { // of a QR code
		v := lex.Span{From: i + 1, To: i + 1}
		for v.To < len(t) && t[v.To] > ' ' && (t[v.To] != ';' || t[v.To-1] == '\\') && lex.MarkLen(t[v.To:]) == 0 {
			v.To++
		}
		return v
	}
	if name|0x20 == 'p' && i+2 < len(t) && t[i+1] == ' ' { // u: NAME p: SECRET
		line := t[max(0, first-names.MaxPairName):first]
		line = line[bytes.LastIndexByte(line, '\n')+1:]
		if len(line) > 4 && (line[0]|0x20 == 'u' || line[0]|0x20 == 'l') && line[1] == ':' {
			if v := f.values.ShortValue(i + 1); v.To == len(t) || t[max(v.To, i)] < ' ' || lex.Classes[t[max(v.To, i)]]&lex.IsQuote != 0 {
				return v
			}
		}
	}
	return lex.Span{}
}

// filledIn returns the label of the field, or the last part of its name, that is filled in
// before i.
func (f *Finder) filledIn(i int) []byte {
	t, v := f.values.Text, f.values.Before(i)
	if v.From == v.To { // fill_in :password, with: "SECRET"
		line := bytes.TrimRight(t[max(0, i-names.MaxPairName):i], " ")
		if at := bytes.LastIndex(line, []byte("fill_in :")); at >= 0 {
			return bytes.TrimSuffix(line[at+len("fill_in :"):], []byte(","))
		}
	}
	if !bytes.HasSuffix(bytes.TrimRight(t[max(0, v.From-maxGap):max(v.From-1, 0)], " ("), []byte("fill_in")) {
		return nil
	}
	label := bytes.TrimRight(t[v.From:v.To], "]")
	return label[bytes.LastIndexByte(label, '[')+1:]
}

// isExample reports whether the line of t[i] is in the schema of a value with the name of a
// secret, with its type: its example, or its default, is one.
func (f *Finder) isExample(i int) bool {
	t := f.values.Text
	least := max(0, i-maxSchema)
	indent, typed := lex.IndentAt(t, i), false
	for to := least + bytes.LastIndexByte(t[least:i], '\n'); to > least; {
		from := least + bytes.LastIndexByte(t[least:to], '\n') + 1
		line := bytes.TrimLeft(t[from:to], " \t")
		n := to - from - len(line)
		if line = bytes.TrimRight(line, " \r"); n < indent && len(line) > 0 {
			name, ok := bytes.CutSuffix(line, []byte(":"))
			return typed && ok && f.values.Names.IsPairName(&f.name, name)
		}
		typed = typed || n == indent && (bytes.HasPrefix(line, []byte("type:")) || bytes.HasPrefix(line, []byte("NoEcho:")))
		to = from - 1
	}
	return false
}

// maxSchema limits, in bytes, what is looked at for the name before an example.
const maxSchema = 256

// OfCobol finds SECRET in MOVE 'SECRET' TO NAME, in NAME PIC X(8) VALUE 'SECRET', in NAME TYPE
// string VALUE 'SECRET' of ABAP, and in NAME EQU 'SECRET' of an assembler, where the word before
// the white space at i is t[from:i].
func (f *Finder) OfCobol(from, i int) lex.Span {
	t := f.values.Text
	var name []byte
	v := f.values.Quoted(i+1, 0)
	line := t[max(0, from-2*names.MaxPairName):from]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	switch string(t[from:i]) {
	case "MOVE":
		if at := lex.After(t, v.To+1, " TO "); at > 0 {
			name = t[at:lex.CredentialEnd(t[:min(len(t), at+names.MaxPairName)], at)]
		}
	case "VALUE":
		line = bytes.TrimLeft(line, " 0123456789") // the level of the name
		var ok bool
		if name, _, ok = bytes.Cut(line, []byte(" PIC ")); ok {
			break
		}
		if name, _, ok = bytes.Cut(line, []byte(" TYPE ")); !ok {
			return lex.Span{}
		}
		name = name[bytes.LastIndexByte(name, ' ')+1:]
	default:
		if name = bytes.TrimRight(line, " \t.:"); len(name) == 0 && from > len(line) { // the label is on the line above
			above := t[max(0, from-2*names.MaxPairName) : from-len(line)-1]
			name = bytes.TrimRight(above[bytes.LastIndexByte(above, '\n')+1:], " \t:")
		}
		if bytes.IndexByte(name, ' ') >= 0 {
			return lex.Span{}
		}
	}
	if name = bytes.TrimRight(name, " ."); v.From == v.To || len(name) == 0 || lex.MarkLen(t[v.From:]) > 0 ||
		!f.values.Names.IsPairName(&f.name, name) && !bytes.EqualFold(name, []byte("pw")) {
		return lex.Span{}
	}
	return v
}

// Declares reports whether w is the word of COBOL, ABAP or an assembler before a string that is set.
func Declares(w []byte) bool {
	return string(w) == "MOVE" || string(w) == "VALUE" || lex.IsDirective(w)
}

// OfLogin finds SECRET in a1 LOGIN "NAME" "SECRET" of IMAP and LOGIN NAME 'SECRET' of a client of a
// database, where the white space before the quotation is at i.
func (f *Finder) OfLogin(i int) lex.Span {
	t := f.values.Text
	line := t[max(0, i-2*names.MaxPairName):i]
	line = bytes.TrimRight(line[bytes.LastIndexByte(line, '\n')+1:], " ")
	if len(line) < len("login a") {
		return lex.Span{}
	}
	user := len(line) - 1
	if quote := line[user]; lex.Classes[quote]&lex.IsQuote != 0 {
		user = bytes.LastIndexByte(line[:user], quote)
	} else {
		user = bytes.LastIndexByte(line, ' ') + 1
	}
	if user < len("login ") || !lex.HasFoldSuffix(line[:user], "login ") {
		return lex.Span{}
	}
	head := bytes.TrimRight(line[:user-len("login ")], " ")
	if n := len(head); n > 0 && head[n-1] != '>' && (bytes.IndexByte(head, ' ') >= 0 || n > 1 && !lex.IsDigit(head[n-1])) {
		return lex.Span{}
	}
	return f.values.Quoted(i+1, 0)
}

// hasModule reports whether the text configures a login module of Java.
func (f *Finder) hasModule() bool {
	if f.modules == 0 {
		f.modules = -1
		if bytes.Contains(f.values.Text, []byte("LoginModule")) {
			f.modules = 1
		}
	}
	return f.modules > 0
}

// IsIPsec reports whether the word t[from:to] is before the secret in a line of
// ipsec.secrets: ann : EAP "SECRET", : RSA key.pem "SECRET".
func IsIPsec(t []byte, from, to int) bool {
	if from < 2 || t[from-2] != ':' && t[from-2] != 'A' && t[from-2] != '8' && t[from-2] != '2' {
		return false
	}
	kind, before := t[from:to], bytes.TrimRight(t[max(0, from-maxGap):from], " \t")
	if at := bytes.LastIndexByte(before, ' '); at > 0 && before[at-1] == ':' { // a file between
		kind, before = before[at+1:], before[:at]
	}
	switch string(kind) {
	case "EAP", "NTLM", "XAUTH", "RSA", "ECDSA", "PKCS8", "PKCS12", "P12":
		return len(before) > 0 && before[len(before)-1] == ':'
	}
	return false
}

// OfUser finds SECRET in user = "NAME:SECRET" of a configuration of curl, and in
// {"login": "NAME:SECRET"}, where the separator is at i.
func (f *Finder) OfUser(name []byte, i int) lex.Span {
	t := f.values.Text
	switch string(name) {
	case "user", "proxy-user", "account", "--user", "-u":
		if t[i] != '=' {
			return lex.Span{}
		}
	case "login", "userpass":
	default:
		return lex.Span{}
	}
	from := i + 1
	for from < len(t) && from-i < maxGap && t[from] == ' ' {
		from++
	}
	if from == len(t) {
		return lex.Span{}
	}
	quoted := lex.Classes[t[from]]&lex.IsQuote != 0 && t[i] == '='
	v := f.values.ShortValue(i + 1)
	if v.From >= v.To {
		return lex.Span{}
	}
	user, secret, ok := bytes.Cut(t[v.From:v.To], []byte(":"))
	if !ok || len(user) == 0 || len(secret) == 0 || !quoted && !prose.LooksSecret(secret) || lex.MarkLen(secret) > 0 || bytes.Equal(user, secret) ||
		lex.CountDigits(secret) == len(secret) && lex.CountDigits(user) == len(user) || secret[0] == '/' {
		return lex.Span{} // a group
	}
	return lex.Span{From: v.From + len(user) + 1, To: v.To}
}

// IsGenerated reports whether the result whose name starts at first is the password that
// Terraform has made: resource "random_password" "db" { result = "SECRET" }.
func IsGenerated(t []byte, first int) bool {
	const most = 512
	return bytes.Contains(t[max(0, first-most):first], []byte("random_password"))
}

// Output finds SECRET in ::set-output name=NAME::SECRET, a command of GitHub's runner,
// where the second colons are at i.
func (f *Finder) Output(name []byte, first, i int) lex.Span {
	t := f.values.Text
	if !bytes.HasSuffix(t[:first], []byte(" name=")) {
		return lex.Span{}
	}
	before := t[max(0, first-2*maxGap):first]
	if !bytes.Contains(before, []byte("::set-")) && !bytes.Contains(before, []byte("::save-")) || !f.values.IsSensitive(&f.name, name, names.NoWhole) {
		return lex.Span{}
	}
	return lex.Span{From: i + 2, To: lex.CredentialEnd(t, i+2)}
}

// IfUnset finds SECRET in ${PASSWORD-SECRET} of a shell, where the dash is at i.
func (f *Finder) IfUnset(i int) lex.Span {
	t := f.values.Text
	from := i
	for from > 0 && i-from < names.MaxPairName && ('A' <= t[from-1] && t[from-1] <= 'Z' || t[from-1] == '_') {
		from--
	}
	if from == i || !bytes.HasSuffix(t[:from], []byte("${")) || !f.values.Names.IsPairName(&f.name, t[from:i]) {
		return lex.Span{}
	}
	v := lex.Span{From: i + 1, To: i + 1}
	if n := bytes.IndexAny(t[v.From:min(len(t), v.From+names.MaxPairName)], "}\n"); n > 0 && lex.MarkLen(t[v.From:]) == 0 {
		v.To += n
	}
	return v
}

// AtPrompt finds SECRET behind the prompt of a client whose ">" is at i: ftp> user NAME SECRET.
func (f *Finder) AtPrompt(i int) lex.Span {
	t := f.values.Text
	at := lex.After(t, i, "> user ")
	if at == 0 || !bytes.HasSuffix(t[:i], []byte("ftp")) {
		return lex.Span{}
	}
	at = lex.CredentialEnd(t[:min(len(t), at+names.MaxPairName)], at)
	if at >= len(t) || t[at] != ' ' {
		return lex.Span{}
	}
	v := lex.Span{From: at + 1, To: lex.CredentialEnd(t, at+1)}
	if v.From < v.To && lex.MarkLen(t[v.From:]) > 0 {
		return lex.Span{}
	}
	return v
}

// Granted finds SECRET in ACL SETUSER NAME on >SECRET and in the line user NAME on
// >SECRET of a file of Redis, where ">" is at i.
func (f *Finder) Granted(i int) lex.Span {
	t := f.values.Text
	if i == 0 || i+1 == len(t) || t[i+1] <= ' ' || t[i+1] == '>' || t[i-1] != ' ' && lex.Classes[t[i-1]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	if i >= f.granting.To {
		line := lex.Span{From: bytes.LastIndexByte(t[f.granting.To:i], '\n') + 1 + f.granting.To, To: len(t)}
		if n := bytes.IndexByte(t[i:], '\n'); n >= 0 {
			line.To = i + n
		}
		rule := t[line.From:line.To]
		f.grants = bytes.Contains(rule, []byte("SETUSER ")) || bytes.Contains(rule, []byte("setuser ")) ||
			bytes.Contains(rule, []byte("user ")) && bytes.Contains(rule, []byte(" on >"))
		f.granting = line
	}
	if !f.grants {
		return lex.Span{}
	}
	return lex.Span{From: i + 1, To: lex.CredentialEnd(t, i+1)}
}

// Manifests adds the values of a Secret of Kubernetes under any names, also those of kubectl, if
// there may be commands.
func (f *Finder) Manifests(found []lex.Span, commands bool) []lex.Span {
	t := f.values.Text
	if !names.IsManifest(t) && (!commands || !bytes.Contains(t, []byte("patch secret"))) { // of kubectl
		return found
	}
	for _, name := range []string{"data", "stringData"} {
		for at := 0; ; {
			n := bytes.Index(t[at:], []byte(name))
			if n < 0 {
				break
			}
			at += n + len(name)
			i := at
			for i < len(t) && (lex.Classes[t[i]]&lex.IsQuote != 0 || t[i] == '\\' || t[i] == ' ') {
				i++
			}
			if i == len(t) || t[i] != ':' || at > len(name) && lex.Classes[t[at-len(name)-1]]&lex.IsName != 0 {
				continue
			}
			for i++; i < len(t) && t[i] == ' '; i++ {
			}
			if i < len(t) && t[i] == '{' {
				to := f.values.Closed(i)
				found = append(found, lex.Span{From: i, To: to})
				at = to
				continue
			}
			if i < len(t) && (t[i] == '\n' || t[i] == '\r') {
				found, at = f.block(found, i, lex.IndentAt(t, at-len(name)))
			}
		}
	}
	return found
}

// block adds the values in the lines behind i that are indented by more than
// outer bytes, and returns where they end.
func (f *Finder) block(found []lex.Span, i, outer int) (all []lex.Span, behind int) {
	t := f.values.Text
	for i < len(t) {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			return found, len(t)
		}
		i += end + 1
		stop := bytes.IndexByte(t[i:], '\n')
		if stop < 0 {
			stop = len(t) - i
		}
		line := t[i : i+stop]
		if indent := len(line) - len(bytes.TrimLeft(line, " \t")); indent <= outer && indent < len(bytes.TrimRight(line, "\r")) {
			return found, i
		}
		colon := bytes.IndexByte(line, ':')
		from := i + colon + 1
		for from < i+stop && (t[from] <= ' ' || lex.Classes[t[from]]&lex.IsQuote != 0) {
			from++
		}
		to := i + stop
		for to > from && (t[to-1] <= ' ' || lex.Classes[t[to-1]]&lex.IsQuote != 0) {
			to--
		}
		if from < to && lex.MarkLen(t[from:]) == 0 && !formats.IsPlaceholder(t[from:to]) {
			found = append(found, lex.Span{From: from, To: to})
		}
	}
	return found, i
}

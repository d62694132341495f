// Package login finds the secrets of logins that are one word: NAME:SECRET@HOST, and
// the lines of files that have them.
package login

import (
	"bytes"
	"strings"

	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// minBare is the length in bytes of the shortest secret of a login without a port.
const minBare = 8

// maxLogin is the longest login of Oracle, in bytes.
const maxLogin = 256

// Find finds SECRET in USER:SECRET@tcp(HOST)/DATABASE, as Go's drivers
// want it, in jdbc:oracle:thin:USER/SECRET@HOST, and in the lines of a .pgpass
// file, HOST:PORT:DATABASE:USER:SECRET. The separator at i ends a name that
// starts at first.
func Find(t, name []byte, first, i int) lex.Span {
	if t[i] != ':' || i+2 >= len(t) || t[i+1] <= ' ' || i == 0 || t[i-1] <= ' ' {
		return lex.Span{}
	}
	if len(name) > 0 {
		if v := account(t, name, first, i); v.From < v.To {
			return v
		}
	}
	if lex.IsDigit(t[i+1]) || t[i+1] == '*' {
		if v := passFile(t, first, i); v.From < v.To {
			return v
		}
	}
	if string(name) == "thin" || string(name) == "oci" || string(name) == "oci8" {
		login := t[i+1 : min(len(t), i+maxLogin)] // names in a row, without this form, cost no search each
		if at := bytes.IndexByte(login, '@'); at > 0 && bytes.IndexByte(login[:at], '/') > 0 {
			if c := argv.AtLogin.Within(login[:lex.CredentialEnd(login, 0)]); c.From < c.To {
				return lex.Span{From: i + 1 + c.From, To: i + 1 + c.To}
			}
		}
	}
	word := t[i+1 : min(len(t), i+1+2*names.MaxPairName)]
	for at, tries := 0, 0; tries < 4; tries++ { // the secret may have an "@"
		n := bytes.IndexByte(word[at:], '@')
		if at += n; n < 0 || i+1+at+1 == len(t) {
			break
		}
		if host := t[i+1+at+1:]; at > 0 && (host[0] == '/' || bytes.HasPrefix(host, []byte("tcp(")) || bytes.HasPrefix(host, []byte("unix("))) {
			for _, c := range word[:at] {
				if lex.IsURLEnd(c) {
					return lex.Span{}
				}
			}
			return lex.Span{From: i + 1, To: i + 1 + at}
		}
		at++
	}
	return lex.Span{}
}

// passFile finds the secret of a line of a .pgpass file with the port behind i.
func passFile(t []byte, first, i int) lex.Span {
	if i == first && t[i-1] != '*' {
		return lex.Span{}
	}
	if first > 0 && t[first-1] == '/' {
		for first > 0 && i-first <= 2*names.MaxPairName && (t[first-1] == '/' || lex.Classes[t[first-1]]&lex.IsName != 0) {
			first--
		}
		if t[first] != '/' {
			return lex.Span{} // a file in a directory, with a line
		}
	}
	if first > 0 && t[first-1] > ' ' && lex.Classes[t[first-1]]&lex.IsQuote == 0 && t[first-1] != '*' {
		return lex.Span{}
	}
	at := i + 1
	for port := 0; at < len(t) && port < 6 && lex.IsDigit(t[at]); port++ {
		at++
	}
	switch n := at - i - 1; {
	case n == 0:
		at++ // "*"
	case n < 4 || n > 5:
		return lex.Span{}
	}
	var fields [2]lex.Span
	hex := true
	for k := range fields {
		if at >= len(t) || t[at] != ':' {
			return lex.Span{}
		}
		at++
		fields[k].From = at
		for at < len(t) && at-fields[k].From <= names.MaxPairName && t[at] > ' ' && t[at] != ':' && lex.Classes[t[at]]&lex.IsQuote == 0 {
			hex = hex && lex.Unhex[t[at]] < 16
			at++
		}
		if at == fields[k].From {
			return lex.Span{}
		}
	}
	if hex || t[fields[1].From] == '*' || at+1 >= len(t) || t[at] != ':' || t[at+1] <= ' ' {
		return lex.Span{}
	}
	to := lex.CredentialEnd(t, at+1)
	if to < len(t) && t[to] == ' ' {
		return lex.Span{}
	}
	return lex.Span{From: at + 1, To: to}
}

// account finds SECRET in the forms of NAME:SECRET that say so: NAME:SECRET@HOST:PORT,
// [HOST]:PORT NAME:SECRET of Postfix, NAME:{PLAIN}SECRET of Dovecot, and
// register => NAME:SECRET@HOST of Asterisk. The colon at i ends a name that starts at
// first.
func account(t, name []byte, first, i int) lex.Span {
	if t[i+1] == '{' {
		for _, scheme := range []string{"{PLAIN}", "{CLEAR}", "{CLEARTEXT}", "{PLAIN-MD5}", "{noop}"} {
			if at := lex.After(t, i+1, scheme); at > 0 {
				v := lex.Span{From: at, To: lex.CredentialEnd(t[:min(len(t), at+maxLogin)], at)}
				if end := bytes.IndexByte(t[v.From:v.To], ':'); end > 0 {
					v.To = v.From + end
				}
				return v
			}
		}
		return lex.Span{}
	}
	if v := tried(t, name, first, i); v.From < v.To {
		return v
	}
	if before := t[max(0, first-names.MaxPairName):first]; bytes.IndexByte(before, ']') > 0 && isServer(before) {
		to := lex.CredentialEnd(t[:min(len(t), i+maxLogin)], i+1)
		if to == len(t) || t[to] < ' ' || lex.Classes[t[to]]&lex.IsQuote != 0 {
			return lex.Span{From: i + 1, To: to}
		}
	}
	at := i + 1 + bytes.IndexByte(t[i+1:min(len(t), i+names.MaxPairName)], '@')
	if at < i+2 || lex.IsDigit(name[0]) {
		return lex.Span{}
	}
	for next := at + 1; next < len(t) && next-i < names.MaxPairName && !lex.IsURLEnd(t[next]) && t[next] != '/' && t[next] != ':' && t[next] != '&' && t[next] != ','; next++ {
		if t[next] == '@' { // one of the secret's came before
			at = next
		}
	}
	if bytes.IndexByte(t[i+1:at], '/') >= 0 && (bytes.HasPrefix(t[i+1:], []byte("//")) || !prose.IsKey(t[i+1:at])) {
		return lex.Span{}
	}
	for end := i + 1; end < at; end++ { // not a part of a query
		if end = lex.CredentialEnd(t[:at], end); end < at && (t[end] != '&' || first > 0 && (t[first-1] == '&' || t[first-1] == '=' || t[first-1] == '?')) {
			return lex.Span{}
		}
	}
	if bytes.HasSuffix(t[:first], []byte("register => ")) || bytes.HasSuffix(t[:first], []byte(":pserver:")) ||
		first > 1 && t[first-1] == '/' && t[first-2] == '/' && (first == 2 || t[first-3] <= ' ' || lex.Classes[t[first-3]]&lex.IsQuote != 0) && at+1 < len(t) &&
			lex.Classes[t[at+1]]&lex.IsAlnum != 0 { // mount_smbfs //NAME:SECRET@HOST/SHARE
		return lex.Span{From: i + 1, To: at}
	}
	port := at + 1
	for port < len(t) && port-at < names.MaxPairName && (lex.Classes[t[port]]&lex.IsAlnum != 0 || t[port] == '.' || t[port] == '-') {
		port++
	}
	if port == at+1 || bytes.HasPrefix(t[at+1:], []byte("sha256:")) {
		return lex.Span{}
	}
	switch string(name) {
	case "sip", "sips", "mailto", "xmpp", "acct", "git", "ssh", "user", "host", "to", "from", "npm", "jsr":
		return lex.Span{}
	}
	if port == len(t) || t[port] != ':' { // without a port what looks like a secret is one: ann:SECRET@HOST
		v := lex.Span{From: i + 1, To: at}
		if b := t[v.From:v.To]; len(b) < minBare || !prose.LooksSecret(b) || bytes.ContainsAny(b, "./") || port < len(t) && t[port] > ' ' && lex.Classes[t[port]]&lex.IsQuote == 0 ||
			first > 0 && t[first-1] > ' ' && lex.Classes[t[first-1]]&lex.IsQuote == 0 {
			return lex.Span{}
		}
		return v
	}
	n := lex.CountDigits(t[port+1 : min(len(t), port+8)])
	if n < 2 || n > 5 || port+1+n < len(t) && lex.Classes[t[port+1+n]]&lex.IsAlnum != 0 {
		return lex.Span{}
	}
	return lex.Span{From: i + 1, To: at}
}

// tried finds SECRET in what programs tell of logins that they tried, "[+] DOMAIN\NAME:SECRET"
// and "Success: 'NAME:SECRET'", and of hashes that they reversed, HASH:SECRET.
func tried(t, name []byte, first, i int) lex.Span {
	value := func() lex.Span {
		to := i + 1
		for to < len(t) && to-i < maxLogin && t[to] > ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 && lex.MarkLen(t[to:]) == 0 {
			to++
		}
		return lex.Span{From: i + 1, To: to}
	}
	if len(name) >= 32 && lex.Unhex[name[0]] < 16 {
		if !isHex(name) {
			return lex.Span{}
		}
		if challenge := t[max(0, first-len("0123456789abcdef:")):first]; len(name) == 32 && len(challenge) == 17 && challenge[16] == ':' &&
			isHex(challenge[:16]) { // of NTLM: NAME::DOMAIN:CHALLENGE:HASH:…
			return lex.Span{From: first, To: value().To}
		}
		if first > 0 && strings.IndexByte("$*#", t[first-1]) < 0 && !lex.StartsLine(t, first) { // $DCC2$10240#ann#HASH
			return lex.Span{}
		}
		v := value()
		if v.To < len(t) && t[v.To] >= ' ' || len(name)&(len(name)-1) != 0 && bytes.IndexByte(t[v.From:v.To], '/') >= 0 {
			return lex.Span{} // a commit and a path
		}
		return v
	}
	for _, end := range [...]string{"[+] ", "[-] ", "Success: '", "Failed: '"} {
		if bytes.HasSuffix(t[:first], []byte(end)) && (end[0] != '[' || bytes.IndexByte(name, '\\') > 0) {
			return value()
		}
	}
	return lex.Span{}
}

func isHex(b []byte) bool {
	for _, c := range b {
		if lex.Unhex[c] > 15 {
			return false
		}
	}
	return true
}

// isServer reports whether the line that b ends in is that of a server, with the start
// of a name behind it: "[HOST]:PORT ann@".
func isServer(b []byte) bool {
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	end := bytes.LastIndexByte(b, ']')
	if end < 0 || b[0] != '[' && (lex.Classes[b[0]]&lex.IsQuote == 0 || b[1] != '[') || bytes.IndexByte(b[:end], '.') < 0 {
		return false
	}
	rest := bytes.TrimPrefix(b[end+1:], []byte(":"))
	rest = rest[lex.CountDigits(rest):]
	name := bytes.TrimLeft(rest, " \t")
	return len(name) < len(rest) && bytes.IndexByte(name, ' ') < 0
}

// Link finds the secret in the path of a link that is good once, which starts at i:
// /reset-password/SECRET, /invite/SECRET. It looks random.
func Link(t []byte, i int) lex.Span {
	to := min(len(t), i+maxLogin)
	for near := 0; i < to; near-- {
		end := i
		for end < to && t[end] != '/' && t[end] != '?' && t[end] != '#' && t[end] != ':' && !lex.IsURLEnd(t[end]) {
			end++
		}
		switch segment := t[i:end]; {
		case near > 0 && lex.IsRandom(segment) && !bytes.HasPrefix(segment, []byte("0x")) && lex.MarkLen(segment) == 0:
			return lex.Span{From: i, To: end}
		case isOnce(segment):
			near = 3
		case string(segment) == "commit" || string(segment) == "tree" || string(segment) == "blob" || string(segment) == "raw":
			near = 0
		}
		if end == to || t[end] != '/' {
			break
		}
		i = end + 1
	}
	return lex.Span{}
}

// isOnce reports whether the path of a link goes on with a secret near that segment.
func isOnce(segment []byte) bool {
	if len(segment) > maxSegment {
		return false
	}
	for _, word := range [...]string{"reset", "invit", "magic", "activat", "confirm", "verif", "onetime", "one-time", "password", "passwd", "unlock"} {
		if bytes.Contains(segment, []byte(word)) {
			return true
		}
	}
	return false
}

// maxSegment is the longest name of what such a link is for, in bytes.
const maxSegment = 24

// IsOfPPP reports whether the quotation behind the white space at i is the secret in a
// line of chap-secrets or pap-secrets: ann * "SECRET" *.
func IsOfPPP(t []byte, i int) bool {
	line := bytes.TrimRight(t[max(0, i-maxLogin):i], " ")
	if !bytes.HasSuffix(line, []byte("*")) && !bytes.HasSuffix(line, []byte("tpd")) {
		return false
	}
	words := 0
	for range bytes.FieldsSeq(line[bytes.LastIndexByte(line, '\n')+1:]) {
		if words++; words > 2 {
			break
		}
	}
	if words != 2 {
		return false
	}
	rest := t[i+2 : min(len(t), i+2+maxLogin)]
	rest = rest[bytes.IndexByte(rest, t[i+1])+1:]
	if n := bytes.IndexByte(rest, '\n'); n >= 0 {
		rest = rest[:n]
	}
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || rest[0] == '*' || lex.IsDigit(rest[0])
}

// HasUsers reports whether t ends in a scheme whose URLs have a user before the host, and never
// a token: ssh, git+ssh, postgres.
func HasUsers(t []byte) bool {
	n := len(t)
	for n > 0 && lex.Classes[t[n-1]]&lex.IsAlnum != 0 && len(t)-n < 16 {
		n--
	}
	return n < len(t) && strings.Contains(" ssh sftp scp rsync rdp vnc smb cifs ftp ftps imap imaps pop3 smtp smtps ldap ldaps mysql mariadb postgres postgresql mongodb docker telnet svn git ", " "+lex.View(t[n:])+" ")
}

package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// setting finds SECRET in the files of programs that have a form of their own, where
// the separator at i ends a name that starts at first.
func (s *Scanner) setting(name []byte, first, i int) lex.Span {
	t := s.text
	if t[i] == ':' {
		if string(name) == "P" && first > 0 && t[first-1] == ';' && bytes.Contains(t[max(0, first-4*names.MaxPairName):first], []byte("WIFI:")) { // of a QR code
			v := lex.Span{From: i + 1, To: i + 1}
			for v.To < len(t) && t[v.To] > ' ' && (t[v.To] != ';' || t[v.To-1] == '\\') && lex.MarkLen(t[v.To:]) == 0 {
				v.To++
			}
			return v
		}
		if len(name) == 1 && name[0]|0x20 == 'p' && i+2 < len(t) && t[i+1] == ' ' { // u: NAME p: SECRET
			line := t[max(0, first-names.MaxPairName):first]
			line = line[bytes.LastIndexByte(line, '\n')+1:]
			if len(line) > 4 && (line[0]|0x20 == 'u' || line[0]|0x20 == 'l') && line[1] == ':' {
				if v := s.values.ShortValue(i + 1); v.To == len(t) || t[max(v.To, i)] < ' ' || lex.Classes[t[max(v.To, i)]]&lex.IsQuote != 0 {
					return v
				}
			}
		}
		switch string(name) {
		case "with": // of Capybara: fill_in "Password", with: "SECRET"
			if label := s.filledIn(first); s.Names.IsPairName(&s.name, label) {
				return s.values.Value(i + 1)
			}
		case "forKey", "forHTTPHeaderField": // of Swift: set("SECRET", forKey: "password")
			if v := s.values.ShortValue(i + 1); v.From < v.To && s.Names.IsPairName(&s.name, t[v.From:v.To]) {
				if v = s.values.Before(first); v.From < v.To {
					s.found, s.unordered = append(s.found, v), true
				}
			}
		}
		return lex.Span{}
	}
	switch {
	case t[i] != '=':
	case bytes.HasPrefix(name, []byte("user_")) && i+1 < len(t) && t[i+1] == '"' && s.hasModule(): // of Kafka and ZooKeeper
		return s.values.Value(i + 1)
	case lex.HasFoldSuffix(name, "key") && (bytes.Contains(t[max(0, first-2*maxGap):i], []byte("wireless.")) || bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("netsh wlan"))): // of OpenWrt, of Windows
		return s.values.Value(i + 1)
	case string(name) == "name" && bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("/snmp community ")): // of MikroTik
		return s.values.Value(i + 1)
	case string(name) == "data" && bytes.Contains(t[max(0, first-names.MaxPairName):first], []byte("secret,")): // of QEMU: secret,id=NAME,data=SECRET
		return s.values.Value(i + 1)
	case string(name) == "login": // of Squid: login=NAME:SECRET
		if v := s.values.Behind(i, ':'); v.From < v.To && !bytes.HasPrefix(t[v.From:], []byte("//")) && !lex.IsPort(t[v.From:v.To]) {
			return v
		}
	case bytes.HasPrefix(name, []byte("BUNDLE_")): // of Bundler: BUNDLE_HOST="NAME:SECRET"
		if v := s.values.Behind(i, ':'); v.From < v.To && t[v.From] != '/' && !lex.IsPort(t[v.From:v.To]) {
			return v
		}
	case string(name) == "client_send": // of Exim: "^NAME^SECRET"
		return s.values.Behind(i, '^')
	case (string(name) == "username" || string(name) == "user") && bytes.Contains(t[max(0, first-2*names.MaxPairName):first], []byte("cifs")):
		v := s.values.Behind(i, '%')
		if comma := bytes.IndexByte(t[v.From:v.To], ','); comma >= 0 {
			v.To = v.From + comma
		}
		return v
	}
	return lex.Span{}
}

// filledIn returns the label of the field, or the last part of its name, that is filled in
// before i.
func (s *Scanner) filledIn(i int) []byte {
	v := s.values.Before(i)
	if !bytes.HasSuffix(bytes.TrimRight(s.text[max(0, v.From-maxGap):max(v.From-1, 0)], " ("), []byte("fill_in")) {
		return nil
	}
	label := bytes.TrimRight(s.text[v.From:v.To], "]")
	return label[bytes.LastIndexByte(label, '[')+1:]
}

// hasModule reports whether the text configures a login module of Java.
func (s *Scanner) hasModule() bool {
	if s.modules == 0 {
		s.modules = -1
		if bytes.Contains(s.text, []byte("LoginModule")) {
			s.modules = 1
		}
	}
	return s.modules > 0
}

// outputs finds SECRET in ::set-output name=NAME::SECRET, a command of GitHub's runner,
// where the second colons are at i.
func (s *Scanner) outputs(name []byte, first, i int) lex.Span {
	t := s.text
	if !bytes.HasSuffix(t[:first], []byte(" name=")) {
		return lex.Span{}
	}
	before := t[max(0, first-2*maxGap):first]
	if !bytes.Contains(before, []byte("::set-")) && !bytes.Contains(before, []byte("::save-")) || !s.sensitiveName(name, names.NoWhole) {
		return lex.Span{}
	}
	return lex.Span{From: i + 2, To: lex.CredentialEnd(t, i+2)}
}

// tuple finds SECRET in {password, "SECRET"} and {password, <<"SECRET">>}, as Erlang
// has them, where the comma is at i.
func (s *Scanner) tuple(i int) lex.Span {
	t := s.text
	from := i
	for from > s.from && i-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	if from == i || from == 0 || t[from-1] != '{' {
		return lex.Span{}
	}
	v := i + 1
	for v < len(t) && (t[v] == ' ' || t[v] == '<') && v-i < 4 {
		v++
	}
	if v == len(t) || t[v] != '"' || !s.sensitiveName(t[from:i], names.NoWhole) {
		return lex.Span{}
	}
	c := s.values.Quoted(v, 0)
	end := min(len(t), c.To+1)
	for end < len(t) && (t[end] == '>' || t[end] == ' ') && end-c.To < 5 {
		end++
	}
	if end == len(t) || t[end] != '}' {
		return lex.Span{}
	}
	return c
}

// maxStrings is how many strings of one list count.
const maxStrings = 64

// anyOf adds the strings in token IN ('SECRET', 'SECRET'), where the parenthesis is at i.
func (s *Scanner) anyOf(i int) {
	t := s.text
	to := i
	for to > s.from && i-to < maxGap && t[to-1] <= ' ' {
		to--
	}
	if to-4 < s.from || t[to-3] > ' ' || !lex.HasFoldSuffix(t[:to], "in") {
		return
	}
	upper := t[to-2] == 'I'
	for to -= 3; to > s.from && t[to-1] <= ' ' && i-to < 2*maxGap; {
		to--
	}
	from := to
	for from > s.from && to-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	before := bytes.TrimRight(t[max(s.from, from-8):from], " \n\t")
	if from == to || !upper && !lex.HasFoldSuffix(before, "where") && !lex.HasFoldSuffix(before, "and") || !s.sensitiveName(t[from:to], names.NoWhole) {
		return
	}
	for n := 0; n < maxStrings; n++ {
		v, next := s.values.Argument(i+1, maxPair, maxOther)
		if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 {
			s.found, s.unordered = append(s.found, v), true
		}
		if next < 0 || next >= len(t) || t[next] != ',' {
			return
		}
		i = next
	}
}

// isIPsec reports whether the word t[from:to] is before the secret in a line of
// ipsec.secrets: ann : EAP "SECRET", : RSA key.pem "SECRET".
func (s *Scanner) isIPsec(from, to int) bool {
	t := s.text
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

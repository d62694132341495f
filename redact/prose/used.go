package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

// IsRole reports whether the noun at from, which has other meanings too, is what something is
// used as, comme mot de passe, or what follows a user: user ann pass SECRET.
func IsRole(t []byte, from int) bool {
	for _, as := range [...]string{" comme mot de ", " jako ", " làm mật ", " sebagai kata "} {
		if bytes.HasSuffix(t[:from], []byte(as)) {
			return true
		}
	}
	return behindLogin(t, from)
}

// roleOf returns what w, between a secret and the noun behind it, says: "as", "for", "is",
// nothing for other words.
func roleOf(w []byte) string {
	switch string(w) {
	case "as", "comme", "como", "als", "come", "som", "jako", "как", "качестве", "ως", "sebagai", "làm", "ca", "kao", "kot":
		return "as"
	case "for":
		return "for"
	case "is":
		return "is"
	}
	return ""
}

// used finds the secret before the noun t[from:to]: use SECRET as the password, SECRET is my
// password, type SECRET at the password prompt.
func used(t []byte, from, to int) lex.Span {
	least := max(0, from-maxClause)
	before := t[least:from]
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	least = from - len(before)
	if t[from] >= 0xE3 {
		return usedIn(t, least, from, to)
	}
	rest, first := bytes.TrimRight(before, " "), []byte(nil)
	var link []byte
	role := ""
	for range 4 {
		w := lastField(rest)
		if role = roleOf(w); role != "" {
			link = w
		}
		if len(w) == 0 || link != nil {
			break
		}
		first = w
		rest = bytes.TrimRight(rest[:len(rest)-len(w)], " ")
	}
	if link == nil {
		if v := typed(t, least, from, false); v.From < v.To {
			return v
		}
		return filled(t, from, to)
	}
	rest = bytes.TrimRight(rest[:len(rest)-len(link)], " ")
	if string(link) == "качестве" {
		rest = bytes.TrimSuffix(rest, []byte(" в"))
	}
	w := lastField(rest)
	v := lex.Span{From: least + len(rest) - len(w), To: least + len(rest)}
	quoted := false
	for v.From < v.To && lex.Classes[t[v.From]]&lex.IsQuote != 0 && t[v.From] == t[v.To-1] {
		v.From++
		v.To--
		quoted = true
	}
	if v.To <= v.From || !isUnusual(t[v.From:v.To]) || lex.IsType(t[v.From:v.To]) || IsUser(t[v.From:v.To]) {
		v.To = v.From
		if role != "for" {
			return v
		}
	}
	verb := bytes.TrimRight(rest[:len(rest)-len(w)], " ")
	starts := len(verb) == 0 || strings.IndexByte(".:,;", verb[len(verb)-1]) >= 0
	verb = lastField(verb)
	verb = verb[bytes.LastIndexByte(verb, '>')+1:] // of markup
	looks := LooksSecret(t[v.From:v.To]) || hasMark(t[v.From:v.To])
	switch role {
	case "is":
		if !endsClause(t, to) || first == nil || !isDeterminer(first) || !quoted && !looks && (!starts || isUpper(t[v.From]) || !isLower(t[v.From:v.To])) {
			return lex.Span{}
		}
		return v
	case "as":
		if (quoted || isUse(verb)) && endsClause(t, to) {
			return v
		}
	case "for":
		if isUse(verb) && endsClause(t, to) && (LooksSecret(t[v.From:v.To]) || quoted) {
			return v
		}
		return typed(t, least, from, true) // "when it asks for the password"
	}
	return lex.Span{}
}

// usedIn is used for a script without spaces: 用 SECRET 作为密码, SECRETをパスワードとして.
func usedIn(t []byte, least, from, to int) lex.Span {
	end := from
	for _, as := range [...]string{"作为", "作為", "を"} {
		if bytes.HasSuffix(t[least:from], []byte(as)) && (len(as) > len("を") || lex.After(t, to, "として") > 0) {
			end = from - len(as)
		}
	}
	if end == from {
		return lex.Span{}
	}
	for end > least && t[end-1] == ' ' {
		end--
	}
	v := lex.Span{From: end, To: end}
	for v.From > least && ' ' < t[v.From-1] && t[v.From-1] < 0x80 {
		v.From--
	}
	if !isUnusual(t[v.From:v.To]) || lex.After(t, to, "として") == 0 && to < len(t) && t[to] >= 0xE3 && !IsStop(t[to:]) {
		return lex.Span{}
	}
	return v
}

// typed finds SECRET in an instruction such as "type SECRET into the password field", or "when
// it asks for the password", with later. The noun is at from, and the sentence does not start
// before least.
func typed(t []byte, least, from int, later bool) lex.Span {
	before := t[least:from]
	asked := isAsked(t[from:])
	into := endsInto(before, asked)
	if !asked && !later && !into {
		return lex.Span{}
	}
	for _, verb := range [...]string{"ype ", "nter ", "ut ", "aste ", "ill ", "nput "} {
		at := bytes.LastIndex(before, []byte(verb))
		if at < 1 || strings.IndexByte("tepfi", before[at-1]|0x20) < 0 || at > 1 && before[at-2] > ' ' && before[at-2] != '>' {
			continue
		}
		at += len(verb)
		v := wordAt(before, at)
		w := before[v.From:v.To]
		if v.From == v.To || !isToken(w) {
			continue
		}
		quoted := v.From > at
		rest := before[min(len(before), v.To+v.From-at):]
		switch {
		case LooksSecret(w) && (asked || later && bytes.Contains(rest, []byte(" ask"))):
		case !into || bytes.Count(bytes.TrimSpace(rest), []byte(" ")) > 1 || IsPlain(w) && !quoted || IsUser(w) || nounOf(w) != noNoun || !quoted && !isUnusual(w):
			continue
		}
		return lex.Span{From: least + v.From, To: least + v.To}
	}
	return lex.Span{}
}

// endsInto reports whether b ends in what is between what is typed and the name of the field it
// is typed into: "into the", "in your" if the name is said to be one of a field.
func endsInto(b []byte, asked bool) bool {
	b = bytes.TrimRight(b, " ")
	w := lastField(b)
	if isDeterminer(w) {
		w = lastField(bytes.TrimRight(b[:len(b)-len(w)], " "))
	}
	return string(w) == "into" || asked && string(w) == "in"
}

// filled finds SECRET in an instruction such as "fill in the password field with SECRET", where
// the noun is t[from:to].
func filled(t []byte, from, to int) lex.Span {
	at := to
	for _, field := range [...]string{" field", " box", " input", " textbox", " prompt"} {
		if end := lex.After(t, to, field); end > 0 {
			at = end
			break
		}
	}
	behind := lex.After(t, at, " to ")
	if behind == 0 || at == to || !isChanged(t, from) {
		if behind = lex.After(t, at, " with "); behind == 0 || !bytes.Contains(t[max(0, from-maxIndent):from], []byte("ill ")) {
			return lex.Span{}
		}
	}
	v := wordAt(t, behind)
	w := t[v.From:v.To]
	if !isUnusual(w) || v.From == behind && !endsClause(t, v.To) || lex.MarkLen(w) > 0 {
		return lex.Span{}
	}
	return v
}

// isAsked reports whether b starts with what asks for a password: "password prompt".
func isAsked(b []byte) bool {
	_, rest, _ := bytes.Cut(b[:min(len(b), maxIndent)], []byte(" "))
	for _, field := range [...]string{"prompt", "field", "box", "input", "textbox"} {
		if bytes.HasPrefix(rest, []byte(field)) {
			return true
		}
	}
	return false
}

package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

// behindLogin reports whether the word at i is behind "login NAME" or the like,
// as in netrc.
func behindLogin(t []byte, i int) bool {
	word := func() []byte {
		for i > 0 && t[i-1] <= ' ' {
			i--
		}
		to := i
		for i > 0 && to-i <= maxClause && t[i-1] > ' ' {
			i--
		}
		return t[i:to]
	}
	upper := i+1 < len(t) && t[i+1] == 'A' // PASSWORD
	switch string(word()) {
	case "set":
		return upper
	case "", "and", "or", "for", "with", "a", "the", "has", "by", "to", "+", "/", "&":
		return false
	}
	switch w := word(); string(w) {
	case "NICK", "SSID":
		return true
	default:
		return IsUser(w)
	}
}

// onLine reports whether the word at i is the first one of its line, in what a router has
// configured for one of its lines, or behind the prompt for that.
func onLine(t []byte, i int) bool {
	start := lineStart(t, i)
	head := bytes.TrimSpace(t[start:i])
	if len(head) > 0 {
		return bytes.HasSuffix(head, []byte("(config-line)#"))
	}
	before := t[max(0, start-maxClause):start]
	at := bytes.LastIndex(before, []byte("line "))
	if at < 0 || at > 0 && before[at-1] != '\n' {
		return false
	}
	switch kind, _, _ := bytes.Cut(before[at+len("line "):], []byte(" ")); string(kind) {
	case "vty", "con", "console", "aux", "tty":
		return true
	}
	return false
}

// belowUser reports whether the two lines before i are the label of a user and
// its name.
func belowUser(t []byte, i int) bool {
	if i == 0 {
		return false
	}
	name := lineStart(t, i-1)
	if name == 0 {
		return false
	}
	label := lineStart(t, name-1)
	return IsUser(bytes.TrimRight(t[label:name-1], " \r:"))
}

// login finds SECRET in "log in with ann / SECRET" and "credentials: ann:SECRET",
// behind the words t[from:to].
func login(t []byte, from, to int) lex.Span {
	at := skipSpace(t, to)
	limit := min(len(t), to+maxClause)
	asked := !bytes.EqualFold(t[from:to], []byte("log")) && !bytes.EqualFold(t[from:to], []byte("sign"))
	said := false // a word that a name can follow
	for words := 0; ; words++ {
		end := at
		for end < limit && t[end] > ' ' && t[end] != ':' && t[end] != '=' {
			end++
		}
		if end < limit && end == at {
			end++
			said = true
		} else {
			switch string(t[at:end]) {
			case "in", "into", "on", "on:":
				asked = true
			case "with", "as", "using", "are", "is", "use", "user", "username", "account", "mit", "con", "avec", "com", "->", "=>":
				said = true
			case "details", "data", "info", "the", "details:":
			default:
				switch {
				case asked && said && words > 0:
					if v := pairAt(t, at); v.From < v.To {
						return v
					}
					return behindName(t, end)
				case !asked || words > 3:
					return lex.Span{}
				}
			}
		}
		if words > 6 || end >= limit {
			return lex.Span{}
		}
		at = skipSpace(t, end)
	}
}

// behindName finds SECRET behind the name of a user that ends at i: log in as ann with SECRET.
func behindName(t []byte, i int) lex.Span {
	for _, with := range [...]string{" with ", " using ", " and "} {
		at := lex.After(t, i, with)
		if at == 0 {
			continue
		}
		v := wordAt(t, at)
		if w := t[v.From:v.To]; isUnusual(w) && endsClause(t, v.To+v.From-at) && (v.From > at || LooksSecret(w) || hasMark(w)) {
			return v
		}
	}
	return lex.Span{}
}

// Second finds SECRET at i, behind two labels of which the second one starts at from:
// user/password: ann/SECRET.
func Second(t []byte, from, i int) lex.Span {
	if from == 0 || t[from-1] != '/' || !IsUser(lastWord(t, from-1)) {
		return lex.Span{}
	}
	return pairAt(t, skipSpace(t, i))
}

// pairAt returns the secret of the name and the secret at i, with a slash or a
// colon between.
func pairAt(t []byte, i int) lex.Span {
	to := i
	for to < len(t) && to-i < maxClause && (lex.Classes[t[to]]&lex.IsAlnum != 0 || strings.IndexByte("_.@+-\\", t[to]) >= 0) {
		to++
	}
	user := t[i:to]
	at := skipSpace(t, to)
	if to == i || at == len(t) || t[at] != '/' && t[at] != ':' && t[at] != '|' {
		return lex.Span{}
	}
	spaced := at > to
	if t[at] == '/' && spaced != (at+1 < len(t) && t[at+1] == ' ') {
		return lex.Span{} // a path
	}
	at = skipSpace(t, at+1)
	v := wordAt(t, at)
	w := t[v.From:v.To]
	if lex.MarkLen(t[v.From:]) > 0 {
		return v
	}
	if len(w) < 3 || bytes.IndexByte(w, '/') >= 0 && !IsKey(w) || IsPlain(w) || IsUser(user) || string(user) == "read" || nounOf(w) != noNoun || nounOf(user) != noNoun {
		return lex.Span{}
	}
	if isUpper(user[0]) && isUpper(w[0]) && !LooksSecret(w) || lex.CountDigits(w) == len(w) && len(w) < 4 {
		return lex.Span{} // "Google / GitHub"
	}
	if !LooksSecret(w) && !endsClause(t, v.To) && !spaced {
		return lex.Span{}
	}
	return v
}

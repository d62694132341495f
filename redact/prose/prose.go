// Package prose finds the secrets that sentences tell: "the password is
// swordfish".
//
// Find looks at the words behind a noun for a secret. A sentence about one, "the
// password is wrong", differs only in its words: words has those that say
// something of a secret and are none.
//
// The files, from the top: prose, words.
package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

// maxClause is how far behind a noun its secret may start, in bytes.
const maxClause = 96

// maxWords is the most words of a passphrase.
const maxWords = 12

// Find adds the secrets that the sentences of t tell, in time linear in t.
func Find(t []byte, found []lex.Span) []lex.Span {
	found = codes(t, found)
	for i := 0; i < len(t); {
		if !inWord(t[i]) {
			i++
			continue
		}
		from := i
		for i < len(t) && inWord(t[i]) && (i == from || !startsNoun(t[i:])) {
			if n := foreignNoun(t[i:]); n > 0 { // it ends without a space
				i += n
				break
			}
			i++
		}
		w := t[from:i]
		kind := nounOf(w)
		if kind == noNoun || w[0] < 0x80 && !isTelling(t, from, i, kind) {
			continue
		}
		var v lex.Span
		if kind == logins {
			v = login(t, from, i)
		} else {
			if v = told(t, from, i, kind); v.From == v.To && kind == password {
				v = used(t, from, i)
			}
		}
		if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 && (lex.Classes[t[v.From-1]]&lex.IsQuote == 0 || !IsLabel(t[v.From:v.To])) {
			found = append(found, v)
			i = max(i, v.To)
		}
	}
	return found
}

// codes adds the codes that messages tell before their names: "123456 is your login code",
// "use 123456 as your PIN".
func codes(t []byte, found []lex.Span) []lex.Span {
	const your = " your "
	for at := 0; ; at += len(your) {
		n := bytes.Index(t[at:], []byte(your))
		if n < 0 {
			return found
		}
		at += n
		before, ok := bytes.CutSuffix(t[max(0, at-maxClause):at], []byte(" is"))
		if !ok {
			before, ok = bytes.CutSuffix(before, []byte(" as"))
		}
		code := before[bytes.LastIndexAny(before, " \n:")+1:]
		digits := lex.CountDigits(code[bytes.LastIndexByte(code, '-')+1:])
		if !ok || len(code) > 12 || digits < 4 || digits > 8 || lex.IsDigit(code[0]) && lex.CountDigits(code) < digits || !lex.IsDigit(code[len(code)-1]) {
			continue
		}
		rest := t[at+len(your) : min(len(t), at+maxClause)]
		for words := 0; words < 5; words++ {
			end := 0
			for end < len(rest) && inWord(rest[end]) {
				end++
			}
			if kind := nounOf(rest[:end]); kind != noNoun && kind != logins {
				to := at - len(" is")
				found = append(found, lex.Span{From: to - len(code), To: to})
				break
			}
			if end == len(rest) || rest[end] != ' ' {
				break
			}
			rest = rest[end+1:]
		}
	}
}

// isTelling reports whether the noun t[from:to] is a word on its own, with a
// sentence about it. Package argv has the same condition for a text.
func isTelling(t []byte, from, to int, kind noun) bool {
	other := isOther(t[from:to], kind)
	if from > 0 && !lex.IsWordBreak(t[from-1]) && t[from-1] != '/' && t[from-1] != '\\' && (other || !lex.IsCompound(t, from)) {
		return false
	}
	if to < len(t) && !lex.IsWordBreak(t[to]) && t[to] != '\\' && (t[to] != ':' || !other) && t[to] != '?' {
		return false
	}
	return !other || Follows(t[to:min(len(t), to+16)])
}

// inWord reports whether c is part of a word: a letter, a digit, or a byte of
// another script.
func inWord(c byte) bool { return lex.Classes[c]&lex.IsAlnum != 0 || c >= 0x80 }

// told finds the secret behind the noun t[from:to].
func told(t []byte, from, to int, kind noun) lex.Span {
	if to < len(t) && (t[to] == '\n' || t[to] == '\r') {
		return labelled(t, from, to)
	}
	at, says := copula(t, to)
	if t[min(to, len(t)-1)] == '?' {
		at, says = answer(t, to+1), is
	}
	if at == to || at == len(t) || lex.MarkLen(t[at:]) > 0 {
		return lex.Span{}
	}
	if t[from] >= 0xE3 && t[at] >= 0xE3 && quoteLen(t[at:]) == 0 {
		return lex.Span{} // the words of its script go on
	}
	v := wordAt(t, at)
	w := t[v.From:v.To]
	before := lastWord(t, from)
	if t[from] >= 0xE3 && len(w) > 0 { // the words of its script go on without a space
		n := 0
		for n < len(w) && w[n] < 0x80 {
			n++
		}
		w = w[:n]
		v.To = v.From + n
	}
	switch {
	case v.From == v.To, bytes.HasSuffix(w, []byte("}}")): // of a template
		return lex.Span{}
	case says == apart:
		if isApart(t, from, v, kind, before) {
			return v
		}
		return announced(t, to)
	case kind == key && len(w) < 16 && isOrdinaryKey(t[from:to], before):
		return lex.Span{}
	case quoteLen(t[at:]) > 0:
		if IsPlain(w) || kind == key && isPath(w) || len(bytes.TrimSpace(w)) < 2 || kind == number && !LooksSecret(w) && lex.CountDigits(w) < 4 {
			return lex.Span{}
		}
		return v
	case isToken(w) && LooksSecret(w), kind == password && hasMark(w):
		return v
	}
	digits, ends := lex.CountDigits(w) == len(w), endsClause(t, v.To)
	switch {
	case digits:
		if !ends || len(w) < 4 || len(w) > 12 || kind == key || isReport(before) {
			return lex.Span{}
		}
		return v
	case kind != password, says == becomes && !isChanged(t, from) && !isPolish(t[from:to]): // "the password to use"
		return announced(t, to)
	case !ends:
		return phrase(t, v)
	case isUnusual(w):
		return v
	}
	return lex.Span{}
}

// used finds the secret before the noun t[from:to]: use SECRET as the password.
func used(t []byte, from, to int) lex.Span {
	least := max(0, from-maxClause)
	before := bytes.TrimSuffix(t[least:from], []byte(" "))
	before = before[:len(before)-len(lastField(before))]
	as, ok := bytes.CutSuffix(bytes.TrimSuffix(before, []byte(" ")), []byte(" as"))
	if !ok || !endsClause(t, to) {
		return lex.Span{}
	}
	w := lastField(as)
	v := lex.Span{From: least + len(as) - len(w), To: least + len(as)}
	for v.From < v.To && lex.Classes[t[v.From]]&lex.IsQuote != 0 && t[v.From] == t[v.To-1] {
		v.From++
		v.To--
	}
	use := lastField(bytes.TrimRight(as[:len(as)-len(w)], " "))
	if len(use) != len("use") || use[0]|0x20 != 'u' || string(use[1:]) != "se" || v.To <= v.From || !isUnusual(t[v.From:v.To]) {
		return lex.Span{}
	}
	return v
}

// lastField returns what b ends in behind its last space.
func lastField(b []byte) []byte { return b[bytes.LastIndexAny(b, " \n")+1:] }

// answer returns where the answer to a question starts, which is alone in its line: the
// end of the text if there is none. "? Password? › SECRET".
func answer(t []byte, i int) int {
	at := skipSpace(t, i)
	for _, sign := range [...]string{"›", "❯", "…", "·", "»", ">"} {
		if to := lex.After(t, at, sign); to > 0 && (to == len(t) || t[to] <= ' ') {
			at = skipSpace(t, to)
			break
		}
	}
	end := at
	for end < len(t) && t[end] > ' ' && end-at < maxClause {
		end++
	}
	if end < len(t) && t[end] != '\n' && t[end] != '\r' {
		return len(t)
	}
	return at
}

// announced finds the secret in the lines below a sentence with the noun before i that ends
// in a colon: "Use this password to log in:". It is alone in its line.
func announced(t []byte, i int) lex.Span {
	line := t[i:min(len(t), i+maxClause)]
	n := bytes.IndexByte(line, '\n')
	if n < 0 {
		return lex.Span{}
	}
	line = bytes.TrimRight(line[:n], " \r")
	if len(line) == 0 || line[len(line)-1] != ':' {
		return lex.Span{}
	}
	at := i + n
	for from := at; at < len(t) && at-from < maxIndent && t[at] <= ' '; {
		at++
	}
	v := wordAt(t, at)
	if w := t[v.From:v.To]; v.From == v.To || !isToken(w) || !LooksSecret(w) || v.To < len(t) && t[v.To] != '\n' && t[v.To] != '\r' {
		return lex.Span{}
	}
	return v
}

// maxIndent limits the white space, in bytes, between a sentence and what it announces.
const maxIndent = 24

// isPath reports whether w is the path of a file, as an error names the file of a
// key: it starts with a directory of the system (FHS 3.0, macOS), and no part of it
// is random.
func isPath(w []byte) bool {
	if len(w) == 0 || w[0] != '/' || lex.IsRandom(w) {
		return false
	}
	root, _, _ := bytes.Cut(w[1:], []byte("/"))
	switch string(root) {
	case "boot", "dev", "etc", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "Library", "Users", "Volumes", "private":
		return true
	}
	return false
}

// isApart reports whether v is the secret behind a noun at from that nothing but
// a space is between: "login ann password SECRET", "with password SECRET".
func isApart(t []byte, from int, v lex.Span, kind noun, before []byte) bool {
	w := t[v.From:v.To]
	switch {
	case t[v.From-1] != ' ' && t[v.From-1] != '\t':
		return false
	case kind == key:
		return isToken(w) && isMixed(w) && (len(w) >= 16 || !isOrdinaryKey(t[from:v.From-1], before))
	case kind != password:
		return false
	case behindLogin(t, from):
		return !lex.IsType(w) && isToken(w) && string(w) != "EXPIRE"
	case string(t[from:v.From-1]) == "PASS": // or the result of a test
		if window := t[max(0, from-2*maxClause):from]; bytes.Contains(window, []byte("USER ")) {
			return true
		}
		next := bytes.TrimLeft(t[v.To:min(len(t), v.To+8)], "\r\n")
		return bytes.HasPrefix(next, []byte("NICK ")) || bytes.HasPrefix(next, []byte("USER "))
	case isToken(w) && LooksSecret(w):
		return true
	}
	return isPreposition(before) && endsClause(t, v.To) && isUnusual(w)
}

// isToken reports whether w has only bytes that a secret of a person has.
func isToken(w []byte) bool {
	for _, c := range w {
		if lex.Classes[c]&lex.IsAlnum == 0 && (c < 0x80 || c >= 0xE0) && strings.IndexByte("_-.!@#^*+~?&", c) < 0 {
			return false
		}
	}
	return len(w) > 0
}

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

// phrase widens the first of several words to a passphrase: four or more words
// of letters that end a clause, of which a sentence about a secret has at most one
// in four.
func phrase(t []byte, v lex.Span) lex.Span {
	plain := 0
	for n := 1; n <= maxWords; n++ {
		w := t[v.From:v.To]
		w = w[bytes.LastIndexByte(w, ' ')+1:]
		if len(w) < 2 || len(w) > 12 || !isLower(w) {
			return lex.Span{}
		}
		if IsPlain(w) {
			if plain++; 4*plain > maxWords {
				return lex.Span{}
			}
		}
		if endsClause(t, v.To) {
			if n < 4 || 4*plain > n {
				return lex.Span{}
			}
			return v
		}
		next := wordAt(t, v.To+1)
		if next.From != v.To+1 || next.From == next.To {
			return lex.Span{}
		}
		v.To = next.To
	}
	return lex.Span{}
}

// labelled finds the secret in the line below a noun that is alone in its line:
// one that looks like it, or any word below a user's.
func labelled(t []byte, from, to int) lex.Span {
	start := lineStart(t, from)
	if bytes.Count(t[start:to], []byte(" ")) > 2 || from > start && t[from-1] == '/' { // of a path: cat /etc/passwd
		return lex.Span{}
	}
	at := to
	for at < len(t) && at-to < 4 && (t[at] == '\n' || t[at] == '\r') {
		at++
	}
	end := at
	for end < len(t) && t[end] > ' ' {
		end++
	}
	if at == end || end < len(t) && t[end] != '\n' && t[end] != '\r' || end-at > maxClause {
		return lex.Span{}
	}
	w := t[at:end]
	if !LooksSecret(w) && (!isUnusual(w) || !belowUser(t, start)) || bytes.IndexByte(w, '=') > 0 || w[len(w)-1] == ':' || w[0] == '-' || w[0] == '/' {
		return lex.Span{}
	}
	return lex.Span{From: at, To: end}
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

// lineStart returns the start of the line that i is in, or an index not far
// before it.
func lineStart(t []byte, i int) int {
	least := max(0, i-maxClause)
	return least + bytes.LastIndexByte(t[least:i], '\n') + 1
}

// copula returns where the value behind a noun starts, which ends at i, and what
// is between.
func copula(t []byte, i int) (at int, says link) {
	at = skipSpace(t, i)
	if to := changedTo(t, at); to > 0 {
		return to, is
	}
	limit := min(len(t), i+maxClause)
	for words := 0; words < 8; words++ {
		end := at
		for end < limit && t[end] > ' ' && (end == at || lex.Classes[t[end]]&lex.IsQuote == 0) {
			end++
		}
		w := t[at:end]
		l, n := linkOf(w)
		if n == 0 && len(w) > 1 && w[len(w)-1] == ':' { // "lautet:", "contraseña nueva:"
			if l, n = linkOf(w[:len(w)-1]); n > 0 {
				n++
			} else if words == 0 && !IsPlain(w[:len(w)-1]) {
				return skipSpace(t, end), is
			}
		}
		switch {
		case n > 0 && says == apart && (l != becomes || !isDeterminer(t[skipSpace(t, at+n):])): // "the password to the server is"
			says = l
			at = skipSpace(t, at+n)
			continue
		case says != apart && isAdverb(w), n > 0 && says == is && l == is:
			at = skipSpace(t, end)
			continue
		case says != apart:
			return at, says
		case words > 0 && says == apart && len(w) > 1 && w[len(w)-1] == ':':
			return skipSpace(t, end), is
		case words == 0 && !isOf(w), len(w) == 0, words > 5:
			// "password for the database is": what it is for comes before.
			return skipSpace(t, i), apart
		}
		at = skipSpace(t, end)
	}
	if says == apart {
		return skipSpace(t, i), apart
	}
	return at, says
}

// changedTo returns where the value starts that a noun before i gets by a participle, 0 if
// none follows: "was set to", "has been changed to".
func changedTo(t []byte, i int) int {
	done := false
	for range 5 {
		end := i
		for end < len(t) && end-i < maxParticiple && 'a' <= t[end] && t[end] <= 'z' {
			end++
		}
		switch string(t[i:end]) {
		case "has", "been", "was", "is", "successfully":
		case "set", "reset", "changed", "updated", "rotated":
			done = true
		case "to":
			if done {
				return skipSpace(t, end)
			}
			return 0
		default:
			return 0
		}
		if i = skipSpace(t, end); i == end {
			return 0
		}
	}
	return 0
}

// maxParticiple is the longest word that changedTo knows, in bytes.
const maxParticiple = 12

func skipSpace(t []byte, i int) int {
	for from := i; i < len(t) && i-from < 16 && (t[i] == ' ' || t[i] == '\t'); {
		i++
	}
	return i
}

// wordAt returns the word at i without the punctuation behind it, or the text of
// the quotation there.
func wordAt(t []byte, i int) lex.Span {
	if q := quoteLen(t[i:]); q > 0 {
		from := i + q
		end := min(len(t), from+2*maxClause)
		if q == 1 {
			to := from + bytes.IndexByte(t[from:end], t[i])
			if to < from || to+1 < len(t) && lex.Classes[t[to+1]]&lex.IsAlnum != 0 || bytes.IndexByte(t[from:to], '\n') >= 0 {
				return lex.Span{}
			}
			return lex.Span{From: from, To: to}
		}
		for to := from; to < end && t[to] != '\n'; to++ {
			if quoteLen(t[to:]) > 0 && (to+quoteLen(t[to:]) == len(t) || lex.Classes[t[to+quoteLen(t[to:])]]&lex.IsAlnum == 0) {
				return lex.Span{From: from, To: to}
			}
		}
		return lex.Span{}
	}
	to := i
	for to < len(t) && to-i <= 2*maxClause && t[to] > ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 && !IsStop(t[to:]) {
		to++
	}
	if to-i > 2*maxClause {
		return lex.Span{}
	}
	for to > i && strings.IndexByte(".,;:!?)", t[to-1]) >= 0 {
		to--
	}
	return lex.Span{From: i, To: to}
}

// endsClause reports whether a clause ends at i, behind a word.
func endsClause(t []byte, i int) bool {
	if i >= len(t) || t[i] >= 0xE3 || t[i] == '\n' || t[i] == '\r' || lex.Classes[t[i]]&lex.IsQuote != 0 || IsStop(t[i:]) || t[i] == '\\' {
		return true
	}
	if bytes.HasPrefix(t[i:], []byte(" (")) {
		return true
	}
	if strings.IndexByte(".,;:!?)", t[i]) >= 0 {
		return i+1 == len(t) || t[i+1] <= ' ' || t[i+1] == ')' || lex.Classes[t[i+1]]&lex.IsQuote != 0 || t[i+1] == '\\'
	}
	if t[i] != ' ' {
		return false
	}
	from := skipSpace(t, i)
	to := from
	for to < len(t) && to-from < 12 && inWord(t[to]) {
		to++
	}
	return isConnective(t[from:to])
}

// quoteLen returns the length of the quotation mark that b starts with, or 0.
func quoteLen(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case lex.Classes[b[0]]&lex.IsQuote != 0:
		return 1
	case len(b) > 2 && b[0] == 0xE2 && b[1] == 0x80 && b[2] >= 0x98 && b[2] <= 0x9F:
		return 3
	case len(b) > 1 && b[0] == 0xC2 && (b[1] == 0xAB || b[1] == 0xBB):
		return 2
	case len(b) > 2 && b[0] == 0xE3 && b[1] == 0x80 && b[2] >= 0x8C && b[2] <= 0x8F: // 「」『』
		return 3
	}
	return 0
}

// login finds SECRET in "log in with ann / SECRET" and "credentials: ann:SECRET",
// behind the words t[from:to].
func login(t []byte, from, to int) lex.Span {
	at := skipSpace(t, to)
	limit := min(len(t), to+maxClause)
	asked := string(t[from:to]) != "log" && string(t[from:to]) != "sign"
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
			case "with", "as", "using", "are", "is", "use", "user", "username", "account", "mit", "con", "avec", "com":
				said = true
			case "details", "data", "info", "the", "details:", "->", "=>":
			default:
				switch {
				case asked && said && words > 0:
					return pairAt(t, at)
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
	if len(w) < 3 || bytes.IndexByte(w, '/') >= 0 || IsPlain(w) || IsUser(user) || string(user) == "read" || nounOf(w) != noNoun || nounOf(user) != noNoun {
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

// LooksSecret distinguishes a password in prose from the word that follows
// "password": it mixes letters and digits as no word of a language does.
func LooksSecret(b []byte) bool {
	for _, scheme := range [...]string{"sha", "base64", "argon2", "pbkdf2", "bcrypt", "md5", "oauth", "utf"} {
		if len(b) >= len(scheme) && b[0]|0x20 == scheme[0] && bytes.EqualFold(b[:len(scheme)], []byte(scheme)) {
			return false
		}
	}
	digit, letter := false, false
	for _, c := range b {
		digit = digit || lex.IsDigit(c)
		letter = letter || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return len(b) >= 6 && digit && letter
}

// hasMark reports whether a word has a mark that no word of a language has, and
// no path, call or variable: "Tr!ck".
func hasMark(b []byte) bool {
	if len(b) < 5 || b[0] == '$' || b[0] == '<' || b[0] == '{' || b[0] == '[' || b[0] == '(' || b[0] == '-' {
		return false
	}
	mark := false
	for i, c := range b {
		switch c {
		case '!', '#', '^', '~', '+':
			mark = mark || i+1 < len(b)
		case '@', '$', '%', '&', '*':
			mark = mark || i > 0
		case '/', '(', ')', '{', '}', '<', '>', '[', ']', '=', ':', '`', '\\':
			return false
		}
	}
	return mark
}

// isUnusual reports whether a word that ends a clause is a secret: a sentence
// about one does not end in it.
func isUnusual(w []byte) bool {
	if len(w) < 3 || len(w) > 64 || IsPlain(w) || nounOf(w) != noNoun || lex.CountDigits(w) == len(w) && len(w) < 4 {
		return false
	}
	for i, c := range w {
		if lex.Classes[c]&lex.IsAlnum == 0 && c < 0x80 && strings.IndexByte("-_.!@#^*+~$%&?", c) < 0 || i == 0 && (c == '$' || c == '%' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}

func isLower(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || 'z' < c) && c < 0x80 {
			return false
		}
	}
	return true
}

// lastWord returns the word before i in its line.
func lastWord(t []byte, i int) []byte {
	for i > 0 && t[i-1] == ' ' {
		i--
	}
	to := i
	for i > 0 && to-i < 32 && (inWord(t[i-1]) || t[i-1] == '\'') {
		i--
	}
	return t[i:to]
}

// isChanged reports whether one of the words before i sets something.
func isChanged(t []byte, i int) bool {
	for range 5 {
		w := lastWord(t, i)
		if len(w) == 0 {
			return false
		}
		if isSetter(w) {
			return true
		}
		for i > 0 && t[i-1] == ' ' {
			i--
		}
		i -= len(w)
	}
	return false
}

// Package prose finds the secrets that sentences tell: "the password is
// swordfish".
//
// Find looks at the words behind a noun for a secret. A sentence about one, "the
// password is wrong", differs only in its words: words has those that say
// something of a secret and are none.
//
// The files, from the top: prose, variable, used, login, secret, clause, words.
package prose

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"auditproxy/redact/lex"
)

// Find adds the secrets that the sentences of t tell, in time linear in t.
func Find(t []byte, found []lex.Span) []lex.Span {
	found = codes(t, found)
	for i := 0; i < len(t); {
		if c := t[i]; lex.Classes[c]&lex.IsAlnum == 0 && c < utf8.RuneSelf {
			i++ // it is in no word
			continue
		}
		from := i
		i = spokenEnd(t, i)
		w := t[from:i]
		kind := nounOf(w)
		if kind == noNoun && (len(w) != len("answer") || !isOfQuestion(w)) {
			if hump := Hump(t, from, i); hump > 0 {
				v := lex.Span{}
				if i, v = ofVariable(t, hump, i); v.From < v.To {
					found = append(found, v)
				}
			}
			continue
		}
		if kind <= password && !endPhrase(t, from, &i) || w[0] < 0x80 && !isTelling(t, from, i, max(kind, password)) {
			i = from + len(w)
			if from > 0 && (t[from-1] == '_' || lex.IsCompound(t, from)) {
				v := lex.Span{}
				if i, v = ofVariable(t, from, i); v.From < v.To {
					found = append(found, v)
				}
			}
			continue
		}
		kind = max(kind, password)
		var v lex.Span
		if kind == logins {
			v = login(t, from, i)
		} else {
			if v = told(t, from, i, kind); v.From == v.To && kind == password {
				v = used(t, from, i)
			}
		}
		if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 && (v.From == 0 || lex.Classes[t[v.From-1]]&lex.IsQuote == 0 || !IsLabel(t[v.From:v.To])) {
			found = append(found, v)
			i = max(i, v.To)
		}
	}
	return found
}

// endPhrase moves the end of the noun t[from:*end] behind the words that belong to it, and
// reports whether it is one, with those before it: security answer, maiden name, كلمة السر.
func endPhrase(t []byte, from int, end *int) bool {
	to := *end
	switch w := t[from:to]; {
	case string(w) == "maiden":
		*end = lex.After(t, to, " name")
		return *end > 0
	case string(w) == "السر":
		return bytes.HasSuffix(t[:from], []byte("كلمة "))
	case isOfQuestion(w):
		switch string(lastWord(t, from)) {
		case "security", "Security", "secret", "Secret", "recovery", "challenge":
			return true
		}
		rest := t[to:min(len(t), to+2*maxIndent)]
		return bytes.HasPrefix(rest, []byte(" to ")) && bytes.Contains(rest, []byte("security question"))
	}
	return true
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
		if whole := before[max(0, len(before)-2*len(code)-1):]; len(whole) > len(code) && codeLen(whole) > 0 { // 123 456
			code = whole
		}
		digits := codeLen(code)
		if digits == 0 && len(code) > 0 && !lex.IsDigit(code[0]) { // G-123456
			digits = lex.CountDigits(code[bytes.LastIndexByte(code, '-')+1:])
		}
		if !ok || len(code) > 12 || digits < 4 || digits > 8 || !lex.IsDigit(code[len(code)-1]) {
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

// endsSentence reports whether there is a full stop at i.
func endsSentence(t []byte, i int) bool { return t[i] == '.' && (i+1 == len(t) || t[i+1] <= ' ') }

// ofVariable finds the secret that a sentence gives the variable whose name ends in the noun
// t[from:to]: "set DB_PASSWORD to SECRET", "apiToken is SECRET". It returns where to read on.
func ofVariable(t []byte, from, to int) (int, lex.Span) {
	first, end := variable(t, from, to)
	kind := nounOf(t[from:to])
	if first < 0 || kind == logins || !isUpper(t[first]) && isOrdinaryKey(t[from:to], lastPart(t[first:from])) {
		return to, lex.Span{}
	}
	v, linked := lex.Span{}, end < len(t) && t[end] == ' ' && isLinked(t[end:])
	if linked || end < len(t) && t[end] == ' ' && isWith(lastWord(t, first)) {
		v = told(t, first, end, password)
		linked = linked || kind == password || LooksSecret(t[v.From:v.To])
	}
	if !linked {
		v.To = v.From
	}
	if v.From == v.To {
		v = used(t, first, end)
	}
	w := t[v.From:v.To]
	if !isUpper(t[first]) && (lex.After(t, end, " ->") > 0 || lex.After(t, end, " →") > 0) && !LooksSecret(w) {
		return to, lex.Span{} // a map
	}
	if len(w) == 0 || lex.MarkLen(t[v.From:]) > 0 || isName(w) || lex.CountDigits(w) == len(w) && kind == key {
		return to, lex.Span{}
	}
	if t[from-1] != '_' && !LooksSecret(w) && !hasMark(w) && lex.Classes[t[v.From-1]]&lex.IsQuote == 0 && (kind != password || !isDeterminer(lastWord(t, first))) {
		return to, lex.Span{} // of a program: "setPassword is deprecated"
	}
	return max(to, v.To), v
}

// isTelling reports whether the noun t[from:to] is a word on its own, with a
// sentence about it. Package argv has the same condition for a text.
func isTelling(t []byte, from, to int, kind noun) bool {
	other := isOther(t[from:to], kind) || kind == password && isOfQuestion(t[from:to])
	if from > 0 && !lex.IsWordBreak(t[from-1]) && t[from-1] != '/' && t[from-1] != '\\' && (from < 2 || t[from-1] != '#' || t[from-2] != ')') &&
		(other || !lex.IsCompound(t, from)) {
		return false
	}
	if to < len(t) && !lex.IsWordBreak(t[to]) && t[to] != '\\' && (t[to] != ':' || !other) && t[to] != '?' && (other || !endsSentence(t, to)) {
		return false
	}
	rest := t[to:min(len(t), to+16)]
	return !other || kind == password && (IsRole(t, from) || !lex.HasFoldSuffix(t[from:to], "pass") && len(lastWord(t, from)) > 0 && isGiven(rest[min(len(rest), 1):])) || Follows(rest) && (kind == key || kind == number || isLinked(rest))
}

// told finds the secret behind the noun t[from:to].
func told(t []byte, from, to int, kind noun) lex.Span {
	if to < len(t) && (t[to] == '\n' || t[to] == '\r') {
		return labelled(t, from, to)
	}
	if string(t[from:to]) == "passwd" {
		if end := accountEnd(t, from, to); end > 0 {
			if v := below(t, lineStart(t, from), end); v.From < v.To {
				return v
			}
		}
	}
	at, says := copula(t, to)
	if t[min(to, len(t)-1)] == '?' {
		at, says = answer(t, to+1), is
	}
	if at == to || at == len(t) || lex.MarkLen(t[at:]) > 0 {
		return inserted(t, from, to, kind)
	}
	tagged := false
	if says != apart && (t[at] == '<' || t[at] == '*' || from > 0 && t[from-1] == '/') {
		if v := Second(t, from, at); v.From < v.To {
			return v
		}
		if stressed := skipTags(t, at); stressed > at && says == is && !isPath(wordBehind(t, stressed)) { // "pass to <code>", PWD
			tagged = t[at] == '<'
			at = stressed
		}
	}
	if t[from] >= 0xE3 && t[at] >= 0xE3 && quoteLen(t[at:]) == 0 {
		return lex.Span{} // the words of its script go on
	}
	v := wordAt(t, at)
	if kind == number {
		v = widened(t, v)
	}
	w := t[v.From:v.To]
	before := lastWord(t, from)
	if t[from] >= 0xE3 && len(w) > 0 { // the words of its script go on without a space
		n := 0
		for n < len(w) && w[n] < 0xE2 { // Latin, Greek or Cyrillic
			n++
		}
		w = w[:n]
		v.To = v.From + n
	}
	switch {
	case bytes.HasSuffix(w, []byte("}}")): // of a template
		return lex.Span{}
	case says == apart && kind == password && t[from] >= 0x80 && len(w) > 0 && w[0] < 0x80 && isUnusual(w) && isVerb(t, v.To):
		return v
	case v.From == v.To:
		return announced(t, to)
	case says == apart:
		if isApart(t, from, v, kind, before) {
			return v
		}
		if v = enclosed(t, v); v.From < v.To {
			return v
		}
		if kind == password {
			if v = changed(t, from, to, at); v.From < v.To {
				return v
			}
		}
		return announced(t, to)
	case kind == password && string(w) == "generated":
		return generated(t, v.To)
	case kind == key && len(w) < 16 && isOrdinaryKey(t[from:to], before) && (t[from]|0x20 != 'c' || !LooksSecret(w)): // la clave es SECRET
		return lex.Span{}
	case quoteLen(t[at:]) > 0, tagged && kind == password:
		if IsPlain(w) || kind == key && isPath(w) || len(bytes.TrimSpace(w)) < 2 || kind == number && !LooksSecret(w) && lex.CountDigits(w) < 4 {
			return lex.Span{}
		}
		return v
	case isToken(w) && LooksSecret(w), kind == password && hasMark(w):
		return v
	}
	digits, ends := lex.CountDigits(w) == len(w) || kind == number && codeLen(w) > 0, endsClause(t, v.To)
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

// changed finds the secrets behind the noun t[from:to] that gets another value: changed the
// password from SECRET to SECRET, set the password as SECRET, with the word behind it at i.
func changed(t []byte, from, to, i int) lex.Span {
	replaces, at := lex.After(t, to, " from ") > 0, lex.After(t, i, "as ")
	if !replaces && at == 0 || !isChanged(t, from) {
		return lex.Span{}
	}
	if replaces {
		return replaced(t, to)
	}
	if v := wordAt(t, at); isToken(t[v.From:v.To]) && LooksSecret(t[v.From:v.To]) {
		return v
	}
	return lex.Span{}
}

// inserted finds the secret that is put in behind the noun t[from:to]: the password, SECRET,
// works; the password, which is SECRET, works; the password's SECRET; if it asks for the password,
// enter SECRET.
func inserted(t []byte, from, to int, kind noun) lex.Span {
	at := lex.After(t, to, "'s ")
	comma := at == 0
	if comma {
		if at = lex.After(t, to, ", "); at == 0 {
			return lex.Span{}
		}
		for _, verb := range [...]string{"which is ", "answer ", "enter ", "type ", "use "} {
			if behind := lex.After(t, at, verb); behind > 0 {
				at, comma = behind, false
				break
			}
		}
	}
	if comma && !isDeterminer(lastWord(t, from)) {
		return lex.Span{}
	}
	v := wordAt(t, at)
	w := t[v.From:v.To]
	if comma && (v.To == len(t) || t[v.To] != ',') || !isToken(w) || !LooksSecret(w) && (kind != password || !hasMark(w)) || kind != password && !isMixed(w) {
		return lex.Span{}
	}
	return v
}

// isVerb reports whether the verb of a sentence that ends in it follows the word before i.
func isVerb(t []byte, i int) bool {
	at := skipSpace(t, i)
	return at > i && (lex.After(t, at, "है") > 0 || lex.After(t, at, "است") > 0)
}

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
	for v.From < v.To && v.To < len(t) && strings.IndexByte("!?", t[v.To]) >= 0 { // of the secret
		v.To++
	}
	if w := t[v.From:v.To]; v.From == v.To || !isToken(w) || !LooksSecret(w) || v.To < len(t) && t[v.To] != '\n' && t[v.To] != '\r' {
		return lex.Span{}
	}
	return v
}

// enclosed returns what a bracket or a backtick at v encloses, if it looks like a secret:
// password (SECRET).
func enclosed(t []byte, v lex.Span) lex.Span {
	if v.From > 0 && t[v.From] != '`' && t[v.From-1] == '`' {
		v.From--
	}
	open := strings.IndexByte("([<{`", t[v.From])
	if open < 0 {
		return lex.Span{}
	}
	v.From++
	n := bytes.IndexByte(t[v.From:min(len(t), v.From+maxClause)], ")]>}`"[open])
	if n <= 0 {
		return lex.Span{}
	}
	v.To = v.From + n
	w := t[v.From:v.To]
	if !isToken(w) || !LooksSecret(w) || lex.CountDigits(w) > 0 || bytes.Equal(bytes.ToUpper(w), w) {
		return lex.Span{} // a number of something, a standard
	}
	return v
}

// replaced finds both secrets behind the noun before i: changed the password from SECRET to
// SECRET.
func replaced(t []byte, i int) lex.Span {
	from := lex.After(t, i, " from ")
	if from == 0 {
		return lex.Span{}
	}
	v := wordAt(t, from)
	if v.From == v.To {
		return lex.Span{}
	}
	quote := v.From - from
	for quote == 0 && v.From < v.To && v.To < len(t) && t[v.To] == '!' {
		v.To++
	}
	to := lex.After(t, v.To+quote, " to ")
	if to == 0 {
		return lex.Span{}
	}
	next := wordAt(t, to)
	for next.From < next.To && next.To < len(t) && t[next.To] == '!' {
		next.To++
	}
	w, x := t[v.From:v.To], t[next.From:next.To]
	if quote == 0 && !endsClause(t, next.To) || !isUnusual(w) || !isUnusual(x) || !LooksSecret(w) && !LooksSecret(x) && quote == 0 {
		return lex.Span{}
	}
	return lex.Span{From: v.From, To: next.To}
}

// generated finds the secret behind "password is generated", which ends at i: for
// root@localhost: SECRET.
func generated(t []byte, i int) lex.Span {
	line := t[i:min(len(t), i+maxClause)]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	n := bytes.Index(line, []byte(": "))
	if n < 0 || bytes.Count(line[:n], []byte(" ")) > 3 {
		return lex.Span{}
	}
	v := lex.Span{From: i + n + len(": "), To: i + len(bytes.TrimRight(line, " \r"))}
	if w := t[v.From:max(v.From, v.To)]; len(w) < 4 || bytes.IndexByte(w, ' ') >= 0 || IsPlain(w) || lex.MarkLen(w) > 0 {
		return lex.Span{}
	}
	return v
}

// minAlone is of how many digits a number is a password behind "password" alone.
const minAlone = 6

// isApart reports whether v is the secret behind a noun at from that nothing but
// a space is between: "login ann password SECRET", "with password SECRET".
func isApart(t []byte, from int, v lex.Span, kind noun, before []byte) bool {
	w := t[v.From:v.To]
	switch {
	case t[v.From-1] != ' ' && t[v.From-1] != '\t':
		return false
	case kind == key:
		ordinary := isOrdinaryKey(t[from:v.From-1], before)
		return isToken(w) && (isMixed(w) && (len(w) >= 16 || !ordinary) || lex.IsRandom(w) && startsRandom(w) && !ordinary || isUsed(t, from, v, before))
	case kind == number, t[from] >= 0xE3 && isNumber(t, from, v, before):
		return isNumber(t, from, v, before)
	case kind != password:
		return false
	case behindLogin(t, from):
		return !lex.IsType(w) && isToken(w) && string(w) != "EXPIRE"
	case (v.To == len(t) || t[v.To] == '\n' || t[v.To] == '\r') && isUnusual(w) && onLine(t, from):
		return true
	case string(t[from:v.From-1]) == "PASS": // or the result of a test
		if window := t[max(0, from-2*maxClause):from]; bytes.Contains(window, []byte("USER ")) {
			return true
		}
		next := bytes.TrimLeft(t[v.To:min(len(t), v.To+8)], "!?.\r\n")
		return bytes.HasPrefix(next, []byte("NICK ")) || bytes.HasPrefix(next, []byte("USER ")) || isSent(t, from, v)
	case isToken(w) && LooksSecret(w), lex.CountDigits(w) == len(w) && len(w) >= minAlone && endsClause(t, v.To):
		return true
	}
	return isPreposition(before) && endsClause(t, v.To) && isUnusual(w)
}

// isSent reports whether PASS at from is the command of a protocol (RFC 959, RFC 1939, RFC
// 2812) with the secret v, rather than the result of a test: alone in its line, or behind
// the prompt of a client.
func isSent(t []byte, from int, v lex.Span) bool {
	w, rest := t[v.From:v.To], bytes.TrimLeft(t[v.To:min(len(t), v.To+maxIndent)], "!?. ")
	if len(rest) > 0 && rest[0] >= ' ' && lex.Classes[rest[0]]&lex.IsQuote == 0 && rest[0] != '\\' || !isToken(w) || IsPlain(w) {
		return false
	}
	head := bytes.TrimSpace(t[lineStart(t, from):from])
	for _, end := range [...]string{">", "C:", "c:", "lient:", "quote", "QUOTE", "AUTHINFO", ">>"} {
		if len(head) > 0 && bytes.HasSuffix(head, []byte(end)) {
			return true
		}
	}
	around := t[max(0, from-2*maxClause):min(len(t), from+2*maxClause)]
	return (len(head) == 0 || lex.Classes[head[0]]&lex.IsQuote != 0 && len(head) == 1) && LooksSecret(w) && !isOfTest(w) &&
		bytes.Count(around, []byte("PASS")) == 1 && !bytes.Contains(around, []byte("FAIL"))
}

// isOfTest reports whether w may be the name of a test or of its file.
func isOfTest(w []byte) bool {
	for _, word := range [...]string{"test", "Test", "TEST", "spec", "case", ".js", ".ts", ".py", ".go", ".rb", "::"} {
		if bytes.Contains(w, []byte(word)) {
			return true
		}
	}
	return false
}

// isNumber reports whether v is the number behind the noun at from, OTP 123456, and before is
// the word before that: pin code 4711.
func isNumber(t []byte, from int, v lex.Span, before []byte) bool {
	w, least := t[v.From:v.To], 4
	switch noun := t[from : v.From-1]; {
	case noun[0] >= 0xE3:
	case len(noun) > len("code"): // of another language
		return false
	case noun[0]|0x20 == 'c' && noun[1]|0x20 == 'v':
		least = 3
	case noun[0]|0x20 == 'c' && !isOfCode(before):
		return false
	}
	n := codeLen(w)
	return least <= n && n <= 8 && endsClause(t, v.To) && !isReport(before)
}

// isUsed reports whether v looks like the token behind the noun at from that somebody used:
// logging in with token SECRET.
func isUsed(t []byte, from int, v lex.Span, before []byte) bool {
	switch string(before) {
	case "using", "Using", "with", "With", "use", "Use", "via":
	default:
		return false
	}
	for _, c := range t[v.From:v.To] {
		if lex.Classes[c]&lex.IsAlnum == 0 {
			return false
		}
	}
	return len(t[from:v.From]) == len("token ") && t[from]|0x20 == 't' && LooksSecret(t[v.From:v.To]) && endsClause(t, v.To)
}

// labelled finds the secret in the line below a noun that is alone in its line:
// one that looks like it, or any word below a user's.
func labelled(t []byte, from, to int) lex.Span {
	start := lineStart(t, from)
	if bytes.Count(t[start:to], []byte(" ")) > 2 || from > start && t[from-1] == '/' { // of a path: cat /etc/passwd
		return lex.Span{}
	}
	return below(t, start, to)
}

// below finds the secret in the line below the one at start, which ends at to.
func below(t []byte, start, to int) lex.Span {
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
	rest := t[end:min(len(t), end+len("\r\n")+len(w))]
	if again := bytes.TrimLeft(rest, "\r\n"); bytes.HasPrefix(again, w) { // to confirm it
		end += len(rest) - len(again) + len(w)
	}
	return lex.Span{From: at, To: end}
}

// accountEnd returns where the command passwd ends, whose name is t[from:to], with the account that
// it changes and the line: passwd ann. It is 0 if that is something else.
func accountEnd(t []byte, from, to int) int {
	head := bytes.TrimSuffix(bytes.TrimRight(t[lineStart(t, from):from], " "), []byte("sudo"))
	if head = bytes.TrimRight(head, " "); len(head) > 0 && head[len(head)-1] != '$' && head[len(head)-1] != '#' {
		return 0
	}
	end := lex.After(t, to, " ")
	for end > 0 && end < len(t) && lex.Classes[t[end]]&lex.IsName != 0 {
		end++
	}
	if end <= to+1 || end == len(t) || t[end] != '\n' && t[end] != '\r' {
		return 0
	}
	return end
}

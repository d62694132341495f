package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

// inWord reports whether c is part of a word: a letter, a digit, or a byte of
// another script.
func inWord(c byte) bool { return lex.Classes[c]&lex.IsAlnum != 0 || c >= 0x80 }

// spokenEnd returns where the word at from ends, also at a noun that needs no space.
func spokenEnd(t []byte, from int) int {
	for i := from; i < len(t); i++ {
		c := t[i]
		if lex.Classes[c]&lex.IsAlnum != 0 || 0x80 <= c && c < 0xE0 {
			continue
		}
		if c < 0x80 {
			return i
		}
		if n := foreignNoun(t[i:]); n > 0 {
			if i > from && c >= 0xE3 {
				return i // the noun is the next word
			}
			return i + n
		}
	}
	return len(t)
}

// lastField returns what b ends in behind its last space.
func lastField(b []byte) []byte {
	return b[bytes.LastIndexAny(b, " \n")+1:]
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
	modal := false // behind "will": "the password will appear", but "will be SECRET"
	for words := 0; words < 8; words++ {
		end := at
		for end < limit && t[end] > ' ' && (end == at || lex.Classes[t[end]]&lex.IsQuote == 0 || lex.After(t, end-1, "c'est ") > 0) {
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
		switch string(w) {
		case "will", "should", "must":
			modal = true
		case "be":
			modal = false
		case "a": // an article: "the password of a keystore"
			if says == apart && isOf(lastField(t[i:max(i, at-1)])) {
				n = 0
			}
		}
		switch {
		case says == apart && string(w) == "este" && bytes.HasSuffix(t[:i], []byte("arola")): // "is" in Romanian, "this" in Spanish
			says = is
		case n > 0 && says == apart && (l != becomes || !isDeterminer(t[skipSpace(t, at+n):])): // "the password to the server is"
			says = l
			at = skipSpace(t, at+n)
			continue
		case says != apart && isAdverb(w), n > 0 && says == is && l == is:
			at = skipSpace(t, end)
			continue
		case says != apart && modal:
			return skipSpace(t, i), apart
		case says != apart:
			return at, says
		case words > 0 && says == apart && len(w) > 1 && w[len(w)-1] == ':':
			return skipSpace(t, end), is
		case words == 0 && !isOf(w) && string(w) != "API", len(w) == 0, words > 5:
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
		case "has", "been", "was", "is", "got", "successfully":
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

func skipSpace(t []byte, i int) int {
	for from := i; i < len(t) && i-from < 16 && (t[i] == ' ' || t[i] == '\t'); {
		i++
	}
	return i
}

// skipTags returns where the text starts that is stressed at i: behind <b>, or ** before a
// backtick.
func skipTags(t []byte, i int) int {
	for range 2 {
		if lex.After(t, i, "**`") > 0 {
			return i + len("**")
		}
		if i+1 >= len(t) || t[i] != '<' || t[i+1]|0x20 < 'a' || 'z' < t[i+1]|0x20 {
			return i
		}
		n := bytes.IndexByte(t[i:min(len(t), i+maxClause)], '>')
		if n < 0 || bytes.IndexByte(t[i+n:min(len(t), i+2*maxClause)], '<') < 0 { // a placeholder
			return i
		}
		i += n + 1
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
			if to < from && end-from == 2*maxClause && lex.IsRandom(t[from:end]) {
				to = from + bytes.IndexByte(t[from:min(len(t), from+maxToken)], t[i])
			}
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
	to := wordEnd(t, i, 2*maxClause)
	if to-i > 2*maxClause { // a token
		if !lex.IsRandom(t[i:to]) {
			return lex.Span{}
		}
		if to = wordEnd(t, i, maxToken); to-i > maxToken {
			return lex.Span{}
		}
	}
	for to > i && strings.IndexByte(".,;:!?)", t[to-1]) >= 0 {
		to--
	}
	return lex.Span{From: i, To: to}
}

// wordEnd returns where the word at i ends, an index more than most bytes behind it if it is longer.
func wordEnd(t []byte, i, most int) int {
	to := i
	for to < len(t) && to-i <= most && t[to] > ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 && (t[to] != '<' || to+1 == len(t) || t[to+1] != '/') && (t[to] != '\\' || to+1 == len(t) || t[to+1] != 'n' && t[to+1] != 'r') && !IsStop(t[to:]) {
		to++
	}
	return to
}

// wordBehind returns the text of wordAt.
func wordBehind(t []byte, i int) []byte {
	v := wordAt(t, i)
	return t[v.From:v.To]
}

// endsClause reports whether a clause ends at i, behind a word.
func endsClause(t []byte, i int) bool {
	if i >= len(t) || t[i] >= 0xE3 || t[i] == '\n' || t[i] == '\r' || lex.Classes[t[i]]&lex.IsQuote != 0 || IsStop(t[i:]) || t[i] == '\\' {
		return true
	}
	if i+2 < len(t) && t[i] == ' ' && (t[i+1] == '(' || t[i+1] == '-' && t[i+2] == ' ' || t[i+1] == 0xE2 && t[i+2] == 0x80) { // a dash or the like
		return true
	}
	if t[i] == '<' { // of HTML
		return i+1 < len(t) && t[i+1] == '/'
	}
	if strings.IndexByte(".,;:!?)", t[i]) >= 0 {
		return i+1 == len(t) || t[i+1] <= ' ' || t[i+1] == ')' || lex.Classes[t[i+1]]&lex.IsQuote != 0 || t[i+1] == '\\' || t[i+1] == '<'
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

// maxClause is how far behind a noun its secret may start, in bytes.
const maxClause = 96

// maxToken is the longest token in a sentence, in bytes.
const maxToken = 4 << 10

// maxParticiple is the longest word that changedTo knows, in bytes.
const maxParticiple = 12

// maxIndent limits the white space, in bytes, between a sentence and what it announces.
const maxIndent = 24

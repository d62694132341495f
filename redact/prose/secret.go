package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

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

// isToken reports whether w has only bytes that a secret of a person has, or looks like
// one of a machine.
func isToken(w []byte) bool {
	for i, c := range w {
		if lex.Classes[c]&lex.IsAlnum == 0 && (c < 0x80 || c >= 0xE0) && strings.IndexByte("_-.!@#^*+~?&", c) < 0 && (i == 0 || strings.IndexByte("$%,;", c) < 0) {
			return IsKey(w)
		}
	}
	return len(w) > 0
}

// IsKey reports whether w is a key in base64, or several with colons, rather than a path:
// capitals, small letters and digits follow each other more often than in words.
func IsKey(w []byte) bool {
	const least = 12
	kinds, changes, last := 0, 0, 0
	for i, c := range w {
		kind := 0
		switch {
		case lex.IsDigit(c):
			kind = 1
		case isUpper(c):
			kind = 2
		case 'a' <= c && c <= 'z':
			kind = 4
		case c == '/' && i+1 < len(w) && w[i+1] == '/' || strings.IndexByte("/+=:._-", c) < 0:
			return false
		}
		if last != 0 && kind != 0 && kind != last {
			changes++
		}
		kinds, last = kinds|kind, kind
	}
	return len(w) >= least && kinds == 7 && 4*changes >= len(w)
}

// phrase widens the first of several words to a passphrase: four or more words
// of letters that end a clause, of which a sentence about a secret has at most one
// in four.
func phrase(t []byte, v lex.Span) lex.Span {
	plain := 0
	if !mayEnd(t, v.To) {
		return lex.Span{}
	}
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

// PhraseEnd returns where a passphrase ends whose first word is v, in a line of a file of settings:
// with the line, if two to five words follow that are no hosts and that a sentence about a secret
// has not, three if it has the first one. Otherwise it is v.To.
func PhraseEnd(t []byte, v lex.Span) int {
	to, words := v.To, 0
	for ; to+1 < len(t) && t[to] == ' '; words++ {
		from := to + 1
		for to = from; to < len(t) && t[to] > ' ' && to-from <= maxIndent; {
			to++
		}
		if w := t[from:to]; words == 5 || len(w) < 2 || !inWord(w[0]) || !isToken(w) || bytes.ContainsAny(w, ".@") || isPlainWord(w) || nounOf(w) != noNoun {
			return v.To
		}
	}
	if to < len(t) && t[to] != '\n' && t[to] != '\r' || words < 2 || words < 3 && IsPlain(t[v.From:v.To]) {
		return v.To
	}
	return to
}

// mayEnd reports whether a clause may end before more words follow at i than a passphrase
// has. It costs less than to read them.
func mayEnd(t []byte, i int) bool {
	for words := 0; i < len(t); i++ {
		switch c := t[i]; {
		case 'a' <= c && c <= 'z', 0x80 <= c && c < 0xE2:
		case c != ' ' || i+1 < len(t) && (strings.IndexByte("abefiopstuwy(", t[i+1]) >= 0 || t[i+1] <= ' ' || t[i+1] >= 0x80) && endsClause(t, i):
			return true
		default:
			if words++; words > maxWords {
				return false
			}
		}
	}
	return true
}

// Follows reports whether rest, the text behind one of Others, may tell a secret.
func Follows(rest []byte) bool {
	if len(rest) < 4 {
		return false
	}
	return isLinked(rest) || rest[0] == ' ' && isGiven(rest[1:])
}

// isGiven reports whether a number or what looks like a secret is at the start of rest.
func isGiven(rest []byte) bool {
	word := rest[:min(len(rest), 9)]
	if at := bytes.IndexByte(word, ' '); at >= 0 {
		word = word[:at]
	}
	return lex.CountDigits(word) >= minNumber || LooksSecret(word)
}

// widened widens the digits v of a code to those behind a space: 123 456.
func widened(t []byte, v lex.Span) lex.Span {
	n := v.To - v.From
	if to := v.To + 1 + n; to <= len(t) && t[v.To] == ' ' && codeLen(t[v.From:to]) > 0 && (to == len(t) || lex.Classes[t[to]]&lex.IsAlnum == 0) {
		v.To = to
	}
	return v
}

// codeLen returns how many digits w has if it is a code: nothing else, or two groups of
// three or four with a sign between. Otherwise it is 0.
func codeLen(w []byte) int {
	n := lex.CountDigits(w)
	switch {
	case n == len(w):
		return n
	case n < 3 || n > 4 || len(w) != 2*n+1 || strings.IndexByte("-_. ", w[n]) < 0 || lex.CountDigits(w[n+1:]) != n:
		return 0
	}
	return 2 * n
}

// minNumber is the least number of digits of a secret that is a number.
const minNumber = 3

// LooksSecret distinguishes a password in prose from the word that follows
// "password": it mixes letters and digits as no word of a language does.
func LooksSecret(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	for _, scheme := range [...]string{"sha", "base64", "argon2", "pbkdf2", "bcrypt", "md5", "oauth", "utf"} {
		if len(b) >= len(scheme) && b[0]|0x20 == scheme[0] && bytes.EqualFold(b[:len(scheme)], []byte(scheme)) {
			return false
		}
	}
	digit, letter := false, false
	for _, c := range b {
		digit = digit || lex.IsDigit(c)
		letter = letter || 'a' <= c|0x20 && c|0x20 <= 'z' || 0xC3 <= c && c < 0xE0
	}
	return digit && letter
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
			return IsKey(w)
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

// maxWords is the most words of a passphrase.
const maxWords = 12

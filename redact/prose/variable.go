package prose

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
)

// variable returns where the name of a variable starts whose last word is t[from:to], and where
// it ends with what says that it is one: "`API_KEY`", "API_KEY variable". -1 for another name.
func variable(t []byte, from, to int) (first, end int) {
	if to < len(t) && (lex.Classes[t[to]]&lex.IsName != 0 || t[to] == '(' || t[to] == '[') {
		return -1, to
	}
	first = from
	for first > 0 && from-first < maxVariable && (inWord(t[first-1]) || t[first-1] == '_' || lex.IsCompound(t, first)) {
		first--
	}
	if from-first == maxVariable || t[first] == '_' || lex.IsDigit(t[first]) {
		return -1, to
	}
	if first > 0 && t[first-1] > ' ' {
		quote := t[first-1]
		if lex.Classes[quote]&lex.IsQuote == 0 && strings.IndexByte("`$(", quote) < 0 {
			return -1, to
		}
		if to < len(t) && t[to] == quote {
			to++
		}
	}
	for _, word := range [...]string{" variable", " environment variable", " env var", " value", "'s value"} {
		if at := lex.After(t, to, word); at > 0 && (at == len(t) || t[at] == ' ') {
			to = at
			break
		}
	}
	return first, to
}

// Hump returns where the last word of the camel case name t[from:to] starts, if that is a noun for
// a secret, 0 if not.
func Hump(t []byte, from, to int) int {
	if to-from < len("aKey") {
		return 0
	}
	length := 0
	switch t[to-1] { // most words end here
	case 'y':
		length = len("Key")
	case 'n':
		length = len("Token")
	case 't':
		length = len("Secret")
	case 's':
		length = len("Pass")
	case 'd':
		if length = len("Password"); t[to-2] == 'w' {
			length = len("Pwd")
		}
	case 'e':
		length = len("Passphrase")
	default:
		return 0
	}
	hump := to - length
	if hump <= from || !isUpper(t[hump]) || t[hump-1] < '0' || isUpper(t[hump-1]) || t[hump-1] >= 0x80 || nounOf(t[hump:to]) == noNoun {
		return 0
	}
	return hump
}

// lastPart returns the last word of b, the start of a name.
func lastPart(b []byte) []byte {
	b = bytes.TrimRight(b, "_-")
	from := len(b)
	for from > 0 && inWord(b[from-1]) {
		if from--; isUpper(b[from]) {
			break
		}
	}
	return b[from:]
}

// isName reports whether w, what a variable seems to get, is the name of another one or of its
// field: API_TOKEN, apiToken, settings.API_KEY.
func isName(w []byte) bool {
	last := w[bytes.LastIndexAny(w, "._-")+1:]
	if len(last) < len(w) && nounOf(last) != noNoun {
		return true
	}
	for i := len(last) - 1; i > 0; i-- {
		if isUpper(last[i]) && !isUpper(last[i-1]) {
			return nounOf(last[i:]) != noNoun
		}
	}
	return false
}

// MayBeVariable reports whether a sentence may give a secret to the variable whose name ends in
// the noun t[from:to].
func MayBeVariable(t []byte, from, to int) bool {
	first, end := variable(t, from, to)
	if first < 0 {
		return false
	}
	if end < len(t) && t[end] == ' ' && isLinked(t[end:min(len(t), end+16)]) {
		return true
	}
	before := lastWord(t, first)
	if isDeterminer(before) {
		before = lastWord(t, first-len(" ")-len(before))
	}
	return roleOf(before) != "" || isWith(before)
}

// maxVariable limits, in bytes, what comes before the last word of a variable's name.
const maxVariable = 48

package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token is a word of a name or a sentence.
type token struct {
	word  string // in lower case
	exact string // as written
	// before has what separates the token from the one before: 0 for nothing of
	// interest, else one of , / : ( -
	before byte
}

// maxWords bounds what is read of a name or of a sentence: no tool of a server
// that wants to be understood has more.
const maxWords = 256

// words splits a name: at punctuation, and at camel humps as in getUserByID or
// HTTPDelete. Digits belong to the word before them.
func words(name string) []token {
	var list []token
	for name != "" && len(list) < maxWords {
		n := wordEnd(name, true)
		if n > 0 {
			list = append(list, token{word: strings.ToLower(name[:n]), exact: name[:n]})
			name = name[n:]
			continue
		}
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return list
}

// wordEnd returns the length of the word at the start of s, 0 for none.
func wordEnd(s string, humps bool) int {
	var before, last rune
	from := 0
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return i
		}
		if humps && i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(last) {
			return i
		}
		if humps && i > 0 && unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before) {
			return from // "HTTPDelete": the D belongs to the next word
		}
		before, last, from = last, r, i
	}
	return len(s)
}

// sentence splits the first sentence of a description into words. It ends at a
// full stop, an exclamation mark or a question mark before a space, or at an
// empty line.
func sentence(text string) []token {
	var list []token
	text = strings.TrimLeft(text, " \t\r\n#*_>`-–—•[]")
	var before byte
	for text != "" && len(list) < maxWords {
		if n := wordEnd(text, false); n > 0 {
			list = append(list, token{word: strings.ToLower(text[:n]), exact: text[:n], before: before})
			text, before = text[n:], 0
			// don't, isn't
			if len(text) > 2 && (text[0] == '\'') && (text[1]|0x20 == 't') && wordEnd(text[1:], false) == 1 {
				list[len(list)-1].word += "'t"
				text = text[2:]
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		rest := text[size:]
		switch r {
		case '.', '!', '?', '。', '！', '？':
			if len(list) > 0 && ends(rest) && !abbreviated(list) {
				return list
			}
		case '\n':
			if line := strings.TrimLeft(rest, " \t\r"); strings.HasPrefix(line, "\n") && len(list) > 0 {
				return list
			} else if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
				before = ','
			}
		case ',', ';', '，', '、':
			before = ','
		case '/', '&', '|', '+':
			before = '/'
		case ':', '(', '[', '—', '–', ')', ']':
			before = ':'
		case '-':
			before = '-'
			if strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "-") {
				before = ':'
			}
		}
		text = rest
	}
	return list
}

// ends reports whether a sentence ends before rest.
func ends(rest string) bool {
	if rest == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsSpace(r) || r == '"' || r == '\'' || r == ')' || r == '*'
}

// abbreviated reports whether the stop behind list belongs to an abbreviation.
func abbreviated(list []token) bool {
	switch w := list[len(list)-1].word; w {
	case "etc", "vs", "approx", "incl", "max", "min", "no":
		return true
	default:
		return len(w) == 1
	}
}

func isPreposition(word string) bool {
	switch word {
	case "of", "for", "in", "to", "from", "with", "by", "on", "at", "as", "into", "onto", "using", "via", "within",
		"against", "about", "per", "that", "which", "where", "when", "if", "through", "across", "between", "based":
		return true
	}
	return false
}

func isArticle(word string) bool {
	switch word {
	case "a", "an", "the", "it", "its", "them", "their", "this", "that", "these", "those", "all", "any", "each", "every",
		"your", "my", "one", "some", "multiple", "several", "new", "existing", "arbitrary":
		return true
	}
	return false
}

func isConjunction(word string) bool {
	return word == "and" || word == "or" || word == "then" || word == "n"
}

// isAdverb reports whether a word may be between a conjunction and its verb.
func isAdverb(word string) bool {
	switch word {
	case "then", "also", "even", "not", "soft", "hard", "bulk", "batch", "mass", "force", "auto", "async", "just", "can", "will":
		return true
	}
	return len(word) > 4 && strings.HasSuffix(word, "ly") && word != "apply" && word != "reply"
}

// isQualifier reports whether a word makes the next one a noun.
func isQualifier(word string) bool {
	switch word {
	case "high", "low", "max", "min", "total", "recent", "last", "latest", "current", "next", "previous", "daily", "weekly",
		"monthly", "avg", "average", "is", "has", "num", "number", "no", "non", "not", "without", "open", "closed":
		return true
	}
	return false
}

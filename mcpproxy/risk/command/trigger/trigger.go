// Package trigger finds the texts that a rule about commands could see, without
// an allocation. Nearly all texts that agents type are harmless, and parsing one
// takes a thousand times as long as reading it.
//
// A rule sees the name of a program or a word of its arguments, so a text that
// matters has such a word, in any case, or it has syntax that can build one:
// quotes inside a word, escapes, variables, wildcards in a command's place. Scan
// looks for both in one pass. What it does not find, package command need not
// parse; that it never hides a command is tested there.
//
// The files, from the top: trigger, run, table, words.
package trigger

import (
	"strings"
)

// A Kind says why a text is worth parsing.
type Kind uint8

// The kinds. The zero value is that of a text in which nothing matters.
const (
	Word   Kind = 1 << iota // it has a trigger word
	Syntax                  // it has syntax that can build any word
)

// Scan returns why the text is worth parsing, zero if it is not. It reads each
// byte once and allocates nothing.
func Scan(text string) (g Kind) {
	h, n := uint32(basis), 0
	first, token := true, false // in the first word of a command; in or behind a word
	slash := false              // in a word that is a path
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch k := classes[c]; k {
		case classWord:
			h = (h ^ uint32(c|folds[c])) * prime
			n++
			token = true
			continue
		case classSkip:
			continue // shells drop NUL
		default:
			if n > 0 {
				if n <= maxTrigger && (triggerTable.has(h) || first && firstTable.has(h)) {
					g |= Word
				}
				h, n = basis, 0
			}
			switch k {
			case classSpace:
				first = first && !token
				slash = false
				continue
			case classBreak:
				if c == '(' && i+1 < len(text) && text[i+1] == ')' {
					g |= Syntax // a function
				}
				first, token, slash = true, false, false
				continue
			case classMeta:
				g |= Syntax
			case classFirst:
				if first || slash && c != '=' && c != '!' && c != '^' {
					g |= Syntax
				}
			case classQuote:
				if first || i > 0 && classes[text[i-1]] == classWord && i+1 < len(text) && classes[text[i+1]] > classSpace {
					g |= Syntax
				}
			case classBrace:
				if i+1 < len(text) && classes[text[i+1]] != classSpace {
					g |= Syntax
				}
				first, token = true, false
				continue
			case classOut:
				if rest := text[i+1:]; g&Syntax == 0 && !strings.HasPrefix(rest, "&") && !isNullDevice(rest) {
					g |= Syntax
				}
			case classIn:
				if i+1 < len(text) && (text[i+1] == '<' || text[i+1] == '(') {
					g |= Syntax
				}
			}
			token = true
			slash = slash || c == '/'
		}
	}
	if n > 0 && n <= maxTrigger && (triggerTable.has(h) || first && firstTable.has(h)) {
		g |= Word
	}
	return g
}

// isNullDevice reports whether s begins with the path of the null device and
// nothing longer, behind what may stand in front of a path.
func isNullDevice(s string) bool {
	const most = 16 // so that a text of such characters takes no time for each
	n := 0
	for n < min(len(s), most) && (s[n] == '>' || s[n] == ' ') {
		n++
	}
	s = s[n:]
	rest, ok := strings.CutPrefix(s, "/dev/null")
	return ok && (rest == "" || classes[rest[0]] == classSpace || classes[rest[0]] == classBreak)
}

// Has reports whether the name of a program has a trigger word.
func Has(name string) bool { return name != "" && Scan(name)&Word != 0 }

// IsWeak reports whether a trigger word is also common in prose: a text that does
// not parse is not taken for a command because of it.
func IsWeak(word string) bool { return len(word) <= maxTrigger && weakTable.has(hash(word)) }

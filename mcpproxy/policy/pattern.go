package policy

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A charset says which characters of ASCII a text has. A text that lacks one of
// those that a search needs takes no search.
type charset [2]uint64

// add adds the characters of text, and reports whether there are no others. Those
// beyond ASCII add some of ASCII: a text that has them is not left out, see count.
func (s *charset) add(text []byte) (ascii bool) {
	low, high, all := s[0], s[1], byte(0)
	for _, c := range text {
		all |= c
		one, upper := uint64(1)<<(c&63), -uint64(c>>6&1) // without a branch
		low, high = low|one&^upper, high|one&upper
	}
	s[0], s[1] = low, high
	return all < utf8.RuneSelf
}

// fold adds the small letters of the capital ones that s has.
func (s *charset) fold() {
	const capitals = (1<<26 - 1) << 1 // from A on, less 64
	s[1] |= s[1] & capitals << ('a' - 'A')
}

func (s *charset) has(all charset) bool { return all[0]&^s[0]|all[1]&^s[1] == 0 }

// A pattern is a regular expression and a text without which it matches nothing.
// Looking for the text first makes most conditions cheap: it takes 0.1 µs where
// the expression takes 1 µs.
type pattern struct {
	re   func() *regexp.Regexp // compiles at the first use
	need string                // ASCII in lower case if fold is set
	fold bool
}

// maxNeed bounds the time of a search: it is the length of the text times this.
const maxNeed = 32

// needed returns a text that is in every match of re, "" if none is found.
func needed(re *syntax.Regexp) (need string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		need, fold = string(re.Rune), re.Flags&syntax.FoldCase != 0
		if strings.ContainsFunc(need, func(r rune) bool { return r == utf8.RuneError || fold && r >= utf8.RuneSelf }) {
			return "", false
		}
		if need = need[:min(len(need), maxNeed)]; fold {
			need = strings.ToLower(need)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n, f := needed(sub); len(n) > len(need) {
				need, fold = n, f
			}
		}
	}
	return need, fold
}

func (p *pattern) match(text []byte) bool {
	if p.fold {
		if !containsFold(text, p.need) {
			return false
		}
	} else if p.need != "" && !bytes.Contains(text, []byte(p.need)) {
		return false
	}
	return p.re().Match(text)
}

// containsFold reports whether text contains need in any case. It may where text
// is not ASCII: some characters fold to ASCII.
func containsFold(text []byte, need string) bool {
	var upper byte // bit that a capital letter lacks
	if 'a' <= need[0] && need[0] <= 'z' {
		upper = 'a' - 'A'
	}
	for i, c := range text {
		if c >= utf8.RuneSelf {
			return true
		}
		if c|upper != need[0] || len(text)-i < len(need) {
			continue
		}
		n := 1
		for n < len(need) && lower(text[i+n]) == need[n] {
			n++
		}
		if n == len(need) || text[i+n] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

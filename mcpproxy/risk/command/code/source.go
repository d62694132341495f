package code

import (
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/shell"
)

// A source is code in which calls are looked for. Matching an expression takes up
// to 0.2 µs for each byte, so each is tried only near the texts that it needs,
// and its time is taken from the budget.
type source struct {
	s     *shell.Shell
	text  string
	lower string // the same in lower case, byte by byte
}

const (
	matchCost = 4    // of a byte
	minMatch  = 16   // bytes that a match costs at least
	maxWhole  = 1024 // bytes of a source that is matched as a whole
	around    = 32   // bytes before and after a needed text that are matched with it, and the rest of their lines
)

func newSource(s *shell.Shell, text string) *source {
	return &source{s: s, text: text, lower: lowerASCII(text)}
}

// lowerASCII returns s with letters of ASCII in lower case, and as long as it was.
func lowerASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// has reports whether the source has a match of re, which spans a few lines at
// most.
func (c *source) has(re lazyregexp.Regexp) bool {
	if len(c.text) <= maxWhole {
		return c.hasAnywhere(re)
	}
	needs := re.Needs()
	next := make([]int, len(needs)) // where each is found next
	for i, need := range needs {
		next[i] = index(c.lower, need, 0)
	}
	for from := 0; from < len(c.text); {
		hit := len(c.text)
		for i, need := range needs {
			if next[i] < from {
				next[i] = index(c.lower, need, from)
			}
			hit = min(hit, next[i])
		}
		if hit == len(c.text) {
			return false
		}
		start := max(from, strings.LastIndexByte(c.text[:max(hit-around, 0)], '\n')+1)
		end := min(hit+around, len(c.text))
		if n := strings.IndexByte(c.text[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(c.text)
		}
		if !c.s.Spend(matchCost * max(end-start, minMatch)) {
			return false // the text is Opaque now
		}
		if re.MatchString(c.text[start:end]) {
			return true
		}
		from = max(end-around, hit+1)
	}
	return false
}

// hasAnywhere is has for a match that can span the whole source.
func (c *source) hasAnywhere(re lazyregexp.Regexp) bool {
	for _, need := range re.Needs() {
		if strings.Contains(c.lower, need) {
			return c.s.Spend(matchCost*max(len(c.text), minMatch)) && re.MatchString(c.text)
		}
	}
	return re.Needs() == nil && c.s.Spend(matchCost*len(c.text)) && re.MatchString(c.text)
}

// index is strings.Index from a place, len(s) if there is none.
func index(s, sub string, from int) int {
	if i := strings.Index(s[from:], sub); i >= 0 {
		return from + i
	}
	return len(s)
}

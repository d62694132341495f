package code

import (
	"iter"
	"strconv"
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/shell"
)

// A pattern is an expression, and what it costs to match it: steps for each byte,
// measured where it matches nothing.
type pattern struct {
	lazyregexp.Regexp
	cost int
}

// A source is code in which calls are looked for. Matching an expression takes up
// to 0.5 µs for each byte, so each is tried only near the texts that it needs,
// and its time is taken from the budget.
type source struct {
	s     *shell.Shell
	text  string
	lower string // the same in lower case, byte by byte
	parts [512]uint64
}

const (
	minMatch = 16   // bytes that a match costs at least
	maxWhole = 1024 // bytes of a source that is matched as a whole
	around   = 32   // bytes before and after a needed text that are matched with it, and the rest of their lines

	searches = 32 // searches for a needed text that cost a step for each byte
)

func newSource(s *shell.Shell, text string) *source {
	c := &source{s: s, text: text, lower: lowerASCII(text)}
	for i := range len(c.lower) - 2 {
		n := hash(c.lower[i : i+3])
		c.parts[n/64] |= 1 << (n % 64)
	}
	return c
}

// hash returns a number below 64 times the length of parts for three bytes.
func hash(part string) uint32 {
	return (uint32(part[0]) | uint32(part[1])<<8 | uint32(part[2])<<16) * 0x9E3779B1 >> 17
}

// mayHave reports whether all parts of three bytes of a text may be in the source:
// most code has few of the texts that expressions need.
func (c *source) mayHave(text string) bool {
	for i := range len(text) - 2 {
		if n := hash(text[i : i+3]); c.parts[n/64]>>(n%64)&1 == 0 {
			return false
		}
	}
	return true
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

// has reports whether the source has a match of p, which spans a few lines at
// most.
func (c *source) has(p pattern) bool {
	if len(c.text) <= maxWhole {
		return c.hasAnywhere(p)
	}
	for start, end := range c.near(p) {
		if p.MatchString(c.text[start:end]) {
			return true
		}
	}
	return false
}

// find returns where p matches, up to n times. A match spans a few lines at most.
func (c *source) find(p pattern, n int) (all [][]int) {
	for start, end := range c.near(p) {
		for _, m := range p.FindAllStringIndex(c.text[start:end], n-len(all)) {
			all = append(all, []int{start + m[0], start + m[1]})
		}
		if len(all) == n {
			break
		}
	}
	return all
}

// near yields the parts of the source that have a text that p needs, and spends
// what it costs to match them.
func (c *source) near(p pattern) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) { c.yieldNear(p, yield) }
}

func (c *source) yieldNear(p pattern, yield func(start, end int) bool) {
	if !c.s.Spend(0) {
		return // the text is Opaque already
	}
	var needs []string
	for _, need := range p.Needs() {
		if c.mayHave(need) {
			needs = append(needs, need)
		}
	}
	if len(needs) == 0 || !c.s.Spend(len(c.text)*len(needs)/searches) {
		return
	}
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
			return
		}
		start := max(from, strings.LastIndexByte(c.text[:max(hit-around, 0)], '\n')+1)
		end := min(hit+around, len(c.text))
		if n := strings.IndexByte(c.text[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(c.text)
		}
		if !c.s.Spend(p.cost*max(end-start, minMatch)) || !yield(start, end) {
			return // the text is Opaque now, or enough was found
		}
		from = max(end-around, hit+1)
	}
}

// hasAnywhere is has for a match that can span the whole source.
func (c *source) hasAnywhere(p pattern) bool {
	if !c.s.Spend(0) {
		return false
	}
	for _, need := range p.Needs() {
		if c.mayHave(need) && strings.Contains(c.lower, need) {
			return c.s.Spend(p.cost*max(len(c.text), minMatch)) && p.MatchString(c.text)
		}
	}
	return p.Needs() == nil && c.s.Spend(p.cost*len(c.text)) && p.MatchString(c.text)
}

// index is strings.Index from a place, len(s) if there is none.
func index(s, sub string, from int) int {
	if i := strings.Index(s[from:], sub); i >= 0 {
		return from + i
	}
	return len(s)
}

// maxLiterals bounds the literals of a text that are looked at.
const maxLiterals = 64

// stringLiterals returns what is quoted in code: several are one if the code joins them.
func stringLiterals(text string) []string {
	var out []string
	for i := 0; i < len(text) && len(out) < 4*maxLiterals; i++ {
		q := text[i]
		end := q
		switch q {
		case '"', '\'', '`':
		case '{', '(':
			// qx{…}, %x(…), qw(…)
			if i < 2 || text[i-2:i] != "qx" && text[i-2:i] != "%x" && text[i-2:i] != "qw" && text[i-2:i] != "%w" {
				continue
			}
			end = q + 2
			if q == '(' {
				end = ')'
			}
		default:
			continue
		}
		var b strings.Builder
		j := i + 1
		for ; j < len(text); j++ {
			if text[j] == end {
				next := strings.TrimLeft(text[j+1:], " ")
				if next != "" && (next[0] == '+' || next[0] == '.') {
					next = strings.TrimLeft(next[1:], " ")
				}
				if end != q || next == "" || next[0] != '"' && next[0] != '\'' {
					break
				}
				q, end = next[0], next[0]
				j = len(text) - len(next)
				continue
			}
			if text[j] == '\\' && j+1 < len(text) {
				if c, _, rest, err := strconv.UnquoteChar(text[j:], q); err == nil {
					b.WriteRune(c)
					j = len(text) - len(rest) - 1
					continue
				}
				j++
			}
			b.WriteByte(text[j])
		}
		if j == len(text) {
			break
		}
		out = append(out, b.String())
		i = j
	}
	return out
}

// joins returns what the first joins of lists of literals make, as in
// "".join(["r", "m"]) and ["rm", "-rf"].join(" ").
func joins(text string) (out []string) {
	const most = 4
	for range most {
		at := strings.Index(text, ".join")
		if at < 0 {
			break
		}
		list := text[at:]
		if start := strings.LastIndexByte(text[:at], '['); at > 0 && text[at-1] == ']' && start >= 0 {
			list = text[start:at]
		}
		lits := stringLiterals(list)
		out = append(out, strings.Join(lits, ""), strings.Join(lits, " "))
		text = text[at+len(".join"):]
	}
	return out
}

// maxArgs is how many bytes of the arguments of a call are read.
const maxArgs = 512

// arguments returns the arguments of a call from the first one on.
func arguments(src *source, from int) (args []string) {
	text := src.text[from:min(len(src.text), from+maxArgs)]
	if !src.s.Spend(len(text)) {
		return nil
	}
	depth, start := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case '(', '[', '{':
			depth++
			continue
		case ')', ']', '}':
			if depth--; depth >= 0 {
				continue
			}
		case ',':
			if depth > 0 {
				continue
			}
		case ';', '\n':
			if depth > 0 || c == '\n' && strings.TrimSpace(text[start:i]) == "" {
				continue
			}
		default:
			continue
		}
		args = append(args, strings.TrimSpace(text[start:i]))
		if start = i + 1; text[i] != ',' {
			return args
		}
	}
	return append(args, strings.TrimSpace(text[start:]))
}

package printed

import (
	"bytes"
	"unicode/utf8"

	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// Widths of a terminal, in code points: the one that most have, and the least that a text
// may show of another one. A line of it has maxLine bytes at most.
const (
	usualWidth = 80
	leastWidth = 60
	maxLine    = 256 * utf8.UTFMax
)

// Widen widens the credentials in t, in order, that a terminal breaks at its last column by
// what it shows of them on the next line.
func Widen(t []byte, found []lex.Span) {
	width := 0
	for k := range found {
		c := &found[k]
		if bytes.IndexByte(t[c.From:c.To], '\n') >= 0 {
			continue // it has ended on a line of its own
		}
		for c.To < len(t) && t[c.To] == '\n' && (k+1 == len(found) || found[k+1].From > c.To) {
			line := t[max(bytes.LastIndexByte(t[:c.To], '\n')+1, c.To-maxLine):c.To]
			n := utf8.RuneCount(line)
			if n < leastWidth || bytes.IndexByte(line, 0x1B) >= 0 {
				break
			}
			if n != usualWidth {
				if width == 0 {
					width = screenWidth(t)
				}
				if n != width {
					break
				}
			}
			to := c.To + 1
			for to < len(t) && lex.Classes[t[to]]&lex.IsToken != 0 && t[to] < utf8.RuneSelf {
				to++
			}
			for to < len(t) && t[to] == '=' { // the padding of base64, no assignment
				to++
			}
			if to == c.To+1 || !prose.LooksSecret(t[c.From:to]) || to < len(t) && t[to] > ' ' && lex.Classes[t[to]]&lex.IsEnd == 0 {
				break
			}
			c.To = to
		}
	}
}

// screenWidth returns the number of code points that several lines of the text have and
// none exceeds, -1 if there is none.
func screenWidth(t []byte) int {
	width, lines := 0, 0
	for line := range bytes.Lines(t) {
		n := utf8.RuneCount(bytes.TrimRight(line, "\r\n"))
		if n > width {
			width, lines = n, 0
		}
		if n == width {
			lines++
		}
	}
	if lines < 2 {
		return -1
	}
	return width
}

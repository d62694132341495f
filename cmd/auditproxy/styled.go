package main

import (
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/escape"
)

// A style is how a terminal shows a word. It is never all that tells something:
// the words do.
type style string

// The styles, as parameters of SGR (ECMA-48, section 8.3.117).
const (
	plain  style = ""
	faint  style = "2"
	bold   style = "1"
	good   style = "32"
	notice style = "36"
	warn   style = "33"
	bad    style = "31"
	alarm  style = "1;97;41"
)

// A styledLine is one line for a terminal, built from left to right.
type styledLine struct {
	buf    []byte
	colour bool
	limit  int // cells, 0 for none
	cells  int // used
}

// put adds a text that strangers may have chosen.
func (l *styledLine) put(s style, text string) { l.putSafe(s, escape.Text(text)) }

// putSafe adds a text that has nothing in it but visible characters.
func (l *styledLine) putSafe(s style, text string) {
	if text == "" || l.limit > 0 && l.cells >= l.limit {
		return
	}
	text = l.fit(text)
	if !l.colour || s == plain {
		l.buf = append(l.buf, text...)
		return
	}
	l.buf = append(l.buf, "\x1b["+string(s)+"m"...)
	l.buf = append(l.buf, text...)
	l.buf = append(l.buf, "\x1b[0m"...)
}

// fit counts the cells of text, and cuts it where the line is full.
func (l *styledLine) fit(text string) string {
	from := l.cells
	l.cells += cli.Cells(text)
	if l.limit == 0 || l.cells <= l.limit {
		return text
	}
	room := l.limit - from - 1
	l.cells = l.limit
	for i, r := range text {
		if room -= cli.RuneCells(r); room < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// column adds text and spaces up to n cells, then one more.
func (l *styledLine) column(s style, text string, n int) {
	text = escape.Text(text)
	l.putSafe(s, text)
	l.putSafe(plain, strings.Repeat(" ", max(0, n-cli.Cells(text))+1))
}

// right adds text behind so many spaces that both have n cells, then one more.
func (l *styledLine) right(s style, text string, n int) {
	l.putSafe(plain, strings.Repeat(" ", max(0, n-cli.Cells(text))))
	l.putSafe(s, text)
	l.putSafe(plain, " ")
}

// end trims the line and adds a line feed.
func (l *styledLine) end() []byte {
	n := len(l.buf)
	for n > 0 && l.buf[n-1] == ' ' {
		n--
	}
	return append(l.buf[:n], '\n')
}

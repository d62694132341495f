package terminal

import (
	"strings"

	"auditproxy/schemas/escape"
)

// A Style is how a terminal shows a word. The words alone carry each fact.
type Style string

// The styles, as parameters of SGR (ECMA-48, section 8.3.117).
const (
	Plain  Style = ""
	Faint  Style = "2"
	Bold   Style = "1"
	Good   Style = "32"
	Notice Style = "36"
	Warn   Style = "33"
	Bad    Style = "31"
	Alarm  Style = "1;97;41"
)

// A Line is one line for a terminal, built from left to right.
type Line struct {
	Colour bool
	Limit  int    // cells, 0 for none
	Turn   string // what a further row begins with; "" if the line is cut at Limit

	buf   []byte
	cells int // used
}

// Put adds a text that may be untrusted.
func (l *Line) Put(s Style, text string) { l.PutSafe(s, escape.Text(text)) }

// PutSafe adds a text of visible characters only.
func (l *Line) PutSafe(s Style, text string) {
	if text == "" || l.Turn == "" && l.Limit > 0 && l.cells >= l.Limit {
		return
	}
	if l.Turn == "" {
		text = l.fit(text)
	} else if l.Limit > 0 {
		text = l.turned(text)
	}
	if !l.Colour || s == Plain {
		l.buf = append(l.buf, text...)
		return
	}
	l.buf = append(l.buf, "\x1b["+string(s)+"m"...)
	l.buf = append(l.buf, text...)
	l.buf = append(l.buf, "\x1b[0m"...)
}

// fit counts the cells of text, and cuts it where the line is full.
func (l *Line) fit(text string) string {
	from := l.cells
	l.cells += Cells(text)
	if l.Limit == 0 || l.cells <= l.Limit {
		return text
	}
	room := l.Limit - from - 1
	l.cells = l.Limit
	for i, r := range text {
		if room -= runeCells(r); room < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// turned breaks text into rows, so that none begins with what a stranger chose.
func (l *Line) turned(text string) string {
	var rows strings.Builder
	for _, r := range text {
		n := runeCells(r)
		if l.cells+n > l.Limit {
			rows.WriteString("\n" + l.Turn)
			l.cells = Cells(l.Turn)
		}
		rows.WriteRune(r)
		l.cells += n
	}
	return rows.String()
}

// Column adds text and spaces up to n cells, then one more.
func (l *Line) Column(s Style, text string, n int) { l.ColumnSafe(s, escape.Text(text), n) }

// ColumnSafe is Column for a text of visible characters only.
func (l *Line) ColumnSafe(s Style, text string, n int) {
	l.PutSafe(s, text)
	l.PutSafe(Plain, strings.Repeat(" ", max(0, n-Cells(text))+1))
}

// Right adds text behind so many spaces that both have n cells, then one more.
func (l *Line) Right(s Style, text string, n int) {
	l.PutSafe(Plain, strings.Repeat(" ", max(0, n-Cells(text))))
	l.PutSafe(s, text)
	l.PutSafe(Plain, " ")
}

// End trims the line and adds a line feed.
func (l *Line) End() []byte {
	n := len(l.buf)
	for n > 0 && l.buf[n-1] == ' ' {
		n--
	}
	return append(l.buf[:n], '\n')
}

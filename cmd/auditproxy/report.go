package main

import (
	"strings"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"
)

// A reportWriter is text for a terminal.
type reportWriter struct {
	text   []byte
	colour bool
}

func (p *reportWriter) title(s string) {
	p.text = append(p.text, '\n')
	p.line(0, terminal.Bold, s)
}

// line adds a text of visible characters only.
func (p *reportWriter) line(indent int, s terminal.Style, text string) {
	l := terminal.Line{Colour: p.colour}
	l.PutSafe(terminal.Plain, strings.Repeat(" ", indent))
	l.PutSafe(s, text)
	p.text = append(p.text, l.End()...)
}

// table aligns columns. A cell wider than wide pushes only its own row.
func (p *reportWriter) table(indent int, rows [][]string) {
	const wide = 44
	var widths []int
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for i, cell := range row {
			if n := terminal.Cells(escape.Text(cell)); n <= wide {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for _, row := range rows {
		l := terminal.Line{Colour: p.colour}
		l.PutSafe(terminal.Plain, strings.Repeat(" ", indent))
		for i, cell := range row {
			l.Column(terminal.Plain, cell, widths[i]+1)
		}
		p.text = append(p.text, l.End()...)
	}
}

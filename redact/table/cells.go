package table

import (
	"bytes"
	"unicode/utf8"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// split puts the cells of the line t[i:end] between separators in f.cells, and
// returns their number: 0 if there are too many.
func (f *Finder) split(t []byte, i, end int, separator byte) int {
	if end > i && t[end-1] == '\r' {
		end--
	}
	i, end = trim(t, i, end)
	if separator == '|' {
		if n := pipeLen(t[i:end]); n > 0 {
			i += n
		}
	}
	n := 0
	for from := i; ; {
		to, width := end, 0
		for k := from; k < end; k++ {
			if lex.Classes[t[k]]&lex.IsQuote != 0 && separator != '|' && (k == from || t[k-1] == ' ') {
				if close := bytes.IndexByte(t[k+1:end], t[k]); close >= 0 {
					k += close + 1
					continue
				}
			}
			if separator == '|' {
				width = pipeLen(t[k:end])
			} else if t[k] == separator {
				width = 1
			}
			if width > 0 {
				to = k
				break
			}
		}
		if n == len(f.cells) {
			return 0
		}
		c := lex.Span{}
		c.From, c.To = trim(t, from, to)
		if to == end && separator == '|' && c.From == c.To && n > 0 {
			return n // behind the last pipe
		}
		f.cells[n] = unquoted(t, c)
		n++
		if to == end {
			return n
		}
		from = to + width
	}
}

// pipeLen returns the length of the pipe that b starts with, drawn or not.
func pipeLen(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '|':
		return 1
	case len(b) > 2 && b[0] == 0xE2 && (b[1] == 0x94 && (b[2] == 0x82 || b[2] == 0x83) || b[1] == 0x95 && b[2] == 0x91):
		return 3
	}
	return 0
}

// frameLen returns the length of the piece of a frame that b starts with.
func frameLen(b []byte) int {
	if len(b) > 2 && b[0] == 0xE2 && (b[1] == 0x94 || b[1] == 0x95) {
		return len("─")
	}
	return 0
}

// isBoxed reports whether a line starts and ends with pipes.
func isBoxed(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 2 && pipeLen(line) > 0 && (line[len(line)-1] == '|' || len(line) > 6 && pipeLen(line[len(line)-3:]) == 3)
}

func trim(t []byte, from, to int) (int, int) {
	for from < to && (t[from] == ' ' || t[from] == '\t') {
		from++
	}
	for to > from && (t[to-1] == ' ' || t[to-1] == '\t' || t[to-1] == '\r') {
		to--
	}
	return from, to
}

// unquoted returns a cell without the quotes around it, or those of Markdown.
func unquoted(t []byte, c lex.Span) lex.Span {
	for c.To-c.From > 1 && t[c.From] == t[c.To-1] && (lex.Classes[t[c.From]]&lex.IsQuote != 0 || t[c.From] == '*') {
		c.From++
		c.To--
	}
	return c
}

// align puts the names of the line t[i:end] in f.cells, with their places in the
// header, and returns their number. Two spaces are between names, or a line of
// dashes below says where they are.
func (f *Finder) align(t []byte, i, end int, ruled bool) int {
	h := &f.header
	below := t[h.body:lineEnd(t, h.body)]
	if ruled && bytes.IndexByte(bytes.TrimRight(below, " \r"), ' ') > 0 {
		n := 0
		for k := 0; k < len(below) && n < maxColumns; k++ {
			if below[k] != ' ' && (k == 0 || below[k-1] == ' ') {
				h.starts[n] = k
				n++
			}
		}
		h.columns = n
		if f.place(t, i, end) != n {
			return 0
		}
		return n
	}
	n, point := 0, 0
	for k := i; k < end; {
		if t[k] == ' ' || t[k] == '\r' {
			k, point = k+1, point+1
			continue
		}
		if n == maxColumns {
			return 0
		}
		from := k
		h.starts[n] = point
		for k < end && (t[k] != ' ' && t[k] != '\r' || k+1 < end && t[k] == ' ' && t[k+1] != ' ') {
			_, size := utf8.DecodeRune(t[k:end])
			k, point = k+size, point+1
		}
		f.cells[n] = lex.Span{From: from, To: k}
		n++
	}
	return n
}

// place puts the cells of the line t[i:end] in f.cells, which start where those of
// the header do, or have two spaces between them, and returns their number: 0 if
// it has others.
func (f *Finder) place(t []byte, i, end int) int {
	if n := f.below(t, i, end); n > 0 {
		return n
	}
	n := 0
	for k := i; k < end; n++ {
		from := k
		for k < end && (t[k] != ' ' || k+1 < end && t[k+1] != ' ') {
			k++
		}
		if n == f.header.columns {
			return 0
		}
		from, to := trim(t, from, k)
		f.cells[n] = lex.Span{From: from, To: to}
		for k < end && t[k] <= ' ' {
			k++
		}
	}
	if n < f.header.columns {
		return 0
	}
	return n
}

// below is place for cells that start where those of the header do.
func (f *Finder) below(t []byte, i, end int) int {
	h := &f.header
	if end > i && t[end-1] == '\r' {
		end--
	}
	from, to := trim(t, i, end)
	if from == to {
		return 0
	}
	point, n := 0, 0
	for k := i; n < h.columns; {
		if point == h.starts[n] {
			if k > i && k < to && t[k-1] != ' ' {
				return 0
			}
			c := lex.Span{From: k, To: k}
			limit := end
			for c.To < limit && (t[c.To] != ' ' || c.To+1 < limit && t[c.To+1] != ' ' && (n+1 == h.columns || point+1 < h.starts[n+1])) {
				_, size := utf8.DecodeRune(t[c.To:limit])
				c.To, point = c.To+size, point+1
			}
			k = c.To
			c.From, c.To = trim(t, c.From, c.To)
			f.cells[n] = c
			if n++; n < h.columns && point > h.starts[n] {
				return 0 // it reaches into the next column
			}
			continue
		}
		if k >= end {
			f.cells[n] = lex.Span{}
			n++
			continue
		}
		_, size := utf8.DecodeRune(t[k:end])
		if t[k] != ' ' {
			return 0
		}
		k, point = k+size, point+1
	}
	return n
}

// isRule reports whether the first line of t only draws one.
func isRule(t []byte) bool {
	drawn := 0
	for i := 0; i < len(t) && t[i] != '\n'; i++ {
		switch c := t[i]; {
		case c == '-' || c == '=':
			drawn++
		case frameLen(t[i:]) > 0:
			drawn++
			i += 2
		case c != '+' && c != '|' && c != ':' && c != ' ' && c != '\r' && c != '\t':
			return false
		}
	}
	return drawn > 2
}

// isRecord reports whether a line starts a record as psql prints it.
func isRecord(line []byte) bool { return bytes.HasPrefix(line, []byte("-[ RECORD ")) }

// lineEnd returns the end of the line that i is in.
func lineEnd(t []byte, i int) int {
	if n := bytes.IndexByte(t[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(t)
}

// isSecret reports whether a cell has a secret, and no remark on one. With token,
// it must look like one.
func isSecret(b []byte, token bool) bool {
	if lex.MarkLen(b) > 0 || formats.IsPlaceholder(b) || lex.IsType(b) || len(b) > 4096 {
		return false
	}
	alnum := false
	for _, c := range b {
		alnum = alnum || lex.Classes[c]&lex.IsAlnum != 0 || c >= 0x80
	}
	switch {
	case len(bytes.Trim(b, "0123456789.")) == 0 && bytes.Count(b, []byte(".")) == 2: // a version
		return false
	case !alnum && len(b) < 4, string(b) == `\N`, len(bytes.Trim(b, "•●*")) == 0: // "-", NULL of PostgreSQL, "•••••"
		return false
	case token:
		return bytes.IndexByte(b, ' ') < 0 && prose.LooksSecret(b)
	case bytes.IndexByte(b, ' ') < 0:
		return !prose.IsPlain(bytes.TrimRight(b, "."))
	}
	// A sentence is none.
	words, plain := 0, 0
	for w := range bytes.FieldsSeq(b) {
		words++
		if prose.IsPlain(bytes.TrimRight(w, ".,;:")) {
			plain++
		}
	}
	return words < 3 || 3*plain < words
}

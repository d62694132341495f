// Package table finds the secrets in the columns of tables, CSV, Markdown, HTML and
// what programs print, and in lines of a name and a value.
//
// A table has a header, a line of nothing but names. Below a name of a secret each
// line has one, at the same number behind the separators or at the same place.
// A table of names and values has them behind the names.
//
// The files, from the top: table, html, header, directive, cells, finder.
package table

import (
	"bytes"

	"auditproxy/redact/lex"
)

// Find adds the secrets in the tables of t to found, in time linear in
// t.
func (f *Finder) Find(t []byte, found []lex.Span) []lex.Span {
	if IsMarkup(t) {
		found = f.markup(t, found)
	}
	inServer := false             // the lines belong to a server that checks logins
	inBody, boxed := false, false // they are below the header of a table, the last one is of a table
	for i := 0; i < len(t); {
		end := lineEnd(t, i)
		inServer = inServer && (t[i] <= ' ' || t[i] == '}') || t[i] > ' ' && isServer(t[i:end])
		inBody = t[i] == '|' && (inBody || boxed && isRule(t[i:]))
		boxed = t[i] == '|'
		switch {
		case isRecord(t[i:end]):
			i, found = f.record(t, end+1, found)
			continue
		case inServer && t[i] <= ' ':
			if c := shared(t[i:end]); c.From < c.To {
				found = append(found, lex.Span{From: i + c.From, To: i + c.To})
			}
		case !inBody && f.readHeader(t, i, end):
			var n int
			if n, found = f.rows(t, f.header.body, found); n > f.header.body {
				i = n
				continue
			}
		}
		line := inEcho(t[i:end])
		if c := f.set(t[i+line.From : i+line.To]); c.From < c.To {
			found = append(found, lex.Span{From: i + line.From + c.From, To: i + line.From + c.To})
		} else if c := f.pair(t, i, end); c.From < c.To {
			found = append(found, c)
		}
		i = end + 1
	}
	return found
}

// rows adds the secrets of the lines from i on, which are below the header, and
// returns where they end.
func (f *Finder) rows(t []byte, i int, found []lex.Span) (int, []lex.Span) {
	h := &f.header
	for i < len(t) {
		end := lineEnd(t, i)
		if isRule(t[i:]) {
			i = end + 1
			continue
		}
		n := 0
		if bytes.HasPrefix(t[i:end], []byte(`\.`)) || end > i+1 && t[i] == '(' && lex.IsDigit(t[i+1]) { // the end of what COPY reads, the number of rows
			return i, found
		}
		if h.separator == aligned {
			n = f.place(t, i, end)
		} else if n = f.split(t, i, end, h.separator); n == h.columns+1 && h.separator == '|' && isNumber(t[f.cells[0].From:f.cells[0].To]) {
			n = copy(f.cells[:], f.cells[1:n])
		} else if n != h.columns {
			n = 0
		}
		if n == 0 {
			return i, found
		}
		found = f.row(t, n, found)
		i = end + 1
	}
	return i, found
}

// isNumber reports whether a cell before the first column has the number of the row.
func isNumber(b []byte) bool {
	return len(b) > 1 && b[len(b)-1] == '.' && lex.CountDigits(b) == len(b)-1
}

// pair returns the secret of the line t[i:end] of a table of names and values without a
// header, "| NAME | SECRET |", and of ftp's "user NAME SECRET".
func (f *Finder) pair(t []byte, i, end int) lex.Span {
	line := t[i:end]
	switch {
	case len(line) < 5 || len(line) > maxDirective ||
		line[0] != 'u' && line[len(line)-1] != '|' && line[len(line)-1] <= 'z' && (!lex.IsDigit(line[0]) || line[len(line)-1] != '"'): // most lines
	case bytes.HasPrefix(line, []byte("user ")) && bytes.Count(line, []byte(" ")) == 2 && bytes.Contains(t[max(0, i-maxDirective):i], []byte("ftp")):
		from := i + bytes.LastIndexByte(line, ' ') + 1
		if c := (lex.Span{From: from, To: end}); isSecret(bytes.TrimRight(t[c.From:c.To], "\r"), false) {
			return c
		}
	case lex.IsDigit(line[0]):
		return f.reply(t, i, end)
	case isBoxed(line) && f.split(t, i, end, '|') == 2:
		if c := f.cells[1]; c.From < c.To && f.isSecret(t, f.cells[0]) && isSecret(t[c.From:c.To], true) {
			return c
		}
	}
	return lex.Span{}
}

// reply returns the secret of the line below t[i:end], if that is the name of one in the
// numbered lines of a reply of Redis: 1) "password", 2) "SECRET".
func (f *Finder) reply(t []byte, i, end int) lex.Span {
	name := item(t, i, end)
	if name.From == name.To || end+1 >= len(t) || !f.isSecret(t, name) {
		return lex.Span{}
	}
	c := item(t, end+1, lineEnd(t, end+1))
	if c.From == c.To || !isSecret(t[c.From:c.To], false) {
		return lex.Span{}
	}
	return c
}

// item returns the string in a line t[i:end] of a reply of Redis.
func item(t []byte, i, end int) lex.Span {
	_, end = trim(t, i, end)
	n := lex.CountDigits(t[i:end])
	if n == 0 || i+n+4 > end || string(t[i+n:i+n+3]) != `) "` || t[end-1] != '"' {
		return lex.Span{}
	}
	return lex.Span{From: i + n + 3, To: end - 1}
}

// record adds the secrets of the lines "NAME | VALUE" from i on, as psql prints a
// record, and returns where they end.
func (f *Finder) record(t []byte, i int, found []lex.Span) (int, []lex.Span) {
	for i < len(t) {
		end := lineEnd(t, i)
		if f.split(t, i, end, '|') != 2 {
			return i, found
		}
		if c := f.cells[1]; c.From < c.To && f.isSecret(t, f.cells[0]) && isSecret(t[c.From:c.To], false) {
			found = append(found, c)
		}
		i = end + 1
	}
	return i, found
}

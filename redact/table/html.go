package table

import (
	"bytes"

	"auditproxy/redact/lex"
)

// IsMarkup reports whether t may have a table of HTML, a list of terms or labels.
func IsMarkup(t []byte) bool {
	if bytes.IndexByte(t, '<') < 0 {
		return false
	}
	for _, tag := range [...]string{"<td", "<dd", "<TD", "<DD", "<label"} {
		if bytes.Contains(t, []byte(tag)) {
			return true
		}
	}
	return false
}

// markup adds the secrets in the tables of HTML in t to found: below a header, and in
// rows of a name and a value.
func (f *Finder) markup(t []byte, found []lex.Span) []lex.Span {
	h := &f.header
	h.columns = 0
	for i := 0; ; {
		n, next, titles := f.markupRow(t, i)
		if n == 0 {
			return found
		}
		i = next
		switch {
		case n == 2 && !titles && f.isSecret(t, f.cells[0]):
			c := f.cells[1]
			v := t[c.From:c.To]
			if len(v) > 0 && isSecret(v, isBroad(f.name.All) && lex.CountDigits(v) == len(v)) {
				found = append(found, c)
			}
		case n == h.columns:
			found = f.row(t, n, found)
			continue
		}
		h.separator, h.columns = '|', n
		if !f.readNames(t) {
			h.columns = 0
		}
	}
}

// markupRow puts the cells of the next row of HTML from i on in f.cells, and returns
// their number, 0 if there is none, where the next one may start, and whether the last
// cell is a title.
func (f *Finder) markupRow(t []byte, i int) (n, next int, titles bool) {
	open := 0   // the start of a cell, 0 outside
	label := -1 // where a label ends whose value may follow
	for {
		at := bytes.IndexByte(t[i:], '<')
		if at < 0 {
			return n, len(t), titles
		}
		at += i
		end := bytes.IndexByte(t[at:], '>')
		if end < 0 {
			return n, len(t), titles
		}
		end += at + 1
		var buf [8]byte
		tag := tagOf(&buf, t[at+1:end-1])
		switch string(tag) {
		case "tr", "dt", "/tr", "/dl", "/table":
			if n > 0 {
				return n, at, titles
			}
			if open = 0; string(tag) == "dt" {
				open = end
			}
		case "label":
			if n > 0 {
				return n, at, titles
			}
			open = end
		case "td", "th", "dd":
			open = end
		case "code", "span", "kbd", "samp":
			if n == 1 && label >= 0 && len(bytes.TrimSpace(t[label:at])) == 0 {
				open = end
			} else if open == 0 {
				label = -1
			}
		case "/code", "/span", "/kbd", "/samp":
			if n == 1 && label >= 0 && open > 0 {
				f.cells[1] = markupText(t, open, at)
				return 2, end, false
			}
		case "/td", "/th", "/dt", "/dd", "/label":
			if open > 0 && n < len(f.cells) {
				f.cells[n], titles = markupText(t, open, at), string(tag) == "/th"
				n++
			}
			if open, label = 0, -1; string(tag) == "/label" && n == 1 {
				label = end
			}
		}
		i = end
	}
}

// tagOf returns the name of a tag of HTML in small letters, in buf; of a longer one only
// the beginning.
func tagOf(buf *[8]byte, t []byte) []byte {
	n := 0
	for ; n < len(t) && n < len(buf) && (t[n] == '/' && n == 0 || lex.Classes[t[n]]&lex.IsAlnum != 0); n++ {
		buf[n] = t[n]
		if 'A' <= t[n] && t[n] <= 'Z' {
			buf[n] += 'a' - 'A'
		}
	}
	return buf[:n]
}

// markupText returns what a cell of HTML has between the tags around it.
func markupText(t []byte, from, to int) lex.Span {
	for from < to {
		if t[from] <= ' ' {
			from++
		} else if n := bytes.IndexByte(t[from:to], '>'); t[from] == '<' && n >= 0 {
			from += n + 1
		} else {
			break
		}
	}
	for from < to {
		if t[to-1] <= ' ' {
			to--
		} else if n := bytes.LastIndexByte(t[from:to], '<'); t[to-1] == '>' && n >= 0 {
			to = from + n
		} else {
			break
		}
	}
	return lex.Span{From: from, To: to}
}

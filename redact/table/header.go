package table

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// readHeader reads the line t[i:end], and reports whether it is the header of a
// table with secrets.
func (f *Finder) readHeader(t []byte, i, end int) bool {
	h := &f.header
	line := t[i:end]
	if h.body = end + 1; h.body >= len(t) || len(line) > maxHeader {
		return false
	}
	if columns, separator := copied(line); columns.From < columns.To {
		h.columns, h.separator = f.split(t, i+columns.From, i+columns.To, ','), separator
		return h.columns > 0 && f.readNames(t)
	}
	n := f.titles(t, i, end)
	if n < 2 {
		n = f.drawnTitles(t, i, end)
	}
	if n > 0 {
		h.columns, h.separator = n, '|'
		return f.readNames(t)
	}
	ruled := isRule(t[h.body:])
	if h.separator = separatorOf(line, ruled); h.separator == 0 {
		return false
	}
	if h.separator == '|' && !ruled && !isBoxed(line) {
		return false // commands with pipes between them
	}
	if h.columns = f.split(t, i, end, h.separator); h.separator == aligned {
		h.columns = f.align(t, i, end, ruled)
	}
	if h.columns < 2 && !ruled || h.columns == 0 || !f.readNames(t) {
		return false
	}
	if h.columns == 1 && h.separator == aligned && line[0] != ' ' && h.kinds[0] == secretColumn {
		h.kinds[0] = tokenColumn // or it is a heading of Markdown
	}
	return true
}

// titles puts the cells of a header of Jira, "||Name||Password||", in f.cells, and returns
// their number, 0 if the line t[i:end] is none.
func (f *Finder) titles(t []byte, i, end int) (n int) {
	i, end = trim(t, i, end)
	line := t[i:end]
	if len(line) < 5 || !bytes.HasPrefix(line, []byte("||")) || !bytes.HasSuffix(line, []byte("||")) {
		return 0
	}
	for at := i + 2; at < end && n < maxColumns; n++ {
		to := at + bytes.Index(t[at:end], []byte("||"))
		if to < at {
			return 0 // three bars
		}
		c := lex.Span{}
		c.From, c.To = trim(t, at, to)
		f.cells[n] = unquoted(t, c)
		at = to + 2
	}
	return n
}

// drawnTitles puts the cells of a header in a frame, "┌─name─┬─password─┐" of ClickHouse,
// in f.cells, and returns their number, 0 if the line t[i:end] is none.
func (f *Finder) drawnTitles(t []byte, i, end int) (n int) {
	i, end = trim(t, i, end)
	if line := t[i:end]; !bytes.HasPrefix(line, []byte("┌─")) && !bytes.HasPrefix(line, []byte("┏━")) {
		return 0
	}
	for at := i; at < end; {
		if frameLen(t[at:end]) > 0 {
			at += len("─")
			continue
		}
		if n == maxColumns {
			return 0
		}
		f.cells[n].From = at
		for at < end && frameLen(t[at:end]) == 0 {
			at++
		}
		f.cells[n].To = at
		n++
	}
	return n
}

// copied returns the names of the columns in a statement that has its rows on the
// lines below, as pg_dump writes it: "COPY t (id, password) FROM stdin;".
func copied(line []byte) (columns lex.Span, separator byte) {
	const verb = "COPY "
	if len(line) < len(verb) || !bytes.EqualFold(line[:len(verb)], []byte(verb)) {
		return columns, 0
	}
	from, to := bytes.IndexByte(line, '('), bytes.IndexByte(line, ')')
	if from < 0 || to < from {
		return columns, 0
	}
	source := bytes.ToLower(bytes.TrimSpace(line[to+1:]))
	if !bytes.HasPrefix(source, []byte("from stdin")) {
		return columns, 0
	}
	if bytes.Contains(source, []byte("csv")) {
		return lex.Span{From: from + 1, To: to}, ','
	}
	return lex.Span{From: from + 1, To: to}, '\t'
}

// separatorOf returns the separator of a header, 0 if the line is none.
func separatorOf(line []byte, ruled bool) byte {
	var separator byte
	gap, words := false, 1 // since the last separator
	for k, c := range line {
		switch {
		case lex.Classes[c]&lex.IsName != 0 && c != '$' && c != '%', lex.Classes[c]&lex.IsQuote != 0, c == '*' || c == '/' || c == '\r' || c == '#' && k == 0:
		case c == ' ' && k > 0 && line[k-1] == ' ':
			gap, words = true, 1
		case c == ' ':
			if words++; words > 4 && !ruled && separator != '|' {
				return 0 // a sentence
			}
		case c == '(' || c == ')' || c == '#' || c == '+' || c == ':':
			if separator != '|' && !ruled {
				return 0
			}
		case c == '|':
			separator, words = c, 0
		case (c == ',' || c == ';' || c == '\t') && separator != '|':
			if words = 0; separator == 0 || separator == ';' {
				separator = c
			}
		default:
			return 0
		}
	}
	if separator == 0 && hasDrawn(line) {
		return '|'
	}
	if separator == 0 && (gap || ruled) {
		return aligned
	}
	return separator
}

// hasDrawn reports whether a line has a pipe that is drawn.
func hasDrawn(line []byte) bool {
	for i := 0; ; i++ {
		n := bytes.IndexByte(line[i:], 0xE2)
		if n < 0 {
			return false
		}
		if i += n; pipeLen(line[i:]) > 0 {
			return true
		}
	}
}

// readNames reads the names in the cells, and reports whether a column may have
// secrets.
func (f *Finder) readNames(t []byte) bool {
	h := &f.header
	h.named = -1
	user, any := false, false
	value := -1
	for k := range h.columns {
		c := unquoted(t, f.cells[k])
		name := t[c.From:c.To]
		h.kinds[k] = otherColumn
		switch {
		case len(name) == 0:
			if h.separator != '|' {
				return false
			}
			continue
		case len(name) > names.MaxPairName || bytes.Count(name, []byte(" ")) > 2 || (h.separator == ',' || h.separator == ';') && !isTitle(t, c):
			if h.separator != '|' {
				return false
			}
			continue
		case isMeasure(name): // a line of values
			return false
		case isUser(name):
			user = true
		case f.Names.IsPairName(&f.name, name):
			h.kinds[k], any = secretColumn, true
			if isBroad(f.name.All) {
				h.kinds[k] = tokenColumn
			}
			continue
		}
		switch names.RoleOf(name) {
		case names.NameRole:
			if h.named < 0 {
				h.named, h.kinds[k] = k, nameColumn
			}
		case names.ValueRole:
			if value < 0 && !lex.HasFoldSuffix(name, "data") {
				value = k
			}
		}
	}
	if value >= 0 && h.named >= 0 {
		h.kinds[value], any = valueColumn, true
	}
	for k := range h.columns {
		if user && h.kinds[k] == tokenColumn {
			h.kinds[k] = secretColumn
		}
	}
	return any
}

// isTitle reports whether the name of a column in a list is quoted, one word or two
// words with capitals: otherwise the list may be a sentence's or a statement's.
func isTitle(t []byte, c lex.Span) bool {
	if c.From > 0 && lex.Classes[t[c.From-1]]&lex.IsQuote != 0 {
		return true
	}
	first, second, two := bytes.Cut(t[c.From:c.To], []byte(" "))
	return !two || 'A' <= second[0] && second[0] <= 'Z' && bytes.IndexByte(second, ' ') < 0 && !bytes.Equal(first, bytes.ToUpper(first))
}

// isMeasure reports whether a cell has a number, or one with a unit.
func isMeasure(b []byte) bool {
	if !lex.IsDigit(b[0]) {
		return false
	}
	digits := 0
	for _, c := range b {
		if lex.IsDigit(c) || c == '.' || c == '-' || c == ':' || c == '/' {
			digits++
		}
	}
	return 2*digits >= len(b)
}

// isUser reports whether a column has those whose secrets are in another one.
func isUser(name []byte) bool {
	switch string(name) {
	case "host", "hostname", "machine", "ssid", "SSID", "Host", "client_id", "access_key_id", "user_id", "userid", "uid":
		return true
	}
	return prose.IsUser(name)
}

// isBroad reports whether a folded name has other meanings: tokens are counted,
// keys name things, tests pass.
func isBroad(name []byte) bool {
	switch string(name) {
	case "token", "tokens", "auth", "authentication", "authorization", "secret", "secrets", "pass", "key", "keys", "pin", "pins", "credential", "credentials", "creds", "cookie", "cookies",
		"bearer", "jwt", "otp", "mfa", "csrf", "nonce", "pat", "totp", "puk", "signature", "passkey", "passkeys", "basicauth", "cvc", "cvv", "ssn":
		return true
	}
	return false
}

// row adds the secrets among the n cells of a line below the header.
func (f *Finder) row(t []byte, n int, found []lex.Span) []lex.Span {
	h := &f.header
	for k := range n {
		c := f.cells[k]
		if c.From == c.To {
			continue
		}
		kind := h.kinds[k]
		if kind == valueColumn && h.named < n && f.isSecret(t, f.cells[h.named]) {
			kind = secretColumn
		}
		if kind == secretColumn && isSecret(t[c.From:c.To], false) || kind == tokenColumn && isSecret(t[c.From:c.To], true) {
			found = append(found, c)
		}
	}
	return found
}

// isSecret reports whether the cell c has the name of a secret.
func (f *Finder) isSecret(t []byte, c lex.Span) bool {
	c = unquoted(t, c)
	return f.Names.IsPairName(&f.name, t[c.From:c.To])
}

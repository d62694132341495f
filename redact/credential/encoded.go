package credential

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
)

func (s *Scanner) unwrapper() *unwrapper {
	if s.unwrap == nil {
		s.unwrap = &unwrapper{inner: Scanner{Names: s.Names, Open: s.Open}}
	}
	return s.unwrap
}

// scanEncoded adds the runs of the text that hold a credential once decoded:
// base64, hexadecimal, percent-encoded, or escaped as in JSON or in C. Such a
// run is replaced as a whole. Only one level is decoded.
func (s *Scanner) scanEncoded() {
	s.unwrapper()
	raw := s.found // in order, while more is added behind them; those before the word are gone
	word, run, escapes := 0, 0, false
	joined := lex.Span{} // the last run with "+" and "/" in it
	hidden := 0          // the end of the last run that holds one
	for i := 0; i <= len(s.text); i++ {
		c := byte(' ')
		if i < len(s.text) {
			c = s.text[i]
		}
		if lex.Classes[c]&lex.IsAlnum != 0 {
			continue
		}
		if i-run >= formats.MinEncoded && run >= hidden {
			if s.hides(s.text[run:i]) {
				v := s.encodedRun(run, i)
				s.found, hidden = append(s.found, v), v.To
			} else if run >= joined.To {
				if joined = s.joinedRun(run, i); joined.From < joined.To && s.holds(s.text[joined.From:joined.To]) {
					s.found = append(s.found, joined)
				}
			}
		}
		mark := lex.MarkLen(s.text[min(i, len(s.text)):])
		run = i + max(1, mark)
		if lex.Classes[c]&lex.IsEnd != 0 || mark > 0 {
			if escapes {
				s.word(word, i, raw)
			}
			i += max(0, mark-1)
			for len(raw) > 0 && raw[0].To <= i {
				raw = raw[1:]
			}
			word, escapes = i+1, false
		} else if (c == '%' || c == '\\') && lex.IsEscape(s.text[i:]) {
			escapes = true
		}
	}
	s.wrapped()
	s.merge()
}

// maxLevels is how many strings in strings are looked into.
const maxLevels = 3

// maxInward is how often a text may be read as a string in itself, by one kind of quotation
// in the other. Of 9000 files of people, also put into JSON three times, none was read more
// than 12 times so; one that was made to take time, 42 times.
const maxInward = 16

// escaped adds the credentials of the strings in the text, in which lines and
// quotes are escapes: their structure shows only after decoding.
func (s *Scanner) escaped(levels int) {
	s.escapedIn('"', levels)
	s.escapedIn('\'', levels)
}

func (s *Scanner) escapedIn(quote byte, levels int) {
	t, u := s.text, s.unwrapper()
	s.merge()
	whole, found := 0, len(s.found) // the next span to compare strings with, and how many there are
	for i := 0; i < len(t); i++ {
		if t[i] != quote {
			continue
		}
		from := i + 1
		i = s.values.Closing(i, 0)
		if from >= i || bytes.IndexByte(t[from:i], '\\') < 0 {
			continue
		}
		for whole < found && s.found[whole].To < i {
			whole++
		}
		if whole < found && s.found[whole].From <= from {
			continue // it is redacted whole
		}
		u.text, u.at = u.text[:0], u.at[:0]
		for k := from; k < i; k++ {
			c, at := t[k], int32(k)
			if c == '\\' && k+1 < i {
				switch t[k+1] {
				case 'n', 'r':
					c = '\n'
					k++
				case 't':
					c = '\t'
					k++
				case 'u':
					if bytes.HasPrefix(t[k+2:i], []byte("001b")) {
						c = 0x1B
						k += len("u001b")
					}
				case '"', '\\', '/':
					c = t[k+1]
					k++
				}
			}
			u.text, u.at = append(u.text, c), append(u.at, at)
		}
		u.at = append(u.at, int32(i))
		s.inside(levels)
	}
	if len(s.found) > found {
		s.merge()
	}
}

// requoted adds the credentials that show once a shell has passed the text on: between
// apostrophes it has none but those of lex.RequoteLen.
func (s *Scanner) requoted(levels int) {
	t, u := s.text, s.unwrapper()
	from := 0
	for i := 0; i < len(t); i++ {
		if t[i] != '\'' {
			continue
		}
		if lex.RequoteLen(t[i:]) > 0 {
			u.text, u.at, i = lex.AppendRequoted(u.text[:0], u.at[:0], t, from)
			s.inside(levels)
		}
		from = i + 1
	}
	s.merge()
}

// veiled adds the credentials that a reader of the text sees: of markup, and without
// what shows nothing.
func (s *Scanner) veiled() {
	u := s.unwrapper()
	u.text, u.at = u.text[:0], u.at[:0]
	for i := 0; i < len(s.text); {
		c, n := lex.Shown(s.text[i:])
		if n == 0 {
			c = s.text[i]
		}
		if n == 0 || c != 0 {
			u.text, u.at = append(u.text, c), append(u.at, int32(i))
		}
		i += max(n, 1)
	}
	u.at = append(u.at, int32(len(s.text)))
	s.inside(maxLevels)
	s.merge()
}

// unmarked adds the credentials of the lines without what a diff, a comment, a quotation,
// a list or a printed file with numbers puts before each: rules about how a line starts see it.
func (s *Scanner) unmarked() {
	t, u := s.text[:min(len(s.text), maxUnmarked)], s.unwrapper()
	u.text, u.at = u.text[:0], u.at[:0]
	marked := false
	for i := 0; i < len(t); i++ {
		if i == 0 || t[i-1] == '\n' {
			n := lex.LineMark(t[i:])
			marked = marked || n > 0
			if i += n; i == len(t) {
				break
			}
		}
		u.text, u.at = append(u.text, t[i]), append(u.at, int32(i))
	}
	if marked {
		u.at = append(u.at, int32(len(t)))
		s.inside(1)
		s.merge()
	}
}

// maxUnmarked is how much of a text is read without the marks, in bytes: a record shows no more.
const maxUnmarked = 1 << 10

// inside adds the credentials of the unwrapper's text.
func (s *Scanner) inside(levels int) {
	u := s.unwrap
	if s.inward -= len(u.text); s.inward < 0 {
		s.values.Exhaust()
		return
	}
	u.inner.found, u.inner.inward = u.inner.found[:0], s.inward
	hint := u.inner.look(u.text)
	u.inner.scan(u.text, hint)
	if levels > 1 && hint&lookEscaped != 0 {
		u.inner.escaped(levels - 1)
	}
	if levels > 1 && hint&lookRequoted != 0 {
		u.inner.requoted(levels - 1)
	}
	s.inward = u.inner.inward
	s.values.SpendWith(&u.inner.values)
	for _, c := range u.inner.found {
		s.found = append(s.found, lex.Span{From: int(u.at[c.From]), To: int(u.at[c.To])})
	}
}

// encodedRun widens a run of letters and digits to the other bytes of base64.
func (s *Scanner) encodedRun(from, to int) lex.Span {
	for to < len(s.text) && lex.IsBase64(s.text[to]) {
		to++
	}
	return lex.Span{From: from, To: to}
}

// joinedRun widens a run of letters and digits to all of standard base64, in which
// "+" and "/" are between the runs. It is empty if there are none.
func (s *Scanner) joinedRun(from, to int) lex.Span {
	is := func(c byte) bool { return lex.Classes[c]&lex.IsAlnum != 0 || c == '+' || c == '/' }
	j := lex.Span{From: from, To: to}
	for j.From > 0 && is(s.text[j.From-1]) {
		j.From--
	}
	for j.To < len(s.text) && is(s.text[j.To]) {
		j.To++
	}
	if j.From == from && j.To == to {
		return lex.Span{From: to, To: to}
	}
	return j
}

// holds reports whether the text that a run of base64 encodes holds a credential.
func (s *Scanner) holds(run []byte) bool {
	u := s.unwrap
	u.text = lex.Narrowed(lex.AppendBase64(u.text[:0], run))
	return lex.IsText(u.text) && u.finds()
}

// wrapped adds the lines of base64 or hexadecimal that hold a credential together, as
// MIME, base64(1) and xxd(1) break them: all but the last are of one length.
func (s *Scanner) wrapped() {
	t, u := s.text, s.unwrap
	for i := 0; i < len(t); {
		end := lex.Base64End(t, i)
		width := end - i
		if width < minWrapped || width%4 != 0 || end == len(t) || t[end] >= ' ' && t[end] != '\\' {
			i = end + 1
			continue
		}
		block := lex.Span{From: i, To: end}
		for width == end-i {
			i = nextLine(t, end)
			end = lex.Base64End(t, i)
			if n := end - i; n == 0 || n > width || n%4 != 0 && n < formats.MinEncoded { // "EOF"
				break
			}
			block.To = end
		}
		i = block.To + 1
		if block.To-block.From == width {
			continue
		}
		u.text = lex.AppendUnhex(u.text[:0], t[block.From:block.From+width])
		decode := lex.AppendBase64
		if 2*len(u.text) == width {
			decode = lex.AppendUnhex
		}
		u.text = u.text[:0]
		for at := block.From; at < block.To; {
			to := lex.Base64End(t, at)
			u.text = decode(u.text, t[at:to])
			at = nextLine(t, to)
		}
		if lex.IsText(u.text) && u.finds() {
			s.found = append(s.found, block)
		}
	}
}

// dumps adds the lines of a dump of bytes that hold a credential together.
func (s *Scanner) dumps() {
	t, u := s.text, s.unwrapper()
	for i := 0; i < len(t); {
		u.text = u.text[:0]
		end, next := i, i // of the lines of a dump, and of the line behind them
		for read := -1; read < len(u.text) && next < len(t); {
			read, end = len(u.text), next
			next = len(t)
			if n := bytes.IndexByte(t[end:], '\n'); n >= 0 {
				next = end + n + 1
			}
			u.text = lex.AppendDumped(u.text, t[end:next])
			if read < len(u.text) {
				end = next
			}
		}
		if len(u.text) > 0 && u.finds() {
			s.found = append(s.found, lex.Span{From: i, To: i + len(bytes.TrimRight(t[i:end], "\r\n"))})
		}
		i = next
	}
	s.merge()
}

// nextLine returns the index behind the white space at i, also that of strings in strings.
func nextLine(t []byte, i int) int {
	for i < len(t) {
		switch {
		case t[i] <= ' ':
			i++
		case t[i] == '\\' && i+1 < len(t) && (t[i+1] == 'n' || t[i+1] == 'r'):
			i += 2
		default:
			return i
		}
	}
	return i
}

// minWrapped is the least length of a line of base64 that is broken.
const minWrapped = 56

// hides reports whether a run of letters and digits holds a credential, with
// the encoding starting at any byte.
func (s *Scanner) hides(run []byte) bool {
	u := s.unwrap
	if run[0] == '0' && run[1]|0x20 == 'x' { // 0x70617373 of SQL and C
		run = run[2:]
	}
	u.text = lex.AppendUnhex(u.text[:0], run)
	isHex := len(u.text) == len(run)/2 // which base64 of a text is not
	for skip := 0; skip < 4 && !isHex; skip++ {
		u.text = lex.Narrowed(lex.AppendBase64(u.text[:0], run[skip:]))
		if u.finds() {
			return true
		}
	}
	for skip := range 2 {
		u.text = lex.AppendUnhex(u.text[:0], run[skip:])
		if u.finds() {
			return true
		}
	}
	return false
}

// finds reports whether the decoded text holds a credential. Noise holds none:
// a credential is surrounded by text.
func (u *unwrapper) finds() bool {
	u.inner.found = u.inner.found[:0]
	if !lex.HasText(u.text) {
		return false
	}
	hint := u.inner.look(u.text)
	if !lex.IsText(u.text) {
		hint &= lookPlain | lookFormat // neither sentences nor commands
	}
	u.inner.scan(u.text, hint)
	if u.inner.values.IsSpent() {
		return true
	}
	for _, c := range u.inner.found {
		if lex.IsReadable(u.text[c.From:c.To]) {
			return true
		}
	}
	return false
}

// anyMark replaces a credential in a text that is only read.
const anyMark = "[redacted len=1 hmac=0000000000000000]"

// word adds text[from:to] if decoding its escapes reveals a credential in
// addition to those in raw.
func (s *Scanner) word(from, to int, raw []lex.Span) {
	u := s.unwrap
	u.inner.found = u.inner.found[:0]
	u.text = u.text[:0]
	done := from
	for _, c := range raw {
		if c.From >= to {
			break
		}
		if c.From > done {
			u.text = append(append(u.text, s.text[done:c.From]...), anyMark...)
		}
		done = max(done, c.To)
	}
	if done < to {
		u.text = append(u.text, s.text[done:to]...)
	}
	u.text = append(u.text[:0], s.values.Unescaped(u.text)...)
	u.inner.scan(u.text, u.inner.look(u.text))
	if len(u.inner.found) == 0 && bytes.IndexByte(s.text[from:to], '%') >= 0 && bytes.IndexByte(u.text, '+') >= 0 { // of a form: "+" is a space
		for i, c := range u.text {
			if c == '+' {
				u.text[i] = ' '
			}
		}
		u.inner.scan(u.text, u.inner.look(u.text))
	}
	if len(u.inner.found) > 0 || u.inner.values.IsSpent() {
		s.found = append(s.found, lex.Span{From: from, To: to})
	}
}

package credential

import (
	"bytes"

	"auditproxy/redact/call"
	"auditproxy/redact/formats"
	"auditproxy/redact/key"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
)

// scan finds the unencoded credentials in text, of the kinds in hint.
func (s *Scanner) scan(text []byte, hint int) {
	s.values.Read(text)
	s.values.Names, s.tables.Names, s.printed.Names = s.Names, s.Names, s.Names
	s.text, s.from, s.password, s.token, s.aws = text, 0, lex.Span{From: -1, To: -1}, 0, false
	s.at, s.end, s.pair, s.element = lex.Ahead{}, lex.Ahead{}, 0, 0
	s.under, s.unordered = lex.Span{}, false
	s.shell.Read(&s.values)
	s.sql.Read(&s.values)
	s.settings.Read(&s.values)
	if hint&lookPlain != 0 {
		s.triggers()
		if s.aws {
			s.found = key.AddSecrets(s.found, text)
			s.merge()
		}
		s.found = s.printed.Members(text, s.found)
		s.found = s.settings.Manifests(s.found, hint&lookCommand != 0)
		s.merge()
		n := len(s.found)
		if s.found = key.AddParts(s.found, &s.values); len(s.found) > n {
			s.merge()
		}
	}
	if hint&lookTable != 0 {
		s.found = s.printed.Find(text, s.shell.Blocks(s.found))
		s.merge()
		n := len(s.found)
		if s.found = s.tables.Find(text, s.found); len(s.found) > n {
			s.merge()
		}
	}
	if hint&lookFormat != 0 {
		s.formats()
	}
	if hint&lookCard != 0 {
		s.found = formats.Cards(text, s.found)
		s.merge()
	}
	if hint&lookCommand != 0 {
		s.found = s.shell.Find(s.found, s.Program)
		s.merge()
	}
	if hint&lookClause != 0 {
		s.found = s.sql.Clauses(s.found)
	}
	if hint&lookSaid != 0 {
		s.found = prose.Find(text, s.found)
		s.merge()
	}
}

// triggers adds the credentials that single bytes give away.
func (s *Scanner) triggers() {
	text := s.text
	for i := 0; i < s.values.End; {
		if i == s.password.From {
			if password := text[s.password.From:s.password.To]; lex.MarkLen(password) == len(password) || formats.IsPlaceholder(password) {
				s.from, s.password = s.password.To, lex.Span{From: -1, To: -1}
			} else {
				s.add(s.password)
			}
			i = s.from
			continue
		}
		if lex.Classes[text[i]]&lex.IsTrigger == 0 {
			i++
			continue
		}
		if i > 0 && !s.Open && isIdle(text, i) {
			i++
			continue
		}
		if n := lex.MarkLen(text[i:]); n > 0 {
			i += n
			s.from = i
			continue
		}
		if c := s.credential(i); c.From < c.To && !formats.IsPlaceholder(text[c.From:c.To]) {
			s.add(c)
			i = s.from
			continue
		}
		i++
	}
	if s.unordered {
		s.unordered = false
		s.merge()
	}
}

// isIdle reports whether the byte at i starts no credential, by the bytes next
// to it. Most bytes are idle.
func isIdle(t []byte, i int) bool {
	before := t[i-1]
	switch t[i] {
	case ' ', '\t', '\n':
		return before|0x20 != 'r' && before|0x20 != 'c' && (i+1 == len(t) || t[i+1] != '"' && t[i+1] != '\'')
	case ',':
		return lex.Classes[before]&lex.IsQuote == 0 && (before != ' ' || i < 2 || lex.Classes[t[i-2]]&lex.IsQuote == 0) &&
			(i+2 >= len(t) || t[i+1] != '"' && t[i+1] != '<' && (t[i+1] != ' ' || lex.Classes[t[i+2]]&lex.IsQuote == 0 && t[i+2] != '<'))
	case '(':
		return lex.Classes[before]&lex.IsName == 0 && before != ' ' && before != '<' && before != '!'
	case '{':
		return !endsVariable(before) || i+1 == len(t) || t[i+1] != '"' && lex.PrefixLen(t[i+1:]) == 0
	case 'I':
		return before != 'A' && before != 'K' && before != 'S'
	case 'J':
		return before != 'y'
	}
	return false
}

func (s *Scanner) add(c lex.Span) {
	c.To = s.reach(c)
	s.found = append(s.found, c)
	s.from = c.To
	if s.password.From < c.To {
		s.password = lex.Span{From: -1, To: -1}
	}
}

// write takes what a command writes, with the credentials before it.
func (s *Scanner) write(found []lex.Span) {
	s.unordered = s.unordered || len(found) > len(s.found)
	s.found = found
}

// reach returns the end of c, or of another credential that starts in it and
// ends behind it: white space ends an assigned value, but not a key.
func (s *Scanner) reach(c lex.Span) int {
	const begin = "-----BEGIN"
	if bytes.HasSuffix(s.text[:c.To], []byte(begin)) {
		return max(c.To, key.PEM(s.text, s.from, c.To-len(begin)).To)
	}
	if s.text[c.From] == '-' && c.From < c.To {
		return max(c.To, s.option(c.From).To)
	}
	for _, id := range []string{"AKIA", "ASIA"} {
		s.aws = s.aws || bytes.Contains(s.text[c.From:c.To], []byte(id))
	}
	return c.To
}

// credential returns the credential that the byte at i gives away, if any. It
// ends behind i.
func (s *Scanner) credential(i int) lex.Span {
	t := s.text
	switch t[i] {
	case '=':
		return s.assigned(i)
	case ':':
		if bytes.HasPrefix(t[i:], []byte("://")) {
			return s.url(i)
		}
		if s.Message {
			return lex.Span{}
		}
		return s.assigned(i)
	case '-':
		if c := key.PEM(t, s.from, i); c.To > 0 {
			return c
		}
		if s.under.From <= i && i < s.under.To {
			if c := s.item(i); c.To > 0 {
				return c
			}
		}
		if i == 0 || lex.Classes[t[i-1]]&lex.IsName == 0 {
			if c := s.option(i); c.To > 0 {
				return c
			}
		} else if c := s.settings.IfUnset(i); c.From < c.To {
			return c
		}
	case ' ', '\t', '\n':
		if i+1 < len(t) && (t[i+1] == '"' || t[i+1] == '\'') {
			return s.described(i)
		}
		return s.schemed(i)
	case ',':
		end := stringEnd(t, i)
		if end == 0 {
			if c := s.tuple(i); c.From < c.To {
				return c
			}
			return call.BareSecond(&s.values, &s.name, s.from, i)
		}
		return s.listed(i, end)
	case '>':
		s.write(s.shell.Redirected(s.found, s.from, i))
		if i+3 < len(t) && t[i+1] == ' ' && t[i+2] == '-' && (t[i+3] == '-' || lex.Classes[t[i+3]]&lex.IsAlnum != 0) {
			return lex.Span{} // of a manual: openssl rsa -in <KEY> -check
		}
		if c := s.settings.Granted(i); c.From < c.To {
			return c
		}
		if c := s.settings.AtPrompt(i); c.From < c.To {
			return c
		}
		return s.tagged(i)
	case '(':
		s.write(s.sql.Rows(s.found, i))
		s.write(s.sql.AnyOf(s.found, s.from, i))
		if i > 0 && t[i-1] == '<' {
			s.write(s.shell.Processed(s.found, i))
		}
		return s.called(i)
	case '{':
		return s.initialized(i)
	case '[':
		s.section(i)
	case 0xEF:
		if lex.IsWide(t[i:]) && !s.Message {
			return s.wide(i)
		}
	case 'I':
		c, isAWS := key.OfCloud(t, s.from, i)
		s.aws = s.aws || isAWS
		return c
	case 'J':
		return key.JWT(t, s.from, i, &s.token)
	}
	return lex.Span{}
}

// formats adds the credentials of known formats.
func (s *Scanner) formats() {
	s.known.Open = s.Open
	var any bool
	if s.found, any = s.known.Find(s.text, s.windows, s.found); any {
		s.merge()
	}
}

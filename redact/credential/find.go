// Package credential finds credentials in a text: prose, code, configuration,
// markup, a command or anything else.
//
// look decides in one pass what the text may have; most texts have nothing. The
// scan stops at bytes that can show a credential: an assignment, a URL, an
// option, a quotation, a token. Known formats, keys, command lines, statements of SQL
// and the arguments of functions are found by packages formats, key, shell, sql and
// call. Decoded texts are scanned like others.
//
// The files, from the top: find, encoded, scan, called, described, option, url, look,
// markup, assignment, pairs, prompts, under, scanner.
package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/printed"
)

// Find returns the credentials in text, in order and apart, in the
// scanner's memory, in time linear in text.
func (s *Scanner) Find(text []byte) []lex.Span {
	s.found = s.found[:0]
	hint := s.look(text)
	if len(s.Given) > 0 {
		hint |= lookPlain
	}
	if s.Program.Programs != 0 {
		hint |= lookCommand
	}
	if hint == 0 {
		return nil
	}
	s.text, s.inward = text, maxInward*len(text)+64<<10
	s.scan(text, hint)
	if len(s.Given) > 0 {
		s.found = append(s.found, s.Given...)
		s.merge()
	}
	if hint&lookEscaped != 0 {
		s.escaped(maxLevels)
	}
	if hint&lookRequoted != 0 {
		s.requoted(maxLevels)
	}
	if hint&lookVeiled != 0 {
		s.veiled()
	}
	if hint&lookTable != 0 || lex.LineMark(text) > 0 {
		s.unmarked()
	}
	if hint&lookEncoded != 0 {
		s.scanEncoded()
	}
	if hint&lookTable != 0 {
		if bytes.Contains(text, []byte("000")) { // of an offset
			s.dumps()
		}
		printed.Widen(text, s.found)
		s.merge()
	}
	if s.values.IsSpent() { // what was not read is hidden
		s.found = append(s.found[:0], lex.Span{From: 0, To: len(text)})
	}
	s.text, s.values.Text = nil, nil
	return s.found
}

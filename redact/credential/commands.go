package credential

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// commands adds the secrets among the arguments of programs that the text
// names, in time linear in the text.
func (s *Scanner) commands() {
	t := s.text
	c := s.Program
	var quote, outer byte // the quote that is open, and the one around the program
	echo, piped := lex.Span{}, lex.Span{}
	group := 0                           // where in parentheses or braces the first text is written
	began := 0                           // where the first program of the command is
	echoing, here := false, 0            // here is where the last here-string ends
	text := 0                            // where the last quotation ends that echo writes
	reads, document := false, lex.Span{} // in this line: a program that reads a secret, and the end of a here-document
	for i := 0; i < len(t); {
		if b := t[i]; lex.IsWordBreak(b) || b == '\\' && i+1 < len(t) && (lex.Classes[t[i+1]]&lex.IsQuote != 0 || t[i+1] == '\\' || t[i+1] == '\n') {
			switch {
			case lex.Classes[b]&lex.IsQuote != 0:
				switch {
				case i > 0 && t[i-1] == '\\', lex.IsContraction(t, i): // of a string in a string, no quote
				case quote == b:
					quote = 0
				case quote == 0 && outer == b:
					c, echoing, outer = argv.Command{}, false, 0
				default:
					if echoing && i >= text {
						text = i + argv.QuotedLen(t[i:min(len(t), i+maxPair)])
					}
					if quote == 0 {
						quote = b
					}
				}
			case i < text:
			case (b == ';' || b == '|' || b == '&' || b == '\n') && (quote == 0 || c.Programs == 0 && !(echoing && b == '\n')) && !s.continued(i) && (c.Programs&argv.Machine == 0 || b != '\n' || !argv.IsOfMachine(t[i+1:])):
				reads = reads || c.Reads
				if b == '\n' {
					if reads && document.To > 0 {
						i = s.document(i+1, t[document.From:document.To])
					}
					reads, document = false, lex.Span{}
				}
				if b != '|' || i+1 < len(t) && t[i+1] == '|' {
					piped = lex.Span{}
				} else {
					switch before := bytes.TrimRight(t[max(0, i-4):i], " "); {
					case group > 0 && len(before) > 0 && (before[len(before)-1] == ')' || before[len(before)-1] == '}'):
						piped = lex.Span{From: group, To: i}
					case echoing:
						piped = lex.Span{From: echo.From, To: i}
					}
				}
				if echoing && group == 0 {
					group = echo.From
				}
				c, echoing = argv.Command{}, false
			case b == '(' || b == '{':
				group = 0
			case b == '<' && bytes.HasPrefix(t[i:], []byte("<<")) && !bytes.HasPrefix(t[i:], []byte("<<<")) && (i == 0 || t[i-1] != '<'):
				document = argv.Delimiter(t, i+2)
			}
			i++
			continue
		}
		from := i
		for i < len(t) && !lex.IsWordBreak(t[i]) && (t[i] != '\\' || i+1 == len(t) || lex.Classes[t[i+1]]&lex.IsQuote == 0 && t[i+1] != '\\') {
			i++
		}
		w := t[from:i]
		if n := lex.MarkLen(t[max(from-1, 0):]); n > 0 && from > 0 {
			i = from - 1 + n // "[redacted …]" is an argument like any other
			c.Redacted()
			continue
		}
		before := c.Programs
		f, at := c.Word(w, s.Names, &s.name)
		if before == 0 && c.Programs != 0 {
			began = from
			if quote != 0 && (i == len(t) || t[i] != quote) { // sh -c "mysql …", not ["mysql", …]
				outer, quote = quote, 0
			}
		}
		if f == argv.LastWord && (i < len(t) && t[i] >= ' ' && lex.Classes[t[i]]&lex.IsQuote == 0 && !bytes.HasPrefix(t[i:], []byte(" |")) && !prose.LooksSecret(w) || from-began > maxPair || !s.startsLine(began) && !s.behindPrompt(began) || argv.IsMechanism(w) || bytes.ContainsAny(t[began:from], ",`'\"") && !argv.IsProtocol(t[began:from])) {
			f = argv.NoSecret
		}
		switch {
		case f != argv.NoSecret && string(w) == "$" && i < len(t) && t[i] == '(': // -p $(openssl passwd SECRET)
		case f == argv.WholeWord && w[len(w)-1] == '=' && lex.MarkLen(t[i:]) > 0:
			i += lex.MarkLen(t[i:])
		case f != argv.NoSecret:
			i = s.argument(from, at, f)
		case c.Reads && from > 1 && t[from-1] == '(' && t[from-2] == '<' && (string(w) == "echo" || string(w) == "printf"):
			if n := bytes.IndexByte(t[i:min(len(t), i+maxPair)], ')'); n >= 0 {
				s.echoed(lex.Span{From: i, To: i + n})
			}
		case string(w) == "echo" || string(w) == "printf" || string(w) == "yes":
			echoing, echo.From = true, i
			if w[0] == 'p' {
				s.printed(i)
			}
		case string(w) == "base64" && piped.From < piped.To:
			s.userInfo(piped)
		case c.Reads && piped.From < piped.To:
			s.echoed(piped)
			piped = lex.Span{}
		}
		if c.Reads && i >= here && i+3 < len(t) && bytes.HasPrefix(bytes.TrimLeft(t[i:min(i+8, len(t))], " "), []byte("<<<")) {
			at := i + bytes.Index(t[i:], []byte("<<<")) + 3
			here = s.shellWord(at + len(t[at:]) - len(bytes.TrimLeft(t[at:], " ")))
			s.echoed(lex.Span{From: at, To: here})
		}
	}
	s.merge()
}

// behindPrompt reports whether only the prompt of a client, or the tag of a line
// of IMAP, is before i in its line.
func (s *Scanner) behindPrompt(i int) bool {
	t := s.text
	from := i
	for from > 0 && i-from <= names.MaxPairName && t[from-1] != '\n' && lex.Classes[t[from-1]]&lex.IsQuote == 0 {
		from--
	}
	prompt := bytes.TrimRight(t[from:i], " ")
	if len(prompt) == 0 || len(prompt) > names.MaxPairName || len(prompt) == i-from {
		return false
	}
	switch last := prompt[len(prompt)-1]; {
	case bytes.HasSuffix(prompt, []byte("echo")), string(prompt) == "/msg" || string(prompt) == "PRIVMSG":
		return true
	case bytes.IndexByte(prompt, ' ') > 0:
		return last == '>' || last == ':'
	case last == '>' || last == ':' || last == '.' || last == '*':
		return true
	}
	return lex.IsDigit(prompt[len(prompt)-1]) && len(prompt) < 8
}

// document adds the here-document that starts at i and ends at a line of that
// delimiter, and returns where it ends.
func (s *Scanner) document(i int, delimiter []byte) int {
	t := s.text
	for from := i; ; {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			end = len(t) - i
		}
		if len(delimiter) > 0 && bytes.Equal(bytes.TrimSpace(t[i:i+end]), delimiter) {
			s.echoed(lex.Span{From: from, To: i})
			return i
		}
		if i += end + 1; i >= len(t) {
			s.echoed(lex.Span{From: from, To: len(t)})
			return len(t)
		}
	}
}

// continued reports whether the line break at i does not end a command.
func (s *Scanner) continued(i int) bool {
	if s.text[i] != '\n' || i == 0 {
		return false
	}
	return s.text[i-1] == '\\' || s.text[i-1] == ',' || s.text[i-1] == '['
}

// argument adds the secret in the argument that starts at from, whose part
// behind at has that form, and returns where the argument ends.
func (s *Scanner) argument(from, at int, f argv.Form) int {
	t := s.text
	quoted := from > 0 && lex.Classes[t[from-1]]&lex.IsQuote != 0
	to := from
	if !quoted { // it would read on from the closing quote, through all that follow
		to = s.shellWord(from)
	} else if at == 0 {
		level := 0
		for level < from-1 && t[from-2-level] == '\\' {
			level++
		}
		to = s.values.Closing(from-1, level)
	} else {
		to = lex.CredentialEnd(s.text, from)
	}
	from += at
	for from < to && (lex.Classes[t[from]]&lex.IsQuote != 0 || t[from] == '\\') {
		from++
	}
	end := to
	for end > from && (lex.Classes[t[end-1]]&lex.IsQuote != 0 || t[end-1] == '\\') {
		end--
	}
	c := f.Within(t[from:end])
	for c.From < c.To && lex.Classes[t[from+c.From]]&lex.IsQuote != 0 {
		c.From++
	}
	for c.From < c.To && lex.Classes[t[from+c.To-1]]&lex.IsQuote != 0 {
		c.To--
	}
	if c.From < c.To {
		if n := lex.MarkLen(t[from+c.From:]); n > 0 {
			return from + c.From + n
		}
		if !formats.IsPlaceholder(t[from+c.From : from+c.To]) {
			s.found = append(s.found, lex.Span{From: from + c.From, To: from + c.To})
		}
	}
	return max(to, from)
}

// shellWord returns where the word at i ends that a shell would see.
func (s *Scanner) shellWord(i int) int { return argv.WordEnd(s.text, i, &s.unquoted) }

// printed adds the secrets among the arguments of the printf before i.
func (s *Scanner) printed(i int) {
	t := s.text
	word := func(at int) lex.Span {
		at += len(t[at:]) - len(bytes.TrimLeft(t[at:], " \t"))
		return lex.Span{From: at, To: s.shellWord(at)}
	}
	w := word(i)
	for secrets := argv.Printed(t[w.From:w.To], s.Names, &s.name); secrets != 0; secrets >>= 1 {
		if w = word(w.To); w.From == w.To {
			return
		}
		if secrets&1 != 0 {
			s.echoed(w)
		}
	}
}

// userInfo adds the password of USER:PASSWORD, which is encoded next (RFC 7617).
func (s *Scanner) userInfo(c lex.Span) {
	c.To = c.From + len(bytes.TrimRight(s.text[c.From:c.To], " \t\n'\"`"))
	from := c.To
	for from > c.From && s.text[from-1] > ' ' && lex.Classes[s.text[from-1]]&lex.IsQuote == 0 {
		from--
	}
	word := s.text[from:c.To]
	if mark := bytes.LastIndex(s.text[c.From:c.To], []byte(lex.RedactedMark)); mark >= 0 && mark+lex.MarkLen(s.text[c.From+mark:]) == c.To-c.From {
		return
	}
	if bytes.Contains(s.text[c.From:from], []byte("%s:%s")) {
		s.echoed(lex.Span{From: from, To: c.To})
	} else if v := argv.AfterColon.Within(word); v.From < v.To && !bytes.Contains(word, []byte("://")) {
		s.echoed(lex.Span{From: from + v.From, To: from + v.To})
	}
}

// echoed adds the text that a command writes for the next to read.
func (s *Scanner) echoed(c lex.Span) {
	t := s.text
	for c.From < c.To && (t[c.From] <= ' ' || lex.Classes[t[c.From]]&lex.IsQuote != 0) {
		c.From++
	}
	for c.From+3 < c.To && t[c.From] == '-' && t[c.From+2] == ' ' {
		c.From += 3
	}
	for c.From < c.To && (t[c.From] <= ' ' || lex.Classes[t[c.From]]&lex.IsQuote != 0) {
		c.From++
	}
	for c.From < c.To && (t[c.To-1] <= ' ' || lex.Classes[t[c.To-1]]&lex.IsQuote != 0) {
		c.To--
	}
	if c.From < c.To && lex.MarkLen(t[c.From:]) == 0 && !formats.IsPlaceholder(t[c.From:c.To]) {
		s.found = append(s.found, c)
	}
}

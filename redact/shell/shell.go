// Package shell finds the secrets in command lines: among the arguments of programs, and in
// what commands write for others to read.
//
// The files, from the top: shell, written, finder.
package shell

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// Find adds the secrets among the arguments of programs that the text
// names, in time linear in the text. It may be the arguments of a program itself.
func (f *Finder) Find(found []lex.Span, program argv.Command) []lex.Span {
	f.found = found
	t := f.values.Text
	c := program
	var quote, outer byte // the quote that is open, and the one around the program
	echo, piped := lex.Span{}, lex.Span{}
	group := 0                              // where in parentheses or braces the first text is written
	began := 0                              // where the first program of the command is
	echoing, here := false, 0               // here is where the last here-string ends
	text := 0                               // where the last quotation ends that echo writes
	nth, quiet, reader := 0, false, byte(0) // words of the command; it reads text; it is read, or pw of FreeBSD
	script, scripted := false, false        // the next quotation, the open one is what a shell runs: su -c "echo SECRET | passwd"
	inner := byte(0)                        // the quote that is open in that
	reads, document := false, lex.Span{}    // in this line: a program that reads a secret, and the end of a here-document
	asks, line := false, 0                  // it reads a secret from a terminal, the line that starts here
	var option []byte                       // the word before, if it is one
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
						text = i + argv.QuotedLen(t[i:min(len(t), i+maxWords)])
					}
					if quote == 0 {
						quote, scripted, inner = b, script, 0
					} else if scripted && inner == b {
						inner = 0
					} else if scripted && inner == 0 {
						inner = b
					}
				}
			case i < text:
			case (b == ';' || b == '|' || b == '&' || b == '\n') && (quote == 0 || scripted && inner == 0 && b != '\n' || c.Programs == 0 && !(echoing && b == '\n')) && !f.continued(i) && (c.Programs&argv.Machine == 0 || b != '\n' || !argv.IsOfMachine(t[i+1:])):
				reads = reads || c.Reads
				if b == '\n' {
					if reads && document.To > 0 {
						i = f.document(i+1, t[document.From:document.To])
					}
					if asks && !bytes.ContainsAny(t[line:i], "|<") {
						f.answer(i + 1)
					}
					asks, line = false, i+1
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
				nth, quiet, reader, option = 0, false, 0, nil
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
			if i++; t[i-1] == '$' {
				i += max(argv.VariableLen(t[i-1:])-1, 0)
			}
		}
		w := t[from:i]
		script = w[len(w)-1] == 'c' && w[0] == '-' && argv.IsScript(t[max(0, from-maxBefore):from], w)
		if n := lex.MarkLen(t[max(from-1, 0):]); n > 0 && from > 0 {
			i = from - 1 + n // "[redacted …]" is an argument like any other
			c.Redacted()
			continue
		}
		before := c.Programs
		form, at := c.Word(w, f.values.Names, &f.name)
		if string(w) != "sudo" && string(w) != "doas" && string(w) != "$" && (nth > 0 || w[len(w)-1] != '=') {
			nth++
		}
		quiet = quiet || nth == 1 && argv.ReadsText(w)
		if option != nil || w[0] == '-' || c.Files {
			c.Reads = c.Reads || argv.IsInput(option, w) || c.Files && string(w) == "/dev/stdin"
			if option = nil; w[0] == '-' && len(w) > 2 {
				option = w
			}
		}
		c.Reads = c.Reads || !quiet && nth > 0 && (from == 0 || t[from-1] != '<') && argv.TakesSecret(w, nth)
		if nth == 1 && (string(w) == "read" || string(w) == "pw") {
			reader = w[0]
		}
		asks = asks || w[0] == '-' && (reader == 'r' && w[len(w)-1] != '-' && lex.Classes[w[1%len(w)]]&lex.IsAlnum != 0 && bytes.IndexByte(w, 's') > 0 || argv.IsTyped(w))
		c.Reads = c.Reads || reader == 'p' && (string(w) == "-h" || string(w) == "-H")
		if before == 0 && c.IsTold() && (!argv.StartsCommand(t, from, i) || from > 0 && i < len(t) && t[i] == t[from-1] && t[i] > ' ') {
			c = argv.Command{} // a word of a sentence, or one in quotation marks
		}
		if before == 0 && c.Programs != 0 {
			began = from
			if quote != 0 && (i == len(t) || t[i] != quote) { // sh -c "mysql …", not ["mysql", …]
				outer, quote = quote, 0
			}
		}
		if form == argv.LastWord && (i < len(t) && t[i] >= ' ' && lex.Classes[t[i]]&lex.IsQuote == 0 && !bytes.HasPrefix(t[i:], []byte(" |")) && !prose.LooksSecret(w) || from-began > maxWords || !lex.StartsLine(t, began) && !f.behindPrompt(began) && !bytes.HasSuffix(t[:began], []byte("; ")) || argv.IsMechanism(w) || bytes.ContainsAny(t[began:from], ",`'\"") && !argv.IsProtocol(t[began:from])) {
			form = argv.NoSecret
		}
		if form == argv.AtLogin && (lex.HasFoldSuffix(t[:began], "SQL> ") || lex.HasFoldSuffix(t[began:from], "conn ") && lex.StartsLine(t, began)) {
			form = argv.AfterSlash // of SQL*Plus
		}
		if form != argv.NoSecret && from > 1 && t[from-1] == '(' && t[from-2] == '$' && (string(w) == "echo" || string(w) == "printf") {
			form = argv.NoSecret // a command of its own
		}
		switch {
		case form != argv.NoSecret && w[len(w)-1] == '$' && i < len(t) && t[i] == '(' && (string(w) == "$" || at == len(w)-1): // -p $(openssl passwd SECRET), -p$(echo SECRET)
			for _, command := range [...]string{"echo ", "printf "} {
				if from := lex.After(t, i+1, command); from > 0 {
					if n := bytes.IndexByte(t[from:min(len(t), from+maxWords)], ')'); n >= 0 {
						f.echoed(lex.Span{From: from, To: from + n})
					}
				}
			}
		case form == argv.WholeWord && w[len(w)-1] == '=' && lex.MarkLen(t[i:]) > 0:
			i += lex.MarkLen(t[i:])
		case form != argv.NoSecret:
			i = f.argument(from, at, form)
		case (c.Reads || c.Files) && from > 1 && t[from-1] == '(' && t[from-2] == '<' && (string(w) == "echo" || string(w) == "printf"):
			if n := bytes.IndexByte(t[i:min(len(t), i+maxWords)], ')'); n >= 0 {
				f.echoed(lex.Span{From: i, To: i + n})
			}
		case string(w) == "echo" || string(w) == "printf" || string(w) == "yes" || string(w) == "Write-Output":
			echoing, echo.From = true, i
			if w[0] == 'p' && i < len(t) && (t[i] == ' ' || t[i] == '\t') {
				f.printed(i)
			}
		case string(w) == "AUTH":
			f.framed(i)
		case string(w) == "REG_SZ" || string(w) == "REG_EXPAND_SZ":
			f.registered(from, i)
		case reader == 'r' && nth > 1 && piped.From < piped.To && f.values.Names.IsPairName(&f.name, w):
			f.echoed(piped)
			piped = lex.Span{}
		case string(w) == "base64" && piped.From < piped.To:
			f.userInfo(piped)
		case c.Reads && piped.From < piped.To:
			f.echoed(piped)
			piped = lex.Span{}
		case began == from && lex.HasFoldSuffix(w, "ConvertTo-SecureString"):
			f.echoed(f.pipedString(from))
		}
		if c.Reads && i >= here && i+3 < len(t) && bytes.HasPrefix(bytes.TrimLeft(t[i:min(i+8, len(t))], " "), []byte("<<<")) {
			at := i + bytes.Index(t[i:], []byte("<<<")) + 3
			here = f.shellWord(at + len(t[at:]) - len(bytes.TrimLeft(t[at:], " ")))
			f.echoed(lex.Span{From: at, To: here})
		}
	}
	f.typed()
	f.cases()
	return f.found
}

// behindPrompt reports whether only the prompt of a client, or the tag of a line
// of IMAP, is before i in its line.
func (f *Finder) behindPrompt(i int) bool {
	t := f.values.Text
	from := i
	for from > 0 && i-from <= names.MaxPairName && t[from-1] != '\n' && lex.Classes[t[from-1]]&lex.IsQuote == 0 {
		from--
	}
	prompt := bytes.TrimRight(t[from:i], " ")
	if len(prompt) == 0 || len(prompt) > names.MaxPairName || len(prompt) == i-from {
		return len(prompt) > 0 && prompt[len(prompt)-1] == ')' && t[i] == '#' // of a router
	}
	switch last := prompt[len(prompt)-1]; {
	case bytes.HasSuffix(prompt, []byte("echo")), string(prompt) == "/msg" || string(prompt) == "PRIVMSG":
		return true
	case bytes.IndexByte(prompt, ' ') > 0:
		before, tag := prompt[:bytes.LastIndexByte(prompt, ' ')], prompt[bytes.LastIndexByte(prompt, ' ')+1:]
		return last == '>' || last == ':' || lex.IsDigit(last) && len(tag) < 8 && (bytes.HasSuffix(before, []byte(">")) || bytes.HasSuffix(before, []byte("C:"))) // and a tag
	case last == '>' || last == ':' || last == '.' || last == '*':
		return true
	case last == '#' && len(prompt) > 1: // of a router, too
		before := prompt[len(prompt)-2]
		return before == ')' || lex.Classes[before]&lex.IsAlnum != 0
	}
	return lex.IsDigit(prompt[len(prompt)-1]) && len(prompt) < 8
}

// continued reports whether the line break at i does not end a command, as before its
// arguments in TOML: args = ["-p", "SECRET"].
func (f *Finder) continued(i int) bool {
	t := f.values.Text
	if t[i] != '\n' || i == 0 {
		return false
	}
	line := bytes.TrimLeft(t[i+1:min(len(t), i+1+names.MaxPairName)], " ")
	n := 0
	for n < len(line) && lex.Classes[line[n]]&lex.IsName != 0 {
		n++
	}
	if names.IsArguments(line[:n]) && bytes.HasPrefix(bytes.TrimLeft(line[n:], " =:"), []byte("[")) {
		return true
	}
	if t[i-1] == '\r' && i > 1 {
		i--
	}
	return t[i-1] == '\\' || t[i-1] == ',' || t[i-1] == '['
}

// argument adds the secret in the argument that starts at from, whose part
// behind at has that form, and returns where the argument ends.
func (f *Finder) argument(from, at int, form argv.Form) int {
	t := f.values.Text
	quoted := from > 0 && lex.Classes[t[from-1]]&lex.IsQuote != 0
	to := from
	if !quoted { // it would read on from the closing quote, through all that follow
		to = f.shellWord(from)
	} else if at == 0 {
		level := 0
		for level < from-1 && t[from-2-level] == '\\' {
			level++
		}
		to = f.values.Closing(from-1, level)
	} else {
		to = lex.CredentialEnd(f.values.Text, from)
	}
	from += at
	for from < to && (lex.Classes[t[from]]&lex.IsQuote != 0 || t[from] == '\\') {
		from++
	}
	end := to
	for end > from && (lex.Classes[t[end-1]]&lex.IsQuote != 0 || t[end-1] == '\\') {
		end--
	}
	c := form.Within(t[from:end])
	for c.From < c.To && lex.Classes[t[from+c.From]]&lex.IsQuote != 0 {
		c.From++
	}
	for c.From < c.To && lex.Classes[t[from+c.To-1]]&lex.IsQuote != 0 {
		c.To--
	}
	if c.From < c.To {
		if n := lex.MarkLen(t[from+c.From:]); n > 0 {
			return max(to, from+c.From+n)
		}
		if !formats.IsPlaceholder(t[from+c.From : from+c.To]) {
			f.found = append(f.found, lex.Span{From: from + c.From, To: from + c.To})
		}
	}
	return max(to, from)
}

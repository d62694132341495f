// Package shell finds the secrets in command lines: among the arguments of programs, and in
// what commands write for others to read.
//
// The files, from the top: shell, dialog, written, finder.
package shell

import (
	"bytes"
	"strings"

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
	c := commands{Finder: f, text: f.values.Text, command: command{program: program}}
	for c.at < len(c.text) {
		if isBreak(c.text, c.at) {
			c.separator()
		} else {
			c.word()
		}
	}
	f.typed()
	f.cases()
	f.loops()
	return f.found
}

// commands reads the commands of a text, one word after the other.
type commands struct {
	*Finder
	text []byte
	at   int // what is before has been read

	command command
	line    line
	output  output
	quotes  quotes
	here    int // where the last here-string ends
}

// command is what was read of one command.
type command struct {
	program  argv.Command
	began    int    // where the program is
	words    int    // how many of it were read
	option   []byte // the word before, if it is one
	isFilter bool   // it reads text to look for something in it
	reader   byte   // the first byte of read, or of FreeBSD's pw
}

// line is what the commands of a line may read from the lines below.
type line struct {
	start    int
	reads    bool     // a secret, from a here-document
	document lex.Span // the delimiter of that
	asks     bool     // a secret, from a terminal
}

// output is what commands write for others to read.
type output struct {
	writes bool     // the command is echo or the like
	from   int      // where what it writes begins
	quoted int      // where the last quotation in that ends
	group  int      // where the first one of parentheses or braces writes, 0 if none has
	piped  lex.Span // what was written for the command that is being read
}

// quotes are the quotation marks that are open, 0 for none.
type quotes struct {
	open     byte
	outer    byte // around a program: sh -c "mysql …"
	inner    byte // in a script
	isScript bool // open is around a script: su -c "echo SECRET | passwd"
	toScript bool // the next one is
	around   bool // the script is an argument of program
	program  argv.Command
}

// isBreak reports whether t[i] is no part of a word.
func isBreak(t []byte, i int) bool {
	return lex.IsWordBreak(t[i]) || isEscape(t, i) || t[i] == '\\' && i+1 < len(t) && t[i+1] == '\n'
}

// isEscape reports whether t[i] is a backslash before a quotation mark or another one, as in
// strings in strings.
func isEscape(t []byte, i int) bool {
	return t[i] == '\\' && i+1 < len(t) && (lex.Classes[t[i+1]]&lex.IsQuote != 0 || t[i+1] == '\\')
}

// separator reads a byte that is no part of a word.
func (c *commands) separator() {
	t, i := c.text, c.at
	switch b := t[i]; {
	case lex.Classes[b]&lex.IsQuote != 0:
		c.quotationMark(b)
	case i < c.output.quoted:
	case c.endsCommand(b):
		c.endCommand(b)
	case b == '(' || b == '{':
		c.output.group = 0
	case b == '<' && bytes.HasPrefix(t[i:], []byte("<<")) && !bytes.HasPrefix(t[i:], []byte("<<<")) && (i == 0 || t[i-1] != '<'):
		c.line.document = argv.Delimiter(t, i+2)
	}
	c.at++
}

func (c *commands) quotationMark(b byte) {
	t, i, q := c.text, c.at, &c.quotes
	switch {
	case i > 0 && t[i-1] == '\\', lex.IsContraction(t, i): // of a string in a string, no mark
	case q.open == b:
		if q.open = 0; q.around {
			c.command.program, c.output.writes, q.around = q.program, false, false
		}
	case q.open == 0 && q.outer == b:
		c.command.program, c.output.writes, q.outer = argv.Command{}, false, 0
	default:
		if q.open == 0 && !q.toScript && isPipeline(t[i:min(len(t), i+maxWords)]) {
			q.open, q.isScript, q.inner, q.around, q.program = b, true, 0, true, c.command.program
			c.command.program, c.output.writes, c.output.quoted = argv.Command{}, false, 0
			return
		}
		if c.output.writes && i >= c.output.quoted {
			c.output.quoted = i + argv.QuotedLen(t[i:min(len(t), i+maxWords)])
		}
		switch {
		case q.open == 0:
			q.open, q.isScript, q.inner = b, q.toScript, 0
			if i+1 < len(t) && t[i+1] == '!' { // '!echo SECRET | passwd' of git's aliases
				q.isScript, c.command.program = true, argv.Command{}
			}
		case q.isScript && q.inner == b:
			q.inner = 0
		case q.isScript && q.inner == 0:
			q.inner = b
		}
	}
}

// isPipeline reports whether the quotation that b starts with has a script which pipes what it
// writes: ssh h "echo SECRET | sudo -S id", echo 'echo SECRET | passwd' >> FILE.
func isPipeline(b []byte) bool {
	end := 1
	for end < len(b) && (b[end] != b[0] || b[end-1] == '\\') {
		end++
	}
	before, _, ok := bytes.Cut(b[1:end], []byte("|"))
	if !ok || end == len(b) {
		return false
	}
	at := max(bytes.LastIndex(before, []byte("echo ")), bytes.LastIndex(before, []byte("printf ")))
	return at == 0 || at > 0 && strings.IndexByte(" ;&(", before[at-1]) >= 0
}

// endsCommand reports whether b, which is at c.at, ends a command.
func (c *commands) endsCommand(b byte) bool {
	isLine := b == '\n'
	if b != ';' && b != '|' && b != '&' && !isLine {
		return false
	}
	isQuoted := c.quotes.open != 0 && !(c.quotes.isScript && c.quotes.inner == 0 && !isLine)
	if isQuoted && (c.command.program.Programs != 0 || c.output.writes && isLine) || c.continued(c.at) {
		return false
	}
	return c.command.program.Programs&argv.Machine == 0 || !isLine || !argv.IsOfMachine(c.text[c.at+1:])
}

// endCommand ends the command at b, which is at c.at.
func (c *commands) endCommand(b byte) {
	c.line.reads = c.line.reads || c.command.program.Reads
	if b == '\n' {
		c.endLine()
	}
	c.pipe(b)
	if c.output.writes && c.output.group == 0 {
		c.output.group = c.output.from
	}
	c.command, c.output.writes = command{}, false
}

// endLine adds what is below the line for its commands to read.
func (c *commands) endLine() {
	l, end := c.line, c.at
	if !l.reads && l.document.To > 0 && argv.LogsIn(c.text[l.start:end]) {
		c.session(end+1, c.text[l.document.From:l.document.To])
	}
	if l.reads && l.document.To > 0 {
		c.at = c.document(end+1, c.text[l.document.From:l.document.To])
	}
	if line := c.text[l.start:end]; !bytes.ContainsAny(line, "|<") && (l.asks || argv.Asks(line) && c.isStrong(end+1)) {
		c.answer(end + 1)
	}
	c.line = line{start: c.at + 1}
}

// session adds the second line of the here-document at i, up to its delimiter: what telnet is
// given is a name, a secret and commands.
func (c *commands) session(i int, delimiter []byte) {
	t := c.text
	var lines [3]lex.Span
	for n := range lines {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			end = len(t) - i
		}
		lines[n] = lex.Span{From: i, To: i + len(bytes.TrimRight(t[i:i+end], "\r"))}
		if w := t[lines[n].From:lines[n].To]; len(w) == 0 || bytes.Equal(w, delimiter) || n < 2 && bytes.IndexByte(w, ' ') >= 0 {
			return
		}
		i = min(i+end+1, len(t))
	}
	if v := lines[1]; lex.MarkLen(t[v.From:]) == 0 {
		c.found = append(c.found, v)
	}
}

// pipe notes what the command, or the group, that b ends has written for the next one.
func (c *commands) pipe(b byte) {
	t, i, o := c.text, c.at, &c.output
	if b != '|' || i+1 < len(t) && t[i+1] == '|' {
		if !bytes.HasSuffix(bytes.TrimRight(t[max(0, i-maxGap):i], " \t\r"), []byte("|")) { // the next line goes on, or |&
			o.piped = lex.Span{}
		}
		return
	}
	before := bytes.TrimRight(t[max(0, i-4):i], " ")
	switch {
	case o.group > 0 && len(before) > 0 && (before[len(before)-1] == ')' || before[len(before)-1] == '}'):
		o.piped = lex.Span{From: o.group, To: i}
	case o.writes:
		o.piped = lex.Span{From: o.from, To: i}
	}
}

// word reads the word at c.at, and what belongs to it: the value of an option.
func (c *commands) word() {
	t, from := c.text, c.at
	w := c.next()
	if n := prefixLen(w); n > 0 && c.command.program.Programs == 0 {
		from, w = from+n, w[n:]
	}
	c.quotes.toScript = w[len(w)-1] == 'c' && w[0] == '-' && argv.IsScript(t[max(0, from-maxBefore):from], w)
	if n := lex.MarkLen(t[max(from-1, 0):]); n > 0 && from > 0 {
		c.at = from - 1 + n // "[redacted …]" is an argument like any other
		c.command.program.Redacted()
		return
	}
	program := &c.command.program
	if end := placeholderEnd(t, from, c.at); end > 0 {
		c.at = end
		program.Redacted()
		return
	}
	isFirst := program.Programs == 0
	form, at := program.Word(w, c.values.Names, &c.name)
	c.readsWord(w, from)
	if isFirst && program.IsTold() && c.isSaid(from) {
		*program = argv.Command{}
	}
	if isFirst && program.Programs != 0 {
		c.command.began = from
		if q := &c.quotes; q.open != 0 && (c.at == len(t) || t[c.at] != q.open) { // not ["mysql", …]
			q.outer, q.open = q.open, 0
		}
	}
	form = c.formAt(form, w, from)
	c.take(w, from, form, at)
	if program.Reads && c.at >= c.here {
		c.hereString()
	}
}

// placeholderEnd returns the end of the argument of a manual, such as <password> or
// <user>:<password>, of which t[from:to] is the first word; 0 if it is none.
func placeholderEnd(t []byte, from, to int) int {
	for from > 0 && t[from-1] == '<' && to < len(t) && t[to] == '>' && to-from < maxGap+maxGap {
		for _, b := range t[from:to] {
			if lex.Classes[b]&lex.IsName == 0 {
				return 0
			}
		}
		if to++; to+1 < len(t) && t[to] == ':' && t[to+1] == '<' {
			from = to + 2
			for to = from; to < len(t) && lex.Classes[t[to]]&lex.IsName != 0; to++ {
			}
			continue
		}
		if to == len(t) || t[to] <= ' ' || lex.Classes[t[to]]&lex.IsQuote != 0 {
			return to
		}
		break
	}
	return 0
}

// next returns the word at c.at, and goes on behind it.
func (c *commands) next() []byte {
	t, from, i := c.text, c.at, c.at
	for i < len(t) && !lex.IsWordBreak(t[i]) && !isEscape(t, i) {
		if i++; t[i-1] == '$' {
			i += max(argv.VariableLen(t[i-1:])-1, 0)
		}
	}
	c.at = i
	return t[from:i]
}

// isSaid reports whether the word from which c.at is the end is one of a sentence, or is in
// quotation marks: no program.
func (c *commands) isSaid(from int) bool {
	t, to := c.text, c.at
	return !argv.StartsCommand(t, from, to) || from > 0 && to < len(t) && t[to] == t[from-1] && t[to] > ' '
}

// prefixLen returns the length of what is before a program in w: !echo of git's aliases, :!echo of vi,
// @echo and -@echo of make, \echo.
func prefixLen(w []byte) int {
	n := 0
	for n < len(w) && (w[n] == '!' || w[n] == '@' || w[n] == '\\' || n+1 < len(w) && (w[n] == '-' && w[n+1] == '@' || w[n] == ':' && w[n+1] == '!')) {
		n++
	}
	if n == len(w) {
		return 0
	}
	return n
}

// readsWord notes what the word w at from says of what the command reads.
func (c *commands) readsWord(w []byte, from int) {
	d, program := &c.command, &c.command.program
	if isPrefix := string(w) == "sudo" || string(w) == "doas" || string(w) == "$"; !isPrefix && (d.words > 0 || w[len(w)-1] != '=') {
		d.words++
	}
	isOption := w[0] == '-'
	if d.option != nil || isOption || program.Files {
		program.Reads = program.Reads || argv.IsInput(d.option, w) || program.Files && string(w) == "/dev/stdin"
		if d.option = nil; isOption && len(w) > 2 {
			d.option = w
		}
	}
	if d.words == 1 {
		d.isFilter = d.isFilter || argv.ReadsText(w)
		if string(w) == "read" || string(w) == "pw" {
			d.reader = w[0]
		}
	}
	if !program.Reads && !d.isFilter && d.words > 0 && (from == 0 || c.text[from-1] != '<') {
		program.Reads = argv.TakesSecret(w, d.words)
	}
	switch d.reader {
	case 'r': // read -s NAME
		c.line.asks = c.line.asks || isOption && w[len(w)-1] != '-' && lex.Classes[w[1%len(w)]]&lex.IsAlnum != 0 && bytes.IndexByte(w, 's') > 0
	case 'p':
		program.Reads = program.Reads || string(w) == "-h" || string(w) == "-H"
	}
	c.line.asks = c.line.asks || isOption && argv.IsTyped(w)
}

// formAt returns which part of the word w at from is a secret, if its program says that it
// has that form.
func (c *commands) formAt(form argv.Form, w []byte, from int) argv.Form {
	t, began := c.text, c.command.began
	if form == argv.LastWord && !c.isLast(w, from) {
		form = argv.NoSecret
	}
	if form == argv.AtLogin && (lex.HasFoldSuffix(t[:began], "SQL> ") || lex.HasFoldSuffix(t[began:from], "conn ") && lex.StartsLine(t, began)) {
		form = argv.AfterSlash // of SQL*Plus
	}
	if form == argv.AfterSlash && isExport(t[began:from]) && !c.hasParameter() {
		form = argv.NoSecret // of a formula
	}
	if from > 1 && t[from-1] == '(' && t[from-2] == '$' && writes(w) {
		form = argv.NoSecret // a command of its own
	}
	return form
}

// isExport reports whether a command is Oracle's exp or imp, which are also words of a formula
// and a path.
func isExport(command []byte) bool {
	name, _, _ := bytes.Cut(command, []byte(" "))
	name = name[bytes.LastIndexByte(name, '/')+1:]
	return string(name) == "exp" || string(name) == "imp"
}

// hasParameter reports whether NAME=VALUE follows at c.at, as with the programs of Oracle.
func (c *commands) hasParameter() bool {
	line, _, _ := bytes.Cut(c.text[c.at:min(len(c.text), c.at+maxWords)], []byte("\n"))
	at := bytes.IndexByte(line, '=')
	return at > 1 && lex.IsWords(line[bytes.LastIndexByte(line[:at], ' ')+1:at])
}

// isLast reports whether the word w at from can be the secret that a command ends with: not in
// a sentence, where words follow.
func (c *commands) isLast(w []byte, from int) bool {
	t, to, began := c.text, c.at, c.command.began
	if to < len(t) && t[to] >= ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 && !bytes.HasPrefix(t[to:], []byte(" |")) && !prose.LooksSecret(w) {
		return false
	}
	if from-began > maxWords || argv.IsMechanism(w) {
		return false
	}
	if !lex.StartsLine(t, began) && !c.behindPrompt(began) && !bytes.HasSuffix(t[:began], []byte("; ")) {
		return false
	}
	return !bytes.ContainsAny(t[began:from], ",`'\"") || argv.IsProtocol(t[began:from])
}

// writes reports whether a program of that name writes its arguments.
func writes(program []byte) bool { return string(program) == "echo" || string(program) == "printf" }

// take adds the secret of the word w at from, whose part behind at has that form, or what the
// word is about.
func (c *commands) take(w []byte, from int, form argv.Form, at int) {
	t, i, program := c.text, c.at, &c.command.program
	hasPipe := c.output.piped.From < c.output.piped.To
	switch {
	case form != argv.NoSecret && w[len(w)-1] == '$' && i < len(t) && t[i] == '(' && (len(w) == 1 || at == len(w)-1): // -p $(openssl passwd SECRET), -p$(echo SECRET)
		c.substituted(i + 1)
	case form == argv.WholeWord && w[len(w)-1] == '=' && lex.MarkLen(t[i:]) > 0:
		c.at += lex.MarkLen(t[i:])
	case form != argv.NoSecret:
		c.at = c.argument(from, at, form)
	case (program.Reads || program.Files) && from > 1 && t[from-1] == '(' && t[from-2] == '<' && writes(w):
		c.untilParenthesis(i)
	case writes(w) || string(w) == "yes" || string(w) == "Write-Output":
		c.output.writes, c.output.from = true, i
		if w[0] == 'p' && i < len(t) && (t[i] == ' ' || t[i] == '\t') {
			c.printed(i)
		}
	case string(w) == "cat" && lex.After(t, i, " <<< ") > 0: // cat <<< SECRET | cryptsetup open
		c.output.writes, c.output.from = true, i+len(" <<<")
	case string(w) == "AUTH":
		c.framed(i)
	case string(w) == "REG_SZ" || string(w) == "REG_EXPAND_SZ":
		c.registered(from, i)
	case c.command.reader == 'r' && c.command.words > 1 && hasPipe && c.values.Names.IsPairName(&c.name, w):
		c.echoed(c.output.piped)
		c.output.piped = lex.Span{}
	case string(w) == "base64" && hasPipe:
		c.userInfo(c.output.piped)
	case c.command.words == 1 && hasPipe && argv.IsDialog(w):
		c.dialog(c.output.piped)
	case program.Reads && hasPipe:
		c.echoed(c.output.piped)
		c.output.piped = lex.Span{}
	case c.command.began == from && lex.HasFoldSuffix(w, "ConvertTo-SecureString"):
		c.echoed(c.pipedString(from))
	}
}

// hereString adds the string behind "<<<" at c.at, for a command that reads a secret.
func (c *commands) hereString() {
	t, i := c.text, c.at
	if i+3 >= len(t) || !bytes.HasPrefix(bytes.TrimLeft(t[i:min(i+8, len(t))], " "), []byte("<<<")) {
		return
	}
	at := i + bytes.Index(t[i:], []byte("<<<")) + 3
	c.here = c.shellWord(at + len(t[at:]) - len(bytes.TrimLeft(t[at:], " ")))
	c.echoed(lex.Span{From: at, To: c.here})
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

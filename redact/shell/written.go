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

// Blocks adds the lines of NAME<<EOF, as the files of GitHub's runner have them, what
// echo writes between two lines that write these, and what a shell reads into a variable:
// read NAME <<< SECRET.
func (f *Finder) Blocks(found []lex.Span) []lex.Span {
	f.found = found
	f.asked()
	t := f.values.Text
	for at := 0; ; at += len("<<") {
		n := bytes.Index(t[at:], []byte("<<"))
		if n < 0 {
			break
		}
		at += n
		if f.isRead(at) {
			at = f.given(at)
			continue
		}
		first := at
		for first > 0 && at-first <= names.MaxPairName && lex.Classes[t[first-1]]&lex.IsName != 0 {
			first--
		}
		end := argv.Delimiter(t, at+len("<<"))
		if first == at || end.To-end.From < 2 || end.From > at+2 || lex.IsDigit(t[end.From]) || end.To == len(t) || !f.isSensitive(t[first:at]) {
			continue
		}
		if !lex.StartsLine(t, first) {
			continue
		}
		if v, ok := argv.Document(t, at); ok {
			if v.From < v.To {
				f.found = append(f.found, v)
				if v.To == len(t) {
					break
				}
				at = v.To - len("<<")
			}
		} else if lex.Classes[t[end.To]]&lex.IsQuote != 0 {
			f.writtenUntil(end.To, t[end.From:end.To])
		}
	}
	return f.found
}

// isRead reports whether the command before the redirection at i reads a variable with
// the name of a secret.
func (f *Finder) isRead(i int) bool {
	line := f.values.Text[max(0, i-maxBefore):i]
	if body, ok := bytes.CutSuffix(bytes.TrimRight(line, " "), []byte("done")); ok { // while read NAME; do …; done <<< SECRET
		line = f.values.Text[max(0, i-maxWords) : i-len(line)+len(body)]
		if line = line[bytes.LastIndex(line, []byte("while "))+1:]; len(line) < len("hile ") {
			return false
		}
		line = line[len("hile "):]
		line = line[:max(0, bytes.IndexAny(line, ";\n"))]
	}
	line = line[bytes.LastIndexAny(line, "\n;|&({")+1:]
	at := bytes.Index(line, []byte("read"))
	if at < 0 {
		if at = bytes.Index(line, []byte("mapfile ")); at < 0 {
			return false
		}
	}
	if at > 0 && line[at-1] > ' ' && lex.Classes[line[at-1]]&lex.IsQuote == 0 {
		return false
	}
	command, rest, _ := bytes.Cut(line[at:], []byte(" "))
	if string(command) != "read" && string(command) != "readarray" && string(command) != "mapfile" {
		return false
	}
	for w := range bytes.FieldsSeq(rest) {
		if w[0] != '-' && f.values.Names.IsPairName(&f.name, w) {
			return true
		}
	}
	return false
}

// given adds what the redirection at i gives to a command, a word or the lines below, and
// returns where it ends.
func (f *Finder) given(i int) int {
	t := f.values.Text
	if bytes.HasPrefix(t[i:], []byte("<<<")) {
		from := i + len("<<<")
		from += len(t[from:]) - len(bytes.TrimLeft(t[from:], " "))
		to := f.shellWord(from)
		f.echoed(lex.Span{From: from, To: to})
		return max(i+1, to-len("<<"))
	}
	if v, ok := argv.Document(t, i); ok && v.From < v.To {
		f.found = append(f.found, v)
		return v.To - len("<<")
	}
	return i
}

// writtenUntil adds what the lines below i write, up to one that writes the delimiter.
func (f *Finder) writtenUntil(i int, delimiter []byte) {
	t := f.values.Text[:min(len(f.values.Text), i+maxBlock)]
	for {
		n := bytes.IndexByte(t[i:], '\n')
		if n < 0 {
			return
		}
		i += n + 1
		line, _, _ := bytes.Cut(t[i:], []byte("\n"))
		line, _, _ = bytes.Cut(line, []byte(" >"))
		if bytes.Contains(line, delimiter) {
			return
		}
		for _, command := range [...]string{"echo ", "printf "} {
			if at := bytes.Index(line, []byte(command)); at >= 0 {
				f.echoed(lex.Span{From: i + at + len(command), To: i + len(line)})
			}
		}
	}
}

// Redirected adds SECRET in echo SECRET > FILE, where a file of that name has a
// secret in it and ">" is at i. Text before decided has been.
func (f *Finder) Redirected(found []lex.Span, decided, i int) []lex.Span {
	f.found = found
	t := f.values.Text
	if i < f.written {
		return f.found
	}
	from := i + 1
	for from < len(t) && from-i < maxGap && (t[from] == ' ' || t[from] == '"' || t[from] == '\'') {
		from++
	}
	to := from
	for to < len(t) && to-from <= 2*names.MaxPairName && lex.Classes[t[to]]&lex.IsToken != 0 {
		to++
	}
	if from == to || i == 0 || t[i-1] != ' ' && t[i-1] != '>' || !f.values.Names.IsFile(&f.name, t[from:to]) {
		return f.found
	}
	end := i
	for end > decided && (t[end-1] == '>' || t[end-1] == ' ') {
		end--
	}
	start := end
	if end > decided && lex.Classes[t[end-1]]&lex.IsQuote != 0 { // what is in quotes separates no commands
		least := max(decided, end-maxBefore)
		start = least + max(0, bytes.LastIndexByte(t[least:end-1], t[end-1]))
	}
	for start > decided && end-start < maxBefore && t[start-1] != '\n' && t[start-1] != ';' && t[start-1] != '&' && t[start-1] != '|' {
		start--
	}
	line := bytes.TrimLeft(t[start:end], " \t")
	if at := bytes.Index(line, []byte("\"echo ")); at >= 0 { // in a string
		line = line[at+1:]
	} else if at := bytes.Index(line, []byte("\"printf ")); at >= 0 {
		line = line[at+1:]
	}
	for more := true; more && len(line) > 0; { // RUN --mount=type=secret,id=x echo SECRET
		word, rest, ok := bytes.Cut(line, []byte(" "))
		if more = ok && (string(word) == "RUN" || string(word) == "sudo" || string(word) == "do" || string(word) == "then" || bytes.HasPrefix(word, []byte("--"))); more {
			line = bytes.TrimLeft(rest, " ")
		}
	}
	start = end - len(line)
	for _, command := range []string{"echo ", "printf "} {
		if bytes.HasPrefix(line, []byte(command)) {
			f.echoed(lex.Span{From: start + len(command), To: end})
		}
	}
	if len(line) > 2 && line[0] == line[len(line)-1] && lex.Classes[line[0]]&lex.IsQuote != 0 { // of PowerShell
		f.echoed(lex.Span{From: start, To: end})
	}
	if bytes.HasPrefix(line, []byte("cat")) {
		rest := t[to:min(len(t), to+names.MaxPairName)]
		if n := bytes.IndexByte(rest, '\n'); n > 0 {
			rest = rest[:n]
		}
		at := bytes.Index(rest, []byte("<<"))
		if at >= 0 {
			at += to
		} else if at = bytes.Index(line, []byte("<<")); at >= 0 {
			at += start
		}
		if at >= 0 && at+2 < len(t) && t[at+2] == '<' {
			from := at + len("<<<")
			from += len(t[from:]) - len(bytes.TrimLeft(t[from:], " "))
			f.echoed(lex.Span{From: from, To: f.shellWord(from)})
		}
		if end := bytes.IndexByte(t[to:], '\n'); at >= 0 && end >= 0 && (at+2 == len(t) || t[at+2] != '<') {
			d := argv.Delimiter(t, at+2)
			f.written = f.document(to+end+1, t[d.From:d.To])
		}
	}
	return f.found
}

// Processed adds SECRET in --passphrase-file <(echo SECRET), where the
// parenthesis is at i.
func (f *Finder) Processed(found []lex.Span, i int) []lex.Span {
	f.found = found
	t := f.values.Text
	to := i - 1
	for to > 0 && i-to < maxGap && (t[to-1] == ' ' || t[to-1] == '=' || t[to-1] == '<') {
		to--
	}
	from := to
	for from > 0 && to-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	name := t[from:to]
	for _, end := range []string{"file", "_", "-"} {
		name = bytes.TrimSuffix(name, []byte(end))
	}
	if !f.values.Names.IsPairName(&f.name, name) {
		return f.found
	}
	f.substituted(i + 1)
	return f.found
}

// substituted adds what a command writes that is at i, in parentheses: $(echo SECRET).
func (f *Finder) substituted(i int) {
	for _, command := range [...]string{"echo ", "printf "} {
		if from := lex.After(f.values.Text, i, command); from > 0 {
			f.untilParenthesis(from)
		}
	}
}

// untilParenthesis adds what is written at i, up to the next closing parenthesis.
func (f *Finder) untilParenthesis(i int) {
	t := f.values.Text
	if n := bytes.IndexByte(t[i:min(len(t), i+maxWords)], ')'); n >= 0 {
		f.echoed(lex.Span{From: i, To: i + n})
	}
}

// document adds the here-document that starts at i and ends at a line of that
// delimiter, and returns where it ends.
func (f *Finder) document(i int, delimiter []byte) int {
	t := f.values.Text
	for from := i; ; {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			end = len(t) - i
		}
		if len(delimiter) > 0 && bytes.Equal(bytes.TrimSpace(t[i:i+end]), delimiter) {
			f.echoed(lex.Span{From: from, To: i})
			return i
		}
		if i += end + 1; i >= len(t) {
			f.echoed(lex.Span{From: from, To: len(t)})
			return len(t)
		}
	}
}

// answer adds the line at i, of one word, which is typed for a command that has asked for it.
func (f *Finder) answer(i int) {
	t := f.values.Text
	to := i
	for to < len(t) && to-i <= names.MaxPairName && t[to] > ' ' {
		to++
	}
	w := t[i:to]
	if len(w) < 4 || len(w) > names.MaxPairName || to < len(t) && t[to] != '\n' && t[to] != '\r' || argv.IsCommand(w) || bytes.ContainsAny(w, "=()[]{}<>|;\"'`") || bytes.IndexByte([]byte("$#-/.:}"), w[0]) >= 0 {
		return
	}
	f.echoed(lex.Span{From: i, To: to})
}

// printed adds the secrets among the arguments of the printf before i.
func (f *Finder) printed(i int) {
	t := f.values.Text
	word := func(at int) lex.Span {
		at += len(t[at:]) - len(bytes.TrimLeft(t[at:], " \t"))
		return lex.Span{From: at, To: f.shellWord(at)}
	}
	w := word(i)
	for secrets := argv.Printed(t[w.From:w.To], f.values.Names, &f.name); secrets != 0; secrets >>= 1 {
		if w = word(w.To); w.From == w.To {
			return
		}
		if secrets&1 != 0 {
			f.echoed(w)
		}
	}
}

// userInfo adds the password of USER:PASSWORD, which is encoded next (RFC 7617).
func (f *Finder) userInfo(c lex.Span) {
	c.To = c.From + len(bytes.TrimRight(f.values.Text[c.From:c.To], " \t\n'\"`"))
	from := c.To
	for from > c.From && f.values.Text[from-1] > ' ' && lex.Classes[f.values.Text[from-1]]&lex.IsQuote == 0 {
		from--
	}
	word := f.values.Text[from:c.To]
	if mark := bytes.LastIndex(f.values.Text[c.From:c.To], []byte(lex.RedactedMark)); mark >= 0 && mark+lex.MarkLen(f.values.Text[c.From+mark:]) == c.To-c.From {
		return
	}
	if at := bytes.LastIndex(word, []byte(`\0`)); at > 0 { // of SASL: \0ann\0SECRET
		at += len(`\0`)
		for at < len(word) && word[at] == '0' && at < len(word)-1 && word[at-1] == '0' {
			at++
		}
		f.echoed(lex.Span{From: from + at, To: c.To})
		return
	}
	if bytes.Contains(f.values.Text[c.From:from], []byte(":%s")) {
		f.echoed(lex.Span{From: from, To: c.To})
	} else if v := argv.AfterColon.Within(word); v.From < v.To && !bytes.Contains(word, []byte("://")) {
		f.echoed(lex.Span{From: from + v.From, To: from + v.To})
	}
}

// typed adds what tmux types behind a command that asks for a secret:
// send-keys "sudo ls" Enter "SECRET" Enter, also in the next send-keys.
func (f *Finder) typed() {
	t := f.values.Text
	const command = "send-keys "
	asked := false
	for i := 0; ; {
		n := bytes.Index(t[i:], []byte(command))
		if n < 0 {
			return
		}
		i += n + len(command)
		var last []byte // that was typed
		for i < len(t) && strings.IndexByte(";&|\n)\\", t[i]) < 0 {
			if t[i] == ' ' {
				i++
				continue
			}
			w := lex.Span{From: i, To: f.shellWord(i)}
			if w.To += lex.MarkLen(t[i:]); w.To <= i {
				break
			}
			i = w.To
			for w.From+1 < w.To && lex.Classes[t[w.From]]&lex.IsQuote != 0 && t[w.From] == t[w.To-1] {
				w.From++
				w.To--
			}
			b := t[w.From:w.To]
			switch {
			case len(b) > 1 && b[0] == '-' && (b[len(b)-1] == 't' || b[len(b)-1] == 'N'):
				for i < len(t) && t[i] == ' ' {
					i++
				}
				i = f.shellWord(i)
			case len(b) > 0 && b[0] == '-':
			case string(b) == "Enter" || string(b) == "C-m" || string(b) == "KPEnter":
				if last != nil {
					asked, last = argv.AsksSecret(last), nil
				}
			default:
				if last == nil && asked && lex.MarkLen(b) == 0 && bytes.IndexByte(b, ' ') < 0 && prose.LooksSecret(b) {
					f.found = append(f.found, w)
				}
				last = b
			}
		}
	}
}

// loops adds the words that a variable with the name of a secret is set to, one after the
// other: for password in SECRET SECRET; do.
func (f *Finder) loops() {
	t := f.values.Text
	for i := 0; ; {
		n := bytes.Index(t[i:], []byte("for "))
		if n < 0 {
			return
		}
		i += n + len("for ")
		name, _, ok := bytes.Cut(t[i:min(len(t), i+names.MaxPairName)], []byte(" in "))
		if !ok || len(name) == 0 || bytes.IndexByte(name, 0x20) >= 0 || !f.values.Names.IsPairName(&f.name, name) && string(name) != "pw" {
			continue
		}
		from := i + len(name) + len(" in ")
		end := from + max(0, bytes.IndexAny(t[from:min(len(t), from+maxWords)], ";\n"))
		if !bytes.HasPrefix(bytes.TrimLeft(t[min(len(t), end+1):min(len(t), end+maxGap)], " \t\n"), []byte("do")) {
			continue
		}
		for from < end {
			if t[from] == ' ' {
				from++
				continue
			}
			if t[from] == '`' || lex.After(t, from, "$(") > 0 { // what a command prints
				break
			}
			to := min(f.shellWord(from), end)
			if n := lex.MarkLen(t[from:]); n > 0 {
				to = from + n
			}
			if to == from {
				break
			}
			if !bytes.ContainsAny(t[from:to], "$/`(") && t[from] != '*' {
				f.echoed(lex.Span{From: from, To: to})
			}
			from = to
		}
		i = max(i, end)
	}
}

// cases adds the patterns that a shell compares a secret with: case $password in SECRET).
func (f *Finder) cases() {
	t := f.values.Text
	for i := 0; ; {
		n := bytes.Index(t[i:], []byte("case "))
		if n < 0 {
			return
		}
		i += n + len("case ")
		subject, _, ok := bytes.Cut(t[i:min(len(t), i+names.MaxPairName)], []byte(" in"))
		name := bytes.Trim(subject, "\"'${} ")
		if !ok || len(name) == len(subject) || bytes.IndexByte(subject, '$') < 0 || !f.values.Names.IsPairName(&f.name, name) {
			continue
		}
		ofWord := bytes.Contains(name, []byte("pass")) || bytes.Contains(name, []byte("PASS")) || bytes.Contains(name, []byte("Pass")) ||
			lex.HasFoldSuffix(name, "pw") || lex.HasFoldSuffix(name, "pwd") || lex.HasFoldSuffix(name, "pin")
		i += len(subject) + len(" in")
		end := i + bytes.Index(t[i:], []byte("esac"))
		if end < i {
			end = len(t)
		}
		for i < end {
			n := bytes.IndexByte(t[i:end], ')')
			if n < 0 {
				break
			}
			for at := i; at < i+n; {
				bar := i + n
				if k := bytes.IndexByte(t[at:bar], '|'); k >= 0 {
					bar = at + k
				}
				pattern := bytes.Trim(t[at:bar], " \n\t(\"'")
				if len(pattern) > 1 && !bytes.ContainsAny(pattern, "*?[$ ") && (ofWord || prose.LooksSecret(pattern)) {
					f.echoed(lex.Span{From: at + bytes.Index(t[at:bar], pattern), To: at + bytes.Index(t[at:bar], pattern) + len(pattern)})
				}
				at = bar + 1
			}
			i += n + 1
			if n = bytes.Index(t[i:end], []byte(";;")); n < 0 {
				break
			}
			i += n + len(";;")
		}
		i = end
	}
}

// registered adds the value of the registry of Windows whose type is t[from:to], behind a
// name: DefaultPassword    REG_SZ    SECRET.
func (f *Finder) registered(from, to int) {
	t := f.values.Text
	name := bytes.TrimRight(t[max(0, from-names.MaxPairName-maxGap):from], " \t")
	name = name[bytes.LastIndexAny(name, " \t\n")+1:]
	if len(name) == 0 || !f.values.Names.IsPairName(&f.name, name) {
		return
	}
	end := to
	for end < len(t) && t[end] != '\n' && t[end] != '\r' && end-to < maxWords {
		end++
	}
	f.echoed(lex.Span{From: to, To: end})
}

// asked adds the line behind a server's question for a password in base64 (RFC 4954, 4).
func (f *Finder) asked() {
	t := f.values.Text
	const question = "334 UGFzc3dvcmQ6" // "Password:"
	for i := 0; ; {
		n := bytes.Index(t[i:], []byte(question))
		if n < 0 {
			return
		}
		i += n + len(question)
		n = bytes.IndexByte(t[i:min(len(t), i+maxGap)], '\n')
		if n < 0 {
			continue
		}
		line, _, _ := bytes.Cut(t[i+n+1:min(len(t), i+n+1+maxWords)], []byte("\n"))
		line = bytes.TrimRight(line, " \r")
		if bytes.Contains(line, []byte(lex.RedactedMark)) {
			continue
		}
		word := line[bytes.LastIndexAny(line, " \t")+1:]
		f.echoed(lex.Span{From: i + n + 1 + len(line) - len(word), To: i + n + 1 + len(line)})
	}
}

// pipedString returns the string that PowerShell gives to the command at i: "SECRET" |
// ConvertTo-SecureString. If a command is before it, as Read-Host, it is that one's.
func (f *Finder) pipedString(i int) lex.Span {
	from := max(0, i-maxWords)
	before, ok := bytes.CutSuffix(bytes.TrimRight(f.values.Text[from:i], " "), []byte("|"))
	before = bytes.TrimRight(before, " ")
	n := len(before) - 1
	if !ok || n < 1 || lex.Classes[before[n]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	open := bytes.LastIndexByte(before[:n], before[n])
	if open < 0 {
		return lex.Span{}
	}
	if head := bytes.TrimRight(before[:open], " "); len(head) > 0 && bytes.IndexByte([]byte("=({;\n\"'"), head[len(head)-1]) < 0 {
		return lex.Span{}
	}
	return lex.Span{From: from + open + 1, To: from + n}
}

// echoed adds the text that a command writes for the next to read.
func (f *Finder) echoed(c lex.Span) {
	t := f.values.Text
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
		f.found = append(f.found, c)
	}
}

func (f *Finder) isSensitive(name []byte) bool {
	f.name.Fold(name)
	return f.values.Names.Sensitive(&f.name, names.NoWhole|names.Keyed(name))
}

// framed adds the arguments of Redis' AUTH, which ends at i, in the form that is sent:
// "$4\r\nAUTH\r\n$7\r\nSECRET\r\n".
func (f *Finder) framed(i int) {
	t := f.values.Text
	line := func() bool {
		for _, end := range [...]string{"\r\n", "\n"} {
			if at := lex.After(t, i, end); at > 0 {
				i = at
				return true
			}
		}
		return false
	}
	for range 2 {
		if !line() || lex.After(t, i, "$") == 0 {
			return
		}
		n := lex.CountDigits(t[i+1 : min(len(t), i+maxGap)])
		if i += 1 + n; n == 0 || !line() {
			return
		}
		to := i
		for to < len(t) && to-i < maxWords && t[to] > ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 {
			to++
		}
		if i == to || lex.MarkLen(t[i:]) > 0 {
			return
		}
		f.found = append(f.found, lex.Span{From: i, To: to})
		i = to
	}
}

// Package printed finds the secrets that commands print, below them in what a terminal shows.
//
// A command is behind a prompt. If its purpose is to print a secret, the lines below it
// are secrets, until the next prompt. Widen follows a secret over a terminal's last column.
//
// The files, from the top: printed, prompt, members, command, program, table, screen, finder.
package printed

import (
	"bytes"
	"unicode/utf8"

	"auditproxy/redact/lex"
)

// Find adds the secrets in t to found, in time linear in t.
func (f *Finder) Find(t []byte, found []lex.Span) []lex.Span {
	if !hasPrompt(t) {
		return found
	}
	f.width = 0
	script := bytes.Contains(t, []byte("#!/"))
	before := lex.Span{} // the line above
	for i := 0; i < len(t); {
		end := lineEnd(t, i)
		p := promptOf(t[i:end])
		if p.end == 0 || p.bare && script {
			before, i = lex.Span{From: i, To: end}, end+1
			continue
		}
		f.comment = p.bare
		below, ok := f.command(t, i+p.end, end, p.isOfProgram())
		if !ok && p.dir > 0 {
			below, ok = f.command(t, i+p.dir, end, false)
		}
		if !ok {
			before, i = lex.Span{From: i, To: end}, below
			continue
		}
		p.names = f.isVariable(t[i+p.end : end])
		p.above = bytes.TrimSpace(t[before.From:before.To])
		i, found = f.output(t, below, &p, found)
		before = lex.Span{}
	}
	return found
}

// command reports whether the command at t[i:end], which may go on in the lines below it,
// prints a secret, and returns where these end.
func (f *Finder) command(t []byte, i, end int, ofProgram bool) (below int, ok bool) {
	line := t[i:end]
	if f.prints(line, ofProgram) {
		for end < len(t) && isContinued(t[i:end]) {
			i = end + 1
			end = lineEnd(t, i)
		}
		return end + 1, true
	}
	below, start := end+1, i
	f.joined = f.joined[:0]
	for range maxJoined {
		if end >= len(t) || end-start > maxCommand {
			break
		}
		continued := isContinued(line) || isMore(t[end+1:])
		switch {
		case continued:
			f.joined = append(f.joined, bytes.TrimRight(line[:min(len(line), maxCommand)], " \r\\`")...)
			f.joined = append(f.joined, ' ')
		case f.isFull(t, bytes.LastIndexByte(t[:end], '\n')+1, end):
			f.joined = append(f.joined, line[:min(len(line), maxCommand)]...)
		default:
			return below, false
		}
		from := end + 1
		end = lineEnd(t, from)
		line = t[from:end]
		if n := moreLen(line); n > 0 {
			line = line[n:]
		} else if promptOf(line).end > 0 {
			break
		}
		if continued {
			below = end + 1
		}
		if isContinued(line) || end < len(t) && isMore(t[end+1:]) {
			continue
		}
		n := len(f.joined)
		f.joined = append(f.joined, line[:min(len(line), maxCommand)]...)
		if f.prints(f.joined, ofProgram) {
			return end + 1, true
		}
		f.joined = f.joined[:n]
	}
	return below, false
}

// isContinued reports whether a line of a command goes on in the next one.
func isContinued(line []byte) bool {
	n := len(line)
	for n > 0 && (line[n-1] == ' ' || line[n-1] == '\r') {
		n--
	}
	return n > 1 && (line[n-1] == '\\' || line[n-1] == '`' && line[n-2] == ' ')
}

// isMore reports whether a text starts with a line in which a statement of SQL goes on.
func isMore(t []byte) bool {
	n := moreLen(t)
	return n > len("> ")
}

// moreLen returns the length of the prompt of a line in which a command goes on, 0 if it has
// none.
func moreLen(line []byte) int {
	if len(line) == 0 || line[0] != ' ' && line[0] != '>' {
		return 0
	}
	for _, prompt := range [...]string{"> ", "    -> ", "   ...> ", "   -> "} {
		if bytes.HasPrefix(line, []byte(prompt)) {
			return len(prompt)
		}
	}
	return 0
}

// isFull reports whether a line has as many code points as the terminal has columns, so that
// what is typed goes on in the next one.
func (f *Finder) isFull(t []byte, from, end int) bool {
	if end-from < leastWidth {
		return false
	}
	if f.width == 0 {
		for line := range bytes.Lines(t) {
			f.width = max(f.width, utf8.RuneCount(bytes.TrimRight(line, "\r\n")))
		}
	}
	n := utf8.RuneCount(t[from:end])
	return n == usualWidth || n == f.width
}

// output adds the lines from i on that the command behind p has printed, and returns where
// they end.
func (f *Finder) output(t []byte, i int, p *prompt, found []lex.Span) (int, []lex.Span) {
	apart := false // behind an empty line
	for first := true; i < len(t); first = false {
		end := lineEnd(t, i)
		line := t[i:end]
		if len(p.quote) > 0 {
			if !bytes.HasPrefix(line, p.quote) {
				return i, found
			}
			line = line[len(p.quote):]
		}
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
			if first {
				return i, found // it has printed nothing
			}
			apart = true
			i = end + 1
			continue
		case first && p.last == '+' && bytes.IndexByte([]byte("+-@ "), line[0]) >= 0: // of a comparison of files
			return i, found
		case p.ends(t, i, end), bytes.HasPrefix(text, []byte("```")), apart && isProse(text), p.indent > 0 && apart && indentOf(line) < p.indent:
			return i, found
		}
		if lex.MarkLen(text) != len(text) && (end < len(t) || !isCut(text)) && (p.names || !isReport(text)) && !isRule(text) {
			from := end - len(line) + bytes.Index(line, text)
			found = append(found, lex.Span{From: from, To: from + len(text)})
		}
		i = end + 1
	}
	return i, found
}

// isCut reports whether a text ends in the mark of a text that was cut.
func isCut(text []byte) bool {
	at := bytes.LastIndex(text, []byte(lex.CutMark))
	return at >= 0 && lex.MarkLen(text[at:]) == len(text)-at
}

// isRule reports whether a line has nothing but marks: "---", "{".
func isRule(line []byte) bool {
	return len(bytes.Trim(line, "-=+|{}[](),: \t")) == 0
}

// reports are how lines start that tell of a failure, or of the program.
var reports = [...]string{"Error", "error:", "[ERROR]", "ERROR", "Error:", "fatal:", "FATAL", "An error occurred", "[sudo]", "bash: ", "-bash: ", "zsh: ", "sh: ", "/bin/sh: ",
	"fish: ", "gpg: ", "cat: ", "usage:", "Usage:", "command terminated", "warning:", "WARNING", "Warning:", "No such", "exit status ", "Traceback (", "(eval):", "mysql: [Warning]"}

// isReport reports whether a line tells why there is no secret.
func isReport(line []byte) bool {
	for _, start := range &reports {
		if bytes.HasPrefix(line, []byte(start)) {
			return true
		}
	}
	for _, end := range [...]string{": command not found", ": No such file or directory", ": not found", " not found", ": Permission denied", "row)", "rows)"} {
		if bytes.HasSuffix(line, []byte(end)) {
			return true
		}
	}
	return false
}

// isProse reports whether a line is one of a text: of five words or more, most of letters only.
func isProse(line []byte) bool {
	words, plain := 0, 0
	for w := range bytes.FieldsSeq(line) {
		words++
		if w = bytes.TrimRight(w, ".,:;!?"); len(w) > 0 && lex.IsWords(w) {
			plain++
		}
	}
	return words >= 5 && 4*plain >= 3*words
}

// maxJoined is on how many lines a command is at most.
const maxJoined = 8

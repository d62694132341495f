package printed

import (
	"bytes"

	"auditproxy/redact/lex"
)

// Members adds the secrets in what tells of commands: {"cmd": "pass show x", "stdout": "SECRET"},
// also as YAML, in time linear in t.
func (f *Finder) Members(t []byte, found []lex.Span) []lex.Span {
	done := 0 // up to here the members of an earlier command are read
	for i := 0; ; {
		n := bytes.IndexByte(t[i:], ':')
		if n < 0 {
			return found
		}
		i += n
		if !isCommandName(t[:i]) {
			i++
			continue
		}
		v := valueOf(t[:min(len(t), i+maxMembers)], i)
		i = max(i+1, v.To)
		if v.From == v.To || !f.Prints(f.unescaped(t[v.From:v.To])) {
			continue
		}
		least := max(done, v.From-maxMembers)
		if least < v.From {
			least += bytes.LastIndexByte(t[least:v.From], '{') + 1
			_, found = outputs(t, least, v.From, found)
		}
		end := min(len(t), v.To+maxMembers)
		if n := bytes.IndexByte(t[v.To:end], '{'); n > 0 && t[v.To] == '"' { // of the next object
			end = v.To + n
		}
		if from := max(done, v.To); from < end {
			done, found = outputs(t, from, end, found)
		}
	}
}

// maxMembers is how far from a command the name of what it has printed is looked for, in bytes.
const maxMembers = 4 << 10

// isCommandName reports whether the name of a member that t ends in is that of a command.
func isCommandName(t []byte) bool {
	if n := len(t); n > 0 && t[n-1] == '"' {
		t = t[:n-1]
	}
	n := len(t)
	return n > 2 && t[n-1]|0x20 == 'd' && (lex.HasFoldSuffix(t, "cmd") || lex.HasFoldSuffix(t, "command"))
}

// valueOf returns the value behind the colon of a member at i.
func valueOf(t []byte, i int) (v lex.Span) {
	i++
	i += indentOf(t[i:])
	if i >= len(t) || lex.MarkLen(t[i:]) > 0 {
		return v
	}
	v = lex.Span{From: i + 1, To: i + 1}
	switch t[i] {
	case '"', '\'':
		for v.To < len(t) && t[v.To] != t[i] {
			if t[v.To] == '\\' {
				v.To++
			}
			v.To++
		}
		v.To = min(v.To, len(t))
	case '[':
		for open := 1; v.To < len(t); v.To++ {
			switch t[v.To] {
			case '"':
				for v.To++; v.To < len(t) && t[v.To] != '"'; v.To++ {
					if t[v.To] == '\\' {
						v.To++
					}
				}
			case '[':
				open++
			case ']':
				open--
			}
			if open == 0 {
				break
			}
		}
		v.To = min(v.To, len(t))
	case '{', '|', '>', '\n', '\r':
	default:
		v = lex.Span{From: i, To: i + len(bytes.TrimRight(t[i:lineEnd(t, i)], " \r"))}
	}
	return v
}

// unescaped returns a command as a shell has it, of a string or of a list of its words.
func (f *Finder) unescaped(b []byte) []byte {
	b = b[:min(len(b), maxCommand)]
	list := len(b) > 2 && b[0] == '"' && b[len(b)-1] == '"'
	f.joined = f.joined[:0]
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '\\' && i+1 < len(b):
			if i++; b[i] == 'n' {
				c = '\n'
			} else {
				c = b[i]
			}
		case list && c == ',':
			c = ' '
		}
		f.joined = append(f.joined, c)
	}
	return f.joined
}

// outputs adds the values of the members of t[i:end] that have what a command has printed, and
// returns where the last one ends, which is not before end.
func outputs(t []byte, i, end int, found []lex.Span) (int, []lex.Span) {
	for i < end {
		n := bytes.IndexByte(t[i:end], ':')
		if n < 0 {
			break
		}
		i += n
		name := bytes.TrimRight(t[max(0, i-maxName):i], "\" ")
		from := len(name)
		for from > 0 && (lex.Classes[name[from-1]]&lex.IsAlnum != 0 || name[from-1] == '_') {
			from--
		}
		if !IsOutput(name[from:]) {
			i++
			continue
		}
		v := valueOf(t, i)
		if v.From < v.To && lex.MarkLen(t[v.From:]) < v.To-v.From {
			found = append(found, v)
		}
		i = max(i+1, v.To)
	}
	return max(i, end), found
}

// IsOutput reports whether a member with that name has what a command has printed.
func IsOutput(name []byte) bool {
	switch string(name) {
	case "stdout", "output", "result", "out", "stdout_lines", "stdoutLines", "aggregated_output", "aggregatedOutput", "combined_output", "formatted_output", "Output", "Stdout", "StdOut", "response", "stdoutText", "stdout_text":
		return true
	}
	return false
}

// IsCommand reports whether a member with that name has a command.
func IsCommand(name []byte) bool {
	switch string(name) {
	case "command", "cmd", "Command", "Cmd", "CMD", "command_line", "commandLine", "script", "shell_command", "keys", "input", "line", "run", "exec", "argv", "code":
		return true
	}
	return false
}

// maxName is how long the name of such a member is at most, in bytes, with what is around it.
const maxName = 32

package risk

import (
	"bytes"
	"strings"

	"auditproxy/mcpproxy/risk/command"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/risk/service"
)

// runsProgram judges the arguments at b[from], an object, as the words of the command that
// the tool runs: {"args": ["push"], "force": true} of git, and what a command is about,
// such as a branch, behind them.
func (w *walk) runsProgram(t *Tool, from int) {
	var operands []byte
	w.argv = append(w.argv[:0], t.special.Program...)
	i, more := w.b.First(from)
	for more {
		lit, at := w.b.Name(i)
		if at < 0 {
			return
		}
		if i = w.b.Skip(at); i < 0 {
			return
		}
		value := w.b[at:i]
		switch name := strings.ToLower(string(w.decodedName(lit))); {
		case string(value) == "true":
			w.argv = appendFlag(append(w.argv, " --"...), lit.Inner)
		case value[0] == '"' && name == "mode":
			w.argv = append(append(w.argv, " --"...), text(value)...)
		case value[0] == '"' && isCommandName(name):
			w.argv = append(append(w.argv, ' '), text(value)...)
		case value[0] == '[' && isCommandName(name):
			eachElement(value, func(v []byte) bool {
				if v[0] == '"' {
					w.argv = appendQuoted(w.argv, text(v))
				}
				return true
			})
		case value[0] == '"' && isOperandName(name):
			if s := text(value); s != "" && s[0] != '-' {
				operands = appendQuoted(operands, s)
			}
		}
		i, more = w.b.Next(i, '}')
	}
	w.argv = append(w.argv, operands...)
	w.command(view(w.argv), maxJoined)
}

func isCommandName(name string) bool {
	switch name {
	case "command", "cmd", "subcommand", "args", "arguments", "argv", "options", "flags", "params":
		return true
	}
	return false
}

func isOperandName(name string) bool {
	switch name {
	case "name", "branch", "branch_name", "branchname", "remote", "ref", "revision", "target", "resource", "resource_type", "resourcetype", "kind", "type", "key", "value":
		return true
	}
	return false
}

// appendFlag appends the name of a member as that of an option: forceWithLease, dry_run.
func appendFlag(dst, name []byte) []byte {
	for i, c := range name {
		switch {
		case c == '_':
			c = '-'
		case 'A' <= c && c <= 'Z':
			if c |= 0x20; i > 0 {
				dst = append(dst, '-')
			}
		case c <= ' ' || bytes.IndexByte([]byte("'\"\\`$;&|<>(){}"), c) >= 0:
			c = '-'
		}
		dst = append(dst, c)
	}
	return dst
}

func appendQuoted(dst []byte, word string) []byte {
	dst = append(dst, " '"...)
	dst = append(dst, strings.ReplaceAll(word, "'", `'\''`)...)
	return append(dst, '\'')
}

// runsCode returns how a shell would run the code among the arguments at b[from], an object,
// "" if a shell may run it itself: the name of the tool says the language, or an argument does,
// which an agent may have added.
func (w *walk) runsCode(t *Tool, from int) (interpreter string) {
	if t.special.Speaks || t.special.Code == "" {
		return t.special.Code
	}
	i, more := w.b.First(from)
	for more {
		lit, at := w.b.Name(i)
		if at < 0 {
			return ""
		}
		if i = w.b.Skip(at); i < 0 {
			return ""
		}
		raw := w.decodedName(lit)
		_, declared := t.schema.declared[string(raw)]
		if name := strings.ToLower(string(raw)); (declared || len(t.schema.declared) == 0) && (name == "language" || name == "lang" || name == "runtime" || name == "kernel") {
			if interpreter = service.Interpreter(text(w.b[at:i])); interpreter == "" {
				return ""
			}
		}
		i, more = w.b.Next(i, '}')
	}
	return interpreter
}

// special judges what the arguments at b[from], an object, do by what the tool is.
func (w *walk) special(t *Tool, from int) {
	w.found(t.special.Judge(w.b[from:], func(words ...string) {
		w.argv = append(w.argv[:0], words[0]...)
		for _, word := range words[1:] {
			w.argv = appendQuoted(w.argv, word)
		}
		w.command(view(w.argv), maxJoined)
	}))
}

// code judges a text that an interpreter runs. Code often has a call of eval, or of what is
// named like it, which says no more than the name of the tool.
func (w *walk) code(interpreter, text string) {
	if !command.Matters(text) && !strings.Contains(text, "(") {
		return
	}
	w.argv = appendQuoted(append(w.argv[:0], interpreter...), text)
	d, left := w.a.commands.Detect(view(w.argv), w.budget)
	if w.budget = left; w.interpreter == "" && left > 0 && len(w.argv) <= maxCode {
		d &^= detector.Opaque
	}
	if d != 0 {
		w.found(d)
	}
}

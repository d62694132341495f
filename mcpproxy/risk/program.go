package risk

import (
	"bytes"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// runsProgram judges the arguments at b[from], an object, as the words of the command that
// the tool runs: {"args": ["push"], "force": true} of git, and what a command is about,
// such as a branch, behind them.
func (w *walk) runsProgram(t *Tool, from int) {
	var operands []byte
	w.argv = append(w.argv[:0], t.special.program...)
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

// special judges what the arguments at b[from], an object, do with a repository or a thing
// that is shared.
func (w *walk) special(t *Tool, from int) {
	s := &t.special
	if s.grants {
		w.found(detector.Persistence)
	}
	if s.protects {
		w.found(detector.ProtectionOff)
	}
	if !s.shares && !s.moves && !s.scales && !s.mongo && !s.page {
		return
	}
	eachMember(w.b[from:], func(name string, value []byte) bool {
		v := string(value[:min(len(value), 16)])
		switch name = strings.ToLower(name); {
		case s.page && value[0] == '"' && isPageCode(name):
			w.found(pageDoes(text(value)))
		case s.moves && name == "force" && v == "true":
			w.found(detector.GitHistory)
		case s.mongo && isDropOfMongo(name):
			w.found(detector.SQLUnfiltered)
		case s.mongo && isCommandName(name) && value[0] == '{':
			eachMember(value, func(name string, _ []byte) bool {
				if isDropOfMongo(strings.ToLower(name)) {
					w.found(detector.SQLUnfiltered)
				}
				return true
			})
		case s.mongo && value[0] == '"':
			w.argv = appendQuoted(append(w.argv[:0], "mongosh --eval"...), text(value))
			w.command(view(w.argv), maxJoined)
		case s.scales && (v == "0" || v == `"0"`) && isCount(name):
			w.found(detector.Teardown)
		case !s.shares:
		case name == "visibility" && v == `"public"`, (name == "private" || name == "is_private" || name == "isprivate") && v == "false",
			(name == "public" || name == "is_public" || name == "publicly_accessible") && v == "true":
			w.found(detector.PermissionsAll)
		}
		return true
	})
}

// isPageCode reports whether an argument is code that a page runs.
func isPageCode(name string) bool {
	switch name {
	case "function", "expression", "script", "code", "javascript", "js", "pagefunction", "page_function":
		return true
	}
	return false
}

// pageDoes judges code that runs in a page, with the rights of who is logged in there:
// whether it reads the page's cookies, and whether it sends what the page keeps.
func pageDoes(code string) (d detector.Set) {
	for rest := code; ; {
		var ok bool
		if _, rest, ok = strings.Cut(rest, "cookie"); !ok {
			break
		}
		after := strings.TrimLeft(strings.TrimLeft(rest, `'"]`), " ")
		if strings.HasPrefix(rest, "Store") || !strings.HasPrefix(after, "=") || strings.HasPrefix(after, "==") {
			d |= detector.CredentialRead // it does not only set one
		}
	}
	if !strings.Contains(code, "document") && !strings.Contains(code, "cookieStore") {
		d = 0
	}
	if (d != 0 || shell.HasAny(code, "localStorage", "sessionStorage", "indexedDB")) && shell.HasAny(code, "fetch(", "XMLHttpRequest", "sendBeacon", "WebSocket", "new Image", ".src", "location=", "location =", "location.href", ".submit(") {
		d |= detector.Exfiltration
	}
	return d
}

// isDropOfMongo reports whether a command of MongoDB deletes a collection or a database.
func isDropOfMongo(name string) bool {
	switch name {
	case "dropdatabase", "drop", "dropindexes", "dropuser", "dropallusersfromdatabase", "dropallrolesfromdatabase", "dropconnections":
		return true
	}
	return false
}

// isCount reports whether an argument says how many of something run.
func isCount(name string) bool {
	switch strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", "") {
	case "replicas", "replicacount", "count", "desiredcount", "desiredcapacity", "instances", "instancecount", "size", "nodes", "nodecount", "minreplicas", "maxreplicas", "maxsize", "capacity", "scale":
		return true
	}
	return false
}

// isStatement reports whether a text begins as a statement of SQL does.
func isStatement(s string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(s[:min(len(s), 64)]), " ")
	switch strings.ToUpper(word) {
	case "DELETE", "DROP", "TRUNCATE", "UPDATE", "ALTER", "GRANT", "WITH", "SELECT", "INSERT", "CREATE", "COPY", "BEGIN", "EXPLAIN", "DO", "CALL", "SET":
		return true
	}
	return false
}

// Package service says what a tool does to a service by its name and its arguments: to a
// repository, a mailbox, a database, a cloud, a page in a browser, a thing that is shared.
//
// New looks at the words of a tool's name once. Judge reads the arguments of a call of a
// tool that is something special; any other costs nothing.
//
// The files, from the top: judge, service, access, shared, cloud, address, page, text.
package service

import (
	"strings"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/jsontext"
)

// isPlain reports whether all that the name says is no matter of Judge.
func (t *Tool) isPlain() bool {
	u := *t
	u.Program, u.Database, u.Queries, u.Graph, u.Relays, u.Code, u.Speaks = "", false, false, false, false, "", false
	return u == Tool{}
}

// Judge judges the arguments of a call, an object, by what the tool is. run gets words that
// a shell would read as the same thing.
func (t *Tool) Judge(arguments []byte, run func(words ...string)) (d detector.Set) {
	if t.isPlain() {
		return 0
	}
	if t.grants {
		d |= detector.Persistence
	}
	if t.protects {
		d |= detector.ProtectionOff
	}
	if t.secrets || t.objects && namesSecret(arguments) {
		d |= detector.CredentialRead
	}
	if t.weakens {
		d |= detector.ProtectionOff
	}
	if t.network && opensToAll(arguments) {
		d |= detector.PermissionsAll
	}
	if t.forwards {
		d |= detector.Exfiltration
	}
	if t.drops {
		d |= detector.SQLUnfiltered
	}
	if t.rules && redirects(arguments) {
		d |= detector.Exfiltration
	}
	if t.grantees && givesAll(arguments) {
		d |= detector.PermissionsAll
	}
	narrowed := false
	var r request
	var o operation
	for lit, value := range jsontext.Lenient(arguments).Members() {
		name := strings.ToLower(string(lit.Append(nil)))
		v := string(value[:min(len(value), 16)])
		switch {
		case t.page && value[0] == '"' && isPageCode(name):
			d |= PageDoes(text(value))
		case t.moves && name == "force" && v == "true":
			d |= detector.GitHistory
		case t.mongo && isDropOfMongo(name):
			d |= detector.SQLUnfiltered
		case t.mongo && isCommand(name) && value[0] == '{':
			for inner := range jsontext.Lenient(value).Members() {
				if isDropOfMongo(strings.ToLower(string(inner.Append(nil)))) {
					d |= detector.SQLUnfiltered
				}
			}
		case t.mongo && value[0] == '"':
			run("mongosh", "--eval", text(value))
		case t.scales && (v == "0" || v == `"0"`) && isCount(name):
			d |= detector.Teardown
		case t.many && isFilter(name):
			narrowed = narrowed || !isEmpty(value)
		case !t.shares:
		case name == "visibility" && v == `"public"`, (name == "private" || name == "is_private" || name == "isprivate") && v == "false",
			(name == "public" || name == "is_public" || name == "publicly_accessible") && v == "true":
			d |= detector.PermissionsAll
		}
		if t.requests {
			r.add(name, value)
		}
		if t.cloud || t.operation != "" {
			o.add(name, value)
		}
	}
	if t.many && !narrowed {
		d |= detector.SQLUnfiltered
	}
	if t.cloud || t.operation != "" {
		o.run(t.operation, run)
	}
	return d | r.does()
}

// A request is one that a tool sends.
type request struct{ method, path, body string }

func (r *request) add(name string, value []byte) {
	switch name {
	case "method", "http_method", "httpmethod", "verb":
		r.method = strings.ToUpper(text(value))
	case "url", "path", "endpoint", "uri", "route", "api_path":
		r.path = text(value)
	case "body", "data", "json", "payload":
		r.body = string(value)
	}
}

// does judges a request as one of curl.
func (r *request) does() (d detector.Set) {
	switch {
	case r.path == "":
	case r.method == "DELETE":
		d |= detector.Teardown
	case strings.Contains(r.path, "_delete_by_query") && (strings.Contains(r.body, "match_all") || r.body == ""):
		d |= detector.SQLUnfiltered
	}
	return d
}

func isCommand(name string) bool {
	switch name {
	case "command", "cmd", "subcommand", "args", "arguments", "argv", "options", "flags", "params":
		return true
	}
	return false
}

// isFilter reports whether an argument says what a change is about.
func isFilter(name string) bool {
	switch name {
	case "filter", "query", "where", "condition", "conditions", "criteria", "selector", "ids", "id":
		return true
	}
	return false
}

// isEmpty reports whether a value is an object or a text with nothing in it.
func isEmpty(value []byte) bool {
	return strings.Trim(string(value[:min(len(value), 64)]), " \t\r\n{}[]\"\\") == "" && len(value) <= 64 || string(value) == "null"
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

// Statement returns a text without the comments and parentheses in front, and whether it
// begins as a statement of SQL does, or as a command of sqlite3's shell.
func Statement(s string) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, " \t\r\n(;")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
			continue
		case strings.HasPrefix(s, "/*!"): // MySQL runs it
			return s, true
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s, "*/")
			continue
		case strings.HasPrefix(s, "."):
			return s, len(s) > 2 && 'a' <= s[1] && s[1] <= 'z'
		}
		break
	}
	word := s[:min(len(s), 16)]
	if end := strings.IndexFunc(word, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }); end >= 0 {
		word = word[:end]
	}
	switch strings.ToUpper(word) {
	case "DELETE", "DROP", "TRUNCATE", "UPDATE", "ALTER", "GRANT", "REVOKE", "WITH", "SELECT", "INSERT", "REPLACE", "MERGE", "CREATE", "COPY", "BEGIN", "EXPLAIN", "DO", "CALL", "SET",
		"INSTALL", "LOAD", "ATTACH", "EXEC", "EXECUTE", "BACKUP", "RESTORE", "SYSTEM", "SHUTDOWN", "UNLOAD", "EXPORT", "PRAGMA", "KILL", "DECLARE", "IF", "RESET", "PURGE", "SETUSER", "NOAUDIT", "FROM":
		return s, true
	}
	return s, false
}

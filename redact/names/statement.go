package names

import (
	"bytes"

	"auditproxy/redact/lex"
)

// IsBound reports whether a member's name, in any case, is that of the parameters of a
// statement of SQL in another one.
func IsBound(name []byte) bool {
	var buf [maxRole]byte
	switch string(lowered(&buf, name)) {
	case "params", "parameters", "args", "arguments", "values", "bindings", "binds", "bind", "data", "parameter_values", "sql_params", "rows", "variables",
		"vars", "bind_vars", "bindvars", "bind_variables", "bind_params", "query_params", "queryparams", "replacements", "placeholders", "substitutions", "inputs", "batch":
		return true
	}
	return false
}

// IsHeader reports whether a member's name, in any case, is that of the columns of a
// table in another one.
func IsHeader(name []byte) bool {
	var buf [maxRole]byte
	switch string(lowered(&buf, name)) {
	case "columns", "fields", "header", "headers", "cols", "column_names", "columnnames":
		return true
	}
	return false
}

// Binds reports whether a statement of SQL has a parameter that is a secret: one
// compared with or assigned to a sensitive column, or in an INSERT that has such a
// column.
func (n *Classifier) Binds(f *Folded, sql []byte) bool {
	if !bytes.ContainsAny(sql, "?$%:@") {
		return false // no parameter: most statements
	}
	inserts, column := false, false
	for i := 0; i < len(sql); {
		if !isWord(sql[i]) {
			if inserts && column && isParameter(sql[i:]) {
				return true
			}
			i++
			continue
		}
		from := i
		for i < len(sql) && isWord(sql[i]) {
			i++
		}
		word := sql[from:i]
		if bytes.EqualFold(word, []byte("values")) {
			inserts = true
			continue
		}
		if len(word) > MaxPairName || !n.IsPairName(f, word) {
			continue
		}
		column = true
		if isParameter(compared(bytes.TrimLeft(sql[i:], "\"`] "))) {
			return true
		}
	}
	return false
}

// compared returns what is behind the operator that b starts with, and behind a function
// of it: "= crypt(?, gen_salt('bf'))", "IN (?)", and GraphQL's "password: $p". It is nil
// without an operator.
func compared(b []byte) []byte {
	rest := bytes.TrimLeft(b, "=<>!:")
	if len(rest) == len(b) {
		word, behind, _ := bytes.Cut(b, []byte(" "))
		switch string(bytes.ToLower(word)) {
		case "in", "like", "ilike":
			rest = behind
		default:
			return nil
		}
	} else if at := len(b) - len(rest); at > 1 && b[at-1] == ':' && b[at-2] != ':' {
		rest = b[at-1:] // =:name
	}
	rest = bytes.TrimLeft(rest, " ")
	n := 0
	for n < len(rest) && isWord(rest[n]) {
		n++
	}
	if n < len(rest) && rest[n] == '(' {
		return rest[n+1:]
	}
	return rest
}

func isWord(c byte) bool { return lex.Classes[c]&lex.IsAlnum != 0 || c == '_' }

// isParameter reports whether b starts with a parameter: ?, $1, %s, :name, @name.
func isParameter(b []byte) bool {
	switch {
	case len(b) == 0:
		return false
	case b[0] == '?':
		return true
	case len(b) == 1:
		return false
	case b[0] == '%':
		return b[1] == 's' || b[1] == '('
	}
	return (b[0] == '$' || b[0] == ':' || b[0] == '@') && isWord(b[1])
}

package code

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// IsSQL reports whether a line begins as a statement of SQL.
func IsSQL(line string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	second, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(rest)), " ")
	switch strings.ToUpper(first) {
	case "SELECT", "WITH", "EXPLAIN":
		upper := strings.ToUpper(rest)
		return strings.Contains(upper, "FROM") || strings.Contains(upper, " AS ")
	case "INSERT", "REPLACE":
		return second == "INTO" || second == "IGNORE"
	case "DELETE":
		return second == "FROM"
	case "UPDATE":
		return strings.Contains(strings.ToUpper(rest), "SET ")
	case "DROP", "ALTER", "CREATE", "TRUNCATE", "GRANT", "REVOKE":
		return second != ""
	}
	return false
}

// Typed judges a command whose name is a verb of SQL. Where it is not in capitals it may be
// the first word of a sentence: "delete all the logs", "Drop the old name".
func Typed(s *shell.Shell, verb, rest string) {
	object, _, _ := strings.Cut(strings.ToLower(rest), " ")
	lower := strings.ToLower(verb)
	if verb == lower || verb != strings.ToUpper(verb) {
		if lower == "delete" && object != "from" ||
			lower == "drop" && !shell.In(object, "table database schema view index user role login owned sequence function procedure trigger type domain column keyspace tablespace materialized "+
				"extension server policy publication subscription aggregate cast collation constraint operator rule statistics temporary foreign event snapshot cluster warehouse catalog dictionary") {
			return
		}
	}
	SQL(s, verb+" "+rest)
}

// SQL judges statements of SQL: those that drop or empty something, and those
// that delete or change all rows.
func SQL(s *shell.Shell, text string) {
	if !s.Spend(4 * len(text)) {
		return
	}
	var words []string
	end := func() {
		if unfiltered(words) {
			s.Add(detector.SQLUnfiltered)
		}
		s.Add(grants(words))
		outside(s, words)
		words = words[:0]
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '-' && strings.HasPrefix(text[i:], "--"), c == '#' && (i == 0 || text[i-1] == '\n'):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			if strings.HasPrefix(text[i:], "/*!") || strings.HasPrefix(text[i:], "/*M!") {
				i += 3 // MySQL runs it
				for i < len(text) && text[i] >= '0' && text[i] <= '9' {
					i++
				}
				continue
			}
			n := strings.Index(text[i:], "*/")
			if n < 0 {
				n = len(text) - i - 2
			}
			i += n + 2
		case c == '\'' || c == '"' || c == '`' || c == '[':
			closing := c
			if c == '[' {
				closing = ']'
			}
			inner, end := quotation(text[i+1:], closing)
			if c == '\'' && takesStatement(words) {
				SQL(s, inner)
			}
			if c == '\'' && len(words) > 0 && shell.OneOf(words[len(words)-1], "PROGRAM", "XP_CMDSHELL") {
				s.Run(inner, shell.Stream{})
			}
			words = append(words, "'"+inner)
			i += 1 + end
		case c == '$' && strings.HasPrefix(text[i:], "$$"):
			i += 2 // the body of DO or of a function
			end()
		case c == ';':
			end()
			i++
		case c == '\\':
			line, _, _ := strings.Cut(text[i:], "\n")
			if cmd, ok := strings.CutPrefix(line, `\!`); ok {
				s.Run(cmd, shell.Stream{})
			}
			for _, to := range [...]string{`\g`, `\o`, `\w`} {
				if cmd, ok := strings.CutPrefix(strings.TrimPrefix(line, to), " |"); ok {
					s.Run(cmd, shell.Stream{})
				}
			}
			if rest, ok := strings.CutPrefix(line, `\copy `); ok {
				SQL(s, "COPY "+rest)
			}
			i += len(line)
		case trigger.IsWordByte(c):
			j := i
			for j < len(text) && (trigger.IsWordByte(text[j]) || text[j] == '.' && j+1 < len(text) && (trigger.IsWordByte(text[j+1]) || text[j+1] == '.')) {
				j++
			}
			word := strings.ToUpper(text[i:j])
			if shell.OneOf(word, "BEGIN", "THEN", "ELSE", "LOOP") && len(words) > 0 && !shell.OneOf(word, "ELSE") {
				end()
			} else {
				words = append(words, word)
			}
			i = j
		case c == '=' || c == '(' || c == ')' || c == ',' || c == '<' || c == '>':
			words = append(words, text[i:i+1])
			i++
		case c == '.' && (i == 0 || text[i-1] == '\n'):
			line, _, _ := strings.Cut(text[i:], "\n")
			dotCommand(s, line)
			i += len(line)
		default:
			if len(words) > 2 && strings.IndexByte("+-*/%|&!~^", c) >= 0 {
				words = append(words, text[i:i+1]) // in a condition
			}
			i++
		}
	}
	end()
	for line := range strings.Lines(text) {
		if cmd, ok := strings.CutPrefix(strings.TrimSpace(line), "system "); ok {
			s.MaybeRun(cmd)
		}
	}
}

// takesStatement reports whether a text behind words is a statement that is run.
func takesStatement(words []string) bool {
	n := len(words)
	if n == 0 {
		return false
	}
	switch last := words[n-1]; {
	case last == "N":
		return n > 1 && lastPart(words[n-2]) == "SP_EXECUTESQL"
	case last == "(" || last == ",":
		for i := n - 1; i >= max(1, n-6); i-- { // OPENQUERY(server, 'select 1')
			if words[i] == "(" {
				return shell.OneOf(words[i-1], "OPENQUERY", "QUERY_TO_XML", "EXEC", "EXECUTE")
			}
		}
		return false
	default:
		return shell.OneOf(last, "EXECUTE", "IMMEDIATE", "EXEC", "PREPARE", "SP_EXECUTESQL")
	}
}

// quotation returns what is in a quotation, behind its first quote, and the index after it.
// A single quote that is doubled is one of the text.
func quotation(text string, closing byte) (inner string, end int) {
	n := strings.IndexByte(text, closing)
	if n < 0 {
		return text, len(text) + 1
	}
	if closing != '\'' || n+1 == len(text) || text[n+1] != closing {
		return text[:n], n + 1
	}
	b := append([]byte(nil), text[:n]...)
	for i := n; i < len(text); i++ {
		if text[i] == closing {
			if i++; i == len(text) || text[i] != closing {
				return string(b), i
			}
		}
		b = append(b, text[i])
	}
	return string(b), len(text) + 1
}

// Statement judges a command whose name is a word of SQL, in capitals.
func Statement(s *shell.Shell, name string, args []shell.Field) bool {
	switch name {
	case "CREATE", "EXEC", "EXECUTE", "CALL", "COPY", "BACKUP", "RESTORE", "ATTACH", "LOAD", "SET", "INSTALL", "SHUTDOWN", "SELECT", "INSERT":
	default:
		return false
	}
	text := []byte(name)
	for _, a := range args {
		text = append(text, ' ')
		if a.Text != "" && strings.Trim(a.Text, "()=,;*.") == "" || !strings.ContainsAny(a.Text, ` '"\/:;`) {
			text = append(text, a.Text...)
			continue
		}
		quoted := strings.ReplaceAll(a.Text, "'", " ")
		if rest, ok := strings.CutPrefix(quoted, "N"); ok { // N'text', of which a shell makes one word
			text = append(append(append(text, "N '"...), rest...), "' "...)
		}
		text = append(append(append(text, '\''), quoted...), '\'')
	}
	SQL(s, string(text))
	return true
}

// grants judges the words of one statement that gives rights: those of the
// administrator, or everybody's.
func grants(words []string) (d detector.Set) {
	switch at(words, 0) {
	case "ALTER", "CREATE":
		if shell.OneOf(at(words, 1), "USER", "ROLE", "LOGIN") && slices.Contains(words, "SUPERUSER") {
			return detector.Persistence
		}
		if at(words, 1) == "SERVER" && at(words, 2) == "ROLE" && slices.Contains(words, "SYSADMIN") {
			return detector.Persistence
		}
	case "GRANT":
		for i, w := range words {
			switch w {
			case "TO":
				if at(words, i+1) == "PUBLIC" && slices.ContainsFunc(words[:i], func(w string) bool {
					return shell.OneOf(w, "ALL", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "CREATE")
				}) {
					d |= detector.PermissionsAll
				}
			case "*":
				if words[i-1] == "ON" {
					d |= detector.Persistence // of all databases
				}
			case "SUPER", "DBA", "SYSDBA", "RDS_SUPERUSER", "CLOUDSQLSUPERUSER", "PG_EXECUTE_SERVER_PROGRAM", "PG_WRITE_SERVER_FILES", "PG_READ_SERVER_FILES":
				d |= detector.Persistence
			}
		}
	}
	return d
}

// unfiltered judges the words of one statement.
func unfiltered(words []string) bool {
	for len(words) > 0 && shell.OneOf(words[0], "EXPLAIN", "ANALYZE", "VERBOSE", "BEGIN", "DO", "IF", "EXISTS", "START", "USE") {
		if words[0] == "EXPLAIN" && !shell.OneOf(at(words, 1), "ANALYZE", "(") {
			return false
		}
		words = words[1:]
	}
	if len(words) < 2 {
		return false
	}
	if words[0] == "WITH" || words[0] == "EXECUTE" {
		for i, w := range words {
			if (w == "DELETE" && at(words, i+1) == "FROM" || w == "UPDATE") && i > 0 && unfiltered(words[i:]) {
				return true
			}
		}
		return false
	}
	switch words[0] {
	case "DROP":
		return !shell.OneOf(words[1], "PREPARE")
	case "TRUNCATE":
		return words[1] != "("
	case "ALTER":
		for i, w := range words {
			if w == "DROP" && !shell.OneOf(at(words, i+1), "DEFAULT", "NOT", "CONSTRAINT", "IDENTITY", "EXPRESSION") || w == "TRUNCATE" && at(words, i+1) == "PARTITION" {
				return true
			}
			if words[1] == "TABLE" && (w == "DELETE" || w == "UPDATE") && i > 2 && !shell.OneOf(words[i-1], "ON") {
				return true // ClickHouse's mutations
			}
		}
	case "DELETE":
		return (words[1] == "FROM" || len(words) > 1 && words[1] != "=") && !filtered(words)
	case "UPDATE":
		set := false
		for _, w := range words {
			set = set || w == "SET"
		}
		return set && !filtered(words)
	case "RESET":
		return words[1] == "MASTER"
	case "PURGE":
		return true
	}
	return false
}

// filtered reports whether a statement has a condition that is not always true.
func filtered(words []string) bool {
	depth, joined := 0, false
	for i, w := range words {
		switch {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case depth > 0:
		case w == "WHERE":
			c := condition{words: words[i+1:]}
			return c.or(0) != always
		case w == "USING", w == "JOIN":
			joined = true
		}
	}
	return joined
}

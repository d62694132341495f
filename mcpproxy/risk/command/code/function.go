package code

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/guard"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// functions judges a function of SQL, or what stands for a table, that reads files of the
// server, runs something there, or connects it to another host. rest are the words behind
// its name.
func functions(s *shell.Shell, words []string, i int, name string, rest []string) {
	if at(words, i+1) != "(" {
		if i > 0 && shell.OneOf(words[i-1], "FROM", "JOIN") { // DuckDB reads a file by its name
			readsTable(s, words[i])
		}
		return
	}
	first, table := at(words, i+2), i > 0 && shell.OneOf(words[i-1], "FROM", "JOIN", ",", "FUNCTION", "TABLE")
	switch name {
	case "OPENROWSET":
		if first == "BULK" {
			s.Add(detector.PrivilegeEscalation)
			reads(s, at(words, i+3))
		} else {
			s.Add(detector.Exfiltration)
		}
	case "OPENDATASOURCE":
		s.Add(detector.Exfiltration)
	case "DBLINK", "DBLINK_CONNECT", "DBLINK_CONNECT_U", "DBLINK_EXEC", "DBLINK_SEND_QUERY":
		for _, w := range rest {
			if w == ")" {
				break
			}
			if text, ok := strings.CutPrefix(w, "'"); ok && shell.HasAny(strings.ToLower(strings.ReplaceAll(text, " ", "")), "host=", "hostaddr=", "://") {
				s.Add(detector.Exfiltration)
			}
		}
	case "READ_TEXT", "READ_BLOB", "READFILE", "READ_CSV", "READ_CSV_AUTO", "READ_JSON", "READ_JSON_AUTO", "READ_PARQUET", "READ_NDJSON", "LSDIR", "FSDIR", "GLOB":
		for _, w := range rest {
			if w == ")" {
				break
			}
			readsTable(s, w)
		}
	case "WRITEFILE":
		writes(s, first)
	case "EDIT", "FTS3_TOKENIZER":
		if strings.HasPrefix(first, "'") || strings.HasPrefix(at(words, i+4), "'") {
			if at(words, i+3) == "," {
				s.Add(detector.PrivilegeEscalation) // an editor's command, or the address of code
				runs(s, words[i+4:min(i+5, len(words))])
			}
		}
	case "PG_LS_DIR", "PG_STAT_FILE":
		s.Add(detector.PrivilegeEscalation)
	case "FILE", "URL", "EXECUTABLE", "HDFS", "FILECLUSTER", "URLCLUSTER":
		if !table {
			return
		}
		switch {
		case name == "EXECUTABLE":
			s.Add(detector.PrivilegeEscalation)
		case guard.IsMetadata(first):
			s.Add(detector.CredentialRead)
		case at(words, i-1) == "FUNCTION" && at(words, 0) == "INSERT":
			writes(s, first)
		default:
			if file := strings.TrimPrefix(first, "'"); strings.HasPrefix(name, "FILE") && (strings.HasPrefix(file, "/") || strings.Contains(file, "..")) {
				s.Add(detector.PrivilegeEscalation)
			}
			readsTable(s, first)
		}
	case "HTTPURITYPE":
		s.Add(detector.Exfiltration)
	}
	switch {
	case strings.HasPrefix(words[i], "UTL_FILE."), strings.HasPrefix(words[i], "DBMS_JAVA"), words[i] == "DBMS_XSLPROCESSOR.CLOB2FILE", strings.HasPrefix(words[i], "OS_COMMAND."):
		s.Add(detector.PrivilegeEscalation)
	case strings.HasPrefix(words[i], "UTL_INADDR."), words[i] == "DBMS_LDAP.INIT":
		s.Add(detector.Exfiltration)
	}
}

// readsTable judges a file, or an address, whose rows a statement reads.
func readsTable(s *shell.Shell, word string) {
	file, ok := strings.CutPrefix(word, "'")
	if !ok {
		return
	}
	if guard.IsMetadata(file) {
		s.Add(detector.CredentialRead)
	}
	reads(s, "'"+strings.TrimPrefix(file, "file://"))
}

// servers judges the words of one statement that changes what the server itself runs,
// reads or is: its libraries, its links to other servers, whose rights it has, its end.
func servers(s *shell.Shell, words []string) {
	second, third := at(words, 1), at(words, 2)
	switch at(words, 0) {
	case "CREATE", "ALTER":
		for i, w := range words {
			switch w {
			case "JAVA":
				if shell.OneOf(at(words, i+1), "SOURCE", "CLASS") {
					s.Add(detector.PrivilegeEscalation)
				}
			case "WRAPPER":
				if lastPart(at(words, i+1)) == "FILE_FDW" {
					s.Add(detector.PrivilegeEscalation)
				}
			case "FILENAME":
				if second == "FOREIGN" {
					reads(s, at(words, i+1))
				}
			case "PROGRAM":
				if second == "FOREIGN" && strings.HasPrefix(at(words, i+1), "'") {
					s.Add(detector.PrivilegeEscalation)
				}
			case "TRUSTWORTHY":
				if at(words, i+1) == "ON" {
					s.Add(detector.PrivilegeEscalation)
				}
			}
		}
	case "EXECUTE", "EXEC", "SETUSER":
		if second == "AS" && shell.OneOf(third, "LOGIN", "USER") && hasText(words[3:], "sa", "dbo") || at(words, 0) == "SETUSER" && hasText(words[1:], "sa", "dbo") {
			s.Add(detector.PrivilegeEscalation)
		}
	case "INSTALL": // an extension of DuckDB that is not of its own repository
		for i, w := range words {
			if w == "FROM" && !shell.OneOf(at(words, i+1), "CORE", "CORE_NIGHTLY") {
				s.Add(detector.PrivilegeEscalation)
			}
		}
		if strings.ContainsAny(second, "/.") {
			s.Add(detector.PrivilegeEscalation)
		}
	case "SET", "PRAGMA":
		if name := lastPart(second); shell.OneOf(name, "ALLOW_UNSIGNED_EXTENSIONS", "ALLOW_COMMUNITY_EXTENSIONS", "ENABLE_EXTERNAL_ACCESS") &&
			hasText(words[len(words)-1:], "true", "1", "on") {
			s.Add(detector.ProtectionOff)
		}
	case "SYSTEM":
		switch {
		case shell.OneOf(second, "SHUTDOWN", "KILL") && len(words) == 2, second == "DROP" && third == "REPLICA", second == "STOP" && third == "LISTEN":
			s.Add(detector.Teardown)
		case shell.OneOf(second, "STOP", "DROP") && third == "LOGS":
			s.Add(detector.ProtectionOff)
		}
	case "UNLOAD", "EXPORT":
		for _, w := range words {
			if isRemote(w) {
				s.Add(detector.Exfiltration)
			}
		}
	case "COPY":
		if second == "INTO" && isRemote(third) {
			s.Add(detector.Exfiltration)
		}
	case "ATTACH":
		for _, w := range words[1:min(len(words), 3)] {
			if file, ok := strings.CutPrefix(w, "'"); ok && place.IsCredential(file) {
				s.Add(detector.CredentialRead)
			}
		}
	}
}

// dotCommand judges a line of sqlite3's or duckdb's shell, such as .shell or .load.
func dotCommand(s *shell.Shell, line string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	bare := strings.Trim(rest, `'"`)
	is := func(full string, least int) bool { return len(name) > least && strings.HasPrefix(full, name[1:]) }
	switch {
	case is("shell", 2), is("system", 2):
		s.Run(rest, shell.Stream{})
	case is("load", 2):
		s.Add(detector.PrivilegeEscalation)
	case is("output", 1), is("once", 2), is("excel", 1), is("read", 3), is("import", 1), is("log", 3):
		if cmd, ok := strings.CutPrefix(bare, "|"); ok {
			if is("import", 1) { // .import '|ls' table
				if cut, _, ok := strings.Cut(cmd, rest[:1]); ok && strings.ContainsAny(rest[:1], `'"`) {
					cmd = cut
				}
			}
			s.Run(cmd, shell.Stream{})
		} else if is("output", 1) || is("once", 2) {
			writes(s, "'"+bare)
		} else if !is("log", 3) {
			file, _, _ := strings.Cut(bare, " ")
			reads(s, "'"+strings.Trim(file, `'"`))
		}
	case is("backup", 1), is("save", 2), is("clone", 2):
		writes(s, "'"+strings.TrimPrefix(bare, "main "))
	}
}

package code

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Leaves reports whether a line that begins as one of SQL may be about what is outside
// of the database. Words of shells and of prose count only in capitals.
func Leaves(line string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch first {
	case "EXEC", "EXECUTE", "CALL":
		return shell.HasAny(strings.ToUpper(rest), "XP_", "SP_", "DBMS_")
	case "exec":
		return shell.HasAny(rest, "xp_", "sp_")
	case "SELECT", "select":
		return strings.Contains(rest, "(") || strings.Contains(strings.ToUpper(rest), "INTO ")
	case "COPY", "BACKUP", "RESTORE", "ATTACH", "LOAD", "SET", "INSTALL":
		return strings.Contains(rest, "'")
	}
	return false
}

// outside judges the words of one statement that makes the database's server do
// something outside of the database: run a command, load code, write a file, send
// something, or stop.
func outside(s *shell.Shell, words []string) {
	first := at(words, 0)
	for i, w := range words {
		next := at(words, i+1)
		rest := words[i+1 : min(i+1+maxArguments, len(words))]
		called := next == "(" || strings.HasPrefix(next, "'") || i == 0 || shell.OneOf(words[i-1], "EXEC", "EXECUTE", "CALL")
		switch name := lastPart(w); name {
		case "XP_CMDSHELL", "SYS_EXEC", "SYS_EVAL":
			if called {
				s.Add(detector.PrivilegeEscalation)
				runs(s, rest)
			}
		case "SP_OACREATE", "XP_REGWRITE", "XP_REGREAD", "XP_INSTANCE_REGREAD", "XP_REGDELETEVALUE", "XP_REGDELETEKEY", "XP_SERVICECONTROL", "LOAD_EXTENSION":
			if called {
				s.Add(detector.PrivilegeEscalation)
			}
		case "SP_EXECUTE_EXTERNAL_SCRIPT":
			if called {
				s.Add(detector.PrivilegeEscalation)
				for _, text := range rest {
					if text, ok := strings.CutPrefix(text, "'"); ok {
						s.Feed(shell.Stream{Kind: shell.Text, Text: text}, "python")
					}
				}
			}
		case "PG_READ_FILE", "PG_READ_BINARY_FILE", "LO_IMPORT", "LOAD_FILE":
			if next == "(" {
				s.Add(detector.PrivilegeEscalation)
				reads(s, at(words, i+2))
			}
		case "INFILE", "FROM", "BULK":
			if shell.OneOf(first, "LOAD", "COPY") || name == "BULK" {
				reads(s, next)
			}
		case "SP_CONFIGURE":
			if called && opensServer(rest) {
				s.Add(detector.ProtectionOff)
			}
		case "SP_ADDSRVROLEMEMBER":
			if called && hasText(rest, "sysadmin", "securityadmin") {
				s.Add(detector.Persistence)
			}
		case "SP_ADD_JOBSTEP", "CREATE_JOB", "CREATE_PROGRAM":
			if called && hasText(rest, "cmdexec", "powershell", "executable", "external_script") {
				s.Add(detector.PrivilegeEscalation | detector.Persistence)
			}
		case "SP_PROCOPTION":
			if called {
				s.Add(detector.Persistence)
			}
		case "XP_DIRTREE", "XP_FILEEXIST", "XP_SUBDIRS":
			if called && (strings.HasPrefix(next, `'\`) || strings.HasPrefix(next, "'//")) {
				s.Add(detector.Exfiltration) // the server logs in at another host
			}
		case "PG_TERMINATE_BACKEND":
			if next == "(" {
				s.Add(detector.Kill)
			}
		case "PROGRAM":
			if first == "COPY" && i > 1 && shell.OneOf(words[i-1], "TO", "FROM") && strings.HasPrefix(next, "'") {
				s.Add(detector.PrivilegeEscalation)
			}
		case "SONAME", "UNSAFE", "EXTERNAL_ACCESS":
			if shell.OneOf(first, "CREATE", "INSTALL", "ALTER") {
				s.Add(detector.PrivilegeEscalation)
			}
		case "LANGUAGE", "EXTENSION":
			if (first == "CREATE" || i == 0) && isUntrusted(next) { // behind a body, which ends a statement here
				s.Add(detector.PrivilegeEscalation)
			}
		case "OUTFILE", "DUMPFILE":
			if i > 0 && words[i-1] == "INTO" {
				writes(s, next)
			}
		case "LO_EXPORT":
			for _, file := range rest {
				writes(s, file)
			}
		case "TO":
			if first == "COPY" {
				writes(s, next)
			}
		case "DISK":
			if first == "BACKUP" {
				writes(s, at(words, i+2))
			} else if first == "RESTORE" {
				reads(s, at(words, i+2))
			}
		default:
			if next == "(" && (strings.HasPrefix(w, "UTL_HTTP.") || strings.HasPrefix(w, "UTL_TCP.") || strings.HasPrefix(w, "UTL_SMTP.") ||
				strings.HasPrefix(w, "SYS.UTL_HTTP.")) {
				s.Add(detector.Exfiltration)
			}
			functions(s, words, i, name, rest)
		}
	}
	servers(s, words)
	switch first {
	case "ATTACH":
		writes(s, at(words, 1))
		writes(s, at(words, 2))
	case "LOAD":
		if strings.HasPrefix(at(words, 1), "'") {
			s.Add(detector.PrivilegeEscalation)
		}
	case "INSERT":
		if at(words, 1) == "INTO" && at(words, 2) == "FUNCTION" &&
			shell.OneOf(at(words, 3), "URL", "S3", "REMOTE", "REMOTESECURE", "MYSQL", "POSTGRESQL", "GCS", "AZUREBLOBSTORAGE") {
			s.Add(detector.Exfiltration)
		}
	case "SHUTDOWN":
		if len(words) == 1 || shell.OneOf(words[1], "WITH", "IMMEDIATE", "ABORT", "NORMAL", "TRANSACTIONAL", "NOSAVE", "SAVE", "FORCE") {
			s.Add(detector.Teardown)
		}
	case "KILL":
		if shell.OneOf(at(words, 1), "CONNECTION", "QUERY", "HARD", "SOFT") || isNumber(at(words, 1)) && len(words) == 2 {
			s.Add(detector.Kill)
		}
	}
	s.Add(settings(s, words))
	s.Add(reveals(words))
}

// settings judges a statement that changes how the server runs, or a password.
func settings(s *shell.Shell, words []string) (d detector.Set) {
	off := func() bool {
		last := strings.ToUpper(strings.Trim(words[len(words)-1], "' "))
		return shell.OneOf(last, "OFF", "0", "FALSE", "NONE")
	}
	switch at(words, 0) {
	case "SET":
		if shell.OneOf(at(words, 1), "GLOBAL", "PERSIST") &&
			shell.OneOf(at(words, 2), "GENERAL_LOG", "SLOW_QUERY_LOG", "LOG_OUTPUT", "AUDIT_LOG_POLICY", "SERVER_AUDIT_LOGGING") && off() {
			d |= detector.ProtectionOff
		}
		if at(words, 1) == "PASSWORD" {
			d |= detector.Persistence
		}
	case "NOAUDIT":
		d |= detector.ProtectionOff
	case "ALTER":
		switch {
		case at(words, 1) == "SYSTEM" && at(words, 2) == "SET":
			name, value := at(words, 3), words[len(words)-1]
			switch {
			case strings.HasSuffix(name, "_COMMAND"):
				d |= detector.Persistence
				runs(s, words[4:])
			case strings.HasSuffix(name, "PRELOAD_LIBRARIES") && strings.Contains(value, "/"), name == "DYNAMIC_LIBRARY_PATH":
				d |= detector.Persistence
			case shell.OneOf(name, "LOGGING_COLLECTOR", "LOG_STATEMENT", "LOG_CONNECTIONS", "LOG_DISCONNECTIONS", "LOG_DESTINATION", "PGAUDIT.LOG", "AUDIT_TRAIL") && off():
				d |= detector.ProtectionOff
			}
		case shell.OneOf(at(words, 1), "USER", "ROLE", "LOGIN"):
			for i, w := range words {
				if i > 2 && (w == "PASSWORD" && !shell.OneOf(at(words, i+1), "EXPIRE", "HISTORY", "REUSE", "REQUIRE", "NULL") || w == "IDENTIFIED") {
					d |= detector.Persistence
				}
			}
		case shell.OneOf(at(words, 1), "SERVER", "DATABASE") && at(words, 2) == "AUDIT":
			for i, w := range words {
				if w == "STATE" && at(words, i+2) == "OFF" {
					d |= detector.ProtectionOff
				}
			}
		}
	}
	return d
}

// reveals reports whether a statement reads what a server keeps of passwords.
func reveals(words []string) (d detector.Set) {
	named := at(words, 0) == "SELECT" && at(words, 1) == "FROM" // all columns
	for i, w := range words {
		if w == "FROM" || w == "JOIN" {
			table := at(words, i+1)
			switch lastPart(table) {
			case "PG_SHADOW", "PG_AUTHID", "MOZ_COOKIES", "MOZ_LOGINS":
				d |= detector.CredentialRead
			case "SQL_LOGINS", "SYSLOGINS", "SYSXLOGINS", "DBA_USERS", "GLOBAL_PRIV":
				if named {
					d |= detector.CredentialRead
				}
			case "USER":
				if named && strings.HasPrefix(table, "MYSQL.") {
					d |= detector.CredentialRead
				}
			}
			continue
		}
		named = named || shell.OneOf(lastPart(w), "PASSWORD", "PASSWORD_HASH", "AUTHENTICATION_STRING", "PASS", "PRIV", "SPARE4")
	}
	return d
}

// opensServer reports whether a setting of SQL Server lets statements run commands or
// code, or read other servers.
func opensServer(words []string) bool {
	for i, w := range words {
		value := at(words, i+2) // behind a comma
		if hasText(words[i:i+1], "xp_cmdshell", "ole automation procedures", "external scripts enabled", "clr enabled", "ad hoc distributed queries") && value == "1" ||
			w == "'clr strict security" && value == "0" {
			return true
		}
	}
	return false
}

// isUntrusted reports whether functions of a language can do what the server can.
func isUntrusted(language string) bool {
	switch name := strings.ToUpper(strings.TrimPrefix(language, "'")); name {
	case "C", "PLSH", "PLPYTHONU", "PLPYTHON2U", "PLPYTHON3U", "PLPERLU", "PLTCLU", "PLRUBYU", "PLJAVAU", "PLR":
		return true
	}
	return false
}

func isNumber(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

package code

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/guard"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Cypher judges statements of a graph database: those that delete all of it, that read
// files of the server or send something with the address they load, and procedures that
// run statements elsewhere or write files.
func Cypher(s *shell.Shell, text string) {
	if !s.Spend(4 * len(text)) {
		return
	}
	for statement := range strings.SplitSeq(text, ";") {
		words := cypherWords(statement)
		matched := false // something narrows what is matched
		for i, w := range words {
			next := at(words, i+1)
			switch {
			case shell.OneOf(w, "WHERE", "{", "LIMIT"):
				matched = true
			case w == "DELETE" && !matched:
				s.Add(detector.SQLUnfiltered)
			case w == "DROP" && shell.OneOf(next, "DATABASE", "GRAPH", "USER", "ROLE", "ALIAS"), w == "CREATE" && next == "OR" && at(words, i+3) == "DATABASE":
				s.Add(detector.SQLUnfiltered)
			case shell.OneOf(w, "CREATE", "ALTER") && next == "USER", w == "GRANT" && next == "ROLE", strings.HasPrefix(w, "DBMS.SECURITY.CREATE"),
				strings.HasPrefix(w, "DBMS.SECURITY.CHANGE"),
				strings.HasPrefix(w, "APOC.TRIGGER.ADD"), strings.HasPrefix(w, "APOC.TRIGGER.INSTALL"), strings.HasPrefix(w, "APOC.CUSTOM.INSTALL"):
				s.Add(detector.Persistence)
			case w == "CSV" && i > 0 && words[i-1] == "LOAD":
				loads(s, words[i+1:min(i+1+maxArguments, len(words))])
			case strings.HasPrefix(w, "APOC.LOAD."), strings.HasPrefix(w, "APOC.IMPORT."), strings.HasPrefix(w, "APOC.CYPHER.RUNFILE"), strings.HasPrefix(w, "APOC.CYPHER.RUNSCHEMAFILE"):
				loads(s, words[i+1:min(i+1+maxArguments, len(words))])
			case strings.HasPrefix(w, "APOC.EXPORT."):
				for _, word := range words[i+1 : min(i+1+maxArguments, len(words))] {
					if name, ok := strings.CutPrefix(word, "'"); ok && strings.ContainsAny(name, "/.") {
						writes(s, word)
					}
				}
			case strings.HasPrefix(w, "APOC.SYSTEMDB.EXECUTE"), strings.HasPrefix(w, "APOC.CYPHER.RUN"), strings.HasPrefix(w, "APOC.CYPHER.DOIT"), strings.HasPrefix(w, "APOC.PERIODIC."):
				for _, word := range words[i+1 : min(i+1+maxArguments, len(words))] {
					if inner, ok := strings.CutPrefix(word, "'"); ok && s.Enter() {
						Cypher(s, inner)
						s.Leave()
					}
				}
			}
		}
	}
}

// loads judges the address that a statement loads.
func loads(s *shell.Shell, words []string) {
	for i, w := range words {
		text, ok := strings.CutPrefix(w, "'")
		if !ok {
			continue
		}
		lower := strings.ToLower(text)
		switch {
		case guard.IsMetadata(lower):
			s.Add(detector.CredentialRead)
		case strings.HasPrefix(lower, "file:/"), strings.HasPrefix(text, "/"):
			file := text
			if strings.HasPrefix(lower, "file://") {
				file = text[len("file://"):]
			}
			reads(s, "'"+file)
			if shell.HasAny(file, "/etc/", "/root/", "/home/", "/proc/", "/var/", "..") {
				s.Add(detector.PrivilegeEscalation)
			}
		case strings.Contains(lower, "://") && at(words, i+1) == "+":
			s.Add(detector.Exfiltration) // what is put together has data in it
		}
	}
}

// cypherWords returns the words of a statement in upper case, texts with a quote in front,
// and signs that matter.
func cypherWords(text string) (words []string) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '/' && strings.HasPrefix(text[i:], "//"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return words
			}
			i += n
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i:], "*/")
			if n < 0 {
				return words
			}
			i += n + 2
		case c == '\'' || c == '"':
			n := strings.IndexByte(text[i+1:], c)
			if n < 0 {
				n = len(text) - i - 1
			}
			words = append(words, "'"+text[i+1:i+1+n])
			i += n + 2
		case isLetter(c):
			j := i
			for j < len(text) && (isLetter(text[j]) || text[j] >= '0' && text[j] <= '9' || text[j] == '.') {
				j++
			}
			words = append(words, strings.ToUpper(text[i:j]))
			i = j
		case c == '{' || c == '+':
			words = append(words, text[i:i+1])
			i++
		default:
			i++
		}
	}
	return words
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

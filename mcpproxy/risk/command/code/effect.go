package code

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// maxArguments is how many words behind a procedure are its arguments, so that a
// statement that has thousands of procedures takes no time for each.
const maxArguments = 64

// writes judges a file that the server writes: where, and as what.
func writes(s *shell.Shell, word string) {
	file, ok := strings.CutPrefix(word, "'")
	if !ok || file == "" || file == ":memory:" {
		return
	}
	if strings.HasPrefix(file, `\\`) || strings.HasPrefix(file, "//") || isRemote(word) {
		s.Add(detector.Exfiltration)
		return
	}
	file = strings.ReplaceAll(file, `\`, "/")
	s.WriteTo(shell.Field{Text: file})
	switch strings.ToLower(path.Ext(file)) {
	case ".php", ".phtml", ".php5", ".jsp", ".jspx", ".asp", ".aspx", ".cfm", ".cgi", ".so", ".dll", ".sh", ".bat", ".ps1", ".vbs", ".pem", ".pub":
		s.Add(detector.Persistence) // a page or a library that a server runs
	}
}

// reads judges a file that the server reads.
func reads(s *shell.Shell, word string) {
	file, ok := strings.CutPrefix(word, "'")
	switch {
	case !ok:
	case strings.HasPrefix(file, `\\`):
		s.Add(detector.Exfiltration) // the server logs in at another host
	default:
		s.Open(shell.Field{Text: file})
	}
}

// runs judges the texts among words as commands.
func runs(s *shell.Shell, words []string) {
	for _, w := range words {
		if text, ok := strings.CutPrefix(w, "'"); ok {
			s.Run(text, shell.Stream{})
		}
	}
}

// hasText reports whether a word is one of the texts, which are in lower case.
func hasText(words []string, texts ...string) bool {
	for _, w := range words {
		if shell.OneOf(strings.ToLower(strings.TrimPrefix(w, "'")), texts...) { // a shell drops quotes
			return true
		}
	}
	return false
}

// lastPart returns a name without the database and the schema before it.
func lastPart(word string) string {
	if strings.HasPrefix(word, "'") {
		return word
	}
	return word[strings.LastIndexByte(word, '.')+1:]
}

// isRemote reports whether a text is the address of a place elsewhere.
func isRemote(word string) bool {
	text, ok := strings.CutPrefix(word, "'")
	scheme, _, found := strings.Cut(text, "://")
	return ok && found && scheme != "" && !strings.EqualFold(scheme, "file") && !strings.ContainsAny(scheme, " /")
}

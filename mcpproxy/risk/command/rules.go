package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
)

// rules are the rules of programs, in the shell that calls one.
type rules struct{ *shell.Shell }

// isCommandLine reports whether a text starts with a well-known program and an
// argument.
func isCommandLine(text string) bool {
	name, rest, ok := strings.Cut(strings.TrimSpace(text), " ")
	return ok && rest != "" && trigger.Runs(shell.BaseName(name))
}

// isProse reports whether the name is rather the first word of a sentence.
func isProse(name string) bool {
	name = strings.TrimRight(name, ":,")
	return len(name) > 0 && 'A' <= name[0] && name[0] <= 'Z' && strings.Trim(name[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

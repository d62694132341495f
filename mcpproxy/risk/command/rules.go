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

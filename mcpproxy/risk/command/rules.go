package command

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
)

// rules are the rules of programs, in the shell that calls one.
type rules struct{ *shell.Shell }

// isProse reports whether the name is rather the first word of a sentence.
func isProse(name string) bool {
	name = strings.TrimRight(name, ":,")
	return len(name) > 0 && 'A' <= name[0] && name[0] <= 'Z' && strings.Trim(name[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

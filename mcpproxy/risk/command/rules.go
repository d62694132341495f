package command

import "auditproxy/mcpproxy/risk/command/shell"

// rules are the rules of programs, in the shell that calls one.
type rules struct{ *shell.Shell }

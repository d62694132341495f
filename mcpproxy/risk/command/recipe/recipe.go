// Package recipe says which commands a program runs that its arguments name: the value
// of an option such as --pre-hook, a setting such as alias.x=!…, what a file of make,
// just or npm has under a name. It is pure.
package recipe

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
)

// IsCommand reports whether a text starts with a well-known program and an argument.
func IsCommand(text string) bool {
	name, rest, ok := strings.Cut(strings.TrimSpace(text), " ")
	return ok && rest != "" && trigger.Runs(shell.BaseName(name))
}

// Options runs the commands that options and settings of a program are by their names.
func Options(s *shell.Shell, name string, args []shell.Field) {
	switch name {
	case "git", "hub", "gh", "glab", "logger", "notify-send", "curl", "wget", "http", "https", "xh", "httpie": // they have rules, are given prose, or send it
		return
	}
	for i, a := range args {
		if !s.Spend(len(a.Text)) {
			return
		}
		key, value, has := strings.Cut(a.Code(), "=")
		if !has && i+1 < len(args) && strings.HasPrefix(key, "-") {
			value = args[i+1].Code()
		}
		// The value of --checkpoint-action=exec=… is a setting itself.
		for depth := 0; value != "" && depth < 4; depth++ {
			if runs(key) {
				perhaps(s, value)
			}
			key, value, _ = strings.Cut(value, "=")
		}
	}
}

// perhaps runs a value if it is a command, or a file that the text wrote.
func perhaps(s *shell.Shell, value string) {
	value = strings.TrimLeft(value, "! ")
	if IsCommand(value) {
		s.MaybeRun(value)
	} else {
		s.MaybeRun(s.Written(value))
	}
}

// runs reports whether the value of an option or a setting is a command by its name.
func runs(key string) bool {
	if strings.ContainsAny(key, " \t\n\"'/$") {
		return false
	}
	key = strings.ToLower(key)
	return shell.HasAny(key, "exec", "command", "cmd", "hook", "invoke", "alias", "rsh", "shell", "filter", "pipe", "pager", "editor", "program", "script", "run", "call", "eval") ||
		shell.OneOf(key, "--up", "--down")
}

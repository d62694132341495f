// Package recipe says which commands a program runs that its arguments name: the value
// of an option such as --pre-hook, a setting such as alias.x=!…, what a file of make,
// just or npm has under a name. It is pure.
//
// The files, from the top: build, recipe, implied.
package recipe

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
)

// Options runs the commands that options and settings of a program are by their names.
func Options(s *shell.Shell, name string, args []shell.Field) {
	runsImplied(s, name, args)
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

// runs reports whether the value of an option or a setting is a command by its name: by the
// last word, as of password-command, Pre-Invoke:: and runCmd, or the first, as of ExecStartPre
// and alias.x. A description is none, nor is a run-name.
func runs(key string) bool {
	if strings.ContainsAny(key, " \t\n\"'/$") {
		return false
	}
	key = strings.Trim(key, "-:")
	last := key[strings.LastIndexAny(key, "-_.:")+1:]
	lower := strings.ToLower(last)
	if shell.OneOf(lower, "exec", "command", "cmd", "hook", "invoke", "rsh", "shell", "filter", "pipe", "pager", "editor", "program", "script", "eval") ||
		shell.OneOf(key, "run", "call", "up", "down") {
		return true
	}
	for _, word := range [...]string{"Exec", "Command", "Cmd", "Hook", "Script"} {
		if strings.HasSuffix(last, word) {
			return true
		}
	}
	first, _, _ := strings.Cut(strings.ToLower(key), ".")
	return strings.HasPrefix(first, "exec") || shell.OneOf(first, "alias", "hooks", "scripts")
}

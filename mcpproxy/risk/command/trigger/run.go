package trigger

import (
	"strings"
)

// Runs reports whether the name of a program is so well known for what it does,
// or for running others, that it is one also behind an option of a program that
// is not known. It is not copied into its callers, which makes them large.
//
//go:noinline
func Runs(name string) bool {
	switch name {
	case "rm", "rmdir", "unlink", "shred", "srm", "wipe", "dd", "sh", "bash", "zsh", "dash", "ksh", "find", "truncate", "kill", "pkill", "killall", "sudo", "env", "xargs", "git", "rimraf",
		"chmod", "chown", "reboot", "shutdown", "poweroff", "halt", "psql", "mysql", "dropdb", "python", "python3", "perl", "ruby", "node", "terraform", "kubectl", "aws", "curl", "nc", "timeout", "nohup":
		return true
	}
	return strings.HasPrefix(name, "mkfs")
}

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

// WithoutTypes returns a line without the types of PowerShell whose methods it calls, as in
// [System.Environment]::Exit: their words are no commands.
func WithoutTypes(line string) string {
	if !strings.Contains(line, "]::") {
		return line
	}
	var b strings.Builder
	for part := range strings.SplitSeq(line, "]::") {
		if at := strings.LastIndexByte(part, '['); at >= 0 && !strings.ContainsAny(part[at:], " $'\"") {
			part = part[:at]
		}
		b.WriteString(part)
	}
	return b.String()
}

// IsBomb reports whether the text is a fork bomb without the spaces that a shell
// needs, as it is often written.
func IsBomb(text string) bool {
	if len(text) > 256 {
		return false
	}
	text = strings.Join(strings.Fields(text), "")
	name, rest, ok := strings.Cut(text, "(){")
	return ok && name != "" && strings.HasPrefix(rest, name+"|"+name+"&}")
}

// Shortest returns the length of the Shortest text that a pattern of path.Match
// matches.
func Shortest(pattern string) (n int) {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			continue
		case '\\':
			i++
		case '[':
			for i++; i < len(pattern) && pattern[i] != ']'; i++ {
				if pattern[i] == '\\' {
					i++
				}
			}
		}
		n++
	}
	return n
}

// Package own says what commands do to this program: to its processes, services and
// files, and to the clients that are to start it. It is pure.
package own

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Judge judges what the program name does.
func Judge(s *shell.Shell, name string, args []shell.Field) {
	tampers := false
	switch name {
	case "auditproxy":
		p := shell.ParseFlags(args, "", "spool-dir config")
		answers := p.Any("approvals") && (p.Any("approve") || p.Has("f", "follow"))
		tampers = !p.Help && !p.Has("help", "dry-run") && (p.Any("unwrap") || answers)
	case "auditcollector":
		p := shell.ParseFlags(args, "", "config")
		tampers = !p.Help && !p.Has("help", "dry-run") && p.Any("erase", "retain")
	case "kill", "gkill", "pkill", "killall", "skill", "gdb", "lldb":
		for _, a := range args {
			if shell.OneOf(a.Text, "-0", "-l", "-L", "--list", "--help", "--version") {
				return // it ends nothing
			}
			tampers = tampers || a.From&detector.AuditTampering != 0 || Named(a.Text)
		}
	case "systemctl", "service", "rc-service", "launchctl", "sv", "supervisorctl", "pm2", "initctl", "monit":
		p := shell.ParseFlags(args, "", "")
		if p.Any("stop", "kill", "disable", "mask", "edit", "revert", "set-property", "freeze", "unload", "bootout", "remove", "down", "delete") {
			for _, a := range p.Args {
				tampers = tampers || Named(a.Text)
			}
		}
	case "rm", "grm", "srm", "rmdir", "unlink", "shred", "wipe", "rimraf", "trash", "trash-put", "truncate", "mv", "gmv", "ln", "chmod", "chown", "chgrp", "chattr", "setfacl", "mount", "umount":
		for _, a := range args {
			tampers = tampers || s.IsOwn(a.Text)
		}
	case "claude", "codex", "gemini", "code", "code-insiders", "cursor":
		// A client starts such a server at each of its starts, without the proxy.
		adds := len(args) > 1 && args[0].Text == "mcp" && strings.HasPrefix(args[1].Text, "add")
		for _, a := range args {
			adds = adds || a.Text == "--add-mcp" || strings.HasPrefix(a.Text, "--add-mcp=")
		}
		if adds {
			s.Add(detector.Persistence)
		}
	}
	if tampers {
		s.Add(detector.AuditTampering)
	}
}

var brackets = strings.NewReplacer("[", "", "]", "", `\`, "")

// Named reports whether a text names this program or its collector, also as a
// pattern that does not match itself in a list of processes.
func Named(text string) bool {
	if strings.ContainsAny(text, `[]\`) {
		text = brackets.Replace(text)
	}
	return strings.Contains(text, "auditproxy") || strings.Contains(text, "auditcollector")
}

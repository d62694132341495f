package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Windows applies the rules about hosts with Windows, whose programs ignore case.
func Windows(s *shell.Shell, name string, args []shell.Field) bool {
	cmdlet := name
	name = strings.ToLower(name)
	switch name {
	case "wmic", "net", "net1", "sc", "netsh", "robocopy", "dism", "msiexec", "mshta", "regsvr32":
	default:
		if len(args) == 0 || !isCmdlet(cmdlet) {
			return false
		}
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = strings.ToLower(a.Text)
		if shell.OneOf(words[i], "/?", "-whatif", "-?", "/help") {
			return false
		}
	}
	has := func(list ...string) bool {
		for _, w := range words {
			if shell.OneOf(w, list...) {
				return true
			}
		}
		return false
	}
	verb := ""
	if len(words) > 0 {
		verb = words[0]
	}
	bad := false
	switch name {
	case "wmic":
		if bad = has("delete", "uninstall", "stopservice"); bad && verb == "process" || has("call") && has("terminate") {
			s.Add(detector.Kill)
		}
		if has("call") && has("reboot", "shutdown", "win32shutdown") {
			s.Add(detector.Shutdown)
		}
		for i := range words {
			if i > 0 && i+1 < len(words) && words[i-1] == "call" && words[i] == "create" {
				s.RunField(args[i+1], shell.Stream{})
			}
		}
	case "net", "net1":
		bad = verb == "stop" && len(words) > 1 || shell.OneOf(verb, "user", "localgroup", "group", "share", "session", "sessions", "computer", "file") && has("/delete", "/del", "/close")
	case "sc":
		if strings.HasPrefix(verb, `\`) && len(words) > 1 {
			words = words[1:]
			verb = words[0]
		}
		bad = len(words) > 1 && (shell.OneOf(verb, "delete", "stop") || verb == "config" && has("disabled", "start=disabled"))
	case "netsh":
		bad = has("reset", "delete") || has("state") && has("off")
	case "robocopy":
		if has("/mir", "/purge", "/mov", "/move") && !has("/l") {
			s.Add(detector.RecursiveDelete)
		}
	case "dism":
		bad = has("/disable-feature", "/remove-package", "/remove-provisionedappxpackage")
	case "msiexec":
		bad = has("/x", "-x", "/uninstall")
	case "mshta", "regsvr32":
		for _, w := range words {
			if strings.Contains(w, "http:") || strings.Contains(w, "https:") || strings.HasPrefix(w, "javascript:") || strings.HasPrefix(w, "vbscript:") {
				s.Add(detector.RemoteExec)
			}
		}
	case "set-mppreference":
		for i, w := range words {
			bad = bad || strings.HasPrefix(w, "-disable") && (i+1 == len(words) || !shell.OneOf(words[i+1], "$false", "0"))
		}
	default:
		switch verb, noun, _ := strings.Cut(name, "-"); {
		case name == "clear-eventlog":
			s.Add(detector.EmptyFile)
		case shell.OneOf(noun, "variable", "module", "alias", "job", "event", "pssession", "psbreakpoint", "psdrive", "typedata", "transcript", "host", "history", "pssnapin", "uilanguage"):
		case shell.OneOf(noun, "item", "content", "itemproperty", "childitem"):
			return false // code.PowerShell
		default:
			bad = shell.OneOf(verb, "remove", "uninstall", "unregister", "clear", "disable", "stop", "revoke")
		}
	}
	if bad {
		s.Add(detector.Teardown)
	}
	return true
}

// isCmdlet reports whether a name is written as those of PowerShell are: a verb
// and a noun, each with a capital. The verb has no other.
func isCmdlet(name string) bool {
	verb, noun, ok := strings.Cut(name, "-")
	return ok && len(verb) > 1 && len(noun) > 1 && isUpper(verb[0]) && isUpper(noun[0]) && strings.Trim(verb[1:], "abcdefghijklmnopqrstuvwxyz") == "" && !strings.ContainsAny(noun, "-:,./")
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

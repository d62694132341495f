package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Windows applies the rules about hosts with Windows, whose programs ignore case.
func Windows(s *shell.Shell, name string, args []shell.Field) bool {
	cmdlet := name
	name = strings.ToLower(name)
	switch name {
	case "wmic", "net", "net1", "sc", "netsh", "robocopy", "dism", "msiexec", "mshta", "regsvr32", "certutil", "bitsadmin", "takeown", "mountvol", "manage-bde":
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
		switch verb {
		case "user":
			if has("/add", "/active:yes") || len(words) > 2 && !strings.HasPrefix(words[2], "/") {
				s.Add(detector.Persistence) // an account, or its password
			}
		case "localgroup", "group":
			if has("/add") && len(words) > 3 && isPowerful(words[1]) {
				s.Add(detector.Persistence)
			}
		}
		for _, w := range words {
			if verb == "share" && strings.Contains(w, "/grant:everyone") {
				s.Add(detector.PermissionsAll)
			}
		}
	case "sc":
		if strings.HasPrefix(verb, `\`) && len(words) > 1 {
			words = words[1:]
			verb = words[0]
		}
		bad = len(words) > 1 && (shell.OneOf(verb, "delete", "stop") || verb == "config" && has("disabled", "start=disabled"))
		for _, w := range words {
			if shell.OneOf(verb, "create", "config") && strings.HasPrefix(w, "binpath=") {
				s.Add(detector.Persistence)
			}
		}
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
	case "certutil":
		certutil(s, words)
	case "bitsadmin":
		switch {
		case has("/upload", "/upload-reply"):
			s.Add(detector.Exfiltration)
		case has("/transfer", "/addfile"):
			s.Add(detector.RemoteExec) // a program that only hides where a file comes from
		case has("/setnotifycmdline"):
			s.Add(detector.Persistence)
		}
	case "takeown":
		for _, w := range words {
			if w == "/r" || strings.HasSuffix(w, " /r") { // a shell joins it to "d:\"
				s.Add(detector.PermissionsAll)
			}
		}
	case "mountvol":
		bad = has("/d", "/p")
	case "manage-bde":
		bad = has("-off", "-disable")
	case "set-mppreference":
		for i, w := range words {
			if !strings.HasPrefix(w, "-disable") {
				continue
			}
			value := args[i]
			if _, text, ok := strings.Cut(w, ":"); ok {
				value.Text = text
			} else if i+1 < len(args) {
				value = args[i+1]
			}
			bad = bad || value.Text != "0" && !value.False
		}
	case "add-mppreference":
		for _, w := range words {
			bad = bad || strings.HasPrefix(w, "-exclusion")
		}
	case "new-localuser", "enable-localuser", "new-service", "register-scheduledtask", "register-scheduledjob":
		s.Add(detector.Persistence)
	case "set-localuser":
		if has("-password") {
			s.Add(detector.Persistence)
		}
	case "add-localgroupmember", "add-adgroupmember":
		for _, w := range words {
			if isPowerful(w) {
				s.Add(detector.Persistence)
			}
		}
	case "set-itemproperty", "new-itemproperty":
		for _, w := range words {
			if place.IsRunKey(w) {
				s.Add(detector.Persistence)
			}
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

// certutil judges a program for certificates that also fetches and decodes files.
func certutil(s *shell.Shell, words []string) {
	for i, w := range words {
		switch strings.TrimLeft(w, "-/") {
		case "urlcache", "verifyctl":
			for _, url := range words {
				if strings.Contains(url, "://") {
					s.Add(detector.RemoteExec) // a program that only hides where a file comes from
				}
			}
		case "decode", "decodehex":
			out := words[len(words)-1]
			if i+2 < len(words) && shell.OneOf(out[strings.LastIndexByte(out, '.')+1:], "exe", "dll", "bat", "cmd", "ps1", "vbs", "js", "hta", "msi", "scr") {
				s.Add(detector.DecodedExec)
			}
		case "delstore", "delkey":
			s.Add(detector.Teardown)
		}
	}
}

// isPowerful reports whether the members of a group have the rights of an
// administrator, or can log in from elsewhere.
func isPowerful(group string) bool {
	return strings.Contains(group, "admin") || strings.Contains(group, "remote desktop users") || strings.Contains(group, "backup operators")
}

// isCmdlet reports whether a name is written as those of PowerShell are: a verb
// and a noun, each with a capital. The verb has no other.
func isCmdlet(name string) bool {
	verb, noun, ok := strings.Cut(name, "-")
	return ok && len(verb) > 1 && len(noun) > 1 && isUpper(verb[0]) && isUpper(noun[0]) && strings.Trim(verb[1:], "abcdefghijklmnopqrstuvwxyz") == "" && !strings.ContainsAny(noun, "-:,./")
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

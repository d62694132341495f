package infra

import (
	"slices"
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
	w := make(words, len(args))
	for i, a := range args {
		w[i] = strings.ToLower(a.Text)
	}
	if w.has("/?", "-whatif", "-?", "/help") {
		return false
	}
	bad, known := false, true
	switch name {
	case "wmic":
		bad = wmic(s, w, args)
	case "net", "net1":
		bad = net(s, w)
	case "sc":
		bad = serviceControl(s, w)
	case "netsh":
		bad = w.has("reset", "delete") || w.has("state") && w.has("off")
	case "robocopy":
		if w.has("/mir", "/purge", "/mov", "/move") && !w.has("/l") {
			s.Add(detector.RecursiveDelete)
		}
	case "dism":
		bad = w.has("/disable-feature", "/remove-package", "/remove-provisionedappxpackage")
	case "msiexec":
		bad = w.has("/x", "-x", "/uninstall")
	case "mshta", "regsvr32":
		if w.any(func(w string) bool {
			return strings.Contains(w, "http:") || strings.Contains(w, "https:") || strings.HasPrefix(w, "javascript:") || strings.HasPrefix(w, "vbscript:")
		}) {
			s.Add(detector.RemoteExec)
		}
	case "certutil":
		certutil(s, w)
	case "bitsadmin":
		switch {
		case w.has("/upload", "/upload-reply"):
			s.Add(detector.Exfiltration)
		case w.has("/transfer", "/addfile"):
			s.Add(detector.RemoteExec) // a program that only hides where a file comes from
		case w.has("/setnotifycmdline"):
			s.Add(detector.Persistence)
		}
	case "takeown":
		if w.any(func(w string) bool { return w == "/r" || strings.HasSuffix(w, " /r") }) { // a shell joins it to "d:\"
			s.Add(detector.PermissionsAll)
		}
	case "mountvol":
		bad = w.has("/d", "/p")
	case "manage-bde":
		bad = w.has("-off", "-disable")
	default:
		bad, known = cmdletOf(s, name, w, args)
	}
	if bad {
		s.Add(detector.Teardown)
	}
	return known
}

// words are the arguments of a program, in lower case.
type words []string

func (w words) any(is func(string) bool) bool { return slices.ContainsFunc(w, is) }

func (w words) has(list ...string) bool {
	for _, w := range w {
		if shell.OneOf(w, list...) {
			return true
		}
	}
	return false
}

// verb returns the first one.
func (w words) verb() string {
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

func wmic(s *shell.Shell, w words, args []shell.Field) (bad bool) {
	bad = w.has("delete", "uninstall", "stopservice")
	if bad && w.verb() == "process" || w.has("call") && w.has("terminate") {
		s.Add(detector.Kill)
	}
	if w.has("call") && w.has("reboot", "shutdown", "win32shutdown") {
		s.Add(detector.Shutdown)
	}
	for i := range w {
		if i > 0 && i+1 < len(w) && w[i-1] == "call" && w[i] == "create" {
			s.RunField(args[i+1], shell.Stream{})
		}
	}
	return bad
}

func net(s *shell.Shell, w words) (bad bool) {
	switch w.verb() {
	case "stop":
		return len(w) > 1
	case "user":
		if w.has("/add", "/active:yes") || len(w) > 2 && !strings.HasPrefix(w[2], "/") {
			s.Add(detector.Persistence) // an account, or its password
		}
	case "localgroup", "group":
		if w.has("/add") && len(w) > 3 && isPowerful(w[1]) {
			s.Add(detector.Persistence)
		}
	case "share":
		if w.any(func(w string) bool { return strings.Contains(w, "/grant:everyone") }) {
			s.Add(detector.PermissionsAll)
		}
	case "session", "sessions", "computer", "file":
	default:
		return false
	}
	return w.has("/delete", "/del", "/close")
}

// serviceControl judges sc, of which the first word may be a machine.
func serviceControl(s *shell.Shell, w words) (bad bool) {
	if strings.HasPrefix(w.verb(), `\`) && len(w) > 1 {
		w = w[1:]
	}
	verb := w.verb()
	if shell.OneOf(verb, "create", "config") && w.any(func(w string) bool { return strings.HasPrefix(w, "binpath=") }) {
		s.Add(detector.Persistence)
	}
	return len(w) > 1 && (shell.OneOf(verb, "delete", "stop") || verb == "config" && w.has("disabled", "start=disabled"))
}

// cmdletOf judges a cmdlet of PowerShell; known is false for those that package code judges.
func cmdletOf(s *shell.Shell, name string, w words, args []shell.Field) (bad, known bool) {
	switch name {
	case "set-mppreference":
		for i := range w {
			bad = bad || disables(w, args, i)
		}
	case "add-mppreference":
		bad = w.any(func(w string) bool { return strings.HasPrefix(w, "-exclusion") })
	case "new-localuser", "enable-localuser", "new-service", "register-scheduledtask", "register-scheduledjob":
		s.Add(detector.Persistence)
	case "set-localuser":
		if w.has("-password") {
			s.Add(detector.Persistence)
		}
	case "add-localgroupmember", "add-adgroupmember":
		if w.any(isPowerful) {
			s.Add(detector.Persistence)
		}
	case "set-itemproperty", "new-itemproperty":
		if w.any(place.IsRunKey) {
			s.Add(detector.Persistence)
		}
	case "clear-eventlog":
		s.Add(detector.EmptyFile)
	default:
		verb, noun, _ := strings.Cut(name, "-")
		switch noun {
		case "variable", "module", "alias", "job", "event", "pssession", "psbreakpoint", "psdrive", "typedata", "transcript", "host", "history", "pssnapin", "uilanguage":
		case "item", "content", "itemproperty", "childitem":
			return false, false
		default:
			bad = shell.OneOf(verb, "remove", "uninstall", "unregister", "clear", "disable", "stop", "revoke")
		}
	}
	return bad, true
}

// disables reports whether word i is a switch that turns a protection off: -DisableX $true,
// -DisableX:1.
func disables(w words, args []shell.Field, i int) bool {
	if !strings.HasPrefix(w[i], "-disable") {
		return false
	}
	value := args[i]
	if _, text, ok := strings.Cut(w[i], ":"); ok {
		value.Text = text
	} else if i+1 < len(args) {
		value = args[i+1]
	}
	return value.Text != "0" && !value.False
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
	return ok && len(verb) > 1 && len(noun) > 1 && isUpper(verb[0]) && isUpper(noun[0]) && strings.Trim(verb[1:], "abcdefghijklmnopqrstuvwxyz") == "" &&
		!strings.ContainsAny(noun, "-:,./")
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

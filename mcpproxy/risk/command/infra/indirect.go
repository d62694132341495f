package infra

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Indirect applies the rules about programs of Windows that run, fetch, send or dump
// something in the place of a program that is meant for that.
func Indirect(s *shell.Shell, name string, args []shell.Field) {
	name = strings.ToLower(name)
	text := func() string { return strings.ToLower(shell.Join(args)) }
	fetches := func() bool { return shell.HasAny(text(), "http://", "https://") }
	d, is := detector.Set(0), false
	switch name {
	case "cmstp", "installutil", "ieexec", "hh", "presentationhost", "msxsl", "certoc", "xwizard", "imewdbld", "configsecuritypolicy", "desktopimgdownldr", "msoxmled", "ngen", "pubprn.vbs", "devinit", "msiexec":
		d, is = detector.RemoteExec, fetches()
	case "wmic":
		d, is = detector.RemoteExec, fetches() && shell.HasAny(text(), "format:")
	case "rundll32":
		d, is = detector.RemoteExec, fetches() || shell.HasAny(text(), "javascript:", "vbscript:")
	case "mpcmdrun":
		d, is = detector.RemoteExec, fetches() && shell.HasAny(text(), "downloadfile")
	case "squirrel", "update":
		d, is = detector.RemoteExec, fetches() && shell.HasAny(text(), "--update", "--download")
	case "winrm":
		d, is = detector.RemoteExec, shell.HasAny(text(), "invoke create")
	case "curl", "http", "https", "xh", "httpie", "wget", "irm", "iwr", "invoke-restmethod", "invoke-webrequest":
		requests(s, args)
	case "busctl", "dbus-send", "gdbus", "ipmitool":
		for _, a := range args {
			verb := strings.ToLower(a.Text[strings.LastIndexByte(a.Text, '.')+1:])
			if shell.In(verb, "poweroff reboot halt") || name == "ipmitool" && shell.In(verb, "off cycle reset soft diag") {
				s.Add(detector.Shutdown)
			}
		}
	case "gdb", "lldb":
		for i, a := range args[:max(len(args)-1, 0)] {
			if cmd := args[i+1].Code(); shell.In(a.Text, "-ex -iex --eval-command -o") && shell.HasAny(cmd, "shell ", "!") {
				s.Run(cmd[strings.IndexAny(cmd, " !")+1:], shell.Stream{})
			}
		}
	case "nvram":
		d, is = detector.Teardown, shell.HasAny(" "+text(), " -c", " -d")
	case "efibootmgr", "wsl", "nginx":
		d, is = detector.Teardown, shell.HasAny(" "+shell.Join(args), " -B", " --delete-bootnum", " --unregister", " -s stop", " -s quit")
	case "certreq":
		d, is = detector.Exfiltration, fetches() && shell.HasAny(text(), "-post", "/post")
	case "datasvcutil":
		d, is = detector.Exfiltration, fetches()
	case "rdrleakdiag":
		d, is = detector.CredentialRead, shell.HasAny(text(), "fullmemdmp")
	case "dsdbutil":
		d, is = detector.CredentialRead, shell.HasAny(text(), "snapshot")
	case "tttracer", "adplus", "createdump", "dumpminitool", "sqldumper":
		d, is = detector.CredentialRead, shell.HasAny(text(), "lsass")
	case "wbadmin":
		d, is = detector.CredentialRead, shell.HasAny(text(), "ntds.dit", "adamntds.dit")
	case "mavinject":
		d, is = detector.PrivilegeEscalation, shell.HasAny(text(), "injectrunning")
	case "dnscmd":
		d, is = detector.Persistence, shell.HasAny(text(), "serverlevelplugindll")
	case "netsh":
		d, is = detector.Persistence, strings.HasPrefix(text(), "add helper")
	case "syncappvpublishingserver", "syncappvpublishingserver.vbs":
		for _, a := range args {
			if _, code, ok := strings.Cut(a.Text, ";"); ok {
				s.Command([]shell.Field{{Text: "powershell"}, {Text: "-Command"}, {Text: code}}, shell.Stream{})
			}
		}
	case "forfiles":
		for i := range len(args) - 1 {
			if strings.EqualFold(args[i].Text, "/c") {
				s.RunField(args[i+1], shell.Stream{})
			}
		}
	case "pcalua", "conhost", "scriptrunner":
		for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
			args = args[1:]
		}
		if len(args) > 0 {
			s.MaybeCommand(args, shell.Stream{})
		}
	}
	if is {
		s.Add(d)
	}
}

package infra

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Stops judges what stops the host, a service or a session.
func Stops(s *shell.Shell, name string, p *shell.Flags, args []shell.Field) {
	verb := p.Arg(0)
	for _, a := range args {
		if a.Text == "--help" {
			return
		}
		if a.Text == "--" {
			break
		}
	}
	switch name {
	case "shutdown":
		if !p.Has("c", "k", "show") {
			s.Add(detector.Shutdown)
		}
	case "reboot", "halt", "poweroff":
		if !p.Has("w", "wtmp-only") {
			s.Add(detector.Shutdown)
		}
	case "pm-suspend", "pm-hibernate", "logoff":
		s.Add(detector.Shutdown)
	case "init", "telinit":
		if shell.OneOf(verb, "0", "1", "6", "S", "s") {
			s.Add(detector.Shutdown)
		}
	case "systemctl":
		switch {
		case shell.OneOf(verb, "reboot", "poweroff", "halt", "kexec", "rescue", "emergency", "suspend", "hibernate", "exit", "isolate", "soft-reboot", "hybrid-sleep"):
			s.Add(detector.Shutdown)
		case shell.OneOf(verb, "stop", "disable", "mask"):
			s.Add(detector.Teardown)
		case verb == "kill":
			for i, a := range args {
				if strings.HasSuffix(strings.ToUpper(a.Text), "KILL") && a.Text != "kill" || a.Text == "-s9" || a.Text == "9" && i > 0 || a.Text == "--signal=9" {
					s.Add(detector.Kill)
				}
			}
		}
	case "service", "rc-service", "initctl", "sv", "supervisorctl", "monit":
		if p.Any("stop", "down", "shutdown", "force-stop") {
			s.Add(detector.Teardown)
		}
	case "loginctl":
		if strings.HasPrefix(verb, "terminate-") || strings.HasPrefix(verb, "kill-") {
			s.Add(detector.Kill)
		}
	case "pm2":
		if shell.OneOf(verb, "kill", "delete", "del", "stop", "flush") {
			s.Add(detector.Teardown)
		}
	case "zellij":
		if shell.OneOf(verb, "kill-session", "kill-all-sessions", "delete-session", "delete-all-sessions", "k", "ka", "d", "da") {
			s.Add(detector.Kill)
		}
	case "launchctl":
		switch {
		case shell.OneOf(verb, "load", "bootstrap", "submit", "enable", "setenv"):
			s.Add(detector.Persistence)
		case shell.OneOf(verb, "unload", "bootout", "remove", "kill", "reboot", "stop", "disable"):
			s.Add(detector.Teardown)
		}
	case "kexec":
		if p.Has("e", "exec") {
			s.Add(detector.Shutdown)
		}
	case "rundll32":
		if strings.Contains(strings.ToLower(shell.Join(args)), "shutdown") {
			s.Add(detector.Shutdown)
		}
	case "brew":
		if shell.OneOf(verb, "uninstall", "remove", "rm", "untap") && !p.Dry("n", "dry-run") {
			s.Add(detector.Teardown)
		}
	}
}

// Host judges the firewall, accounts and packages.
func Host(s *shell.Shell, name string, p *shell.Flags, args []shell.Field) {
	bad := false
	verb := p.Arg(0)
	for _, a := range args {
		if a.Text == "--help" {
			return
		}
		if a.Text == "--" {
			break
		}
	}
	switch name {
	case "iptables", "ip6tables":
		bad = p.Has("F", "flush", "X", "delete-chain", "D", "delete")
		for i, a := range args {
			bad = bad || a.Text == "-P" && i+2 < len(args) && args[i+2].Text == "ACCEPT"
		}
	case "nft":
		bad = p.Any("flush", "delete")
	case "ufw":
		bad = p.Any("disable", "reset") && !p.Dry("dry-run")
	case "firewall-cmd":
		bad = p.Has("panic-on", "complete-reload")
		for _, n := range p.Names {
			bad = bad || strings.HasPrefix(n, "remove-")
		}
	case "pfctl":
		bad = p.Has("F", "d")
	case "ipset":
		bad = shell.OneOf(verb, "destroy", "flush", "x")
	case "ifconfig":
		bad = p.Arg(1) == "down"
	case "dscl":
		for _, a := range args {
			bad = bad || shell.OneOf(a.Text, "-delete", "delete")
		}
		accounts(s, name, p, args)
	case "sysadminctl", "dsenableroot", "dseditgroup", "pw":
		bad = accounts(s, name, p, args)
	case "nix-collect-garbage":
		bad = p.Has("d", "delete-old", "delete-older-than") && !p.Dry("dry-run")
	case "userdel", "deluser", "groupdel", "delgroup":
		bad = len(p.Args) > 0
	case "usermod", "useradd", "adduser", "gpasswd":
		bad = name == "usermod" && p.Has("L", "lock")
		if givesAccess(name, args) {
			s.Add(detector.Persistence)
		}
	case "setcap":
		if !p.Has("r") {
			setcap(s, p.Args)
		}
	case "chpasswd":
		if !p.Help {
			s.Add(detector.Persistence)
		}
	case "passwd":
		bad = p.Has("d", "delete", "l", "lock")
		if p.Has("stdin") {
			s.Add(detector.Persistence)
		}
	case "swapoff":
		bad = p.Has("a", "all")
	case "setenforce":
		bad = shell.OneOf(strings.ToLower(verb), "0", "permissive")
	case "auditctl":
		bad = p.Has("D")
		for i, a := range args {
			bad = bad || a.Text == "-e" && i+1 < len(args) && args[i+1].Text == "0"
		}
	case "ip":
		bad = p.Any("flush") || p.Any("netns", "link", "route", "rule") && p.Any("delete", "del") || p.Any("link") && p.Any("down")
	case "apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "snap", "flatpak", "apk":
		bad = shell.OneOf(verb, "remove", "purge", "autoremove", "autopurge", "erase", "del", "uninstall", "rm") &&
			!p.Dry("s", "simulate", "dry-run", "just-print", "no-act", "assumeno")
	case "conda", "mamba", "micromamba":
		bad = shell.OneOf(verb, "remove", "uninstall") && !p.Dry("dry-run") || verb == "env" && p.Arg(1) == "remove"
	case "pip", "pip2", "pip3", "pkg", "pkgin", "opkg", "guix", "port", "choco", "winget", "scoop", "tdnf", "microdnf", "eopkg":
		bad = shell.OneOf(verb, "remove", "delete", "uninstall", "autoremove", "purge") && !p.Dry("n", "dry-run", "noaction")
	case "emerge":
		bad = p.Has("C", "unmerge", "c", "depclean") && !p.Dry("p", "pretend")
	case "xbps-remove":
		bad = len(p.Args) > 0 && !p.Dry("n", "dry-run")
	case "nix-env":
		bad = p.Has("e", "uninstall") && !p.Dry("dry-run")
	case "exim", "exim4":
		for _, a := range args {
			bad = bad || a.Text == "-Mrm" || a.Text == "-Mg"
		}
	case "postsuper":
		bad = p.Has("d")
	case "pacman":
		bad = p.Has("R", "remove") && !p.Has("p", "print")
	case "rpm":
		bad = p.Has("e", "erase") && !p.Has("test", "q", "query")
	case "dpkg":
		bad = p.Has("P", "purge", "r", "remove") && !p.Dry("dry-run", "simulate", "no-act")
	case "rmmod":
		bad = p.Has("f", "force")
	case "umount":
		bad = p.Has("a", "all")
	}
	if bad {
		s.Add(detector.Teardown)
	}
}

// accounts judges the programs for accounts of macOS and FreeBSD: it reports whether one is
// deleted or locked.
func accounts(s *shell.Shell, name string, p *shell.Flags, args []shell.Field) (bad bool) {
	text := " " + shell.Join(args) + " "
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	gives := false
	switch name {
	case "sysadminctl":
		if has(" -smbGuestAccess on ", " -afpGuestAccess on ") {
			s.Add(detector.PermissionsAll)
		}
		bad = has(" -deleteUser ")
		gives = has(" -addUser ") && has(" -admin ", " -UID 0 ") || has(" -resetPasswordFor ", " -newPassword ", " -guestAccount on ")
	case "dsenableroot":
		gives = !has(" -d ") && !p.Help
		bad = has(" -d ")
	case "dseditgroup":
		gives = has(" -a ") && shell.OneOf(p.Arg(len(p.Args)-1), "admin", "wheel", "com.apple.access_ssh", "com.apple.access_screensharing")
	case "dscl":
		gives = has(" -passwd ", " passwd ") ||
			has("append ", "merge ", "create ") && has("/Groups/admin", "/Groups/wheel", "PrimaryGroupID 80 ", "PrimaryGroupID 0 ", "UniqueID 0 ", " IsHidden 1 ")
	case "pw":
		bad = has("userdel", "groupdel", " del ", " lock ")
		gives = has("useradd", "usermod", " add ", " mod ", "groupmod") && has(" -g wheel ", " -G wheel ", " -g 0 ", " -u 0 ", " -h 0 ", " -h0 ") ||
			has("groupmod wheel", "groupmod -n wheel")
	}
	if gives {
		s.Add(detector.Persistence)
	}
	return bad
}

// givesAccess reports whether an account gets a password, or the rights of the
// administrator. Membership in the groups of docker and lxd gives them too, but
// the setup of both asks for it on the machine of each developer.
func givesAccess(name string, args []shell.Field) bool {
	short := "ubcdefgGkKps"
	if name == "gpasswd" {
		short = "aAMd"
	}
	p := shell.ParseFlags(args, short, "uid groups gid comment home-dir expiredate inactive base-dir skel key password shell add members administrators ingroup")
	if p.Help {
		return false
	}
	var groups []shell.Field
	for _, o := range p.Values {
		switch o.Name {
		case "g", "G", "gid", "groups", "ingroup":
			groups = append(groups, o.Value)
		case "u", "uid":
			if o.Value.Text == "0" {
				return true
			}
		case "p", "password":
			return true
		}
	}
	if name == "adduser" && len(p.Args) > 1 || name == "gpasswd" && p.Has("a", "add") && len(p.Args) > 0 {
		groups = append(groups, p.Args[len(p.Args)-1])
	}
	for _, g := range groups {
		for one := range strings.SplitSeq(g.Text, ",") {
			if shell.OneOf(one, "sudo", "wheel", "admin", "root", "0", "disk", "shadow") {
				return true
			}
		}
	}
	return false
}

// setcap judges capabilities with which a program can do all that root can.
func setcap(s *shell.Shell, args []shell.Field) {
	for _, a := range args {
		at := strings.IndexAny(a.Text, "+=")
		if at < 0 {
			continue
		}
		for name := range strings.SplitSeq(strings.ToLower(a.Text[:at]), ",") {
			if shell.OneOf(strings.TrimPrefix(name, "cap_"), "", "all", "setuid", "setgid", "setfcap", "dac_override", "dac_read_search", "chown", "fowner", "sys_admin", "sys_ptrace", "sys_module", "sys_rawio") {
				s.Add(detector.PermissionsAll)
			}
		}
	}
}

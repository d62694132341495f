package guard

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// turnsOff reports whether a command turns off what records or prevents: logs, the
// audit, a firewall, a scanner, mandatory access control, the check of certificates.
func turnsOff(name string, args []shell.Field) bool {
	c := command{name: strings.ToLower(name), args: args, first: strings.ToLower(verb(args, 0))}
	return c.stopsService() || c.onLinux() || c.onMacOS() || c.onWindows() || c.ofTool()
}

// A command is a program, in lower case, and its arguments.
type command struct {
	name  string
	args  []shell.Field
	first string // argument that is no option, in lower case
}

// has reports whether one of the words is an argument.
func (c *command) has(words string) bool {
	for _, a := range c.args {
		if shell.In(strings.ToLower(a.Text), words) {
			return true
		}
	}
	return false
}

func (c *command) namesProtector() bool {
	return slices.ContainsFunc(c.args, func(a shell.Field) bool { return IsProtector(a.Text) || a.From&detector.ProtectionOff != 0 })
}

// stopsService reports whether a service, a process or a package is stopped that protects.
func (c *command) stopsService() bool {
	switch c.name {
	case "systemctl", "service", "rc-service", "initctl", "sv", "launchctl", "sc", "net", "net1", "supervisorctl":
		return c.has("stop disable mask kill unload bootout remove delete disabled start=disabled down") && c.namesProtector()
	case "rc-update", "update-rc.d", "chkconfig":
		return c.has("del remove disable off") && c.namesProtector()
	case "kill", "pkill", "killall", "taskkill", "stop-service", "stop-process":
		return !c.has("-0 -l --list") && c.namesProtector()
	case "apt", "apt-get", "dnf", "yum", "zypper", "pacman", "apk", "rpm", "dpkg", "brew", "snap", "choco", "winget":
		return c.has("remove purge erase del uninstall -e -r -rns -rs --purge --remove") && c.namesProtector()
	case "falconctl", "mdatp", "sentinelctl", "wazuh-control", "ossec-control", "osqueryctl", "santactl", "jamf":
		return c.has("uninstall unload stop disable disabled -d removeframework kill unprotect passive-mode")
	}
	return false
}

// onLinux reports whether a program of Linux turns something off.
func (c *command) onLinux() bool {
	switch c.name {
	case "setenforce":
		return shell.In(c.first, "0 permissive")
	case "aa-teardown", "aa-disable", "aa-complain":
		return true
	case "auditctl":
		for _, a := range c.args {
			if strings.HasPrefix(a.Text, "never,") || strings.HasSuffix(a.Text, ",never") {
				return true
			}
		}
		return c.has("-d") && !c.has("-l") || follows(c.args, "-e", "0")
	case "ufw":
		if c.first == "allow" && c.has("any") && !c.has("port proto to") {
			return true
		}
		return shell.In(c.first, "disable reset") || c.first == "default" && c.has("allow") && !c.has("outgoing") || c.first == "logging" && c.has("off")
	case "firewall-cmd":
		return c.has("--set-default-zone=trusted") || follows(c.args, "--set-default-zone", "trusted")
	case "iptables", "ip6tables":
		return follows(c.args, "-P", "ACCEPT") || c.has("-f --flush") && !c.has("-t")
	case "nft":
		return c.has("flush") && c.has("ruleset")
	case "chattr":
		for _, a := range c.args {
			if len(a.Text) > 1 && a.Text[0] == '-' && strings.ContainsAny(a.Text[1:], "ia") && strings.Trim(a.Text[1:], "aAcCdDeFijmPRsStTuVfx") == "" {
				return true // a protected file can be changed, or an append-only one shortened
			}
		}
	case "trust":
		return c.first == "anchor" && verb(c.args, 1) != "" && !c.has("--remove")
	case "grubby":
		for _, a := range c.args {
			if shell.HasAny(a.Text, "selinux=0", "enforcing=0", "apparmor=0", "audit=0", "mitigations=off") {
				return true
			}
		}
	case "sysctl":
		for _, a := range c.args {
			switch strings.ReplaceAll(strings.ReplaceAll(a.Text, " ", ""), "/", ".") {
			case "kernel.randomize_va_space=0", "kernel.yama.ptrace_scope=0", "kernel.kptr_restrict=0", "kernel.unprivileged_bpf_disabled=0", "kernel.dmesg_restrict=0", "kernel.audit=0", "fs.protected_symlinks=0", "fs.protected_hardlinks=0":
				return true
			}
		}
	}
	return false
}

// onMacOS reports whether a program of macOS does.
func (c *command) onMacOS() bool {
	switch c.name {
	case "pfctl":
		return c.has("-d")
	case "log":
		return c.first == "erase" || c.first == "config" && c.has("level:off persist:off")
	case "xattr":
		return c.has("com.apple.quarantine") && !c.has("-p -l -w") || c.has("-c -cr -rc")
	case "security":
		return c.first == "add-trusted-cert" || c.first == "authorizationdb" && c.has("write")
	case "tmutil":
		return c.first == "disable"
	case "defaults":
		text := strings.ToLower(shell.Join(c.args))
		return c.first == "write" && (shell.HasAny(text, "com.apple.alf globalstate -int 0", "com.apple.alf globalstate 0") ||
			shell.HasAny(text, "lsquarantine", "gkautorearm") && shell.HasAny(text, "-bool no", "-bool false", "-int 0", "-boolean no", "-boolean false"))
	case "csrutil", "fdesetup":
		return c.has("disable")
	case "spctl":
		return c.has("--master-disable --global-disable")
	}
	return false
}

// onWindows reports whether a program or a cmdlet of Windows does.
func (c *command) onWindows() bool {
	switch c.name {
	case "netsh":
		return c.has("off") && c.has("advfirewall firewall") || c.has("opmode") && c.has("disable mode=disable")
	case "clear-history":
		return true
	case "set-psreadlineoption":
		return c.has("savenothing") || c.has("-addtohistoryhandler")
	case "certutil":
		return c.has("-addstore /addstore") && c.has("root ca authroot trustedpublisher")
	case "import-certificate":
		return strings.Contains(strings.ToLower(shell.Join(c.args)), "root")
	case "unblock-file":
		return len(c.args) > 0
	case "mpcmdrun":
		return c.has("-removedefinitions")
	case "sysmon", "sysmon64":
		return c.has("-u /u")
	case "auditpol":
		return c.has("/clear /success:disable /failure:disable /remove")
	case "set-netfirewallprofile":
		return c.has("-enabled") && c.has("false $false 0") || c.has("-enabled:false")
	case "wevtutil":
		return shell.In(c.first, "sl set-log") && c.has("/e:false /enabled:false")
	case "bcdedit":
		return c.has("testsigning nointegritychecks") && c.has("on") || c.has("nointegritychecks")
	case "reg":
		return c.first == "add" && c.has("disableantispyware disablerealtimemonitoring enablelua disabletaskmgr")
	case "fltmc":
		return c.first == "unload"
	}
	return false
}

// ofTool reports whether a developer's tool, or the client of a cloud, turns a check or a log off.
func (c *command) ofTool() bool {
	switch c.name {
	case "gcloud":
		return c.has("logging") && c.has("sinks") && c.has("--disabled")
	case "git":
		return c.has("http.sslverify") && c.has("false 0") && c.has("config") || c.has("http.sslverify=false")
	case "npm", "yarn", "pnpm":
		return c.first == "config" && (c.has("strict-ssl") && c.has("false") || c.has("strict-ssl=false"))
	case "gh":
		return c.first == "pr" && verb(c.args, 1) == "merge" && c.has("--admin") || c.first == "api" && changesProtection(c.args)
	case "aws":
		switch c.first {
		case "cloudtrail", "guardduty", "configservice", "securityhub", "macie2", "inspector2", "iam", "detective", "wafv2", "logs":
			v := verb(c.args, 1)
			return shell.HasAny(v, "stop-", "disable-", "deactivate-") || v == "update-detector" && c.has("--no-enable") ||
				v == "update-trail" && c.has("--no-enable-log-file-validation --no-is-multi-region-trail --no-include-global-service-events") ||
				v == "put-event-selectors" ||
				v == "delete-trail" || v == "delete-detector" || v == "delete-flow-logs" || v == "delete-log-group"
		case "ec2":
			return verb(c.args, 1) == "delete-flow-logs"
		}
	}
	return false
}

// changesProtection reports whether a request to a forge changes what protects a branch.
func changesProtection(args []shell.Field) bool {
	p := shell.ParseFlags(args, "XHqtfFp", "method header jq template field raw-field input preview hostname cache")
	method, given := p.Value("X", "method")
	if !given && !p.Has("f", "F", "field", "raw-field", "input") || strings.EqualFold(method.Text, "GET") {
		return false
	}
	return slices.ContainsFunc(p.Args, func(a shell.Field) bool {
		return strings.Contains(a.Text, "/branches/") && strings.Contains(a.Text, "/protection") || strings.Contains(a.Text, "/rulesets") ||
			strings.Contains(a.Text, "/protected_branches")
	})
}

// IsProtector reports whether a service, process or package is known to protect a
// host or to record what happens there.
func IsProtector(name string) bool {
	name = strings.ToLower(name)
	base, _, _ := strings.Cut(name, ".")
	switch base {
	case "auditd", "audit", "rsyslog", "rsyslogd", "syslog", "syslogd", "syslog-ng", "systemd-journald", "journald", "firewalld", "ufw", "nftables", "iptables", "apparmor", "fail2ban", "falco", "tetragon",
		"suricata", "snort", "aide", "tripwire", "windefend", "mpssvc", "eventlog", "sense", "sysmon", "sysmon64", "clamav", "clamd", "laurel", "acct", "psacct", "auoms", "aesmd":
		return true
	}
	return shell.HasAny(name, "falcon", "crowdstrike", "osquery", "wazuh", "ossec", "clamav", "mdatp", "sentinelone", "sentineld", "cbagent", "cbdefense", "auditbeat", "filebeat", "splunkforwarder", "fluent-bit", "td-agent",
		"datadog-agent", "sophos", "cylance", "com.apple.auditd", "com.google.santa", "qualys-cloud-agent", "rkhunter", "chkrootkit", "amazon-guardduty")
}

// follows reports whether value comes somewhere behind the option.
func follows(args []shell.Field, option, value string) bool {
	for i, a := range args {
		if a.Text == option {
			for _, b := range args[i+1:] {
				if b.Text == value {
					return true
				}
			}
		}
	}
	return false
}

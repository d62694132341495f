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
	has := func(words string) bool {
		for _, a := range args {
			if shell.In(strings.ToLower(a.Text), words) {
				return true
			}
		}
		return false
	}
	protector := func() bool {
		for _, a := range args {
			if IsProtector(a.Text) || a.From&detector.ProtectionOff != 0 {
				return true
			}
		}
		return false
	}
	first := strings.ToLower(verb(args, 0))
	switch strings.ToLower(name) {
	case "systemctl", "service", "rc-service", "initctl", "sv", "launchctl", "sc", "net", "net1", "supervisorctl":
		return has("stop disable mask kill unload bootout remove delete disabled start=disabled down") && protector()
	case "rc-update", "update-rc.d", "chkconfig":
		return has("del remove disable off") && protector()
	case "kill", "pkill", "killall", "taskkill", "stop-service", "stop-process":
		return !has("-0 -l --list") && protector()
	case "apt", "apt-get", "dnf", "yum", "zypper", "pacman", "apk", "rpm", "dpkg", "brew", "snap", "choco", "winget":
		return has("remove purge erase del uninstall -e -r -rns -rs --purge --remove") && protector()
	case "setenforce":
		return shell.In(first, "0 permissive")
	case "aa-teardown", "aa-disable", "aa-complain":
		return true
	case "auditctl":
		for _, a := range args {
			if strings.HasPrefix(a.Text, "never,") || strings.HasSuffix(a.Text, ",never") {
				return true
			}
		}
		return has("-d") && !has("-l") || follows(args, "-e", "0")
	case "ufw":
		if first == "allow" && has("any") && !has("port proto to") {
			return true
		}
		return shell.In(first, "disable reset") || first == "default" && has("allow") && !has("outgoing") || first == "logging" && has("off")
	case "firewall-cmd":
		return has("--set-default-zone=trusted") || follows(args, "--set-default-zone", "trusted")
	case "iptables", "ip6tables":
		return follows(args, "-P", "ACCEPT") || has("-f --flush") && !has("-t")
	case "nft":
		return has("flush") && has("ruleset")
	case "chattr":
		for _, a := range args {
			if len(a.Text) > 1 && a.Text[0] == '-' && strings.ContainsAny(a.Text[1:], "ia") && strings.Trim(a.Text[1:], "aAcCdDeFijmPRsStTuVfx") == "" {
				return true // a protected file can be changed, or an append-only one shortened
			}
		}
	case "pfctl":
		return has("-d")
	case "netsh":
		return has("off") && has("advfirewall firewall") || has("opmode") && has("disable mode=disable")
	case "log":
		return first == "erase" || first == "config" && has("level:off persist:off")
	case "xattr":
		return has("com.apple.quarantine") && !has("-p -l -w") || has("-c -cr -rc")
	case "security":
		return first == "add-trusted-cert" || first == "authorizationdb" && has("write")
	case "trust":
		return first == "anchor" && verb(args, 1) != "" && !has("--remove")
	case "tmutil":
		return first == "disable"
	case "clear-history":
		return true
	case "set-psreadlineoption":
		return has("savenothing") || has("-addtohistoryhandler")
	case "certutil":
		return has("-addstore /addstore") && has("root ca authroot trustedpublisher")
	case "import-certificate":
		return strings.Contains(strings.ToLower(shell.Join(args)), "root")
	case "unblock-file":
		return len(args) > 0
	case "mpcmdrun":
		return has("-removedefinitions")
	case "sysmon", "sysmon64":
		return has("-u /u")
	case "defaults":
		text := strings.ToLower(shell.Join(args))
		return first == "write" && (shell.HasAny(text, "com.apple.alf globalstate -int 0", "com.apple.alf globalstate 0") ||
			shell.HasAny(text, "lsquarantine", "gkautorearm") && shell.HasAny(text, "-bool no", "-bool false", "-int 0", "-boolean no", "-boolean false"))
	case "csrutil", "fdesetup":
		return has("disable")
	case "spctl":
		return has("--master-disable --global-disable")
	case "falconctl", "mdatp", "sentinelctl", "wazuh-control", "ossec-control", "osqueryctl", "santactl", "jamf":
		return has("uninstall unload stop disable disabled -d removeframework kill unprotect passive-mode")
	case "auditpol":
		return has("/clear /success:disable /failure:disable /remove")
	case "set-netfirewallprofile":
		return has("-enabled") && has("false $false 0") || has("-enabled:false")
	case "wevtutil":
		return shell.In(first, "sl set-log") && has("/e:false /enabled:false")
	case "bcdedit":
		return has("testsigning nointegritychecks") && has("on") || has("nointegritychecks")
	case "reg":
		return first == "add" && has("disableantispyware disablerealtimemonitoring enablelua disabletaskmgr")
	case "grubby":
		for _, a := range args {
			if shell.HasAny(a.Text, "selinux=0", "enforcing=0", "apparmor=0", "audit=0", "mitigations=off") {
				return true
			}
		}
	case "gcloud":
		return has("logging") && has("sinks") && has("--disabled")
	case "fltmc":
		return first == "unload"
	case "sysctl":
		for _, a := range args {
			switch strings.ReplaceAll(strings.ReplaceAll(a.Text, " ", ""), "/", ".") {
			case "kernel.randomize_va_space=0", "kernel.yama.ptrace_scope=0", "kernel.kptr_restrict=0", "kernel.unprivileged_bpf_disabled=0", "kernel.dmesg_restrict=0", "kernel.audit=0", "fs.protected_symlinks=0", "fs.protected_hardlinks=0":
				return true
			}
		}
	case "git":
		return has("http.sslverify") && has("false 0") && has("config") || has("http.sslverify=false")
	case "npm", "yarn", "pnpm":
		return first == "config" && (has("strict-ssl") && has("false") || has("strict-ssl=false"))
	case "gh":
		return first == "pr" && verb(args, 1) == "merge" && has("--admin") || first == "api" && changesProtection(args)
	case "aws":
		switch first {
		case "cloudtrail", "guardduty", "configservice", "securityhub", "macie2", "inspector2", "iam", "detective", "wafv2", "logs":
			v := verb(args, 1)
			return shell.HasAny(v, "stop-", "disable-", "deactivate-") || v == "update-detector" && has("--no-enable") || v == "update-trail" && has("--no-enable-log-file-validation --no-is-multi-region-trail --no-include-global-service-events") || v == "put-event-selectors" ||
				v == "delete-trail" || v == "delete-detector" || v == "delete-flow-logs" || v == "delete-log-group"
		case "ec2":
			return verb(args, 1) == "delete-flow-logs"
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
		return strings.Contains(a.Text, "/branches/") && strings.Contains(a.Text, "/protection") || strings.Contains(a.Text, "/rulesets") || strings.Contains(a.Text, "/protected_branches")
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

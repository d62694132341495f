// Package guard judges commands that weaken the protection of a host: they leave a
// container, change the kernel, open a tunnel, turn off logs, firewalls or scanners, or
// install a package from an address. It is pure.
//
// The files, from the top: guard, escape, tunnel, protection, fetched, registry, words.
package guard

import (
	"path"
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Judge judges what the program name does.
func Judge(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	for _, a := range args[:min(2, len(args))] { // behind a container's image it is the command's
		if shell.OneOf(a.Text, "--help", "--version") {
			return
		}
	}
	escapes(s, name, args)
	if opensTunnel(name, args) {
		s.Add(detector.Tunnel)
	}
	if turnsOff(name, args) {
		s.Add(detector.ProtectionOff)
	}
	if installsFetched(s, name, args) {
		s.Add(detector.RemoteExec)
	}
	if verb(args, 0) == "send" && shell.OneOf(name, "croc", "wormhole", "magic-wormhole", "wormhole-william", "rwormhole", "wormhole-rs") {
		s.Add(detector.Exfiltration)
	}
	s.Add(registry(name, args))
	if publishes(name, args) {
		s.Add(detector.Exfiltration)
	}
	if stealsCredentials(name, args) {
		s.Add(detector.CredentialRead)
	}
	if shell.OneOf(name, "ssh", "dbclient", "plink") && in.From&detector.CredentialRead != 0 {
		s.Add(detector.Exfiltration)
	}
	if name == "systemsetup" && shell.HasAny(strings.ToLower(shell.Join(args)), "-setremotelogin on", "-setremoteappleevents on") || isDomainChange(name, args) {
		s.Add(detector.Persistence)
	}
	if name == "git" && changesSSH(args) {
		s.Add(detector.Persistence)
	}
	if name == "passwd" && in.Kind != shell.None && in.Kind != shell.Empty {
		s.Add(detector.Persistence) // a password is set without its owner
	}
}

// changesSSH reports whether git is told to run another program than ssh each time that it
// connects to a host.
func changesSSH(args []shell.Field) bool {
	for i, a := range args {
		key, value, ok := strings.Cut(a.Text, "=")
		if !strings.EqualFold(key, "core.sshCommand") {
			continue
		}
		if !ok && i+1 < len(args) {
			value = args[i+1].Text
		}
		program, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		program = strings.ToLower(strings.TrimSuffix(path.Base(strings.ReplaceAll(program, `\`, "/")), ".exe"))
		if program != "." && !strings.HasPrefix(program, "-") && !shell.OneOf(program, "ssh", "plink", "tortoiseplink", "sshpass", "autossh", shell.Hole) {
			return true
		}
	}
	return false
}

// isDomainChange reports whether a script of impacket or the like gives an account rights in
// a domain of Windows.
func isDomainChange(name string, args []shell.Field) bool {
	switch strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(name), ".py"), "impacket-") {
	case "python", "python2", "python3":
		for i, a := range args {
			if a.Text != "" && a.Text[0] != '-' {
				return strings.HasSuffix(a.Text, ".py") && isDomainChange(shell.BaseName(a.Text), args[i+1:])
			}
		}
	case "addcomputer":
		return len(args) > 0
	case "rbcd", "dacledit", "owneredit", "pywhisker":
		return hasWord(args, "write", "add", "-write", "remove", "flush", "clear")
	case "bloodyad":
		return hasWord(args, "set", "add", "remove")
	}
	return false
}

// publishes reports whether a command gives what is in a directory to everybody, as a
// package of a registry that keeps it.
func publishes(name string, args []shell.Field) bool {
	first := verb(args, 0)
	switch name {
	case "npm", "pnpm", "yarn", "bun", "lerna", "cargo", "poetry", "uv", "flit", "hatch", "pdm", "vsce", "ovsx", "jsr", "deno":
		if first == "npm" && name == "yarn" {
			first = verb(args, 1)
		}
		if first != "publish" {
			return false
		}
	case "twine", "luarocks":
		if first != "upload" {
			return false
		}
	case "gem":
		if first != "push" {
			return false
		}
	case "gradle", "gradlew", "mvn", "mvnw", "sbt":
		if !slices.ContainsFunc(args, func(a shell.Field) bool {
			return name[0] == 'm' && a.Text == "deploy" || name[0] != 'm' && a.Text[strings.LastIndexByte(a.Text, ':')+1:] == "publish"
		}) {
			return false
		}
	case "dotnet":
		if first != "nuget" || verb(args, 1) != "push" {
			return false
		}
	default:
		return false
	}
	return !slices.ContainsFunc(args, func(a shell.Field) bool {
		return shell.OneOf(a.Text, "--dry-run", "--dry-run=true", "-n", "--help", "-h", "--list", "-l")
	})
}

// stealsCredentials reports whether a program is one that attackers read or guess
// credentials with, or takes them from where a system keeps them.
func stealsCredentials(name string, args []shell.Field) bool {
	name = strings.ToLower(name)
	for _, tool := range [...]string{"mimikatz", "pypykatz", "lazagne", "sharphound", "gsecdump", "webbrowserpassview", "dumpert"} {
		if strings.HasSuffix(strings.TrimSuffix(name, ".exe"), tool) {
			return len(args) > 0 || tool != "mimikatz" // also where a shell dropped the backslashes of a path
		}
	}
	base := strings.TrimPrefix(strings.TrimSuffix(name, path.Ext(name)), "impacket-")
	if shell.In(base, "mimikatz pypykatz lazagne unshadow john hashcat hydra medusa patator kerbrute rubeus responder secretsdump getnpusers getuserspns ntlmrelayx crackmapexec cme netexec nxc "+
		"sharphound bloodhound-python mimipenguin truffledump bloodhound gettgt getst ticketer gettgtpkinit getnthash lsassy targetedkerberoast certipy petitpotam dementor "+
		"printerbug mitm6 safetykatz sharpdump snaffler winpeas linpeas pywhisker donpapi masky dploot") {
		return len(args) > 0
	}
	switch base {
	case "reg":
		hive := strings.ToLower(shell.Join(args[min(1, len(args)):]))
		if strings.EqualFold(verb(args, 0), "query") && shell.HasAny(hive, "/f pass", "/f pwd", "/v defaultpassword", "/v password") {
			return true
		}
		return len(args) > 1 && shell.OneOf(strings.ToLower(args[0].Text), "save", "export") &&
			shell.HasAny(hive, `hklm\sam`, `hklm\security`, `hklm\system`, "hklmsam", "hklmsecurity", "hklmsystem", `machine\sam`, `machine\security`)
	case "procdump", "procdump64", "rundll32", "dumpert", "nanodump":
		text := strings.ToLower(shell.Join(args))
		return strings.Contains(text, "lsass") || name == "rundll32" && (strings.Contains(text, "comsvcs") || strings.Contains(text, "keymgr")) ||
			strings.HasPrefix(name, "nanodump")
	case "esentutl", "copy-item", "copy", "xcopy", "type", "get-content":
		for _, a := range args {
			file := strings.ReplaceAll(a.Text, `\`, "/")
			if place.IsCredential(file) || shell.HasAny(strings.ToLower(a.Text), "ntds.dit", `config\sam`, "config/sam", "configsam") {
				return true
			}
		}
	case "ntdsutil":
		return shell.HasAny(strings.ToLower(shell.Join(args)), "ifm", "create full")
	case "vaultcmd":
		return shell.HasAny(strings.ToLower(shell.Join(args)), "/listcreds")
	case "get-adreplaccount", "get-gpppassword", "export-aadintadfscertificates":
		return true
	case "findstr":
		return shell.HasAny(strings.ToLower(shell.Join(args)), "cpassword")
	case "osascript":
		return shell.HasAny(strings.ToLower(shell.Join(args)), "hidden answer") // asks for a password as the system does
	case "gcore":
		return verb(args, 0) != "" // the memory of another process
	case "getent":
		return shell.OneOf(verb(args, 0), "shadow", "gshadow")
	case "aws":
		switch verb(args, 1) {
		case "get-session-token", "assume-role", "assume-role-with-saml", "assume-role-with-web-identity", "get-federation-token", "export-credentials", "get-login-password", "get-authorization-token":
			return shell.OneOf(verb(args, 0), "sts", "configure")
		case "get":
			return verb(args, 0) == "configure" && shell.HasAny(verb(args, 2), "secret", "session_token")
		}
	case "python", "python2", "python3":
		for i, a := range args {
			if a.Text != "" && a.Text[0] != '-' {
				return strings.HasSuffix(a.Text, ".py") && stealsCredentials(shell.BaseName(a.Text), args[i+1:])
			}
		}
	case "etcdctl":
		for _, a := range args {
			if a.Text == "--keys-only" || a.Text == "--count-only" {
				return false
			}
		}
		key := verb(args, 1)
		return verb(args, 0) == "get" && (key == "/" || key == "" || strings.HasPrefix(key, "/registry") && !strings.HasPrefix(key, "/registry/health"))
	case "printenv":
		for _, a := range args {
			if shell.HasAny(a.Text, "SECRET", "TOKEN", "PASSW", "API_KEY", "PRIVATE_KEY") {
				return true
			}
		}
	case "curl", "wget", "http", "https", "xh", "fetch", "iwr", "irm", "invoke-webrequest", "invoke-restmethod":
		for _, a := range args {
			text := strings.ToLower(a.Text)
			if before, after, ok := strings.Cut(text, "/secrets"); ok && strings.Contains(before, "/api/v1") && (after == "" || after[0] == '/' || after[0] == '?') {
				return true // of a cluster
			}
			if IsMetadata(text) && shell.HasAny(text, "credential", "token", "user-data", "identity", "/iam") {
				return true
			}
		}
	}
	return false
}

// IsMetadata reports whether an address is one at which a cloud gives a machine its
// credentials.
func IsMetadata(address string) bool {
	return shell.HasAny(address, "169.254.169.254", "169.254.170.2", "metadata.google.internal", "100.100.100.200", "fd00:ec2::254")
}

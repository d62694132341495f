// Package place says what the paths are for that commands read and write: devices,
// credentials, what runs later, what protects the host. It is pure.
package place

import (
	"path"
	"slices"
	"strings"
)

// IsStandardDevice reports whether the path is a stream or a sink: writing to it
// changes nothing.
func IsStandardDevice(name string) bool {
	switch name {
	case "/dev/null", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/console", "/dev/ptmx", "/dev/log", "-":
		return true
	}
	return strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty") ||
		strings.HasPrefix(name, "/dev/shm/") || strings.HasPrefix(name, "/dev/mqueue/")
}

// IsNetwork reports whether the path is a connection that the shell opens.
func IsNetwork(name string) bool {
	return strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/")
}

// IsDevice reports whether writing to the path could change a disk, memory or hardware.
func IsDevice(name string) bool {
	if strings.HasPrefix(name, `\\.\`) || strings.HasPrefix(name, "//./") {
		return true
	}
	if !strings.HasPrefix(name, "/") {
		return false
	}
	name = path.Clean(name)
	return strings.HasPrefix(name, "/dev/") && !IsStandardDevice(name) && !IsNetwork(name) ||
		strings.HasPrefix(name, "/sys/block/") && strings.HasSuffix(name, "/delete")
}

// MaxPath is the length of the longest path that Linux opens.
const MaxPath = 4096

// IsCredential reports whether the path usually holds a secret.
func IsCredential(name string) bool {
	if len(name) < 4 || len(name) > MaxPath {
		return false
	}
	base := path.Base(name)
	switch base {
	case ".netrc", "_netrc", ".npmrc", ".pgpass", ".git-credentials", ".my.cnf", ".pypirc", ".vault-token", "shadow-", "gshadow", "master.passwd", "credentials.tfrc.json", ".htpasswd", "application_default_credentials.json",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "login.keychain", "login.keychain-db", "Cookies.binarycookies", "key3.db", "key4.db", "logins.json", "wallet.dat", ".env":
		return true
	case ".env.local", ".env.production", ".env.prod", ".env.staging", ".env.development", ".env.dev", ".env.test":
		return true
	}
	in := func(dir string) bool { return IsBelow(name, dir) }
	switch {
	case isHistory(base):
		return true
	case strings.HasPrefix(base, "id_") && in(".ssh"):
		return !strings.HasSuffix(base, ".pub")
	case in(".ssh") && base == "*", in(".gnupg"), in(".password-store"):
		return true
	case base == "credentials" && (in(".aws") || in(".cargo") || in(".gem") || in(".config/doctl")), in(".aws/cli/cache"), in(".aws/sso/cache"):
		return true
	case base == "config" && in(".kube"), base == "config.json" && in(".docker"), in(".config/gcloud"), base == "hosts.yml" && in(".config/gh"),
		base == "accessTokens.json" && in(".azure"):
		return true
	case in(".local/share/keyrings"), oneOf(base, "cookies.sqlite", "Cookies", "Login Data", "Web Data") &&
		(in("firefox") || in("google-chrome") || in("chromium") || in("Chrome") || in("BraveSoftware") || in("microsoft-edge")):
		return true
	case oneOf(base, "environ", "mem") && strings.HasPrefix(name, "/proc/"):
		return true
	case in("/etc/kubernetes") && (oneOf(base, "admin.conf", "super-admin.conf", "kubelet.conf", "scheduler.conf", "controller-manager.conf") ||
		strings.HasSuffix(base, ".key")),
		in("/etc/rancher") && oneOf(base, "k3s.yaml", "rke2.yaml"), in("/var/lib/rancher") && oneOf(base, "node-token", "token"), in("/var/lib/kubelet") && base == "kubeconfig":
		return true
	}
	return oneOf(path.Clean(name), "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/master.passwd", "/etc/krb5.keytab", "/run/secrets", "/etc/shadow-", "/dev/mem", "/dev/kmem", "/proc/kcore") || strings.HasPrefix(name, "/run/secrets/") || strings.HasPrefix(name, "/var/run/secrets/") ||
		strings.HasPrefix(name, "/etc/ssh/ssh_host_") && strings.HasSuffix(name, "_key")
}

// isHistory reports whether a file is the history of a shell or of a database client. Such
// histories often contain passwords.
func isHistory(base string) bool {
	switch base {
	case ".bash_history", ".zsh_history", ".ash_history", ".sh_history", ".ksh_history", ".histfile", "fish_history", "ConsoleHost_history.txt", ".mysql_history", ".mariadb_history", ".psql_history", ".rediscli_history":
		return true
	}
	return false
}

// HasCredentials reports whether a directory is one of those that have everything of a user
// or of a host: who sends it elsewhere sends the secrets below it too.
func HasCredentials(dir string) bool {
	if len(dir) > MaxPath || dir != "~" && !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "~") {
		return false
	}
	dir = strings.TrimSuffix(dir, "*")
	switch dir = path.Clean(dir); dir {
	case "/", "/root", "/home", "/Users", "/etc", "/proc", "/var/lib", "/var", "~":
		return true
	}
	parent := path.Dir(dir)
	return parent == "/home" || parent == "/Users" || parent == "." && strings.HasPrefix(dir, "~")
}

// IsCredentialDir reports whether the path is a directory of secrets.
func IsCredentialDir(name string) bool {
	return oneOf(path.Base(name), ".ssh", ".gnupg", ".aws", ".kube", ".password-store", "Keychains", "keyrings")
}

// IsRunKey reports whether a text in lower case has a key of the Windows registry
// whose programs run at each start or login. A shell drops its backslashes.
func IsRunKey(text string) bool {
	for _, key := range [...]string{`currentversion\run`, "currentversionrun", `explorer\run`} {
		if _, rest, ok := strings.Cut(text, key); ok {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, "once"), "services")
			if rest == "" || rest[0] < 'a' || rest[0] > 'z' {
				return true
			}
		}
	}
	return false
}

// IsStartup reports whether what is written to the path runs later, or gives a person access.
func IsStartup(name string) bool {
	if len(name) < 4 || len(name) > MaxPath {
		return false
	}
	base := path.Base(name)
	switch base {
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".shrc",
		".claude.json", ".mcp.json", "claude_desktop_config.json", "managed-mcp.json", "mcp_config.json", "mcp_settings.json", "cline_mcp_settings.json", "mcp-config.json", "opencode.json", "opencode.jsonc", // the servers of MCP clients
		".xinitrc", ".xsession", ".xprofile", "authorized_keys", "authorized_keys2", ".gitconfig", ".vimrc", ".tmux.conf", ".inputrc", ".pam_environment", ".forward", "config.fish", "sitecustomize.py", "usercustomize.py", ".pythonrc", "com.apple.loginwindow.plist":
		return true
	}
	in := func(dir string) bool { return IsBelow(name, dir) }
	if strings.HasSuffix(base, ".pth") && (in("site-packages") || in("dist-packages")) || in("/Library/StartupItems") {
		return true // Python runs lines of the first at each start
	}
	if base == "mcp.json" && (in(".cursor") || in(".vscode") || in("User")) || in(".claude") && oneOf(base, "settings.json", "settings.local.json") ||
		in(".codex") && strings.HasSuffix(base, "config.toml") ||
		(in(".gemini") || in(".amp") || in("amp") || in(".zed") || in("zed")) && oneOf(base, "settings.json", "settings.jsonc") ||
		in("opencode") && base == "config.json" {
		return true // servers and hooks of MCP clients
	}
	if in(".git/hooks") && !strings.HasSuffix(base, ".sample") || in(".config/autostart") || in(".config/systemd") || in("LaunchAgents") || in("LaunchDaemons") ||
		in(".config/fish/conf.d") || in(".ssh") && oneOf(base, "rc", "config", "environment") {
		return true
	}
	if IsPipeline(name) {
		return true // what a server runs at each push
	}
	if isPassedThrough(name) || strings.HasPrefix(base, "pam_") && strings.HasSuffix(base, ".so") {
		return true
	}
	clean := hostPath(path.Clean(name))
	for _, dir := range [...]string{"/etc/cron", "/var/spool/cron", "/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/rc", "/etc/init", "/etc/systemd", "/lib/systemd", "/usr/lib/systemd", "/etc/ld.so.preload",
		"/etc/ld.so.conf", "/etc/sudoers", "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/pam.d", "/etc/ssh/sshd_config", "/etc/xdg/autostart", "/etc/udev/rules.d", "/etc/anacrontab", "/etc/at.", "/etc/environment", "/etc/update-motd.d", "/etc/apt/apt.conf.d", "/etc/crontab", "/etc/hosts.equiv", "/etc/doas.conf", "/etc/modules", "/etc/modprobe.d", "/etc/polkit-1", "/etc/emond.d"} {
		if strings.HasPrefix(clean, dir) {
			return true
		}
	}
	return false
}

// hostPath returns the path as the host has it: without a directory below which a container
// or a rescue system usually has the host's files, and of /usr/local/etc as of /etc.
func hostPath(name string) string {
	for _, root := range [...]string{"/host", "/hostfs", "/host_root", "/host-root", "/rootfs", "/mnt", "/sysroot"} {
		rest, ok := strings.CutPrefix(name, root+"/")
		if !ok {
			continue
		}
		if _, below, ok := strings.Cut(rest, "/"); ok && root == "/mnt" && (strings.HasPrefix(below, "etc/") || strings.HasPrefix(below, "var/spool/cron")) {
			rest = below
		}
		name = "/" + rest
		break
	}
	if rest, ok := strings.CutPrefix(name, "/proc/"); ok {
		if _, below, ok := strings.Cut(rest, "/root/"); ok {
			name = "/" + below
		}
	}
	if rest, ok := strings.CutPrefix(name, "/usr/local/etc/"); ok {
		return "/etc/" + rest
	}
	return name
}

// IsPipeline reports whether the path is a file with what a server, an editor or a hook runs at
// each push, commit or opening of a project.
func IsPipeline(name string) bool {
	if len(name) > MaxPath {
		return false
	}
	in := func(dir string) bool { return IsBelow(name, dir) }
	switch path.Base(name) {
	case ".gitlab-ci.yml", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml":
		return true
	case "config.yml":
		return in(".circleci")
	case "tasks.json":
		return in(".vscode")
	}
	return in(".github/workflows") || in(".gitea/workflows") || in(".forgejo/workflows") || in(".buildkite") || in(".husky")
}

// IsKernelHook reports whether the kernel runs what is written to the path, or gives
// its writer the memory of another process.
func IsKernelHook(name string) bool {
	switch base := path.Base(name); base {
	case "release_agent", "uevent_helper", "core_pattern", "modprobe", "hotplug", "usermodehelper":
		return strings.HasPrefix(name, "/proc/sys/") || strings.HasPrefix(name, "/sys/") || base == "release_agent"
	case "register":
		return strings.HasSuffix(name, "/binfmt_misc/register")
	case "mem":
		return strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "/proc/self/")
	}
	return false
}

// IsProtection reports whether the path configures what records or prevents.
func IsProtection(name string) bool {
	if !strings.HasPrefix(name, "/") || len(name) > MaxPath {
		return false
	}
	name = path.Clean(name)
	for _, file := range [...]string{"/etc/selinux/", "/etc/audit/", "/etc/rsyslog.", "/etc/syslog-ng/", "/etc/apparmor", "/etc/systemd/journald", "/etc/fail2ban/", "/etc/nftables", "/etc/iptables/", "/etc/ufw/", "/etc/firewalld/",
		"/etc/pki/ca-trust/source/", "/usr/local/share/ca-certificates/", "/usr/local/share/certs/", "/etc/ssl/certs/ca-", "/etc/security/audit", "/etc/syslog.conf", "/etc/default/ufw", "/usr/share/ca-certificates/", "/etc/ca-certificates/", "/etc/falco/", "/etc/osquery/", "/sys/fs/selinux/", "/sys/kernel/security", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/kernel/kptr_restrict"} {
		if strings.HasPrefix(name+"/", file) {
			return true
		}
	}
	return false
}

// isPassedThrough reports whether a program is one to which people give passwords,
// or that starts every session, in a directory of programs.
func isPassedThrough(name string) bool {
	dir, base := path.Split(name)
	return oneOf(base, "sudo", "su", "doas", "ssh", "sshd", "login", "passwd", "gpg", "gpg-agent", "bash", "sh", "zsh", "systemctl") &&
		(strings.HasSuffix(dir, "/bin/") || strings.HasSuffix(dir, "/sbin/"))
}

// IsBelow reports whether a path goes through a directory, given as some of its
// components.
func IsBelow(name, dir string) bool {
	for from := 0; ; from++ {
		i := strings.Index(name[from:], dir)
		if i < 0 {
			return false
		}
		from += i
		if end := from + len(dir); (from == 0 || name[from-1] == '/') && end < len(name) && name[end] == '/' {
			return true
		}
	}
}

func oneOf(s string, words ...string) bool { return slices.Contains(words, s) }

package guard

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// installsFetched reports whether a command installs a package from an address instead
// of a registry. The package's scripts run without review.
func installsFetched(s *shell.Shell, name string, args []shell.Field) bool {
	has := func(words ...string) bool { return hasWord(args, words...) }
	if has("--dry-run", "--dry-run=client", "--dry-run=server", "--simulate") {
		return false
	}
	if registersPlain(name, args) {
		return true
	}
	switch name {
	case "pip", "pip2", "pip3", "pipx":
		if !has("install", "run", "wheel") {
			return false
		}
		for i, a := range args {
			switch option, value, _ := strings.Cut(a.Text, "="); option {
			case "-i", "--index-url", "--extra-index-url", "-f", "--find-links":
				if value == "" && i+1 < len(args) {
					value = args[i+1].Text
				}
				if strings.HasPrefix(value, "http://") {
					return true // anybody on the way can change it
				}
			case "--trusted-host":
				return true
			default:
				if isIndex := i > 0 && shell.OneOf(args[i-1].Text, "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--proxy"); !isIndex && isAddress(a.Text) {
					return true
				}
			}
		}
	case "npm", "pnpm", "yarn", "bun":
		if !has("install", "i", "add", "in", "ins", "exec", "x", "dlx") {
			return false
		}
		for i, a := range args {
			option, value, _ := strings.Cut(a.Text, "=")
			if isOption := i > 0 && strings.HasPrefix(args[i-1].Text, "--"); !isOption && isAddress(a.Text) ||
				option == "--registry" && strings.HasPrefix(value, "http://") || isOption && args[i-1].Text == "--registry" && strings.HasPrefix(a.Text, "http://") {
				return true
			}
		}
	case "cargo":
		return has("install") && has("--git")
	case "gem":
		if !has("install") {
			return false
		}
		for _, a := range args {
			if strings.HasPrefix(a.Text, "http://") || strings.HasPrefix(a.Text, "--source=http://") {
				return true
			}
		}
	case "rpm", "dnf", "yum", "zypper", "apt", "apt-get", "dpkg", "apk", "tdnf", "microdnf", "helm":
		if name == "rpm" && !has("-i", "-ivh", "-Uvh", "-U", "-ih", "-Uh", "--install", "--upgrade") || name == "dpkg" && !has("-i", "--install") ||
			!shell.OneOf(name, "rpm", "dpkg") && !has("install", "add", "localinstall", "reinstall", "in") {
			return false
		}
		repository := name == "helm" && has("repo", "--repo")
		for _, a := range args {
			if isAddress(a.Text) && !repository || a.Reads != nil && a.Reads.From&detector.RemoteExec != 0 {
				return true
			}
			if !a.Unknown && !strings.HasPrefix(a.Text, "-") && strings.Contains(a.Text, ".") && s.Known(a.Text)&detector.RemoteExec != 0 {
				return true // fetched before
			}
		}
	case "kubectl", "oc", "k", "kubecolor":
		if !shell.OneOf(verb(args, 0), "apply", "create", "replace") {
			return false
		}
		for i, a := range args {
			if i > 0 && shell.OneOf(args[i-1].Text, "-f", "--filename", "-k") && isAddress(a.Text) || strings.HasPrefix(a.Text, "--filename=http") ||
				strings.HasPrefix(a.Text, "-fhttp") {
				return true
			}
		}
	}
	return false
}

// registersPlain reports whether packages come from an address from now on on whose way
// anybody can change them.
func registersPlain(name string, args []shell.Field) bool {
	switch name {
	case "pip", "pip2", "pip3", "npm", "pnpm", "yarn", "bun", "bundle", "poetry":
		if !hasWord(args, "config", "c", "set", "source") {
			return false
		}
	case "gem":
		if verb(args, 0) != "sources" || hasWord(args, "-r", "--remove", "-l", "--list") {
			return false
		}
	default:
		return false
	}
	for i, a := range args {
		at := strings.Index(a.Text, "http://")
		if at < 0 || at > 0 && a.Text[at-1] != '=' {
			continue
		}
		option := strings.ToLower(a.Text[:at])
		if at == 0 && i > 0 {
			option = strings.ToLower(args[i-1].Text)
		}
		host, _, _ := strings.Cut(a.Text[at+len("http://"):], "/")
		if host, _, _ = strings.Cut(host, ":"); shell.OneOf(host, "localhost", "127.0.0.1", "[") || strings.Contains(option, "proxy") {
			continue
		}
		if name == "gem" || shell.OneOf(name, "poetry", "bundle") || shell.HasAny(option, "registry", "index", "find-links") {
			return true
		}
	}
	return false
}

// isAddress reports whether an operand is an address that a package is fetched from.
func isAddress(text string) bool {
	if at := strings.Index(text, " @ "); at >= 0 {
		text = text[at+3:] // name @ address, of Python
	} else if at := strings.Index(text, "@"); at > 0 && strings.Contains(text[at:], "://") && !strings.Contains(text[:at], "://") {
		text = text[at+1:]
	}
	for _, scheme := range [...]string{"http://", "https://", "git+", "git://", "hg+", "svn+", "bzr+", "ftp://", "github:", "gitlab:", "bitbucket:", "gist:"} {
		if strings.HasPrefix(text, scheme) {
			return true
		}
	}
	return false
}

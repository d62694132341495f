package target

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/detector"
)

// isHarmlessDevice reports whether a path is a device that programs write to as
// a matter of course.
func isHarmlessDevice(parts []string) bool {
	if len(parts) != 2 || parts[0] != "dev" {
		return false
	}
	switch parts[1] {
	case "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr":
		return true
	}
	return false
}

// blocked reports the paths that no tool has a reason to touch.
func blocked(parts []string) detector.Set {
	if len(parts) == 0 {
		return 0
	}
	switch {
	case matches(parts[0], "proc"), matches(parts[0], "sys"):
		return detector.PathBlocked
	case matches(parts[0], "dev"):
		if !isHarmlessDevice(parts) {
			return detector.PathBlocked
		}
	case matches(parts[0], "etc") && len(parts) > 1:
		if matches(parts[1], "shadow") || matches(parts[1], "passwd") || matches(parts[1], "sudoers") {
			return detector.PathBlocked
		}
	}
	return 0
}

// matches reports whether a component is name, or a pattern that some servers
// expand and that matches it.
func matches(part, name string) bool {
	if part == name {
		return true
	}
	switch c := part[0]; c {
	case name[0], '*', '?', '[', '\\':
	default:
		return false // no pattern that begins so matches
	}
	if !strings.ContainsAny(part, "*?[") || strings.Trim(part, "*?") == "" {
		return false
	}
	ok, err := path.Match(part, name)
	return ok && err == nil
}

// sensitiveSystem reports absolute paths that are sensitive.
func sensitiveSystem(parts []string) bool {
	if matches(parts[0], "etc") {
		return true
	}
	switch parts[0] {
	case "var", "run", "library", "lib", "usr":
	default:
		return false
	}
	for _, dir := range [...]string{
		"var/spool/cron", "var/run/docker.sock", "run/docker.sock", "var/run/secrets", "run/secrets",
		"library/launchdaemons", "library/launchagents", "lib/systemd/system", "usr/lib/systemd/system",
	} {
		if hasPath(parts, dir) {
			return true
		}
	}
	return false
}

// hasPath is hasPrefix for a prefix that is written as a path.
func hasPath(parts []string, prefix string) bool {
	for _, part := range parts {
		rest, ok := strings.CutPrefix(prefix, part)
		switch {
		case !ok:
			return false
		case rest == "":
			return true
		case rest[0] != '/':
			return false
		}
		prefix = rest[1:]
	}
	return false
}

// sensitiveAnywhere reports paths that are sensitive in any directory: they hold
// credentials, or something runs them later.
func sensitiveAnywhere(parts []string) bool {
	for i, part := range parts {
		switch part {
		case ".env", ".envrc", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", "_netrc", ".git-credentials", ".pgpass",
			".my.cnf", ".npmrc", ".pypirc", ".s3cfg", ".boto", ".vault-token", ".password-store", ".gcloud",
			"authorized_keys", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", ".htpasswd",
			".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
			".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
			".inputrc", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".vimrc", ".exrc", ".tmux.conf", ".screenrc",
			".gitconfig", ".dockercfg", ".pam_environment", ".rhosts", ".shosts", ".forward",
			// The servers that MCP clients start.
			".claude.json", ".mcp.json", "claude_desktop_config.json", "managed-mcp.json", "mcp_config.json", "mcp_settings.json",
			"cline_mcp_settings.json", "mcp-config.json", "opencode.json", "opencode.jsonc":
			return true
		}
		if strings.HasSuffix(part, ".git") && i+1 < len(parts) && parts[i+1] == "hooks" {
			return true
		}
		if part == "mcp.json" && i > 0 && (parts[i-1] == ".cursor" || parts[i-1] == ".vscode" || parts[i-1] == "user" || i > 1 && parts[i-2] == "profiles") {
			return true
		}
		if part[0] == '.' && strings.HasSuffix(part, "_history") { // of a shell or a client, as it was typed
			return true
		}
		if strings.HasPrefix(part, ".env.") || strings.HasPrefix(part, ".env-") || strings.HasPrefix(part, ".env_") || part == ".env~" {
			return true
		}
		if part[0] != '.' && part != "library" {
			continue
		}
		for _, dir := range [...]string{
			".git/config", ".git/modules", ".docker/config.json", ".config/gcloud", ".config/gh", ".config/git",
			".config/fish/config.fish", ".config/fish/conf.d", ".config/autostart", ".config/systemd", ".config/rclone",
			".config/op", ".config/doctl", ".config/tmux/tmux.conf", ".config/environment.d", ".local/share/keyrings",
			".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d/credentials.tfrc.json",
			".m2/settings.xml", ".local/share/systemd", ".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".gemini/settings.json",
			".amp/settings.json", ".amp/settings.jsonc", ".config/amp", ".config/opencode", ".zed/settings.json", ".config/zed/settings.json", ".opencode/opencode.json", "library/keychains", "library/launchagents", "library/launchdaemons",
		} {
			if hasPath(parts[i:], dir) {
				return true
			}
		}
	}
	return false
}

package target

import (
	"fmt"
	"strings"
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

func TestPaths(t *testing.T) {
	links := map[string]string{
		"/home/u/proj/link":     "/etc/shadow",
		"/home/u/proj/dir":      "/etc",
		"/home/u/proj/relative": "../.ssh",
		"/home/u/proj/loop":     "loop",
		"/home/u/proj/chain":    "dir/passwd",
		"/home/u/proj/out":      "/tmp/a/b",
		"/home/u/proj/root":     "/",
		"/home/u/proj/fd":       "/dev/null",
	}
	p := Place{Home: Directory("/home/u"), Cwd: Directory("/home/u/proj"), Readlink: func(name string) (string, bool) {
		target, ok := links[name]
		return target, ok
	}}
	for _, tt := range []struct {
		want  string
		paths []string
	}{
		{"blocked", []string{
			"/etc/shadow", "/etc/passwd", "/etc/sudoers", "/etc/passwd/", "/etc/passwd/.", "/etc/passwd/x", "//etc//shadow", "///etc/shadow",
			"/./etc/./shadow", "/etc/../etc/shadow", "/dev/../etc/shadow", "/x/../etc/shadow", "/../etc/shadow", "/../../../etc/shadow",
			"../../../etc/shadow", "../../../../../../etc/shadow", "a/../../../../etc/shadow", "./../../../etc/shadow", "~/../../etc/shadow",
			" /etc/shadow", "/etc/shadow\n", "/ETC/Shadow", "/etc/\u200bshadow", "/private/etc/shadow", "/private/etc/sudoers",
			"/System/Volumes/Data/private/etc/passwd", "/proc", "/proc/", "/proc/self/environ", "/proc/self/root/etc/shadow", "/proc/1/mem",
			"/proc/self/fd/0", "/proc/../proc/1", "/sys", "/sys/kernel/debug", "/sys/class/../kernel", "/dev", "/dev/", "/dev/sda", "/dev/mem", "/dev/kmem",
			"/dev/fd/3", "/dev/fd", "/dev/shm/x", "/dev/pts/0", "/dev/null/x", "/dev/tty0", "/dev/disk/by-id/x", "/dev/mapper/root",
			"file:///etc/shadow", "file:/etc/shadow", "FILE:///etc/shadow", "file://localhost/etc/shadow", "file://host/etc/shadow",
			"file:///%65tc/%73hadow", "file:///etc%2fshadow", "file:///etc%252fshadow", "file:///tmp/..%2fetc%2fshadow", "file:///etc/shadow?x=1", "file:///etc/shadow#x",
			"file:////etc/shadow", `\etc\shadow`, `..\..\..\etc\shadow`, `/etc\shadow`, "file:///proc/self/environ",
			"/proc\x00x", "\x00", "notes.txt\x00.md", "/e?c/shadow", "/etc/shad*", "/pro[c]/1",
			"link", "./link", "/home/u/proj/link", "dir/shadow", "chain", "root/etc/shadow", "root/proc/1", "root/dev/sda", "dir/../etc/shadow", "out/../../../etc/passwd",
		}},
		{"sensitive", []string{
			".env", "./.env", "a/.env", "a/../.env", ".env/", ".env/x", ".ENV", ".Env.Local", ".env.local", ".env.production", ".env.example", ".envrc",
			"/home/u/proj/.env", "/srv/app/.env.staging", "..//proj/.env", "~/.ssh", "~/.ssh/authorized_keys", ".ssh/id_rsa", "/root/.ssh/known_hosts",
			"../.ssh/config", ".gnupg", "~/.gnupg/secring.gpg", ".aws/credentials", ".aws/config", "~/.aws", ".config/gcloud/creds.json", ".config/gcloud",
			".azure/token", ".kube/config", "~/.kube", ".netrc", "~/.netrc", "_netrc", ".git-credentials", ".git/hooks/pre-commit", ".git/hooks", "a/.git/hooks/x", "repo.git/hooks/post-receive",
			".git/config", "~/.gitconfig", ".npmrc", ".pypirc", ".pgpass", ".docker/config.json", ".bashrc", "~/.bashrc", ".bash_profile", ".profile", "~/.zshrc",
			".zshenv", "~/.config/fish/config.fish", ".tmux.conf", "~/.config/autostart/x.desktop", "~/.config/systemd/user/x.service", "/etc", "/etc/", "/etc/hosts",
			"/etc/cron.d/agent", "/etc/sudoers.d/agent", "/etc/ld.so.preload", "/etc/ssh/sshd_config", "/etc/passwd-", "/etc/shadow-", "/etc/gshadow", "/etc/../etc/hosts", "/private/etc/hosts",
			"/ETC/hosts", "~user/.ssh/id_rsa", "$HOME/.ssh/id_rsa", "${HOME}/.bashrc", `.ssh\id_rsa`, "file:///home/u/.ssh/id_rsa", "file:///etc/hosts", "/var/spool/cron/crontabs/root",
			"/var/run/docker.sock", "/run/secrets/x", "/Users/u/Library/Keychains/login.keychain-db", "/Library/LaunchDaemons/x.plist", "backup/id_ed25519", "/tmp/authorized_keys",
			"~/.claude.json", ".mcp.json", ".cursor/mcp.json", "~/.config/Code/User/mcp.json", "~/.config/Code/User/profiles/-1a/mcp.json", "~/.config/Claude/claude_desktop_config.json", ".claude/settings.json", "~/.codex/config.toml",
			"opencode.json", "a/opencode.jsonc", "~/.config/opencode/config.json", ".amp/settings.json", "~/.config/amp/settings.jsonc", ".zed/settings.json", "~/.config/zed/settings.json", "~/.copilot/mcp-config.json",
			"~/.bash_history", "/root/.zsh_history", ".psql_history",
			"relative", "relative/id_rsa", "dir", "dir/hosts", "dir/cron.d/x", "root/etc/hosts", "root/home/u/.netrc", "out/../../../etc/hosts",
		}},
		{"ok", []string{
			"", " ", ".", "..", "/", "~", "/tmp/out.txt", "notes.txt", "src/main.go", "/home/u/proj/x", "/processed/report.csv", "/system/notes.txt", "/sysroot/x", "/development/app.py",
			"/device/x", "/etcetera/x", "/etc2/shadow", "/home/etc/shadow", "/home/u/dev/null.go", "dev/app.py", "proc/x", "sys/x", "etc/shadow", "etc/passwd", "/srv/etc/hosts", "/tmp/proc/x",
			"/dev/null", "/dev/tty", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/./null", "//dev//null", "/dev/../dev/null",
			"settings.json", "dist/mcp.json", "mcp.json", ".claude/notes.md", "mcp.json.md", "src/mcp.go", "docs/.environment-notes.md", ".environment", "env", "my.env.txt", "environment.env", "a.env", ".envoy/config", "ssh/config", "dotssh", ".sshd", ".ssh-backup-notes", ".awsome", ".gitignore",
			".github/workflows/x.yml", ".git/HEAD", ".gitattributes", "git/hooks/x", "hooks/pre-commit", "bashrc", "bashrc.md", "bash_history", ".history_notes", ".bash_history.md", ".bashrc.d-notes", "passwd", "shadow", "sudoers.md", "kube/config",
			".config/app/settings.json", ".docker/Dockerfile", "id_rsa.pub", "~/proj/x", "../proj/x", "../other/x", "a/b/../../c", "file:///tmp/x", "file:///home/u/proj/a%20b", "https://example.com/etc/shadow",
			"C:\\Users\\u\\x.txt", "app/[id]/page.tsx", "routes/$postId.tsx", "*.go", "**/*.ts", "src/*/x", "price$.txt", "100%", "\u200b", "/\u200b/\u200b", "/tmp/\u200b", "fd", "out", "out/x", "out/..", "/home/u/proj/out/../x",
		}},
	} {
		for _, path := range tt.paths {
			found := p.Detect(path, new(Buffer))
			got := "ok"
			switch {
			case found&detector.PathBlocked != 0:
				got = "blocked"
			case found&detector.PathSensitive != 0:
				got = "sensitive"
			}
			if got != tt.want {
				t.Errorf("%q is %s (%q), want %s", path, got, found.Words(), tt.want)
			}
		}
	}
}

// TestHomeInAVariable looks for an operator's path behind a variable that servers expand.
func TestHomeInAVariable(t *testing.T) {
	private, err := ParsePattern("~/private")
	if err != nil {
		t.Fatal(err)
	}
	p := Place{Home: Directory("/home/u"), Cwd: Directory("/home/u/proj"), Sensitive: []Pattern{private}}
	for path, want := range map[string]detector.Set{
		"$HOME/private": detector.PathSensitive, "${HOME}/private/x": detector.PathSensitive, `%USERPROFILE%\private`: detector.PathSensitive, "$HOME/proj/../private": detector.PathSensitive,
		"$HOME/x": 0, "$HOMER/private": 0, "a/$HOME/private": 0, "$HOME": 0, "$": 0,
	} {
		if got := p.Detect(path, new(Buffer)) & detector.PathSensitive; got != want {
			t.Errorf("%q is %q, want %q", path, got.Words(), want.Words())
		}
	}
}

func TestTraversalAndUnresolved(t *testing.T) {
	known := Place{Home: Directory("/home/u"), Cwd: Directory("/home/u/proj")}
	unknown := Place{}
	for _, tt := range []struct {
		path           string
		known, unknown detector.Set
	}{
		{"x", 0, detector.PathUnresolved},
		{"a/../x", 0, detector.PathUnresolved},
		{"a/../../x", detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
		{"../x", detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
		{"a/../b/../../c", detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
		{"/tmp/x", 0, 0},
		{"/tmp/../x", detector.PathTraversal, detector.PathTraversal},
		{"/../x", detector.PathTraversal, detector.PathTraversal},
		{"/tmp/a..b", 0, 0},
		{"/tmp/...", 0, 0},
		{"/srv/logs/../../home/x", detector.PathTraversal, detector.PathTraversal},
		{`..\x`, detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
		{"file:///srv/%2e%2e/x", detector.PathTraversal, detector.PathTraversal},
		{"~/x", 0, detector.PathUnresolved},
		{"~/../x", detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
		{"~root/x", detector.PathUnresolved, detector.PathUnresolved},
		{"$HOME/x", detector.PathUnresolved, detector.PathUnresolved},
		{"/srv/$USER/x", detector.PathUnresolved, detector.PathUnresolved},
		{"/srv/${USER}.txt", detector.PathUnresolved, detector.PathUnresolved},
		{"/srv/$(id)/x", detector.PathUnresolved, detector.PathUnresolved},
		{"/srv/`id`/x", detector.PathUnresolved, detector.PathUnresolved},
		{"%APPDATA%/x", detector.PathUnresolved, detector.PathUnresolved},
		{"/tmp/" + strings.Repeat("a", maxPath), detector.PathUnresolved, detector.PathUnresolved},
		{"../../../etc/shadow", detector.PathTraversal | detector.PathBlocked, detector.PathTraversal | detector.PathUnresolved | detector.PathBlocked},
		{"../dev/app.go", detector.PathTraversal, detector.PathTraversal | detector.PathUnresolved},
	} {
		if got := known.Detect(tt.path, new(Buffer)); got != tt.known {
			t.Errorf("%.40q is %q, want %q", tt.path, got.Words(), tt.known.Words())
		}
		if got := unknown.Detect(tt.path, new(Buffer)); got != tt.unknown {
			t.Errorf("%.40q from an unknown directory is %q, want %q", tt.path, got.Words(), tt.unknown.Words())
		}
	}
}

// TestLinksAreBounded checks that a file system cannot hold up a call.
func TestLinksAreBounded(t *testing.T) {
	reads := 0
	p := Place{Readlink: func(name string) (string, bool) {
		reads++
		return "/" + fmt.Sprint(reads) + "/x/y", true
	}}
	if got := p.Detect("/a/b", new(Buffer)); got != detector.PathUnresolved || reads > maxLinks+1 {
		t.Errorf("endless links give %q after %d reads", got.Words(), reads)
	}
	reads = 0
	p.Readlink = func(string) (string, bool) { reads++; return "", false }
	if got := p.Detect(strings.Repeat("/a", 1000), new(Buffer)); got != detector.PathUnresolved || reads > 300 {
		t.Errorf("1000 components give %q after %d reads", got.Words(), reads)
	}
}

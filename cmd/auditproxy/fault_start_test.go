package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"
)

// TestStartWithoutSpool starts the proxy where the spool cannot be opened: with
// deny the server is never started, with allow it is, with a warning.
func TestStartWithoutSpool(t *testing.T) {
	for _, c := range []struct {
		name string
		// spool returns the directory to name, and may request a fault.
		spool func(t *testing.T, dir string) (path, lacks string)
		says  string
	}{
		{"read-only file system", func(t *testing.T, dir string) (string, string) {
			return "/proc/spool", "" // not even root makes a directory here
		}, "/proc/spool"},
		{"somebody else's", func(t *testing.T, dir string) (string, string) {
			if os.Geteuid() != 0 {
				return "/", "" // root's
			}
			must(t, os.Chown(dir, 65534, 65534))
			return dir, ""
		}, "belongs to uid"},
		{"symbolic link", func(t *testing.T, dir string) (string, string) {
			link := filepath.Join(dir, "link")
			must(t, os.Symlink(t.TempDir(), link))
			return link, ""
		}, "symbolic link"},
		{"others can write", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir, 0o777))
			return dir, ""
		}, "can be written by others"},
		{"file in the way", func(t *testing.T, dir string) (string, string) {
			name := filepath.Join(dir, "file")
			must(t, os.WriteFile(name, nil, 0o600))
			return name, ""
		}, "file"},
		{"no inode", func(t *testing.T, dir string) (string, string) { return dir, "inodes" }, "no space left on device: free space there, or inodes"},
		{"no space", func(t *testing.T, dir string) (string, string) { return dir, "bytes" }, "no space left on device: free space there, or inodes"},
	} {
		for _, policy := range []string{"deny", "allow"} {
			t.Run(c.name+"/"+policy, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				must(t, os.Chmod(dir, 0o700))
				path, lacks := c.spool(t, dir)
				s := setup{spool: path, flags: []string{"--on-audit-failure", policy}}
				if lacks != "" {
					room := filepath.Join(t.TempDir(), "room")
					must(t, takeRoom(room, lacks))
					s.env = []string{envRoom + "=" + room}
				}
				w := wrap(t, s)
				if policy == "allow" {
					w.answered(1, 100)
				}
				status := w.end()
				pid, executed := w.executed()
				switch {
				case policy == "deny" && (status.ExitStatus() != cli.ExitConfig || pid != 0):
					t.Errorf("exit code %d, want %d; server's process id %d, want none", status.ExitStatus(), cli.ExitConfig, pid)
				case policy == "allow" && (status != 0 || len(executed) != 1):
					t.Errorf("status %#x, %d calls executed", status, len(executed))
				}
				if out := w.stderr.String(); !strings.Contains(out, c.says) {
					t.Errorf("stderr does not say %q:\n%s", c.says, out)
				}
				if policy == "deny" && strings.Count(w.stderr.String(), "\n") != 1 {
					t.Errorf("want one line:\n%s", &w.stderr)
				}
			})
		}
	}
}

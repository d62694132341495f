package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"auditproxy/deploy/dev"
)

// TestWrapForeignGroup wraps a user's files whose groups are not the user's, and
// one that cannot be replaced. That one is an error, and the others are wrapped. No
// user or group gets more rights than before.
func TestWrapForeignGroup(t *testing.T) {
	dev.Superuser(t)
	t.Parallel()
	proxy := reachableProxy(t)
	dir := filepath.Dir(proxy)
	must(t, os.Mkdir(filepath.Join(dir, "fixed"), 0o755)) // root's
	must(t, os.Mkdir(filepath.Join(dir, "own"), 0o755))
	must(t, os.Chown(filepath.Join(dir, "own"), agentUser, agentUser))
	files := []struct {
		name       string
		gid        int
		mode, want os.FileMode
	}{
		{"fixed/a.json", agentUser, 0o600, 0o600},
		{"own/a.json", 0, 0o600, 0o600},
		{"own/b.json", 0, 0o664, 0o604},
		{"own/c.json", answerGroup, 0o646, 0o604},
		{"own/d.json", 0, 0o604, 0o600},
		{"own/e.json", agentUser, 0o664, 0o664},
	}
	args := []string{"wrap", "--yes"}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		must(t, os.WriteFile(path, []byte(`{"servers": {"s": {"command": "a"}}}`), 0o600))
		must(t, os.Chown(path, agentUser, f.gid))
		must(t, os.Chmod(path, f.mode))
		args = append(args, path)
	}
	cmd := exec.CommandContext(t.Context(), proxy, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agentUser, Gid: agentUser}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), `auditproxy: changing "`+filepath.Join(dir, "fixed/a.json")+`": `) {
		t.Errorf("%v, want exit code 2 and the file that cannot be changed:\n%s", err, out)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != f.want || info.Sys().(*syscall.Stat_t).Uid != agentUser {
			t.Errorf("%s has mode %v and user %d, want %v", f.name, info.Mode(), info.Sys().(*syscall.Stat_t).Uid, f.want)
		}
		if wrapped := strings.Contains(readFile(t, path), proxy); wrapped != strings.HasPrefix(f.name, "own") {
			t.Errorf("%s is wrapped: %v", f.name, wrapped)
		}
	}
	backup, err := os.Stat(filepath.Join(dir, "own/d.json.auditproxy-backup"))
	must(t, err)
	if backup.Mode() != 0o600 {
		t.Errorf("the backup of d.json has mode %v", backup.Mode())
	}
}

// TestSpoolOfAnotherUser reads a spool as another user than the one who wrote it.
func TestSpoolOfAnotherUser(t *testing.T) {
	dev.Superuser(t)
	t.Parallel()
	proxy := reachableProxy(t)
	dir := filepath.Dir(proxy)
	spool := filepath.Join(dir, "spool")
	must(t, os.MkdirAll(filepath.Join(spool, "sessions"), 0o700))
	for _, command := range []string{"log", "verify", "show 01a221e6"} {
		cmd := exec.CommandContext(t.Context(), proxy, append(strings.Fields(command), "--spool-dir", spool)...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agentUser, Gid: agentUser}}
		out, err := cmd.CombinedOutput()
		want := `the spool in "` + spool + `" is another user's: permission denied: run this as that user, or name another spool with --spool-dir` + "\n"
		if cmd.ProcessState.ExitCode() != 2 || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: %v, %q, want exit code 2 and %q", command, err, out, want)
		}
	}
}

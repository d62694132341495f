//go:build !portable

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMemoryIsHidden asks the server for the owner of the proxy's memory: root,
// if other processes of the same user cannot read it.
func TestMemoryIsHidden(t *testing.T) {
	exe := program(t)
	dir := t.TempDir()
	cmd := exec.Command(exe, "--", "sh", "-c", "stat -c 'owner %u' /proc/$PPID/mem >&2")
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, dir
	if os.Getuid() == 0 {
		const nobody = 65534
		for _, path := range []string{filepath.Dir(filepath.Dir(exe)), filepath.Dir(exe), exe, filepath.Dir(dir)} {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "owner 0\n") {
		t.Errorf("%v, %s; want owner 0", err, out)
	}
}

// diesBy reports whether dieBySignal ends a process by sig.
func diesBy(syscall.Signal) bool { return true }

package dev

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestWithin runs commands that leave a file and a server in a session of its own.
func TestWithin(t *testing.T) {
	const leaves = `mkdir "$TMPDIR/made"; setsid sleep 600 <&- >&- 2>&- & echo "$TMPDIR"; echo $!; `
	for name, tt := range map[string]struct {
		command string
		signal  syscall.Signal // 0: it ends by itself
		want    int
	}{
		"ends":        {leaves + "exit 3", 0, 3},
		"signals":     {leaves + "trap 'exit 4' INT; kill -INT $$; exit 5", 0, 4},
		"terminated":  {leaves + "sleep 600", syscall.SIGTERM, 143},
		"interrupted": {leaves + "sleep 600", syscall.SIGINT, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("./within", "sh", "-c", tt.command)
			top := t.TempDir()
			cmd.Env = append(os.Environ(), "TMPDIR="+top)
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewScanner(stdout)
			var said []string
			for len(said) < 2 && in.Scan() {
				said = append(said, in.Text())
			}
			if len(said) < 2 || !strings.HasPrefix(said[0], top+"/") {
				t.Fatalf("the command said %q, want a directory in %s and a process", said, top)
			}
			if tt.signal != 0 {
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Error(err)
				}
			}
			_ = cmd.Wait() // its code is compared below
			if got := cmd.ProcessState.ExitCode(); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
			if _, err := os.Stat(said[0]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", said[0], err)
			}
			if line, err := os.ReadFile("/proc/" + said[1] + "/cmdline"); err == nil && strings.Contains(string(line), "sleep") {
				t.Errorf("process %s is still there", said[1])
			}
		})
	}
}

// TestWithinWithoutTMPDIR: the directory is one in which programs can be made and run,
// wherever it is.
func TestWithinWithoutTMPDIR(t *testing.T) {
	cmd := exec.Command("./within", "sh", "-c", `printf '#!/bin/sh\necho ran' > "$TMPDIR/x" && chmod 700 "$TMPDIR/x" && "$TMPDIR/x" && ls "$TMPDIR" && echo "$TMPDIR"`)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	dir, found := strings.CutPrefix(string(out), "ran\nx\n")
	if dir = strings.TrimSuffix(dir, "\n"); err != nil || !found || !strings.HasPrefix(dir, "/") {
		t.Fatalf("%v, and the command said %q, want that it ran the one file of its directory", err, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/deploy/dev"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// serverName is the name of the MCP server in these tests.
const serverName = "journaling-server"

// TestMain makes the test binary double as the program, or as a server, when it
// is called by that name. Only there can the administrator's file be moved.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "auditcollector" {
		a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), systemConfig: os.Getenv("SYSTEM_CONFIG"), systemUID: os.Getuid()}
		os.Exit(a.run(context.Background(), os.Args[1:]))
	}
	if filepath.Base(os.Args[0]) == serverName {
		os.Exit(serveCalls(os.Args[1]))
	}
	os.Exit(clitest.Run(m))
}

// program returns a path at which the test binary is this program.
func program(t *testing.T) string {
	t.Helper()
	return clitest.Program(t, "auditcollector")
}

// A home holds the files of one run of the program.
type home struct {
	exe, dir string
	env      []string
}

// newHome returns a home that has the tables already. To make them takes more
// than a second of processor time, so that is done once.
func newHome(t *testing.T) home {
	t.Helper()
	h := emptyHome(t)
	tables := dev.Share(t, "tables", func(own string) {
		first := emptyHome(t)
		if r := first.run(t, "migrate"); r.code != 0 {
			t.Fatalf("migrate: %+v", r)
		}
		if err := os.Rename(filepath.Join(first.dir, "local", "data"), own); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Mkdir(filepath.Join(h.dir, "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(h.dir, "local", "data"), os.DirFS(tables)); err != nil {
		t.Fatal(err)
	}
	return h
}

// emptyHome returns a home in which no program ran. It inherits nothing from the
// user who runs the test.
func emptyHome(t *testing.T) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "ac") // short, for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return home{program(t), dir, []string{
		"HOME=" + dir, "XDG_STATE_HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC",
		"AUDITCOLLECTOR_LOCAL_DIR=" + dir + "/local", "AUDITCOLLECTOR_LOCAL_LIBRARY=" + chdbtest.Library(t), "AUDITCOLLECTOR_METRICS_LISTEN=127.0.0.1:0",
		"AUDITCOLLECTOR_REVIEW_LISTEN=off",
	}}
}

// A result is the program's exit code and output.
type result struct {
	stdout, stderr string
	code           int
}

func (h home) run(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, h.exe, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = h.env, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// engine starts the local engine, which ends with the test.
func (h home) engine(t *testing.T) {
	t.Helper()
	cmd := exec.Command(h.exe, "engine")
	cmd.Env, cmd.Stderr = h.env, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the engine ended with %v", err)
		}
	})
	h.ready(t)
}

// ready waits until the local engine answers.
func (h home) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := chdb.Ready(ctx, h.dir+"/local"); err != nil {
		t.Fatal(err)
	}
}

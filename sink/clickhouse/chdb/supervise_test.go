package chdb_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestSupervise(t *testing.T) {
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last atomic.Pointer[exec.Cmd]
	ended := make(chan error, 1)
	go func() {
		ended <- chdb.Supervise(ctx, chdb.Supervisor{Dir: dir, Command: func() *exec.Cmd {
			cmd := engineCommand(t, dir)
			last.Store(cmd)
			return cmd
		}})
	}()
	ready(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	if err := insert(t, db, 0, 100, "a"); err != nil {
		t.Fatal(err)
	}
	first := last.Load()
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(30 * time.Second); last.Load() == first; {
		select {
		case <-deadline:
			t.Fatal("the engine was not started again")
		case <-time.After(5 * time.Millisecond):
		}
	}
	ready(t, dir)
	if got := count(t, db, "SELECT count() FROM audit.events"); got != 100 {
		t.Errorf("%d rows, want 100", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Supervise = %v", err)
	}
}

func TestSuperviseGivesUp(t *testing.T) {
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := chdb.Supervise(t.Context(), chdb.Supervisor{Dir: dir, Command: func() *exec.Cmd { return engineCommand(t, dir) }})
	if err == nil || !strings.Contains(err.Error(), "starting the local engine: exit status 78") {
		t.Errorf("Supervise = %v", err)
	}
}

func TestCheck(t *testing.T) {
	lib := library(t)
	for _, tt := range []struct {
		name string
		cfg  chdb.Config
		want string
	}{
		{"what is right", chdb.Config{Dir: "/d", Library: lib}, ""},
		{"a relative directory", chdb.Config{Dir: "d", Library: lib}, `directory "d": want an absolute path`},
		{"a long one", chdb.Config{Dir: "/" + strings.Repeat("d", 100), Library: lib}, "want at most 107"},
		{"little memory", chdb.Config{Dir: "/d", Library: lib, Memory: 1 << 20}, "memory is 1048576 bytes"},
		{"a port for all", chdb.Config{Dir: "/d", Library: lib, Listen: "0.0.0.0:1", Password: "x"}, "want host:port of this machine's loopback"},
		{"no password", chdb.Config{Dir: "/d", Library: lib, Listen: "localhost:1"}, "needs a password"},
		{"no library", chdb.Config{Dir: "/d", Library: filepath.Join(t.TempDir(), "none.so")}, "no libchdb: stat "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check = %v, want %q", err, tt.want)
			}
		})
	}
}

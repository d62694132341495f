package chdb_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestSupervise(t *testing.T) {
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last atomic.Pointer[exec.Cmd]
	ended := make(chan error, 1)
	chdbtest.Library(t) // here: a test is skipped by its own goroutine only
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
	for deadline := time.After(3 * time.Minute); last.Load() == first; {
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

// TestSuperviseHung stops an engine in the middle of an insert, without ending
// it: it is killed and another one started, and what was acknowledged is there.
func TestSuperviseHung(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan *exec.Cmd, 10)
	ended := make(chan error, 1)
	core, logs := observer.New(zapcore.WarnLevel)
	chdbtest.Library(t) // here: a test is skipped by its own goroutine only
	go func() {
		ended <- chdb.Supervise(ctx, chdb.Supervisor{Dir: dir, Patience: time.Second, Log: zap.New(core), Command: func() *exec.Cmd {
			cmd := engineCommand(t, dir)
			started <- cmd
			return cmd
		}})
	}()
	ready(t, dir)
	first := <-started
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	if err := insert(t, db, 0, 100, "a"); err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	doubtful := make(chan error, 1)
	go func() { doubtful <- insert(t, db, 100, 200, "b") }()
	select {
	case <-started:
	case <-time.After(3 * time.Minute):
		t.Fatal("the engine that hangs is still the only one")
	}
	if err := <-doubtful; err == nil {
		t.Error("an engine that was stopped acknowledged an insert")
	}
	ready(t, dir)
	if err := insert(t, db, 100, 200, "b"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, db, "SELECT count() FROM audit.events"); got != 200 {
		t.Errorf("%d rows, want 200", got)
	}
	said := logs.FilterMessage("engine exited; restarting").All()
	if len(said) != 1 || !strings.Contains(fmt.Sprint(said[0].ContextMap()["error"]), "the engine does not answer") {
		t.Errorf("logged %v, want that the engine does not answer", said)
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

// TestSuperviseInUse: while another engine has the directory no process is
// started, and once patience ends the error says whose it is.
func TestSuperviseInUse(t *testing.T) {
	dir := shortDir(t)
	e := startEngine(t, dir)
	core, logs := observer.New(zapcore.WarnLevel)
	first, stop := context.WithCancel(t.Context())
	defer stop()
	s := chdb.Supervisor{Dir: dir, Patience: time.Second, Log: zap.New(core), Command: func() *exec.Cmd {
		t.Error("an engine was started")
		stop()
		return engineCommand(t, dir)
	}}
	err := chdb.Supervise(first, s)
	want := fmt.Sprintf("starting the local engine: directory %q is in use by process %d: stop the auditcollector that has it, or choose another local.dir", dir, e.cmd.Process.Pid)
	if err == nil || err.Error() != want {
		t.Errorf("Supervise = %v, want %s", err, want)
	}
	if logs.Len() != 1 {
		t.Errorf("logged %v, want once that it waits", logs.All())
	}
	// It waits for one that ends.
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 10)
	s.Patience, s.Command = time.Minute, func() *exec.Cmd {
		started <- struct{}{}
		return engineCommand(t, dir)
	}
	ended := make(chan error, 1)
	go func() { ended <- chdb.Supervise(ctx, s) }()
	e.stdin.Close()
	<-started
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Supervise = %v", err)
	}
}

func TestCheck(t *testing.T) {
	lib := chdbtest.Library(t)
	for _, tt := range []struct {
		name string
		cfg  chdb.Config
		want string
	}{
		{"what is right", chdb.Config{Dir: "/d", Library: lib}, ""},
		{"a relative directory", chdb.Config{Dir: "d", Library: lib}, `directory "d": want an absolute path`},
		{"a long one", chdb.Config{Dir: "/" + strings.Repeat("d", 100), Library: lib}, "want at most 107"},
		{"little memory", chdb.Config{Dir: "/d", Library: lib, Memory: 1 << 20}, "memory is 1048576 bytes"},
		{"a port for all", chdb.Config{Dir: "/d", Library: lib, Listen: "0.0.0.0:1", Password: func() string { return "x" }}, "want host:port of this machine's loopback"},
		{"no password", chdb.Config{Dir: "/d", Library: lib, Listen: "localhost:1"}, "needs a password"},
		{"no library", chdb.Config{Dir: "/d", Library: filepath.Join(t.TempDir(), "none.so")}, "no libchdb where local.library says: stat "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check = %v, want %q", err, tt.want)
			}
		})
	}
}

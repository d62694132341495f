//go:build unix

package chdb_test

import (
	"syscall"
	"testing"

	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestStopped stops an engine's process and lets it go on, as the suspension of a machine
// or of a container does: that is no end of its standard input.
func TestStopped(t *testing.T) {
	dir := shortDir(t)
	e := startEngine(t, dir)
	chdbtest.Query(t, dir, "CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY n")
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 30 {
			chdbtest.Query(t, dir, "INSERT INTO t VALUES (1)")
		}
	}()
	for going := true; going; {
		if err := e.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(e.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("the engine did not stop: %#x, %v", status, err)
		}
		if err := e.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			going = false
		default:
		}
	}
	chdbtest.Want(t, dir, "SELECT count() FROM t", "30")
}

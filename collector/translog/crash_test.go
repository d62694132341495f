package translog

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// childLog makes the test binary a process that adds to this log.
const childLog = "TEST_TRANSLOG_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childLog); dir != "" {
		if err := appendUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendUntilKilled adds entries from the number that standard input names, and
// prints after each call of Add how many there are.
func appendUntilKilled(dir string) error {
	l, err := Open(context.Background(), Config{Dir: dir, Interval: minInterval, Name: "auditproxy/log/test"})
	if err != nil {
		return err
	}
	go l.Run(context.Background())
	var at int
	if _, err := fmt.Scan(&at); err != nil {
		return err
	}
	for n := 1; ; n = n*7%400 + 1 {
		if err := l.Add(context.Background(), texts(at, at+n)); err != nil {
			return err
		}
		at += n
		fmt.Println(at)
	}
}

// TestKilled kills a process that adds, again and again. Each time the log has
// everything that Add has returned for, in order and once, and is whole.
func TestKilled(t *testing.T) {
	kills := 25
	if testing.Short() {
		kills = 5
	}
	dir := filepath.Join(t.TempDir(), "log")
	key := publicKey(t, dir)
	added := 0
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childLog+"="+dir)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// An at-least-once caller repeats its last entries.
		fmt.Fprintln(in, max(0, added-50))
		kill := time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if n := 0; lines.Err() == nil {
				if _, err := fmt.Sscan(lines.Text(), &n); err == nil {
					added = max(added, n)
				}
			}
		}
		cmd.Wait()
		kill.Stop()
		if cmd.ProcessState.Exited() {
			t.Fatalf("the process ended by itself: %v", cmd.ProcessState)
		}
	}
	l := opened(t, Config{Dir: dir})
	size := int(l.Status().Size)
	covered(t, l, int64(size))
	if size < added {
		t.Errorf("Add has returned for %d entries, the log has %d", added, size)
	}
	same(t, contents(t, dir, key), texts(0, size))
	check(t, dir, key)
	t.Logf("%d entries after %d kills, %d of them acknowledged", size, kills, added)
}

package translog

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// childLog makes the test binary a process that adds to this log.
const childLog = "TEST_TRANSLOG_DIR"

func TestMain(m *testing.M) {
	var core zapcore.Core
	core, library = observer.New(zap.InfoLevel)
	LogLibrary(zap.New(core))
	if dir := os.Getenv(childLog); dir != "" {
		add := appendUntilKilled
		if os.Getenv(childSteps) != "" {
			add = appendSteps
		}
		if err := add(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// childSteps makes it add only what standard input says, without a checkpoint.
const childSteps = "TEST_TRANSLOG_STEPS"

// library has what tessera logs.
var library *observer.ObservedLogs

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

// appendSteps adds the entries that standard input names, and prints a line after each
// call of Add.
func appendSteps(dir string) error {
	l, err := Open(context.Background(), Config{Dir: dir, Interval: maxInterval})
	if err != nil {
		return err
	}
	for {
		var from, to int
		if _, err := fmt.Scan(&from, &to); err != nil {
			return err
		}
		if err := l.Add(context.Background(), texts(from, to)); err != nil {
			return err
		}
		fmt.Println(to)
	}
}

// TestTornAppend checks a log whose process died after it had written entries and
// tiles, and before it had written that the tree has them: other entries take
// their places.
func TestTornAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	key := publicKey(t, dir)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childLog+"="+dir, childSteps+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	step := func(from, to int) {
		t.Helper()
		fmt.Fprintln(in, from, to)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	step(0, 200)
	state := filepath.Join(dir, stateDir, treeState)
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	step(200, 600)
	cmd.Process.Kill()
	cmd.Wait()
	if err := os.WriteFile(state, before, 0o600); err != nil {
		t.Fatal(err)
	}
	l := opened(t, Config{Dir: dir})
	add(t, l, texts(1000, 1500))
	covered(t, l, 700)
	got, want := contents(t, dir, key), append(texts(0, 200), texts(1000, 1500)...)
	for _, list := range [][][]byte{got, want} { // those of one call may come in another order
		n := min(200, len(list))
		slices.SortFunc(list[:n], bytes.Compare)
		slices.SortFunc(list[n:], bytes.Compare)
	}
	same(t, got, want)
	check(t, dir, key)
}

// TestKilled kills a process that adds, again and again. Each time the log has
// everything that Add has returned for, once, and is whole.
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
	// Of the entries of one call, those of a later batch may come first. So the last
	// kill may have left a gap, which the caller fills.
	end := 0
	for _, e := range contents(t, dir, key) {
		n := 0
		if _, err := fmt.Sscanf(string(e), "entry %d", &n); err != nil {
			t.Fatal(err)
		}
		end = max(end, n+1)
	}
	add(t, l, texts(max(0, added-50), end))
	covered(t, l, int64(end))
	got, want := contents(t, dir, key), texts(0, end)
	slices.SortFunc(got, bytes.Compare)
	slices.SortFunc(want, bytes.Compare)
	same(t, got, want)
	check(t, dir, key)
	t.Logf("%d entries after %d kills, %d of them acknowledged", size, kills, added)
}

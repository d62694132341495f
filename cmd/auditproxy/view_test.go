package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/view"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// writeManySpools writes sessions that overlap, some in several files.
func writeManySpools(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		start := after(time.Duration(i) * 20 * time.Second)
		w := startSession(t, dir, start)
		now := start
		for n := range 60 {
			now = now.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			w.done(audit.Record{TS: now, Tool: fmt.Sprintf("tool_%d_%d", i, n), Duration: time.Millisecond})
		}
		if i%2 == 0 {
			w.end(now.Add(time.Second))
		} else {
			w.end(time.Time{})
		}
		w.edit(func(b []byte) []byte { return splitSegments(t, w, b, i) })
	}
	return dir
}

// splitSegments moves the end of a session's first file to n more of them.
func splitSegments(t *testing.T, w *logWriter, b []byte, n int) []byte {
	t.Helper()
	lines := bytes.SplitAfter(b, []byte("\n"))
	share := len(lines) / (n + 1)
	for i := n; i > 0; i-- {
		if err := os.WriteFile(w.segment(i+1), bytes.Join(lines[i*share:], nil), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = lines[:i*share]
	}
	return bytes.Join(lines, nil)
}

// TestLastIsTheEndOfAll compares the two ways in which a log is read.
func TestLastIsTheEndOfAll(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := writeManySpools(t)
	for _, args := range [][]string{{}, {"--tool", "tool_1_*"}, {"-o", "json"}, {"-o", "wide", "--since", "2026-11-20T12:01:00Z"}} {
		all := strings.SplitAfter(runApp(t, dir, append([]string{"log"}, args...)...), "\n")
		all = all[:len(all)-1]
		if len(all) < 50 {
			t.Fatalf("log %q shows %d lines", args, len(all))
		}
		for _, n := range []int{1, 2, 7, 49, len(all), len(all) + 1} {
			got := runApp(t, dir, append([]string{"log", "-n", fmt.Sprint(n)}, args...)...)
			want := strings.Join(all[max(0, len(all)-n):], "")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("log %q -n %d is not the end of all (-end +got):\n%s", args, n, diff)
			}
		}
	}
}

// TestAllInOrder checks that no line is lost or moved on the way.
func TestAllInOrder(t *testing.T) {
	dir := writeManySpools(t)
	out := runApp(t, dir, "log", "--utc", "--kind", "call")
	times := map[string]int{}
	last := ""
	for line := range strings.Lines(out) {
		stamp, tool := line[:23], strings.Fields(line)[3]
		if stamp < last {
			t.Errorf("%s comes after %s", stamp, last)
		}
		last = stamp
		times[tool]++
	}
	for i := range 5 {
		for n := range 60 {
			if tool := fmt.Sprintf("tool_%d_%d", i, n); times[tool] != 1 {
				t.Errorf("%s is shown %d times", tool, times[tool])
			}
		}
	}
}

func TestNoSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"log"}, {"log", "-n", "3"}, {"show", "01"}, {"verify"}} {
		got := runApp(t, dir, args...)
		if !strings.Contains(got, `there is no spool in "$SPOOL"`) || !strings.HasSuffix(got, "exit 2\n") {
			t.Errorf("auditproxy %q without a spool: %s", args, got)
		}
	}
}

func TestSpoolIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, args := range [][]string{{"log"}, {"show", "01"}, {"verify"}, {"recover"}} {
		got := runApp(t, file, args...)
		if !strings.Contains(got, `"$SPOOL" is not a directory: --spool-dir names another`) || !strings.HasSuffix(got, "exit 2\n") {
			t.Errorf("auditproxy %q with a file as its spool: %s", args, got)
		}
	}
}

func TestMetricsAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := runApp(t, t.TempDir(), "ship", "--follow", "--kafka-brokers", "127.0.0.1:1", "--metrics-listen", l.Addr().String())
	if !strings.Contains(got, "stop what listens there, or choose another --metrics-listen") || !strings.HasSuffix(got, "exit 78\n") {
		t.Errorf("auditproxy ship with an address that is in use: %s", got)
	}
}

func TestUnreadableSession(t *testing.T) {
	dir := writeManySpools(t)
	entries, err := view.List(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sessions", entries[0].ID)
	if err := os.Rename(path, filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "away"), path); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"log", "--since", "2026-11-20T12:01:00Z"}, {"log", "-n", "3"}, {"show", "feed"}} {
		got := runApp(t, dir, args...)
		if !strings.Contains(got, "symbolic link") || !strings.HasSuffix(got, "exit 2\n") {
			t.Errorf("auditproxy %q passes over a session: %s", args, got)
		}
	}
	if got := runApp(t, dir, "verify", "--damage-only", "--session", entries[0].ID); !strings.Contains(got, entries[0].ID+" ? ") || !strings.Contains(got, "not read") {
		t.Errorf("auditproxy verify tells the state of a session that it cannot read: %s", got)
	}
}

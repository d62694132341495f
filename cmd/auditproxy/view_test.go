package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestUnreadableSession(t *testing.T) {
	dir := writeManySpools(t)
	entries, err := listSessions(dir)
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
}

// TestFilterFindsAll compares what is decided on the raw line with what is
// decided on the record.
func TestFilterFindsAll(t *testing.T) {
	records := []audit.Record{
		{Kind: audit.KindCall, Method: "tools/call", Tool: "send_keys", Tier: "mutating", Outcome: audit.OutcomeOK},
		{Kind: audit.KindCall, Method: "tools/call", Tool: "a\"b\x1b", Tier: "manage", Outcome: audit.OutcomeError},
		{Kind: audit.KindCall, Method: "resources/read", Target: "x", Outcome: audit.OutcomeUnknown},
		{Kind: audit.KindCall, Method: "tools/call", Tool: "batch", Args: `{"oper\u0061tions":[{"tool":"p\u0069pe"},{"tool":"send_keys"}]}`},
		{Kind: audit.KindCall, Method: "ping", Candidates: []audit.Candidate{{Method: "tools/call", Tool: "pipe"}}},
		{Kind: audit.KindOpen, Method: "tools/call", Tool: "pipe"},
		{Kind: audit.KindGap}, {Kind: audit.KindAnomaly},
	}
	words := []string{"send_keys", "pipe", "p*", "a\"b\x1b", "?", "batch", "mutating", "manage", "ok", "error", "unknown", "open", "tools/call",
		"resources/*", "ping", "gap", "call", "session_start"}
	matches := 0
	for _, r := range records {
		line := audit.AppendRecord(nil, &r)
		for _, w := range words {
			for _, flag := range []string{"--tool", "--method", "--tier", "--outcome", "--kind"} {
				o := logOptions{output: "short"}
				switch list := []string{w}; flag {
				case "--tool":
					o.tool = list
				case "--method":
					o.method = list
				case "--tier":
					o.tier = list
				case "--outcome":
					o.outcome = list
				case "--kind":
					o.kind = list
				}
				v, _ := (&app{stdout: &bytes.Buffer{}}).newView("", o, noon) // a word that is no outcome still makes a filter
				if v.filter.match(&r, recordOutcome(&r)) {
					matches++
					if !v.filter.mayMatch(line) {
						t.Errorf("%s %q passes over %s", flag, w, line)
					}
				}
			}
		}
	}
	if matches < 20 {
		t.Errorf("only %d matches", matches)
	}
}

func FuzzLineTimes(f *testing.F) {
	f.Add(int64(1790000000123456), int64(1234567), "tool")
	f.Add(int64(0), int64(-1), `,"ts":"2026-01-01T00:00:00.000000Z","duration_ms":5,`)
	f.Fuzz(func(t *testing.T, us, duration int64, text string) {
		if us < 0 || us > 2e17 || duration > 1e15 {
			return
		}
		r := audit.Record{Kind: audit.KindCall, TS: time.UnixMicro(us), Tool: text, Duration: time.Duration(duration) * time.Microsecond,
			Args: `{"x":{"ts":"2026-01-01T00:00:00.000000Z","duration_ms":77}}`}
		line := audit.AppendRecord(nil, &r)
		if got, ok := lineTime(line); !ok || got != us {
			t.Fatalf("lineTime(%s) = %d, %v, want %d", line, got, ok, us)
		}
		if got := lineDuration(line); got != max(0, duration) {
			t.Fatalf("lineDuration(%s) = %d, want %d", line, got, duration)
		}
	})
}

func TestStartOf(t *testing.T) {
	for id, want := range map[string]int64{
		sessionID(noon):                        noon.UnixMicro(),
		"019e8b1c-5a2f-4c3e-9d41-6f0a2b8c4d5e": 0, // another version
		"s1":                                   0,
		"zzzzzzzz-5a2f-7c3e-9d41-6f0a2b8c4d5e": 0,
	} {
		if got := startOf(id); got != want {
			t.Errorf("startOf(%q) = %d, want %d", id, got, want)
		}
	}
}

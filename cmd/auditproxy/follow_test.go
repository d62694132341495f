package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// startFollowing runs log -f and returns its lines, without the time.
func startFollowing(t *testing.T, dir string, args ...string) <-chan string {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var stderr strings.Builder
	ended := make(chan int, 1)
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: w, stderr: &stderr,
			env: []string{"HOME=" + dir, "TZ=UTC", "AUDITPROXY_SPOOL_DIR=" + dir}}
		ended <- a.run(ctx, append([]string{"log", "-f"}, args...))
		w.Close()
	}()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			select {
			case lines <- strings.Join(strings.Fields(in.Text())[2:], " "):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		r.Close()
		if code := <-ended; code != 0 {
			t.Errorf("log -f ends with %d: %s", code, stderr.String())
		}
		for range lines {
		}
	})
	return lines
}

func wantLines(t *testing.T, lines <-chan string, want ...string) {
	t.Helper()
	for i := range want {
		select {
		case got := <-lines:
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Fatalf("line %d (-want +got):\n%s", i, diff)
			}
		case <-time.After(ceiling):
			t.Fatalf("line %d does not come: %s", i, want[i])
		}
	}
}

func TestLogFollows(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := t.TempDir()
	old := startSession(t, dir, noon)
	old.done(audit.Record{TS: after(time.Second), Tool: "before"})
	old.end(after(2 * time.Second))
	alive := startSession(t, dir, after(time.Minute))
	running := alive.intent(audit.Record{TS: after(61 * time.Second), Tool: "long"})
	dead := startSession(t, dir, after(2*time.Minute))
	dead.end(time.Time{})

	lines := startFollowing(t, dir, "-n", "2")
	// A running call is shown when it ends, the dead session's start is in the last two.
	wantLines(t, lines, "start libtmux-mcp session "+alive.id, "start libtmux-mcp session "+dead.id)

	running.Outcome, running.Duration = audit.OutcomeOK, time.Second
	alive.record(running)
	wantLines(t, lines, "ok long 1.00s")
	alive.done(audit.Record{TS: after(3 * time.Minute), Tool: "next"})
	wantLines(t, lines, "ok next 0.00ms")

	fresh := startSession(t, dir, after(4*time.Minute))
	wantLines(t, lines, "start libtmux-mcp session "+fresh.id)
	fresh.done(audit.Record{TS: after(4 * time.Minute), Tool: "fresh"})
	wantLines(t, lines, "ok fresh 0.00ms")
	alive.end(after(5 * time.Minute))
	wantLines(t, lines, "end session "+alive.id)
	fresh.end(after(6 * time.Minute))
	wantLines(t, lines, "end session "+fresh.id)
}

func TestLogFollowsOnlyWhatIsAskedFor(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := t.TempDir()
	w := startSession(t, dir, noon)
	for i := range 5 {
		w.done(audit.Record{TS: after(time.Duration(i) * time.Second), Tool: "old"})
	}
	lines := startFollowing(t, dir, "-n", "0", "--tool", "b*")
	// It is following once it shows something: until then each line is new or
	// old to it.
	for i := 0; ; i++ {
		w.done(audit.Record{TS: after(time.Minute), Tool: "a"})
		w.done(audit.Record{TS: after(time.Minute), Tool: fmt.Sprintf("b%d", i)})
		select {
		case got := <-lines:
			if !strings.HasPrefix(got, "ok b") {
				t.Fatalf("log -f shows %q", got)
			}
			w.end(after(time.Hour))
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

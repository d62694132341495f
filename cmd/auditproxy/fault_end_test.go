package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/schemas/audit"
)

// shipped returns the path of the program as it is released: a binary with cgo
// handles signals differently.
func shipped(t *testing.T) string {
	t.Helper()
	return clitest.Build(t, "auditproxy/cmd/auditproxy")
}

// TestEndsAsTheServer checks that the proxy ends as the server did, and that no
// process remains.
func TestEndsAsTheServer(t *testing.T) {
	proxy := shipped(t)
	for end, want := range map[string]syscall.WaitStatus{
		"exit 0": 0, "exit 1": 1 << 8, "exit 3": 3 << 8, "exit 255": 255 << 8,
		"kill 1": 1, "kill 2": 2, "kill 6": 6, "kill 9": 9, "kill 11": 11, "kill 13": 13, "kill 15": 15,
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := wrap(t, setup{proxy: proxy, server: []string{"-calls", "3", "-end", end}})
			for id := 1; id <= 4; id++ {
				w.call(id, 100) // the last one may find no process
			}
			for id := 1; id <= 3; id++ {
				w.next(id)
			}
			// The client still holds the proxy's input open: the server ended
			// by itself.
			if _, err := w.read(); err == nil {
				t.Error("an answer of nobody")
			}
			if sig := want.Signal(); want.Signaled() && !diesBy(sig) {
				want = syscall.WaitStatus(128+sig) << 8
			}
			if got := w.wait(); got&^0x80 != want&^0x80 { // 0x80: a core was dumped
				t.Errorf("status %#x, want %#x", got, want)
			}
			pid, _ := w.executed()
			gone(t, pid)
			w.checkTrail()
		})
	}
}

// TestSignalsToTheProxy sends a signal to a proxy whose server obeys it, or
// ignores it and has a child of its own.
func TestSignalsToTheProxy(t *testing.T) {
	proxy := shipped(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		for _, stubborn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%t", sig, stubborn), func(t *testing.T) {
				t.Parallel()
				s := setup{proxy: proxy, server: []string{"-hold", "1"}}
				want := sig
				if stubborn {
					s.server = append(s.server, "-ignore", "-child")
					if want != syscall.SIGQUIT {
						want = syscall.SIGKILL
					}
				}
				w := wrap(t, s)
				if stubborn {
					_, err := w.read() // it ignores signals from here on
					must(t, err)
				}
				must(t, w.call(1, 100))
				eventually(t, "the server does not get the call", func() bool {
					_, executed := w.executed()
					return len(executed) == 1
				})
				must(t, w.cmd.Process.Signal(sig))
				if status := w.wait(); status.Signal() != want && !(sig == syscall.SIGQUIT && status.ExitStatus() == 2) {
					t.Errorf("status %#x, want signal %d", status, want)
				}
				pid, _ := w.executed()
				gone(t, pid)
				if list := w.checkTrail().finals[1]; list[0].ErrorType != audit.ErrNoResponse {
					t.Errorf("the open call ended as %q, want %q", list[0].ErrorType, audit.ErrNoResponse)
				}
			})
		}
	}
}

// TestIgnoredSignals ignores signals for the proxy, as nohup and a shell's background
// jobs do. The proxy and its server ignore them, as a server does that is started so.
func TestIgnoredSignals(t *testing.T) {
	const server = `for sig in HUP INT; do kill -$sig $PPID; kill -$sig $$; done; exec cat`
	w := wrap(t, setup{proxy: shipped(t), before: []string{"/bin/sh", "-c", `trap "" HUP INT; exec "$@"`, "sh"}, argv: []string{"/bin/sh", "-c", server}})
	const line = `{"jsonrpc":"2.0","method":"notifications/echoed"}` + "\n"
	must(t, w.send([]byte(line)))
	if got, err := w.out.ReadString('\n'); got != line || err != nil {
		t.Errorf("read %q, error %v, want %q", got, err, line)
	}
	if status := w.end(); status != 0 {
		t.Errorf("status %#x, want 0\n%s", status, &w.stderr)
	}
}

// TestClientGone closes the client's ends one after the other. No process of
// the server remains, even if it ignores the end of its input.
func TestClientGone(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, out  bool // what the client closes
		stubborn bool
		want     syscall.WaitStatus
	}{
		{"input", true, false, false, 0},
		{"both", true, true, false, 0},
		{"both, stubborn", true, true, true, syscall.WaitStatus(syscall.SIGKILL)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setup{server: []string{"-hold", "1"}}
			if c.stubborn {
				s.server = append(s.server, "-ignore", "-child")
			}
			w := wrap(t, s)
			must(t, w.call(1, 100))
			eventually(t, "the server does not get the call", func() bool {
				_, executed := w.executed()
				return len(executed) == 1
			})
			if c.out {
				must(t, w.outEnd.Close())
			}
			must(t, w.in.Close())
			if status := w.wait(); status != c.want {
				t.Errorf("status %#x, want %#x\n%s", status, c.want, &w.stderr)
			}
			pid, _ := w.executed()
			gone(t, pid)
			if list := w.checkTrail().finals[1]; list[0].ErrorType != audit.ErrNoResponse {
				t.Errorf("the open call ended as %q, want %q", list[0].ErrorType, audit.ErrNoResponse)
			}
		})
	}
}

// TestClientReadsNoMore closes only the client's reading end. Until the server
// notices, calls still reach it, as without a proxy, and have records.
func TestClientReadsNoMore(t *testing.T) {
	t.Parallel()
	w := wrap(t, setup{})
	w.answered(1, 100)
	must(t, w.outEnd.Close())
	for id := 2; id <= 20; id++ {
		if w.call(id, 100) != nil {
			break
		}
	}
	must(t, w.in.Close())
	w.wait()
	pid, _ := w.executed()
	gone(t, pid)
	w.checkTrail()
}

// TestOutputNotRead has a server end before the client has read its output. What
// is lost after the time for that is reported; what was read in time is not.
func TestOutputNotRead(t *testing.T) {
	t.Parallel()
	const message = "the client did not read all of the server's output in time"
	for drain, reads := range map[string]bool{"30s": true, "100ms": false} {
		w := wrap(t, setup{argv: []string{"/bin/sh", "-c", `printf '%0200000d\n' 1`}, flags: []string{"--drain", drain}})
		if reads {
			if n, err := io.Copy(io.Discard, w.outEnd); err != nil || n != 200_001 {
				t.Errorf("the client read %d bytes, %v", n, err)
			}
		}
		w.wait()
		if got := strings.Contains(w.stderr.String(), message); got == reads {
			t.Errorf("the client reads: %v, and the log has\n%s", reads, &w.stderr)
		}
	}
}

// TestLastAnswer is about a server that answers and ends: its answer
// arrives, each time.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	runs := 200
	if soak() {
		runs = 1000
	}
	proxy := program(t)
	for n := range runs {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			w := wrap(t, setup{proxy: proxy, server: []string{"-calls", "1"}})
			a := w.answered(3*n, 1+n*n%100_000) // every third answer is as long as the call
			if len(a.Result.Content) != 1 {
				t.Fatalf("answer %+v", a)
			}
			if status := w.end(); status != 0 {
				t.Errorf("status %#x", status)
			}
			if r := readTrail(t, w.spool).finals[3*n]; len(r) != 1 || r[0].Outcome != audit.OutcomeOK {
				t.Errorf("records %+v", r)
			}
		})
	}
}

// TestLastAnswerWithoutDrain has a server that answers and ends, and gives the
// end no time: its answer arrives, and the session is closed. A busy machine
// may need longer than that for the last sync, but not each time.
func TestLastAnswerWithoutDrain(t *testing.T) {
	proxy := shipped(t)
	for _, drain := range []string{"0", "1ns"} {
		quiet := 0
		for range 20 {
			w := wrap(t, setup{proxy: proxy, flags: []string{"--drain", drain}, server: []string{"-calls", "1"}})
			w.answered(1, 100)
			if status := w.end(); status != 0 {
				t.Fatalf("drain %s: status %#x\n%s", drain, status, &w.stderr)
			}
			if w.stderr.Len() == 0 {
				quiet++
			}
		}
		if quiet == 0 {
			t.Errorf("drain %s: no session was synced and closed", drain)
		}
	}
}

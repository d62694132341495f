package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// flood is a server that answers its first call once it has reported its
// process id, and then writes without end.
const flood = `echo '{"jsonrpc":"2.0","method":"'$$'"}'
read call; echo '{"jsonrpc":"2.0","id":1,"result":{}}'
exec yes '{"jsonrpc":"2.0","method":"notifications/x"}'`

// untilTold ends once the file exists whose name is the first argument.
const untilTold = `until [ -e "$1" ]; do sleep 0.05; done`

// unread makes the client's end of w as small as possible, so that it holds
// little of the server's output.
func unread(t *testing.T, w *wrapped) {
	t.Helper()
	_, err := unix.FcntlInt(w.outEnd.Fd(), unix.F_SETPIPE_SZ, 4096)
	must(t, err)
}

// full waits until the proxy writes no more to a client that does not read. A
// pipe written in pieces is full with less in it than its size.
func full(t *testing.T, client int) {
	t.Helper()
	last := 0
	eventually(t, "the client's pipe does not become full", func() bool {
		<-time.After(200 * time.Millisecond)
		n, err := unix.IoctlGetInt(client, unix.TIOCINQ)
		must(t, err)
		same := n == last && n > 0
		last = n
		return same
	})
}

// TestClientNeverReads has a client that does not read: the server is stopped,
// memory is bounded, and what the proxy has read from the server has its record
// before the client reads a byte of it.
func TestClientNeverReads(t *testing.T) {
	t.Parallel()
	// One write: the answer is behind more than the client's pipe holds.
	script := `read call; printf '{"jsonrpc":"2.0","method":"%08000d"}\n{"jsonrpc":"2.0","id":1,"result":{}}\n' 1
exec yes '{"jsonrpc":"2.0","method":"notifications/x"}'`
	w := wrap(t, setup{proxy: shipped(t), argv: []string{"/bin/sh", "-c", script}})
	unread(t, w)
	must(t, w.send([]byte(callOne)))
	eventually(t, "the answer has no record before the client reads", func() bool {
		return strings.Contains(all(t, w.spool), `"outcome":"ok"`)
	})
	full(t, int(w.outEnd.Fd()))
	server := children(t, w)
	// A pipe holds the server back: it sleeps, and nothing moves.
	eventually(t, "the server is not stopped", func() bool {
		return len(server) == 1 && stopped(t, server[0])
	})
	if rss := procStatus(t, w, "VmHWM"); rss > 64*1024 {
		t.Errorf("%d KiB of memory, want at most 64 MiB", rss)
	}
	must(t, w.cmd.Process.Signal(syscall.SIGTERM))
	w.wait()
}

// children are the processes that the proxy started.
func children(t *testing.T, w *wrapped) []string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", w.cmd.Process.Pid))
	must(t, err)
	var pids []string
	for _, name := range names {
		pids = append(pids, strings.Fields(readFile(t, name))...)
	}
	return pids
}

// stopped reports whether a process sleeps and has written all that it could:
// proc_pid_io(5) counts the same bytes twice.
func stopped(t *testing.T, pid string) bool {
	t.Helper()
	before := readFile(t, "/proc/"+pid+"/io")
	<-time.After(100 * time.Millisecond)
	return before == readFile(t, "/proc/"+pid+"/io") && strings.Contains(readFile(t, "/proc/"+pid+"/status"), "State:\tS")
}

// floodUntilClosed is flood, but ends with its input.
const floodUntilClosed = `echo '{"jsonrpc":"2.0","method":"'$$'"}'
read call; echo '{"jsonrpc":"2.0","id":1,"result":{}}'
yes '{"jsonrpc":"2.0","method":"notifications/x"}' &
cat >/dev/null; kill $!`

// TestShutdownOutputBlocked ends a session in each way while the client does not
// read: the proxy ends, the server with it, and the record is complete. That the
// client closes its output is not an end: the server may have answers to write
// that the client reads later, as it could without a proxy.
func TestShutdownOutputBlocked(t *testing.T) {
	proxy := shipped(t)
	const closing = syscall.Signal(-1) // the client closes its output
	ignore := "trap '' TERM INT HUP\n"
	for _, c := range []struct {
		name    string
		script  string
		signals []syscall.Signal
		flags   []string
		want    string // error type of a second call, without an answer
	}{
		{"SIGTERM", flood, []syscall.Signal{syscall.SIGTERM}, nil, audit.ErrNoResponse},
		{"SIGTERM twice", flood, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, nil, audit.ErrNoResponse},
		{"SIGINT", flood, []syscall.Signal{syscall.SIGINT}, nil, audit.ErrNoResponse},
		{"SIGHUP", flood, []syscall.Signal{syscall.SIGHUP}, nil, audit.ErrNoResponse},
		{"a server that ignores signals", ignore + flood, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, nil, audit.ErrNoResponse},
		{"always durable", flood, []syscall.Signal{syscall.SIGTERM}, []string{"--durability", "always"}, audit.ErrNoResponse},
		{"nothing left of drain", flood, []syscall.Signal{syscall.SIGTERM}, []string{"--drain", "1ns"}, audit.ErrNoResponse},
		{"the client closes, then SIGTERM", flood, []syscall.Signal{closing, syscall.SIGTERM}, nil, audit.ErrNoResponse},
		{"the client closes and the server exits", floodUntilClosed, []syscall.Signal{closing}, nil, audit.ErrNoResponse},
		{"the server exits", strings.Replace(flood, "exec yes", "yes", 1) + " &\n" + untilTold + "; kill $!", nil, nil, audit.ErrServerExited},
		{"a descendant holds the pipes", strings.Replace(flood, "exec yes", "(trap '' HUP; exec setsid yes) 2>/dev/null & "+untilTold+"; #", 1), nil, nil, audit.ErrServerExited},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tell := filepath.Join(t.TempDir(), "tell")
			w := wrap(t, setup{proxy: proxy, flags: c.flags, argv: []string{"/bin/sh", "-c", c.script, "sh", tell}})
			unread(t, w)
			must(t, w.send([]byte(callOne)))
			eventually(t, "the first answer has no record", func() bool {
				return strings.Contains(all(t, w.spool), `"outcome":"ok"`)
			})
			full(t, int(w.outEnd.Fd()))
			must(t, w.send([]byte(strings.Replace(callOne, `"id":1`, `"id":2`, 1))))
			eventually(t, "the second call has no intent", func() bool { return recorded(t, w.spool, 2) })
			must(t, os.WriteFile(tell, nil, 0o600))
			for _, sig := range c.signals {
				if sig == closing {
					must(t, w.in.Close())
					continue
				}
				must(t, w.cmd.Process.Signal(sig))
			}
			w.wait()
			tr := readTrail(t, w.spool)
			if n := len(tr.records); n == 0 || tr.records[n-1].Kind != audit.KindSessionEnd {
				t.Errorf("records %+v, want session_end at the end", tr.records)
			}
			one, two := tr.finals[1], tr.finals[2]
			if len(one) != 1 || one[0].Outcome != audit.OutcomeOK || len(two) != 1 || two[0].ErrorType != c.want {
				t.Errorf("records %+v %+v, want ok and %s", one, two, c.want)
			}
		})
	}
}

// TestShutdownInputBlocked ends a session whose server reads no input while a
// call is on its way to it.
func TestShutdownInputBlocked(t *testing.T) {
	proxy := shipped(t)
	for name, script := range map[string]string{
		"signal":     "exec sleep 100",
		"exit":       untilTold,
		"descendant": "setsid sleep 100 2>/dev/null & " + untilTold,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell := filepath.Join(t.TempDir(), "tell")
			w := wrap(t, setup{proxy: proxy, argv: []string{"/bin/sh", "-c", script, "sh", tell}})
			go w.call(1, 4<<20) // ends with the proxy
			eventually(t, "the call has no intent", func() bool { return recorded(t, w.spool, 1) })
			must(t, os.WriteFile(tell, nil, 0o600))
			if name == "signal" {
				must(t, w.cmd.Process.Signal(syscall.SIGTERM))
			}
			w.wait()
			tr := readTrail(t, w.spool)
			if n := len(tr.records); n == 0 || tr.records[n-1].Kind != audit.KindSessionEnd || len(tr.finals[1]) != 1 {
				t.Errorf("records %+v, want the call's and session_end", tr.records)
			}
		})
	}
}

// TestShutdownSyncHangs ends a session whose syncs never return, with a client
// that does not read.
func TestShutdownSyncHangs(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"intent", "always"} {
		t.Run(durability, func(t *testing.T) {
			w := wrap(t, setup{env: []string{envHang + "=1"}, flags: []string{"--durability", durability}, argv: []string{"/bin/sh", "-c", flood}})
			unread(t, w)
			must(t, w.send([]byte(callOne)))
			if durability == "intent" {
				full(t, int(w.outEnd.Fd()))
			}
			eventually(t, "the call has no intent", func() bool { return recorded(t, w.spool, 1) })
			must(t, w.cmd.Process.Signal(syscall.SIGTERM))
			w.wait()
			if !strings.Contains(all(t, w.spool), `"kind":"session_end"`) {
				t.Error("the session has no end")
			}
		})
	}
}

// TestShutdownOutputCannotBeInterrupted has a client's end that must not be
// made non-blocking: a socket that standard error shares.
func TestShutdownOutputCannotBeInterrupted(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	ours, theirs := fds[0], fds[1]
	defer unix.Close(ours)
	w := prepare(t, setup{proxy: shipped(t), argv: []string{"/bin/sh", "-c", flood}})
	f := os.NewFile(uintptr(theirs), "client")
	w.cmd.Stdout, w.cmd.Stderr = f, f
	must(t, w.cmd.Start())
	f.Close()
	w.started()
	must(t, w.send([]byte(callOne)))
	eventually(t, "the answer has no record", func() bool { return strings.Contains(all(t, w.spool), `"outcome":"ok"`) })
	full(t, ours)
	must(t, w.cmd.Process.Signal(syscall.SIGTERM))
	w.wait()
	tr := readTrail(t, w.spool)
	if n := len(tr.records); n == 0 || tr.records[n-1].Kind != audit.KindSessionEnd {
		t.Errorf("records %+v, want session_end at the end", tr.records)
	}
}

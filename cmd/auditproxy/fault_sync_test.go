package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// strace runs a program with its system calls tampered with; see "Tampering"
// in strace(1). It keeps to the descriptors of the program itself: the server
// is not followed over its execve.
func strace(t *testing.T, inject string) []string {
	t.Helper()
	path := dev.Command(t, "strace")
	return []string{path, "-f", "--seccomp-bpf", "-qq", "-o", filepath.Join(t.TempDir(), "strace"), "-e", "trace=fdatasync,fsync", "-e", "inject=" + inject}
}

// withKey returns a spool that has a key: making one waits for its sync.
func withKey(t *testing.T, proxy string) string {
	t.Helper()
	w := wrap(t, setup{proxy: proxy})
	if status := w.end(); status != 0 {
		t.Fatalf("status %#x\n%s", status, &w.stderr)
	}
	return w.spool
}

// TestSyncFails makes every sync fail: calls are forwarded, their records are
// marked as not durable, and are there afterwards.
func TestSyncFails(t *testing.T) {
	proxy := shipped(t)
	for _, durability := range []string{"intent", "interval", "always"} {
		for _, policy := range []string{"deny", "allow"} {
			t.Run(durability+"/"+policy, func(t *testing.T) {
				t.Parallel()
				w := wrap(t, setup{
					proxy: proxy, spool: withKey(t, proxy),
					before: strace(t, "fdatasync,fsync:error=EIO"),
					flags:  []string{"--durability", durability, "--on-audit-failure", policy},
				})
				for id := 1; id <= 50; id++ {
					if w.answered(id, 100).refused() {
						t.Errorf("call %d was refused", id)
					}
				}
				if status := w.end(); status != 0 {
					t.Errorf("status %#x\n%s", status, &w.stderr)
				}
				w.recoverDead() // none of it is known to be synced
				tr := w.checkTrail()
				for id, list := range tr.finals {
					if r := list[0]; r.Outcome != audit.OutcomeOK || r.NotDurable != (durability != "interval") {
						t.Errorf("call %d: outcome %q, durable %t", id, r.Outcome, !r.NotDurable)
					}
				}
				if len(tr.finals) != 50 {
					t.Errorf("%d calls have a record, want 50", len(tr.finals))
				}
			})
		}
	}
}

// TestDirectoriesCannotBeSynced has a file system that syncs files but rejects
// the sync of a directory, as some do. That is not a failed write: more than
// may wait for a sync is recorded, durable, from the first start on.
func TestDirectoriesCannotBeSynced(t *testing.T) {
	for _, errno := range []string{"EINVAL", "EOPNOTSUPP", "ENOSYS"} {
		t.Run(errno, func(t *testing.T) {
			t.Parallel()
			w := wrap(t, setup{proxy: shipped(t), before: strace(t, "fsync:error="+errno), flags: []string{"--sync-wait", "10s"}})
			text := strings.Repeat(`"`+strings.Repeat("a", 150)+`",`, 80)
			const calls = 1200 // of 12 KiB
			for id := 1; id <= calls; id++ {
				must(t, w.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work_%d","arguments":{"l":[%s1]}}}`+"\n", id, id%5, text)))
				if w.next(id).refused() {
					t.Fatalf("call %d is refused", id)
				}
			}
			if status := w.end(); status != 0 {
				t.Errorf("status %#x\n%s", status, &w.stderr)
			}
			tr := w.checkTrail()
			for id, list := range tr.finals {
				if list[0].NotDurable {
					t.Errorf("call %d is not durable", id)
				}
			}
			if n := strings.Count(w.stderr.String(), "directories cannot be synced"); len(tr.finals) != calls || n != 1 {
				t.Errorf("%d records of %d calls; the log says %d times what is not promised:\n%s", len(tr.finals), calls, n, &w.stderr)
			}
		})
	}
}

// TestSyncHangs makes syncs hang: a call is forwarded without one and its
// record shows that, a ping behind it is not delayed either, and the proxy
// still ends.
func TestSyncHangs(t *testing.T) {
	t.Parallel()
	w, _ := quickest(t, 30)
	for id := 1000; id < 1030; id++ {
		must(t, w.ping(id))
		w.next(id)
	}
	if status := w.end(); status != 0 {
		t.Errorf("status %#x\n%s", status, &w.stderr)
	}
	w.recoverDead()
	for id, list := range w.checkTrail().finals {
		if list[0].Outcome != audit.OutcomeOK || !list[0].NotDurable {
			t.Errorf("call %d: outcome %q, durable %t", id, list[0].Outcome, !list[0].NotDurable)
		}
	}
}

// quickest makes calls through a proxy whose syncs never return, each with a
// ping behind it, and returns how long the quickest call took, end to end.
func quickest(t *testing.T, calls int, flags ...string) (*wrapped, time.Duration) {
	t.Helper()
	w := wrap(t, setup{env: []string{envHang + "=1"}, flags: flags})
	least := ceiling
	for id := 1; id < 2*calls; id += 2 {
		sent := time.Now()
		must(t, w.call(id, 100))
		must(t, w.ping(id+1))
		w.next(id)
		least = min(least, time.Since(sent))
		w.next(id + 1)
	}
	return w, least
}

// TestSlowSyncDelaysByDefault compares the delay of a call whose sync hangs
// with the delay under five times the default: no call can be quicker than its
// wait, and of many one is hardly longer. A busy machine adds to both.
func TestSlowSyncDelaysByDefault(t *testing.T) {
	t.Parallel()
	const byDefault = 20 * time.Millisecond
	w, short := quickest(t, 40)
	w.end()
	w, long := quickest(t, 10, "--sync-wait", (5 * byDefault).String())
	w.end()
	if short < byDefault || long < 5*byDefault || short >= long {
		t.Errorf("the quickest call took %v, and %v with five times the wait; want at least %v, and less than that", short, long, byDefault)
	}
}

// TestSpoolBehind calls until too much waits for a sync that does not return:
// then calls are refused and pings are forwarded.
func TestSpoolBehind(t *testing.T) {
	t.Parallel()
	w := wrap(t, setup{flags: []string{"--durability", "interval"}, env: []string{envHang + "=1"}})
	refused := 0
	for id := 1; refused == 0; {
		for range 50 {
			must(t, w.call(id, 100))
			id++
		}
		must(t, w.ping(id))
		id++
		for range 51 {
			a, err := w.read()
			if err != nil {
				t.Fatalf("after %d calls: %v", id, err)
			}
			if a.refused() {
				refused++
			}
		}
		if id > 100_000 {
			t.Fatal("100 000 calls wait for a sync")
		}
	}
	for id := 200_000; id < 200_005; id++ {
		must(t, w.ping(id))
		w.next(id)
	}
	if status := w.end(); status != 0 {
		t.Errorf("status %#x\n%s", status, &w.stderr)
	}
	w.recoverDead()
	for id, list := range w.checkTrail().finals {
		if list[0].Outcome != audit.OutcomeOK {
			t.Errorf("call %d: outcome %q", id, list[0].Outcome)
		}
	}
}

// TestAlwaysSyncsBeforeTheAnswer checks the system calls of a proxy with
// durability: always, through a whole call: the line about the call, a sync,
// the call, the answer's record, a sync, the answer.
func TestAlwaysSyncsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	proxy := shipped(t)
	trace := filepath.Join(t.TempDir(), "trace")
	path := dev.Command(t, "strace")
	w := wrap(t, setup{
		proxy: proxy, spool: withKey(t, proxy), argv: []string{"cat"},
		before: []string{path, "-f", "-qq", "-y", "-s", "4096", "-o", trace, "-e", "trace=write,fdatasync,fsync"},
		flags:  []string{"--durability", "always"},
	})
	const call, reply = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, line := range []string{call, reply} {
		must(t, w.send([]byte(line+"\n")))
		_, err := w.out.ReadString('\n')
		must(t, err)
	}
	if status := w.end(); status != 0 {
		t.Errorf("status %#x\n%s", status, &w.stderr)
	}
	var events []string
	elsewhere := map[string]bool{} // threads that sync another file than the records'
	for line := range strings.Lines(readFile(t, trace)) {
		text := strings.ReplaceAll(line, `\"`, `"`)
		thread, _, _ := strings.Cut(text, " ")
		if strings.Contains(text, "sync(") {
			elsewhere[thread] = strings.Contains(text, "/evidence")
		}
		_, args, _ := strings.Cut(text, "write(")
		switch {
		case strings.Contains(args, `"line":"intent"`):
			events = append(events, "intent")
		case strings.Contains(args, `"kind":"call"`):
			events = append(events, "record")
		case strings.Contains(args, call):
			events = append(events, "call")
		case strings.Contains(args, reply):
			events = append(events, "answer")
		case strings.Contains(text, "sync") && !elsewhere[thread] && strings.HasSuffix(text, "= 0\n") && len(events) > 0 && events[len(events)-1] != "sync":
			events = append(events, "sync") // it returned
		}
	}
	// cat writes its input, and so does the proxy: a call, and an answer, are
	// written to the server, by the server, and to the client.
	want := []string{"intent", "sync", "call", "call", "call", "answer", "answer", "record", "sync", "answer", "sync"}
	if !slices.Equal(events, want) {
		t.Errorf("events are %q, want %q", events, want)
	}
}

// TestNoisyServer has a server write to its standard error, while the proxy
// logs there too: each stream gets its own output.
func TestNoisyServer(t *testing.T) {
	const noise = "Traceback: \xff\xfe\x1b[31m {\"jsonrpc\"\r\n\x00 no line feed at the end"
	script := filepath.Join(t.TempDir(), "noise")
	must(t, os.WriteFile(script, []byte(noise), 0o600))
	for _, format := range []string{"console", "json"} {
		t.Run(format, func(t *testing.T) {
			w := wrap(t, setup{
				spool: "/dev/null/spool",
				flags: []string{"--log-level", "debug", "--log-format", format, "--on-audit-failure", "allow"},
				argv:  []string{"/bin/sh", "-c", `cat "$0" >&2; exec cat`, script},
			})
			must(t, w.send([]byte(callOne)))
			w.in.Close()
			out, err := io.ReadAll(w.out)
			must(t, err)
			w.wait()
			if string(out) != callOne {
				t.Errorf("standard output is %q, want the server's, %q", out, callOne)
			}
			if log := w.stderr.String(); strings.Count(log, noise) != 1 || !strings.Contains(log, "nothing is recorded") {
				t.Errorf("standard error is %q, want the server's %q and the proxy's own log", log, noise)
			}
		})
	}
}

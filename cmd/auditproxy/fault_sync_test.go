package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// strace runs a program with its system calls tampered with; see "Tampering"
// in strace(1). It keeps to the descriptors of the program itself: the server
// is not followed over its execve.
func strace(t *testing.T, inject string) []string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("%v: run make tools", err)
	}
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

// TestSyncFails lets every sync fail: calls go on, their records say that
// they are not durable, and are there afterwards.
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
				w.recoverDead() // nothing of it is known to be synced
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

// TestDirectoriesCannotBeSynced has a file system that syncs files and says of
// directories that it cannot, as some do. That is no write that failed: more
// than may wait for a sync is recorded, durable, from the first start on.
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

// TestSyncHangs lets no sync return: a call is passed on without it and says
// so, a ping behind it is not kept either, and the proxy ends all the same.
func TestSyncHangs(t *testing.T) {
	t.Parallel()
	w := wrap(t, setup{env: []string{envHang + "=1"}})
	for id := 1; id <= 60; id += 2 {
		must(t, w.call(id, 100))
		must(t, w.ping(id+1))
		w.next(id)
		w.next(id + 1)
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

// TestSpoolBehind calls until too much waits for a sync that does not return:
// then calls are refused and pings pass.
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

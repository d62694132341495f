package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestDiskFull fills the spool's disk while calls are open and frees it again.
// The open calls get their final records; calls refused or not recorded
// meanwhile are counted in one gap record; recording resumes by itself.
func TestDiskFull(t *testing.T) {
	for _, policy := range []string{"deny", "allow"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			room := filepath.Join(t.TempDir(), "room")
			w := wrap(t, setup{
				flags:  []string{"--on-audit-failure", policy},
				env:    []string{envRoom + "=" + room},
				server: []string{"-hold", "5"},
			})
			for id := 1; id <= 5; id++ {
				must(t, w.call(id, 100))
			}
			eventually(t, "the server does not get the first calls", func() bool {
				_, executed := w.executed()
				return len(executed) == 5
			})
			must(t, takeRoom(room, "bytes"))
			refused := 0
			full := func(id int) {
				a := w.answered(id, 100)
				if a.refused() != (policy == "deny") {
					t.Errorf("call %d on a full disk: refused is %t", id, a.refused())
				}
				if a.refused() {
					refused++
				}
			}
			for id := 6; id <= 15; id++ {
				full(id)
			}
			must(t, w.ping(16))
			w.next(16)
			for id := 1; id <= 5; id++ {
				w.next(id)
			}
			// Now the room kept for final records is taken.
			for id := 17; id <= 26; id++ {
				full(id)
			}
			must(t, os.Remove(room))
			last := 26
			// Only the spool shows when recording has resumed.
			eventually(t, "recording does not resume", func() bool {
				last++
				if w.answered(last, 100).refused() {
					refused++
				}
				return recorded(t, w.spool, last)
			})
			if status := w.end(); status != 0 {
				t.Errorf("status %#x\n%s", status, &w.stderr)
			}
			checkGap(t, w, policy, refused, last)
		})
	}
}

// recorded reports whether the spool of a running proxy has an intent of id.
func recorded(t *testing.T, dir string, id int) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "sessions", "*", "*.jsonl"))
	must(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) { // a new session's directory is renamed
			must(t, err)
		}
		if strings.Contains(string(b), fmt.Sprintf(`"request_id":"%d"`, id)) {
			return true
		}
	}
	return false
}

// checkGap compares the gap record with the calls 1 to last, of which 16 was a
// ping.
func checkGap(t *testing.T, w *wrapped, policy string, refused, last int) {
	t.Helper()
	_, executed := w.executed()
	if got := len(executed) + refused; got != last-1 {
		t.Errorf("%d calls executed or refused of %d", got, last-1)
	}
	tr := w.checkTrail()
	gaps := tr.kind(audit.KindGap)
	if len(gaps) != 1 {
		t.Fatalf("%d gap records, want one", len(gaps))
	}
	g := gaps[0]
	if got := len(tr.finals) + int(g.Count); got != last-1 {
		t.Errorf("%d calls with a record or in the gap of %d", got, last-1)
	}
	if g.Denied != int64(refused) || policy == "deny" && g.Count != g.Denied {
		t.Errorf("gap of %d, %d denied; %d were refused", g.Count, g.Denied, refused)
	}
	for id := 1; id <= 5; id++ {
		if list := tr.finals[id]; len(list) != 1 || list[0].Outcome != audit.OutcomeOK {
			t.Errorf("call %d, open when the disk was full, has no record of its answer", id)
		}
	}
}

package spool

import (
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"
)

// A lookupFS counts the names that are looked up.
type lookupFS struct {
	disk.FS
	n atomic.Int64
}

func (f *lookupFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f.n.Add(1)
	return f.FS.OpenFile(name, flag, perm)
}

func (f *lookupFS) Lstat(name string) (disk.Info, error) {
	f.n.Add(1)
	return f.FS.Lstat(name)
}

func (f *lookupFS) ReadDir(name string) ([]string, error) {
	f.n.Add(1)
	return f.FS.ReadDir(name)
}

// TestListMany lists so many sessions that several goroutines read them: all
// are returned in the order of their ids, each costs a few look-ups, and one
// that cannot be read does not hide the others.
func TestListMany(t *testing.T) {
	const sessions = 3 * perLooker
	f := &lookupFS{FS: newMemFS()}
	var want []string
	for i := range sessions {
		id := fmt.Sprintf("session-%03d", i)
		want = append(want, id)
		s, err := Create(Config{Dir: "/spool", FS: f}, id)
		must(t, err)
		if i%3 > 0 {
			appendLines(t, s, boundary(audit.KindSessionEnd, 0), true)
		}
		must(t, s.Close())
	}
	must(t, f.Remove("/spool/sessions/session-100/lock"))
	f.n.Store(0)
	var looked atomic.Int64
	entries, err := list(f, "/spool", func(n int64) { looked.Add(n) })
	must(t, err)
	var got []string
	for i, e := range entries {
		got = append(got, e.ID)
		state := Ended
		if i%3 == 0 {
			state = Dead
		}
		if broken := e.ID == "session-100"; (e.Err != nil) != broken || !broken && e.State != state {
			t.Errorf("%s is %v, error %v; want %v", e.ID, e.State, e.Err, state)
		}
	}
	if !slices.Equal(got, want) || looked.Load() != sessions {
		t.Errorf("list = %q after looking at %d", got, looked.Load())
	}
	// The directory, its names, the segment's size and its end, durable, lock.
	if n := f.n.Load(); n > 6*sessions+10 {
		t.Errorf("%d look-ups for %d sessions", n, sessions)
	}
}

package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConsumerRewind reads everything again without moving the cursor, also in the
// process that continues after it, and what is damaged then.
func TestConsumerRewind(t *testing.T) {
	s := create(t, Config{})
	for n := range 3 {
		appendLines(t, s, final(n, uint64(n)), true)
	}
	must(t, s.Close())
	c, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	first := drain(t, c.Next)
	must(t, c.Commit(first[1].End()))
	must(t, c.Rewind())
	if diff := cmp.Diff(texts(first), texts(drain(t, c.Next))); diff != "" || len(first) != 3 {
		t.Errorf("%d records; after Rewind (-want +got):\n%s", len(first), diff)
	}
	if c.Shipped() != first[1].End() {
		t.Errorf("Shipped = %v, want %v", c.Shipped(), first[1].End())
	}
	must(t, c.Close())
	name := filepath.Join(s.c.Dir, sessionsDir, testID, segmentName(1))
	b, err := os.ReadFile(name)
	must(t, err)
	b[first[1].End().Offset-10] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	next, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	defer next.Close()
	rest := drain(t, next.Next)
	must(t, next.Rewind())
	if again := drain(t, next.Next); len(rest) != 1 || len(again) != 3 || again[1].Damage == Intact {
		t.Errorf("%d records behind the cursor, %+v after Rewind, want 1, and 3 with a damaged one", len(rest), again)
	}
}

// TestConsumerSetAside checks that a line is kept once, in a file outside the
// session, also after a failure.
func TestConsumerSetAside(t *testing.T) {
	s := create(t, Config{})
	appendLines(t, s, final(1, 0), true)
	must(t, s.Close())
	c, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	defer c.Close()
	var paths []string
	for _, line := range []string{"one", "two", "one"} {
		path, err := c.SetAside([]byte(line))
		must(t, err)
		paths = append(paths, path)
		if kept, err := os.ReadFile(path); err != nil || string(kept) != line+"\n" {
			t.Errorf("%q holds %q, %v, want %q", path, kept, err, line)
		}
	}
	if paths[0] != paths[2] || paths[0] == paths[1] {
		t.Errorf("the lines went to %q, want the same line in the same file", paths)
	}
	files, err := os.ReadDir(filepath.Join(s.c.Dir, asideDir))
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v, want 2", len(files), err)
	}
	if i, err := os.Stat(paths[0]); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", i.Mode(), err)
	}

	must(t, os.Chmod(filepath.Join(s.c.Dir, asideDir), 0o777))
	if path, err := c.SetAside([]byte("three")); err == nil {
		t.Errorf("SetAside wrote %q, where others can write", path)
	}
}

// TestCommitSurvivesPowerCut cuts the power before each operation of a Commit
// and after it, with the names of files on the medium or not, and any part of
// their contents. The cursor is the old one or the new one; once Commit has
// returned it is the new one.
func TestCommitSurvivesPowerCut(t *testing.T) {
	for n := 1; ; n++ {
		f, _ := sample(t)
		c, err := OpenConsumer(ReaderConfig{Dir: "/spool", Session: testID, FS: f})
		must(t, err)
		first, err := c.Next()
		must(t, err)
		must(t, c.Commit(first.End()))
		second, err := c.Next()
		must(t, err)
		stop := f.count() + n
		f.judgeBy(func(op int, _, _ string) (verdict, error) {
			if op == stop {
				return stopped, nil
			}
			return fine, nil
		})
		err = c.Commit(second.End())
		for name, image := range map[string]*memFS{"what was synced": f.crash(none), "all names": f.withNames().crash(none), "all": f.died()} {
			got := readShipped(image, "/spool/sessions/"+testID)
			if got != second.End() && (err == nil || got != first.End()) {
				t.Errorf("power cut at operation %d of a commit (%v), %s left: the cursor is %v, want %v", n, err, name, got, second.End())
			}
		}
		if err == nil {
			if n < 5 {
				t.Errorf("a commit took %d operations, want a create, a write, two syncs and a rename", n-1)
			}
			return
		}
	}
}

// TestCommitOnFullDisk commits while nothing fits, cuts the power meanwhile, and
// commits and rewinds once there is space. A cursor that is torn is the start.
func TestCommitOnFullDisk(t *testing.T) {
	const session = "/spool/sessions/" + testID
	f, _ := sample(t)
	f.judgeBy(func(_ int, op, name string) (verdict, error) {
		if op == "create" && filepath.Base(name) == shippedFile {
			return lost, f.full
		}
		return fine, nil
	})
	c, err := OpenConsumer(ReaderConfig{Dir: "/spool", Session: testID, FS: f})
	must(t, err) // without room for a new file
	must(t, c.Close())
	f.judgeBy(nil)
	c, err = OpenConsumer(ReaderConfig{Dir: "/spool", Session: testID, FS: f})
	must(t, err)
	var ends []Position
	for _, i := range drain(t, c.Next) {
		ends = append(ends, i.End())
	}
	want := func(f *memFS, name string, want ...Position) {
		t.Helper()
		if got := readShipped(f, session); !slices.Contains(want, got) {
			t.Errorf("%s: the cursor is %v, want one of %v", name, got, want)
		}
	}
	f.room = 0
	must(t, c.Commit(ends[5]))
	want(f.crash(none), "the first on a full disk", ends[5])
	f.room = -1
	must(t, c.Commit(ends[7]))
	f.room = 0
	for n := 1; ; n++ {
		g := f.withNames()
		g.room, g.full = 0, f.full
		stop := g.count() + n
		g.judgeBy(func(op int, _, _ string) (verdict, error) {
			if op == stop {
				return stopped, nil
			}
			return fine, nil
		})
		c, err := OpenConsumer(ReaderConfig{Dir: "/spool", Session: testID, FS: g})
		must(t, err)
		err = c.Commit(ends[9])
		for seed := range uint64(20) {
			if err == nil {
				want(g.crash(some(seed)), "after a commit", ends[9])
			} else {
				want(g.crash(some(seed)), fmt.Sprintf("power cut at %d", n), Position{}, ends[7], ends[9])
			}
		}
		if err == nil {
			break
		}
	}
	must(t, c.Commit(ends[9]))
	must(t, c.Rewind())
	must(t, c.Commit(ends[2]))
	want(f, "rewound on a full disk", ends[2])
	shipped := fileOf(t, f, session+"/"+shippedFile)
	shipped.links++ // a backup has another name for it
	before := string(shipped.data)
	if err := c.Commit(ends[4]); err == nil || string(shipped.data) != before {
		t.Errorf("a file with two names is overwritten: %v", err)
	}
	shipped.links--
	f.room = -1
	must(t, c.Commit(ends[3]))
	want(f, "not full any more", ends[3])
	must(t, c.Close())
	for _, text := range []string{"+3 40 00000000\n", "+3 40\n", "+3", "3 40", "3 40 1\n", "3 x\n", "+\n", ""} {
		fileOf(t, f, session+"/"+shippedFile).data = []byte(text)
		want(f, text, Position{})
	}
}

// TestNamesAndLook check that they say of one session what List says of all.
func TestNamesAndLook(t *testing.T) {
	dir := stock(t)
	must(t, os.Mkdir(filepath.Join(dir, sessionsDir, ".new-x"), 0o700))
	entries, err := List(dir)
	must(t, err)
	ids, err := Names(dir)
	must(t, err)
	if len(ids) != len(entries) || len(ids) == 0 {
		t.Fatalf("Names = %q, List has %d", ids, len(entries))
	}
	for i, id := range ids {
		e, there := Look(dir, id)
		if !there || !cmp.Equal(e, entries[i]) {
			t.Errorf("Look(%q) = %+v, %v, List says %+v", id, e, there, entries[i])
		}
	}
	for _, id := range []string{"absent", "../sessions", ""} {
		if e, there := Look(dir, id); there {
			t.Errorf("Look(%q) = %+v, want nothing", id, e)
		}
	}

	// What others could have written is not read.
	session := filepath.Join(dir, sessionsDir, ids[0])
	must(t, os.Chmod(session, 0o770))
	if e, _ := Look(dir, ids[0]); e.Err == nil || !strings.Contains(e.Err.Error(), "chmod 700") {
		t.Errorf("Look in a session's directory that others can write: %+v, want an error", e)
	}
	must(t, os.Chmod(filepath.Dir(session), 0o770))
	if ids, err := Names(dir); err == nil || len(ids) != 0 {
		t.Errorf("Names in a directory that others can write = %q, %v, want an error", ids, err)
	}
}

package translog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/deploy/dev"
	"auditproxy/internal/diskfull"

	"golang.org/x/sys/unix"
)

// TestFullDisk checks that a full disk fails Add, and that the log goes on once there
// is room, without a gap or a double.
func TestFullDisk(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	dev.SmallDisk(t, disk, "4m")
	dir := filepath.Join(disk, "log")
	l := opened(t, Config{Dir: dir})
	add(t, l, texts(0, 100))
	ballast := filepath.Join(disk, "ballast")
	// leave fills the disk but for some pages.
	leave := func(pages int) {
		t.Helper()
		var st unix.Statfs_t
		err := errors.Join(os.RemoveAll(ballast), unix.Statfs(disk, &st))
		if err == nil {
			err = os.WriteFile(ballast, make([]byte, max(0, int(st.Bavail)-pages)*int(st.Bsize)), 0o600)
		}
		if err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	failed, kept, n := 0, 0, 100
	for round := range 8 {
		for pages := range 20 {
			leave(pages)
			if err := l.Add(t.Context(), texts(n, n+10+round*30)); err != nil {
				failed++
				if !diskfull.Is(err) {
					t.Errorf("with %d pages left: %v is not an error of a full disk", pages, err)
				}
			} else {
				kept++
			}
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		add(t, l, texts(n, n+300))
		n += 300
	}
	if failed == 0 || kept == 0 {
		t.Errorf("%d calls of Add failed, %d succeeded: want both", failed, kept)
	}
	covered(t, l, int64(n))
	got := contents(t, dir, l.Status().Key)
	times := map[string]int{}
	for _, e := range got {
		times[string(e)]++
	}
	if len(got) != n || len(times) != n {
		t.Errorf("the log has %d entries, %d different ones, want %d", len(got), len(times), n)
	}
	check(t, dir, l.Status().Key)
	t.Logf("%d calls of Add failed, %d succeeded", failed, kept)
	for _, where := range []string{dir, filepath.Join(dir, stateDir)} {
		eventually(t, "what failed writes left is removed from "+where, func() bool {
			names, err := os.ReadDir(where)
			return err == nil && len(names) <= 6
		})
	}
	eventually(t, "what failed writes left is removed from the tiles", func() bool {
		return len(unnamed(t, dir)) == 0
	})
	check(t, dir, l.Status().Key)
	leave(0)
	_, err := Open(t.Context(), Config{Dir: filepath.Join(disk, "other"), Name: "auditproxy/log/other"})
	if err == nil || !strings.Contains(err.Error(), "free space there") {
		t.Errorf("opening a new log on a full disk: %v", err)
	}
}

// unnamed returns the files of a log that are no tiles, which have names of at most three
// digits.
func unnamed(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "tile"), func(name string, f fs.DirEntry, err error) error {
		if err == nil && !f.IsDir() && len(f.Name()) > 3 {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestReadOnlyDisk checks that a directory that becomes read-only fails Add and ends
// nothing else, and that the log goes on once it can be written.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, Config{Dir: dir})
	add(t, l, texts(0, 10)) // tessera runs
	writable := dev.ReadOnly(t, dir)
	if err := l.Add(t.Context(), texts(5, 15)); !errors.Is(err, unix.EROFS) {
		t.Errorf("adding to a read-only directory: %v", err)
	}
	writable()
	add(t, l, texts(5, 20))
	covered(t, l, 20)
	check(t, dir, l.Status().Key)
}

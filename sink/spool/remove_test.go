package spool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLockIsRemovedLast removes a directory under its lock: as long as a file
// is there, so is the lock that keeps others from it.
func TestLockIsRemovedLast(t *testing.T) {
	m := newMemFS()
	for _, name := range []string{"lock", "durable", "00000001.ndjson", "shipped", "zz"} {
		f, err := m.OpenFile(filepath.Join("/", name), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var removed []string
	m.judgeBy(func(_ int, op, name string) (verdict, error) {
		removed = append(removed, filepath.Base(name))
		return fine, nil
	})
	_ = removeAll(m, "/")
	if want := []string{"00000001.ndjson", "durable", "shipped", "zz", "lock"}; len(removed) < len(want) || !slices.Equal(removed[:len(want)], want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
}

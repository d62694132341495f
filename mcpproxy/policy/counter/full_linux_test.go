package counter_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/policy/counter"
)

// TestDiskFull fills a disk. Calls are denied when their counter cannot be made;
// a counter that is there goes on.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "64k")
	counters := filepath.Join(dir, "counters")
	old := counter.New(counters, "old")
	defer old.Close()
	if ok, err := count(old, time.Unix(600, 0), 2); !ok {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "rubbish"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	fresh := counter.New(counters, "new")
	defer fresh.Close()
	if ok, err := count(fresh, time.Unix(600, 0), 2); ok || !errors.Is(err, policy.ErrFull) || !strings.Contains(err.Error(), "free space there") {
		t.Errorf("a new counter: got %v, %v", ok, err)
	}
	for i := range 2 {
		if ok, err := count(old, time.Unix(600, 0), 2); err != nil || ok != (i == 0) {
			t.Errorf("an old counter, call %d: got %v, %v", i, ok, err)
		}
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if ok, err := count(fresh, time.Unix(600, 0), 2); !ok {
		t.Errorf("after the disk has room: %v", err)
	}
}

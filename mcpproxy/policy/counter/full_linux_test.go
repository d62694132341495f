package counter_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
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
	var page []policy.Counter // with the header and the counter before, the first 4 KiB
	for i := range 30 {
		page = append(page, policy.Counter{Scope: policy.User, Key: strconv.Itoa(i), Window: 60, Amount: 1})
	}
	if err := old.Update(time.Unix(600, 0), page, func([]int64) bool { return true }); err != nil {
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
	// A counter of the session counts nothing for a call that the file has no room for.
	both := []policy.Counter{{Scope: policy.Session, Key: "s", Window: 60}, {Scope: policy.User, Key: "u", Window: 60}}
	for range 2 {
		var session int64
		err := old.Update(time.Unix(600, 0), both, func(values []int64) bool {
			session = values[0]
			both[0].Amount, both[1].Amount = 1, 1
			return true
		})
		if !errors.Is(err, policy.ErrFull) || session != 0 {
			t.Errorf("with a counter of the session, which has %d: %v", session, err)
		}
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

package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// TestRealDiskFull fills a tmpfs of 1 MiB twice and frees it. Where it is skipped,
// TestDiskFull says the same of a disk that only claims to be full.
func TestRealDiskFull(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "1m")
	s := create(t, Config{Dir: filepath.Join(dir, "spool")})
	run(t, s)
	rubbish := filepath.Join(dir, "rubbish")
	var seq uint64
	var acknowledged [][]byte
	n := 0
	for _, size := range []int{400 << 10, 0} { // the second time, what the first one's rubbish took is free
		must(t, os.WriteFile(rubbish, make([]byte, size), 0o600))
		before := n
		var open []int
		for {
			n++
			_, err := s.Append(intent(n), false)
			if errors.Is(err, ErrFull) {
				n--
				break
			}
			must(t, err)
			acknowledged = append(acknowledged, intent(n))
			open = append(open, n)
			if len(open) > 100 {
				line := final(open[0], seq)
				appendLines(t, s, line, true)
				acknowledged, open, seq = append(acknowledged, line), open[1:], seq+1
			}
		}
		for _, k := range open {
			line := final(k, seq)
			appendLines(t, s, line, true)
			acknowledged, seq = append(acknowledged, line), seq+1
		}
		must(t, os.Remove(rubbish))
		if n-before < 150 {
			t.Errorf("%d calls filled the disk beside %d bytes", n-before, size)
		}
		s.mu.Lock()
		s.ballastAt = s.ballastAt.Add(-ballastEvery)
		s.mu.Unlock()
	}
	appendLines(t, s, boundary(audit.KindSessionEnd, seq), true)
	must(t, s.sync1())
	checkLines(t, items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}), acknowledged, "tmpfs")
}

// TestStatusOfReadOnlyDisk looks at spools on a disk where none can be made.
func TestStatusOfReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "1m,ro")
	for _, spool := range []string{dir, filepath.Join(dir, "spool"), filepath.Join(dir, "not", "there")} {
		u, err := Status(spool, nil)
		must(t, err)
		if !errors.Is(u.Writable, syscall.EROFS) || !strings.Contains(u.Writable.Error(), "mount it for writing") {
			t.Errorf("%q: %v, want %v and what to do", spool, u.Writable, syscall.EROFS)
		}
	}
}

// TestRetainOnRealFullDisk ships a session on a disk on which nothing fits: its
// segments can be removed.
func TestRetainOnRealFullDisk(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "1m")
	s := create(t, Config{Dir: filepath.Join(dir, "spool")})
	appendLines(t, s, final(1, 0), true)
	appendLines(t, s, boundary(audit.KindSessionEnd, 1), true)
	must(t, s.Close())
	c, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	f, err := os.Create(filepath.Join(dir, "rubbish"))
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	must(t, f.Close())
	for _, i := range drain(t, c.Next) {
		must(t, c.Commit(i.End()))
	}
	must(t, c.Close())
	if removed, err := Retain(t.Context(), RetainConfig{Dir: s.c.Dir, Bytes: 1, Consumed: true}); err != nil || removed == 0 {
		t.Errorf("Retain = %d, %v, want that the session is removed", removed, err)
	}
}

// TestReadIsNotedOnRealFullDisk has a disk on which no file can be made: what tells that a
// consumer has read sessions is not removed before it is noted.
func TestReadIsNotedOnRealFullDisk(t *testing.T) {
	d := t.TempDir()
	dev.SmallDisk(t, d, "1m,nr_inodes=64")
	dir := stockIn(t, d)
	c, err := OpenConsumer(ReaderConfig{Dir: dir, Session: "session-1"})
	must(t, err)
	for _, i := range drain(t, c.Next) {
		must(t, c.Commit(i.End()))
	}
	must(t, c.Close())
	rc := RetainConfig{Dir: dir, Age: time.Hour, FindConsumer: true}
	rc.looked(t)
	rubbish := filepath.Join(d, "rubbish")
	must(t, os.Mkdir(rubbish, 0o700))
	for n := 0; err == nil; n++ {
		err = os.WriteFile(filepath.Join(rubbish, fmt.Sprint(n)), nil, 0o600)
	}
	for range 2 {
		_, err := Retain(t.Context(), rc)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Retain = %v, want %v", err, syscall.ENOSPC)
		}
		if diff := cmp.Diff([]string{"session-0[1 2 3]", "session-1[1 2 3]", "session-2[1 2 3]"}, left(t, dir)); diff != "" {
			t.Fatalf("sessions left (-want +got):\n%s", diff)
		}
	}
	must(t, os.RemoveAll(rubbish))
	for range 2 {
		_, err = Retain(t.Context(), rc)
		must(t, err)
	}
	if diff := cmp.Diff([]string{"session-0[1 2 3]", "session-2[1 2 3]"}, left(t, dir)); diff != "" {
		t.Errorf("sessions left (-want +got):\n%s", diff)
	}
}

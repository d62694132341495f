package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// TestConsumer consumes records in two runs, and sees each once.
func TestConsumer(t *testing.T) {
	s := create(t, Config{Head: head})
	c := ReaderConfig{Dir: s.c.Dir, Session: testID}
	for n := 1; n <= 3; n++ {
		appendLines(t, s, intent(n), false)
		appendLines(t, s, final(n, uint64(n)), true)
	}
	s.Wait(s.written, 0)
	appendLines(t, s, final(4, 4), true) // not synced

	first, err := OpenConsumer(c)
	must(t, err)
	if _, err := OpenConsumer(c); !errors.Is(err, ErrBusy) {
		t.Errorf("second consumer: %v, want ErrBusy", err)
	}
	item, err := first.Next()
	must(t, err)
	must(t, first.Commit(item.End()))
	_, err = first.Next() // not committed: returned again
	must(t, err)
	must(t, first.Close())

	second, err := OpenConsumer(c)
	must(t, err)
	defer second.Close()
	if second.Shipped() != item.End() {
		t.Errorf("Shipped = %v, want %v", second.Shipped(), item.End())
	}
	want := []string{string(final(2, 2)), string(final(3, 3))}
	if diff := cmp.Diff(want, texts(drain(t, second.Next))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	must(t, s.Close())
	if diff := cmp.Diff([]string{string(final(4, 4))}, texts(drain(t, second.Next))); diff != "" {
		t.Errorf("records after the sync (-want +got):\n%s", diff)
	}
}

// TestConsumerDamagedCursor reads everything again after a damaged cursor.
func TestConsumerDamagedCursor(t *testing.T) {
	for _, cursor := range []string{"", "x", "1", "1 -5\n", "-1 0\n"} {
		s := create(t, Config{})
		appendLines(t, s, final(1, 0), true)
		must(t, s.Close())
		must(t, os.WriteFile(filepath.Join(s.dir, shippedFile), []byte(cursor), 0o600))
		c, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
		must(t, err)
		if n := len(drain(t, c.Next)); n != 1 {
			t.Errorf("cursor %q: %d records, want 1", cursor, n)
		}
		must(t, c.Close())
	}
}

// stock makes a spool with three sessions of three segments, of 1, 2 and 3
// days, which are: ended; ended; dead.
func stock(t *testing.T) string { return stockIn(t, t.TempDir()) }

func stockIn(t *testing.T, disk string) string {
	dir := filepath.Join(disk, "spool")
	for k := range 3 {
		id := fmt.Sprintf("session-%d", k)
		s, err := Create(Config{Dir: dir}, id)
		must(t, err)
		for n := range 3 {
			appendLines(t, s, final(n, uint64(n)), true)
			s.mu.Lock()
			s.cur.limit = 1
			s.mu.Unlock()
		}
		if k < 2 {
			s.mu.Lock()
			s.cur.limit = segmentSize
			s.mu.Unlock()
			appendLines(t, s, boundary(audit.KindSessionEnd, 3), true)
		}
		must(t, s.Close())
		for n := range 3 {
			at := time.Now().Add(-time.Duration(k+1) * 24 * time.Hour).Add(time.Duration(n) * time.Minute)
			must(t, os.Chtimes(filepath.Join(s.dir, segmentName(uint32(n+1))), at, at))
		}
	}
	return dir
}

func left(t *testing.T, dir string) (got []string) {
	t.Helper()
	list, err := List(dir)
	must(t, err)
	for _, e := range list {
		got = append(got, fmt.Sprint(e.ID, e.Segments))
	}
	return got
}

// looked has the clock be right since long ago.
func (c RetainConfig) looked(t *testing.T) {
	t.Helper()
	now := time.Now().Unix()
	must(t, disk.ReplaceFile(disk.OrHost(c.FS), filepath.Join(c.Dir, looksFile), fmt.Appendf(nil, "%d %d\n", now, now)))
}

// TestRetentionUnderAClockThatJumps keeps files that only look old by a wrong
// clock, and finally removes the old ones.
func TestRetentionUnderAClockThatJumps(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	everything := []string{"session-0[1 2 3]", "session-1[1 2 3]", "session-2[1 2 3]"}
	type look struct {
		at   time.Duration // from now
		left []string
	}
	for _, tt := range []struct {
		name    string
		written time.Duration // session-1, from now; 0: as in stock
		looks   []look
	}{
		{"years ahead at the first look", 0, []look{{10 * year, everything}, {0, everything}, {time.Hour, everything}, {day, everything}}},
		{"years ahead for some hours", 0, []look{{0, everything}, {day, everything}, {10 * year, everything}, {10*year + 20*time.Hour, everything}, {2 * day, everything}, {3 * day, everything}}},
		{"years back", 0, []look{{0, everything}, {day, everything}, {-10 * year, everything}, {day + time.Hour, everything}, {3 * day, everything}}},
		{"ahead, back and ahead", 0, []look{{0, everything}, {10 * year, everything}, {0, everything}, {20 * year, everything}, {time.Hour, everything}}},
		{"a month without a look", 0, []look{{0, everything}, {40 * day, everything}, {42 * day, []string{"session-2[1 2 3]"}}}},
		{"a right clock", 0, []look{{29*day - time.Hour, everything}, {30*day - time.Hour, []string{"session-0[1 2 3]", "session-2[1 2 3]"}}, {31 * day, []string{"session-2[1 2 3]"}}}},
		{"a session of years ahead", 10 * year, []look{{0, everything}, {2 * day, everything}, {30 * day, everything}, {32 * day, []string{"session-1[1 2 3]", "session-2[1 2 3]"}}, {34 * day, []string{"session-1[1 2 3]", "session-2[1 2 3]"}}, {36 * day, []string{"session-2[1 2 3]"}}}},
	} {
		for _, consumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, consumed %t", tt.name, consumed), func(t *testing.T) {
				dir := stock(t)
				for id := range 2 {
					c, err := OpenConsumer(ReaderConfig{Dir: dir, Session: fmt.Sprintf("session-%d", id)})
					must(t, err)
					for _, i := range drain(t, c.Next) {
						must(t, c.Commit(i.End()))
					}
					must(t, c.Close())
				}
				now := time.Now()
				if tt.written != 0 {
					for no := range uint32(3) {
						must(t, os.Chtimes(filepath.Join(dir, sessionsDir, "session-1", segmentName(no+1)), now.Add(tt.written), now.Add(tt.written)))
					}
				}
				for _, l := range tt.looks {
					_, err := Retain(t.Context(), RetainConfig{Dir: dir, Age: 30 * day, Consumed: consumed, now: func() time.Time { return now.Add(l.at) }})
					must(t, err)
					if diff := cmp.Diff(l.left, left(t, dir)); diff != "" {
						t.Fatalf("sessions left at %v (-want +got):\n%s", l.at, diff)
					}
				}
			})
		}
	}
}

// TestLooksAtOnce has many processes look at the clock at once, as those of an editor
// that starts its servers.
func TestLooksAtOnce(t *testing.T) {
	dir := stock(t)
	for range 20 {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := Retain(t.Context(), RetainConfig{Dir: dir, Age: 365 * 24 * time.Hour}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		must(t, os.Remove(filepath.Join(dir, looksFile)))
	}
}

// TestRetention removes consumed files that are old or in excess, and nothing
// else.
func TestRetention(t *testing.T) {
	everything := []string{"session-0[1 2 3]", "session-1[1 2 3]", "session-2[1 2 3]"}
	const day, aSession = 24 * time.Hour, -1 // less than the disk space of session-0
	for _, tt := range []struct {
		name    string
		consume map[string]int // records of a session
		c       RetainConfig
		want    []string
	}{
		{"nothing is consumed", nil, RetainConfig{Age: time.Hour, Bytes: 1, Consumed: true}, everything},
		{"consumed, young, little", map[string]int{"session-0": 9, "session-1": 9}, RetainConfig{Age: 30 * day, Bytes: 1 << 30, Consumed: true}, everything},
		{"consumed and old", map[string]int{"session-1": 9}, RetainConfig{Age: 36 * time.Hour, Consumed: true}, []string{"session-0[1 2 3]", "session-2[1 2 3]"}},
		{"partly consumed", map[string]int{"session-1": 2}, RetainConfig{Age: 36 * time.Hour, Consumed: true}, []string{"session-0[1 2 3]", "session-1[2 3]", "session-2[1 2 3]"}},
		{"consumed and too much", map[string]int{"session-0": 9, "session-1": 9}, RetainConfig{Age: 30 * day, Bytes: aSession, Consumed: true}, []string{"session-0[2 3]", "session-2[1 2 3]"}},
		{"consumed and too much on the disk", map[string]int{"session-0": 9, "session-1": 9}, RetainConfig{Age: 30 * day, Bytes: 10000, Consumed: true}, []string{"session-2[1 2 3]"}},
		{"dead, although consumed", map[string]int{"session-2": 9}, RetainConfig{Age: time.Hour, Bytes: 1, Consumed: true}, everything},
		{"without a consumer, by age", nil, RetainConfig{Age: 36 * time.Hour, Bytes: 1}, []string{"session-0[1 2 3]", "session-2[1 2 3]"}},
		{"without a consumer, young", nil, RetainConfig{Age: 30 * day, Bytes: 1}, everything},
		{"for ever", map[string]int{"session-0": 9}, RetainConfig{Consumed: true}, everything},
		{"not known, by age", nil, RetainConfig{Age: 36 * time.Hour, Bytes: 1, FindConsumer: true}, []string{"session-0[1 2 3]", "session-2[1 2 3]"}},
		{"not known, and one was read", map[string]int{"session-0": 1}, RetainConfig{Age: 36 * time.Hour, Bytes: 1, FindConsumer: true}, everything},
		{"not known, and it was read in part", map[string]int{"session-1": 2}, RetainConfig{Age: 36 * time.Hour, Bytes: 1, FindConsumer: true}, everything},
		{"not known, and it was read", map[string]int{"session-1": 9}, RetainConfig{Age: 36 * time.Hour, Bytes: 1, FindConsumer: true}, []string{"session-0[1 2 3]", "session-2[1 2 3]"}},
		{"there is none any more", map[string]int{"session-0": 1}, RetainConfig{Age: 36 * time.Hour, Bytes: 1}, []string{"session-0[1 2 3]", "session-2[1 2 3]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := stock(t)
			for id, n := range tt.consume {
				c, err := OpenConsumer(ReaderConfig{Dir: dir, Session: id})
				must(t, err)
				for range n {
					if item, err := c.Next(); err == nil {
						must(t, c.Commit(item.End()))
					}
				}
				must(t, c.Close())
			}
			tt.c.Dir = dir
			tt.c.looked(t)
			if tt.c.Bytes == aSession {
				tt.c.Bytes = onDisk(t, filepath.Join(dir, sessionsDir, "session-0")) - 1
			}
			_, err := Retain(t.Context(), tt.c)
			must(t, err)
			if diff := cmp.Diff(tt.want, left(t, dir)); diff != "" {
				t.Errorf("sessions left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLongOutage has a consumer that is not configured and reads nothing for longer than
// sessions are kept. Sessions that it read are removed. Others stay, also when none is left
// that it read.
func TestLongOutage(t *testing.T) {
	dir := stock(t)
	c, err := OpenConsumer(ReaderConfig{Dir: dir, Session: "session-1"})
	must(t, err)
	for range 9 {
		if item, err := c.Next(); err == nil {
			must(t, c.Commit(item.End()))
		}
	}
	must(t, c.Close())
	core, logs := observer.New(zap.WarnLevel)
	rc := RetainConfig{Dir: dir, Age: time.Hour, FindConsumer: true, Log: zap.New(core)}
	rc.looked(t)
	for range 2 {
		_, err := Retain(t.Context(), rc)
		must(t, err)
		if diff := cmp.Diff([]string{"session-0[1 2 3]", "session-2[1 2 3]"}, left(t, dir)); diff != "" {
			t.Fatalf("sessions left (-want +got):\n%s", diff)
		}
	}
	if n := logs.FilterMessageSnippet("until their consumer has read them").Len(); n != 2 {
		t.Errorf("%d lines about what is kept, want 2: %v", n, logs.All())
	}
}

// onDisk returns the size of a directory as du(1) counts it.
func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := disk.Host().Lstat(name)
		sum += i.Disk
		return err
	}))
	return sum
}

// countingFS counts the files that are opened.
type countingFS struct {
	disk.FS
	opened int
}

func (f *countingFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f.opened++
	return f.FS.OpenFile(name, flag, perm)
}

// TestRetentionAmongForeignFiles: links, pipes and files where Retain expects
// its directories cost nothing that is not the spool's, and stop no removal.
func TestRetentionAmongForeignFiles(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, at, victim string){
		"link": func(t *testing.T, at, victim string) { must(t, os.Symlink(victim, at)) },
		"pipe": func(t *testing.T, at, _ string) { must(t, unix.Mkfifo(at, 0o600)) },
		"file": func(t *testing.T, at, _ string) { must(t, os.WriteFile(at, nil, 0o600)) },
		"writable": func(t *testing.T, at, victim string) {
			must(t, os.Rename(victim, at))
			must(t, os.Chmod(at, 0o777))
			must(t, os.Symlink(at, victim))
		},
	} {
		for _, prefix := range []string{oldPrefix, newPrefix, ""} {
			t.Run(prefix+name, func(t *testing.T) {
				dir, victim := stock(t), filepath.Join(t.TempDir(), "victim")
				must(t, os.Mkdir(victim, 0o700))
				for _, name := range []string{lockFile, segmentName(1), "letter"} {
					must(t, os.WriteFile(filepath.Join(victim, name), []byte("mine\n"), 0o600))
				}
				plant(t, filepath.Join(dir, sessionsDir, prefix+"session-9"), victim)
				c := RetainConfig{Dir: dir, Age: time.Hour}
				c.looked(t)
				_, err := Retain(t.Context(), c)
				if prefix == oldPrefix && err == nil {
					t.Error("Retain reports nothing")
				}
				_, _, err = Recover(t.Context(), RecoverConfig{Dir: dir})
				must(t, err)
				for _, name := range []string{lockFile, segmentName(1), "letter"} {
					if b, err := os.ReadFile(filepath.Join(victim, name)); string(b) != "mine\n" {
						t.Errorf("%s has %q, %v", name, b, err)
					}
				}
				for _, id := range []string{"session-0", "session-1"} {
					if _, there := Look(dir, id); there {
						t.Errorf("%s is still there", id)
					}
				}
			})
		}
	}
}

// TestRetainEndsWithItsContext checks that Retain opens no more sessions once
// its context ends.
func TestRetainEndsWithItsContext(t *testing.T) {
	dir := stock(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &countingFS{FS: disk.Host()}
	if _, err := Retain(ctx, RetainConfig{Dir: dir, Bytes: 1, Consumed: true, FS: f}); !errors.Is(err, context.Canceled) || f.opened > 0 {
		t.Errorf("%d files opened, %v", f.opened, err)
	}
}

// TestRetentionKeepsOrder sets the clock back in the middle of a session: a
// later segment looks older, and does not go before the first.
func TestRetentionKeepsOrder(t *testing.T) {
	dir := stock(t)
	c, err := OpenConsumer(ReaderConfig{Dir: dir, Session: "session-0"})
	must(t, err)
	for _, i := range drain(t, c.Next) {
		must(t, c.Commit(i.End()))
	}
	must(t, c.Close())
	ago := time.Now().Add(-1000 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, sessionsDir, "session-0", segmentName(2)), ago, ago))
	rc := RetainConfig{Dir: dir, Age: 100 * time.Hour, Consumed: true}
	rc.looked(t)
	_, err = Retain(t.Context(), rc)
	must(t, err)
	if got := left(t, dir)[0]; got != "session-0[1 2 3]" {
		t.Errorf("left %s, want all three", got)
	}
}

// TestOpenCallsKeepTheirSegment consumes all of a live session in which a
// call is still open: recovery would need its intent.
func TestOpenCallsKeepTheirSegment(t *testing.T) {
	s := create(t, Config{})
	for n := 1; n <= 5; n++ {
		appendLines(t, s, intent(n), false)
		if n != 2 {
			appendLines(t, s, final(n, uint64(n)), true)
		}
		s.mu.Lock()
		s.cur.limit = 1
		s.mu.Unlock()
	}
	s.Wait(s.written, 0)
	c, err := OpenConsumer(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	for _, i := range drain(t, c.Next) {
		must(t, c.Commit(i.End()))
	}
	must(t, c.Close())
	_, err = Retain(t.Context(), RetainConfig{Dir: s.c.Dir, Bytes: 1, Consumed: true})
	must(t, err)
	e := onlySession(t, s.c.Dir)
	if len(e.Segments) == 0 || e.Segments[0] == 1 {
		t.Errorf("segments left: %v, want the first gone", e.Segments)
	}
	die(t, s)
	done, _, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
	must(t, err)
	if len(done) != 1 || done[0].Unknown != 1 {
		t.Errorf("Recover = %+v, want one open call", done)
	}
}

// TestRetainStopsAtEveryOperation checks that no crash leaves an apparently
// dead session, and that the next run completes the removal.
func TestRetainStopsAtEveryOperation(t *testing.T) {
	full, _ := sample(t)
	c := RetainConfig{Dir: "/spool", Age: time.Hour, FS: full} // memFS has no times: everything is old
	c.looked(t)
	for n := 1; ; n++ {
		f := full.died()
		f.judge = func(op int, _, _ string) (verdict, error) {
			if op == n {
				return stopped, nil
			}
			return fine, nil
		}
		c.FS = f
		_, err := Retain(t.Context(), c)
		if !f.stopped {
			must(t, err)
			if n < 5 {
				t.Errorf("a removal took %d operations", n)
			}
			return
		}
		f = f.died()
		recoverAll(t, f, fmt.Sprintf("stopped at %d", n))
		if list, err := list(f, "/spool", nil); err != nil || len(list) > 0 && list[0].State != Ended {
			t.Errorf("stopped at %d: %+v, %v", n, list, err)
		}
		c.FS = f
		_, err = Retain(t.Context(), c)
		must(t, err)
		if names := fileOf(t, f, "/spool/sessions").names; len(names) > 0 {
			t.Errorf("stopped at %d: left %v", n, names)
		}
	}
}

// TestRemovedFilesStay removes a session where a removed file stays in its directory
// until it is closed, as on NFS. The lock is open, and a reader has a segment open.
func TestRemovedFilesStay(t *testing.T) {
	full, _ := sample(t)
	f := full.died()
	f.hides = true
	r, err := OpenReader(ReaderConfig{Dir: "/spool", Session: testID, FS: f})
	must(t, err)
	_, err = r.Next()
	must(t, err)
	must(t, f.Mkdir("/spool/sessions/.new-dead", 0o700)) // its maker died
	c := RetainConfig{Dir: "/spool", Age: time.Hour, FS: f}
	c.looked(t)
	removed, err := Retain(t.Context(), c)
	if err != nil || removed == 0 {
		t.Errorf("Retain = %d, %v", removed, err)
	}
	recoverAll(t, f, "a removed lock stays")
	if names, err := f.ReadDir("/spool/sessions"); err != nil || len(names) != 1 || names[0] != oldPrefix+testID {
		t.Errorf("while a reader has a segment open: %q, %v", names, err)
	}
	must(t, r.Close())
	_, err = Retain(t.Context(), c)
	must(t, err)
	if names, err := f.ReadDir("/spool/sessions"); err != nil || len(names) > 0 {
		t.Errorf("left %q, %v", names, err)
	}
}

func TestStatus(t *testing.T) {
	dir := stock(t)
	live, err := Create(Config{Dir: dir}, "session-3")
	must(t, err)
	defer live.Close()
	var looked atomic.Int64
	u, err := Status(dir, func(n int64) { looked.Add(n) })
	must(t, err)
	if u.Writable != nil || u.Live != 1 || u.Dead != 1 || u.Ended != 2 || u.Unshipped != 3 || u.Unread != 0 || u.Free <= 0 || u.Bytes == 0 {
		t.Errorf("Status = %+v", u)
	}
	if looked.Load() != 4 {
		t.Errorf("Status looked at %d sessions, want 4", looked.Load())
	}
	none, err := Status(filepath.Join(dir, "not", "there"), nil)
	must(t, err)
	if !errors.Is(none.Writable, fs.ErrNotExist) || none.Free <= 0 {
		t.Errorf("Status of no directory = %+v", none)
	}
}

func TestLoadKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	key, created, err := LoadKey(dir)
	if err != nil || !created || len(key) != KeySize {
		t.Fatalf("LoadKey = %x, %v, %v", key, created, err)
	}
	again, created, err := LoadKey(dir)
	if err != nil || created || string(again) != string(key) {
		t.Errorf("LoadKey again = %x, %v, %v", again, created, err)
	}
	for _, tt := range []struct {
		name string
		harm func(path string) error
		want string
	}{
		{"short", func(path string) error { return os.Truncate(path, 5) }, "5 bytes long"},
		{"open to others", func(path string) error { return os.Chmod(path, 0o640) }, "chmod 600"},
		{"a link", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) }, "symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			_, _, err := LoadKey(dir)
			must(t, err)
			must(t, tt.harm(KeyFile(dir)))
			if _, _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("LoadKey = %v, want %q", err, tt.want)
			}
		})
	}
	open := t.TempDir()
	must(t, os.Chmod(open, 0o777))
	if _, _, err := LoadKey(open); err == nil || !strings.Contains(err.Error(), "choose another directory, or run chmod 700 "+open+" if no other user needs it") {
		t.Errorf("LoadKey in a directory that others can write = %v, want its remedies", err)
	}
}

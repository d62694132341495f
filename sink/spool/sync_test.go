package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// bubble runs f with a syncing session in memory, under a synthetic clock.
func bubble(t *testing.T, d Durability, f func(t *testing.T, fs *memFS, s *Session)) {
	synctest.Test(t, func(t *testing.T) {
		fs := newMemFS()
		s, err := Create(Config{Dir: "/spool", FS: fs, Durability: d}, testID)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		f(t, fs, s)
		cancel()
		must(t, <-done)
		must(t, s.Close())
	})
}

// syncs counts the syncs of segments from now on.
func syncs(fs *memFS) func() int {
	n := 0
	fs.judgeBy(func(_ int, op, name string) (verdict, error) {
		if op == "sync" && strings.HasSuffix(name, segmentExt) {
			n++
		}
		return fine, nil
	})
	return func() int {
		synctest.Wait()
		fs.mu.Lock()
		defer fs.mu.Unlock()
		return n
	}
}

func TestWaitSyncsAtOnce(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		start := time.Now()
		if !s.Wait(appendLines(t, s, intent(1), false), 20*time.Millisecond) {
			t.Error("Wait = false")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("it waited %v for a sync that takes no time", d)
		}
	})
}

// TestWaitIsBounded has a disk that takes 5 s to sync.
func TestWaitIsBounded(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		fs.delay = func(string) { <-time.After(5 * time.Second) }
		start := time.Now()
		pos := appendLines(t, s, intent(1), false)
		if s.Wait(pos, 20*time.Millisecond) {
			t.Error("Wait = true, nothing was synced")
		}
		if d := time.Since(start); d != 20*time.Millisecond {
			t.Errorf("it waited %v, want 20ms", d)
		}
		// Appending continues meanwhile.
		pos = appendLines(t, s, intent(2), false)
		if d := time.Since(start); d != 20*time.Millisecond {
			t.Errorf("Append waited for the sync")
		}
		if !s.Wait(pos, 0) {
			t.Error("Wait without a bound = false")
		}
	})
}

// TestWaitBeforeRun has a call come before the goroutine that syncs has begun, on a
// disk that takes 5 s to sync.
func TestWaitBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newMemFS()
		fs.delay = func(string) { <-time.After(5 * time.Second) }
		s, err := Create(Config{Dir: "/spool", FS: fs}, testID)
		must(t, err)
		start := time.Now()
		pos := appendLines(t, s, intent(1), false)
		if s.Wait(pos, 20*time.Millisecond) || time.Since(start) != 20*time.Millisecond {
			t.Errorf("it waited %v, want 20ms and no sync", time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		if !s.Wait(pos, 0) {
			t.Error("Run has not synced what was waited for")
		}
		cancel()
		must(t, <-done)
		must(t, s.Close())
	})
}

// TestWaitWhileALossIsReported has OnLoss wait for the sync of its own line, on a
// disk that takes 5 s, while a call is waited for no longer than its limit.
func TestWaitWhileALossIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newMemFS()
		var s *Session
		reported := make(chan bool, 1)
		s, err := Create(Config{Dir: "/spool", FS: fs, OnLoss: func(Loss) {
			reported <- s.Wait(appendLines(t, s, final(9, 9), true), 0)
		}}, testID)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		if !s.Wait(appendLines(t, s, intent(1), false), 0) {
			t.Error("the first line is not synced")
		}
		must(t, fs.Remove(s.cur.name))
		pos := appendLines(t, s, intent(2), false)
		fs.delay = func(string) { <-time.After(5 * time.Second) }
		for range 30 {
			start := time.Now()
			if s.Wait(pos, time.Second); time.Since(start) > time.Second {
				t.Errorf("it waited %v, want 1s", time.Since(start))
			}
			pos = appendLines(t, s, intent(3), false)
			<-time.After(2 * time.Second)
		}
		if !<-reported {
			t.Error("the line about the loss is not synced")
		}
		cancel()
		must(t, <-done)
		must(t, s.Close())
	})
}

func TestGroupCommit(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		n := syncs(fs)
		fs.delay = func(string) { <-time.After(time.Millisecond) }
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if !s.Wait(appendLines(t, s, intent(i), false), 0) {
					t.Error("Wait = false")
				}
			})
		}
		wg.Wait()
		if n() < 1 || n() > 2 {
			t.Errorf("100 calls took %d syncs, want 1 or 2", n())
		}
	})
}

func TestIntervalSyncsAfter50ms(t *testing.T) {
	bubble(t, Interval, func(t *testing.T, fs *memFS, s *Session) {
		n := syncs(fs)
		for want := 1; want <= 3; want++ {
			appendLines(t, s, final(want, 0), true)
			<-time.After(49 * time.Millisecond)
			appendLines(t, s, final(want, 1), true)
			if n() != want-1 {
				t.Errorf("%d syncs 49 ms after an append, want %d", n(), want-1)
			}
			<-time.After(2 * time.Millisecond)
			if n() != want {
				t.Errorf("%d syncs 51 ms after an append, want %d", n(), want)
			}
		}
		// Then nothing happens any more.
		before := fs.count()
		<-time.After(time.Hour)
		if fs.count()-before > 2 {
			t.Errorf("%d operations in an idle hour", fs.count()-before)
		}
	})
}

func TestOSNeverSyncs(t *testing.T) {
	bubble(t, OS, func(t *testing.T, fs *memFS, s *Session) {
		n := syncs(fs)
		if !s.Wait(appendLines(t, s, final(1, 0), true), 0) {
			t.Error("Wait = false")
		}
		if got := len(items(t, ReaderConfig{Dir: "/spool", FS: fs, Durable: true})); got != 1 {
			t.Errorf("%d lines are published, want 1", got)
		}
		<-time.After(time.Minute)
		if n() != 0 {
			t.Errorf("%d syncs", n())
		}
	})
}

// TestPendingIsBounded appends more than 8 MiB during one slow sync.
func TestPendingIsBounded(t *testing.T) {
	bubble(t, Interval, func(t *testing.T, fs *memFS, s *Session) {
		fs.delay = func(string) { <-time.After(behindAfter / 10) } // and a first sync is of several files
		line := intent(1)
		for range 12 << 20 / len(line) {
			appendLines(t, s, line, false)
			s.mu.Lock()
			p := s.pending()
			s.mu.Unlock()
			if p > maxPending {
				t.Fatalf("%d bytes wait for a sync", p)
			}
		}
	})
}

// TestHangingSync appends at the rate of ordinary traffic until a sync that
// does not return is too far behind: no append ever waits, finals are
// accepted, and everything is written once it returns.
func TestHangingSync(t *testing.T) {
	bubble(t, Interval, func(t *testing.T, fs *memFS, s *Session) {
		hang := make(chan struct{})
		fs.delay = func(string) { <-hang }
		line := intent(1)
		var err error
		for n := 0; err == nil; n++ {
			if n%1000 == 0 {
				<-time.After(time.Second)
			}
			start := time.Now()
			if _, err = s.Append(line, false); n > 2*maxPending/len(line) {
				t.Fatal("what waits for a sync has no bound")
			}
			if waited := time.Since(start); waited > 0 {
				t.Fatalf("append number %d waited %v", n, waited)
			}
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("Append = %v, want ErrFull", err)
		}
		start := time.Now()
		appendLines(t, s, final(1, 0), true)
		if waited := time.Since(start); waited > 0 {
			t.Fatalf("a final record waited %v", waited)
		}
		close(hang)
		synctest.Wait()
		appendLines(t, s, line, false)
	})
}

// TestRotationsInASync begins two segments while a sync hangs: the next sync is of both.
func TestRotationsInASync(t *testing.T) {
	bubble(t, Interval, func(t *testing.T, fs *memFS, s *Session) {
		hang := make(chan struct{})
		fs.delay = func(string) { <-hang }
		appendLines(t, s, intent(1), false)
		<-time.After(time.Second)
		var pos int64
		for n := 2; n <= 3; n++ {
			s.mu.Lock()
			s.cur.limit = 1
			s.mu.Unlock()
			pos = appendLines(t, s, intent(n), false)
		}
		close(hang)
		if !s.Wait(pos, time.Minute) {
			t.Fatal("the lines are not synced")
		}
		list := items(t, ReaderConfig{Dir: "/spool", FS: fs.crash(none)})
		if slices.ContainsFunc(list, func(i Item) bool { return i.Damage != Intact }) || len(list) != 3 {
			t.Errorf("after a power cut there are %d lines, want 3: %+v", len(list), list)
		}
	})
}

// TestHangingSyncInAFlood appends without a pause: one append waits, because
// the sync might only be slow; others are refused immediately.
func TestHangingSyncInAFlood(t *testing.T) {
	bubble(t, Interval, func(t *testing.T, fs *memFS, s *Session) {
		hang := make(chan struct{})
		fs.delay = func(string) { <-hang }
		start := time.Now()
		line := intent(1)
		var err error
		for n := 0; err == nil; n++ {
			if _, err = s.Append(line, false); n > 2*maxPending/len(line) {
				t.Fatal("what waits for a sync has no bound")
			}
		}
		for range 100 {
			if _, err := s.Append(line, false); !errors.Is(err, ErrFull) {
				t.Fatalf("Append = %v, want ErrFull", err)
			}
		}
		appendLines(t, s, final(1, 0), true)
		if waited := time.Since(start); waited > behindAfter {
			t.Errorf("appends waited %v", waited)
		}
		close(hang)
		synctest.Wait()
		appendLines(t, s, line, false)
	})
}

// TestFailedSyncsMakeFewSegments: a disk that syncs nothing does not fill up with
// copies of the lines that wait.
func TestFailedSyncsMakeFewSegments(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		fs.judgeBy(func(_ int, op, name string) (verdict, error) {
			if op == "sync" && strings.HasSuffix(name, segmentExt) {
				return lost, unix.EIO
			}
			return fine, nil
		})
		if s.Wait(appendLines(t, s, intent(1), false), 0) {
			t.Error("Wait = true")
		}
		list, err := segments(fs, s.dir)
		must(t, err)
		if len(list) != 2 {
			t.Errorf("segments %d after one sync that failed, want two", list)
		}
		fs.judgeBy(nil)
		<-time.After(2 * retryLast)
	})
}

// TestNoFileIsSyncedAgain fails one sync of a file where no other can be made: the lines
// are not durable, though a second sync of that file would succeed.
func TestNoFileIsSyncedAgain(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		syncs := 0
		fs.judgeBy(func(_ int, op, name string) (verdict, error) {
			if op == "sync" && strings.HasSuffix(name, segmentName(1)) {
				if syncs++; syncs == 1 {
					return lost, unix.EIO
				}
			} else if op == "create" {
				return lost, unix.EIO
			}
			return fine, nil
		})
		pos := appendLines(t, s, intent(1), false)
		if s.Wait(pos, 0) {
			t.Error("Wait = true")
		}
		<-time.After(2 * retryLast)
		synctest.Wait()
		if syncs != 1 {
			t.Errorf("the file was synced %d times, want once", syncs)
		}
		fs.judgeBy(nil)
		if <-time.After(2 * retryLast); !s.Wait(pos, 0) {
			t.Error("the line is not synced elsewhere")
		}
	})
}

// TestLossIsReportedByTheLastSync removes the segment after the last sync but one.
func TestLossIsReportedByTheLastSync(t *testing.T) {
	var losses []Loss
	s := create(t, Config{OnLoss: func(l Loss) { losses = append(losses, l) }})
	appendLines(t, s, intent(1), false)
	must(t, os.Remove(filepath.Join(s.dir, segmentName(1))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.Run(ctx))
	if len(losses) != 1 || losses[0].Reason != "removed" {
		t.Errorf("losses = %+v, want one, removed", losses)
	}
}

// TestNoLineGoesToALostSegment removes the segment where no other can be made: a line
// that is written to it is in no directory.
func TestNoLineGoesToALostSegment(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		pos := appendLines(t, s, intent(1), false)
		must(t, fs.Remove(filepath.Join(s.dir, segmentName(1))))
		fs.judgeBy(func(_ int, op, name string) (verdict, error) {
			if op == "create" {
				return lost, unix.EIO
			}
			return fine, nil
		})
		if s.Wait(pos, 0) {
			t.Error("Wait = true")
		}
		if _, err := s.Append(intent(2), false); !errors.Is(err, ErrFull) {
			t.Errorf("Append = %v, want %v", err, ErrFull)
		}
		fs.judgeBy(nil)
		<-time.After(2 * retryLast)
	})
}

// TestLastLinesAreTriedAtOnce ends a session whose directory was away: what could not be
// written meanwhile does not wait for the next attempt, which may be a minute off.
func TestLastLinesAreTriedAtOnce(t *testing.T) {
	s := create(t, Config{})
	if !s.Wait(appendLines(t, s, intent(1), false), 0) {
		t.Fatal("Wait = false")
	}
	sessions := filepath.Dir(s.dir)
	must(t, os.Rename(sessions, sessions+".away"))
	must(t, os.WriteFile(sessions, nil, 0o600))
	if s.Wait(appendLines(t, s, intent(2), false), 0) {
		t.Error("Wait = true without a directory")
	}
	must(t, os.Remove(sessions))
	if _, err := s.Append(final(2, 0), true); !errors.Is(err, ErrFull) {
		t.Errorf("Append = %v, want %v until the next attempt", err, ErrFull)
	}
	s.Last()
	appendLines(t, s, final(2, 0), true)
	must(t, s.Close())
	checkLines(t, items(t, ReaderConfig{Dir: s.c.Dir}), [][]byte{final(2, 0)}, "after Last")
}

// TestLossIsNoticedUnderOS: nothing is synced, and the segment is looked at all the
// same.
func TestLossIsNoticedUnderOS(t *testing.T) {
	bubble(t, OS, func(t *testing.T, fs *memFS, s *Session) {
		losses := make(chan Loss, 1)
		s.c.OnLoss = func(l Loss) { losses <- l }
		appendLines(t, s, intent(1), false)
		must(t, fs.Remove(filepath.Join(s.dir, segmentName(1))))
		select {
		case l := <-losses:
			if l.Reason != "removed" {
				t.Errorf("loss = %+v, want removed", l)
			}
		case <-time.After(2 * lookEvery):
			t.Error("no loss is reported")
		}
	})
}

// TestDeadDeviceIsTriedAgain leaves the retries to Run.
func TestDeadDeviceIsTriedAgain(t *testing.T) {
	bubble(t, Intent, func(t *testing.T, fs *memFS, s *Session) {
		fs.judgeBy(func(_ int, op, name string) (verdict, error) {
			if op == "sync" || op == "create" {
				return lost, unix.EIO
			}
			return fine, nil
		})
		start := time.Now()
		if s.Wait(appendLines(t, s, intent(1), false), 0) {
			t.Error("Wait = true")
		}
		if time.Since(start) != 0 {
			t.Error("Wait did not hear of the failure at once")
		}
		before := fs.count()
		<-time.After(time.Hour)
		if n := fs.count() - before; n < 60 || n > 200 {
			t.Errorf("%d operations in an hour, want about one attempt a minute", n)
		}
		fs.judgeBy(nil)
		<-time.After(2 * retryLast)
		got := items(t, ReaderConfig{Dir: "/spool", FS: fs.crash(none)})
		if len(got) == 0 || string(got[len(got)-1].Line)+"\n" != string(intent(1)) {
			t.Errorf("after the device came back: %q", texts(got))
		}
	})
}

func TestAppendAfterClose(t *testing.T) {
	s := create(t, Config{})
	appendLines(t, s, intent(1), false)
	must(t, s.Close())
	must(t, s.Close())
	if _, err := s.Append(intent(2), false); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("Append after Close = %v", err)
	}
	if n := len(items(t, ReaderConfig{Dir: s.c.Dir, Durable: true})); n != 1 {
		t.Errorf("%d durable lines, want 1", n)
	}
}

// TestRotation fills three segments and reads them as one log.
func TestRotation(t *testing.T) {
	s := create(t, Config{Durability: Interval, Head: head})
	run(t, s)
	line := final(1, 0)
	n := 3 * segmentSize / len(line)
	for range n {
		appendLines(t, s, line, true)
	}
	e := onlySession(t, s.c.Dir)
	if len(e.Segments) != 4 {
		t.Errorf("segments = %v, want 4", e.Segments)
	}
	records := 0
	for _, i := range items(t, ReaderConfig{Dir: s.c.Dir}) {
		if i.Damage != Intact {
			t.Errorf("%v at %v", i.Damage, i.Pos)
		}
		if i.Record() {
			records++
		}
	}
	if records != n {
		t.Errorf("%d records, want %d", records, n)
	}
}

// onlySession is the only session in dir.
func onlySession(t testing.TB, dir string) Entry {
	t.Helper()
	list, err := List(dir)
	must(t, err)
	if len(list) != 1 || list[0].Err != nil {
		t.Fatalf("List = %+v, want one good session", list)
	}
	return list[0]
}

// TestMemoryAfterABurst keeps the memory of a burst while lines arrive faster
// than they are synced, and frees it afterwards.
func TestMemoryAfterABurst(t *testing.T) {
	fs := newMemFS()
	s, err := Create(Config{Dir: "/spool", FS: fs}, testID)
	must(t, err)
	defer s.Close()
	burst := bytes.Repeat(intent(1), 3*softPending/len(intent(1)))
	held := func() int { return cap(s.live) + cap(s.inflight) }
	synced := func() {
		_, err := s.sync()
		must(t, err)
	}
	appendLines(t, s, burst, false)
	synced()
	fs.delay = func(string) { appendLines(t, s, intent(2), false) }
	for range 4 {
		appendLines(t, s, intent(3), false)
		synced()
	}
	if n := held(); n < len(burst) {
		t.Errorf("between the syncs of a burst, %d bytes are held", n)
	}
	fs.delay = nil
	for range 3 {
		appendLines(t, s, intent(3), false)
		synced()
	}
	if n := held(); n > softPending {
		t.Errorf("after it, %d bytes are held", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{400, 1024} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			benchmarkAppend(b, size)
		})
	}
}

func benchmarkAppend(b *testing.B, size int) {
	s := create(b, Config{Durability: Interval})
	run(b, s)
	line := sized(size)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(line, true); err != nil {
			b.Fatal(err)
		}
	}
}

// sized is a record line of about size bytes.
func sized(size int) []byte {
	r := audit.Record{Kind: audit.KindCall, RecordID: callID(1), SessionID: testID, TS: when(1), Method: "tools/call", Tool: "send_keys"}
	r.Args = audit.JSON(`{"keys":"` + strings.Repeat("k", max(0, size-220)) + `"}`)
	return audit.AppendRecord(nil, &r)
}

func BenchmarkWait(b *testing.B) {
	s := create(b, Config{})
	run(b, s)
	line := sized(400)
	b.ReportAllocs()
	for b.Loop() {
		pos, err := s.Append(line, true)
		if err != nil || !s.Wait(pos, 0) {
			b.Fatalf("not synced: %v", err)
		}
	}
}

// sync1 is sync without its losses.
func (s *Session) sync1() error {
	_, err := s.sync()
	return err
}

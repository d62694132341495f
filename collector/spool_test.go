package collector

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"
)

// writeSession writes a session as a proxy does, with n calls, and keeps it
// alive as that proxy would.
func writeSession(t *testing.T, dir string, n int) (id string) {
	t.Helper()
	id = writeDead(t, dir, n)
	lock, err := os.OpenFile(filepath.Join(dir, "sessions", id, "lock"), os.O_RDWR, 0)
	if err == nil {
		t.Cleanup(func() { lock.Close() })
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// writeDead writes a session as a proxy does that is killed after n calls.
func writeDead(t *testing.T, dir string, n int) (id string) {
	t.Helper()
	s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.Interval}, audit.NewID(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for i := range n {
		b := append(line(i+1, func(r *audit.Record) { r.SessionID = s.ID() }), '\n')
		if _, err := s.Append(b, false); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.ID()
}

// collectSpools runs a collector over dirs until the store has enough.
func collectSpools(t *testing.T, store *fakeStore, enough func() bool, dirs ...string) {
	t.Helper()
	collectWith(t, Config{Store: store, Spools: dirs}, store, enough)
}

func collectWith(t *testing.T, cfg Config, store *fakeStore, enough func() bool) {
	t.Helper()
	cfg.Keep, cfg.BatchWait = 400*24*time.Hour, time.Millisecond
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	for tick := time.NewTicker(5 * time.Millisecond); !enough(); <-tick.C {
		if ctx.Err() != nil {
			records, letters := store.stored()
			t.Errorf("after three minutes: %d records, dead letters %v (%d), gaps %v", records, store.reasons(), letters, store.gaps)
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// committed reports whether the cursor of a session is at its end.
func committed(t *testing.T, dir string, ids ...string) bool {
	t.Helper()
	list, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		for _, id := range ids {
			if e.ID == id && e.Unshipped() {
				return false
			}
		}
	}
	return true
}

func TestSpools(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	ids := []string{writeSession(t, one, 2500), writeSession(t, one, 1), writeSession(t, two, 10)}
	store := newFakeStore()
	store.faults = []fault{ackDropped, lost}
	collectSpools(t, store, func() bool { return committed(t, one, ids...) && committed(t, two, ids...) }, one, two)
	if records, letters := store.stored(); records != 2511 || letters != 0 {
		t.Errorf("%d records and %d dead letters, want 2511 and none", records, letters)
	}
	// Nothing is read again.
	inserts := store.inserts
	more := writeSession(t, two, 5)
	collectSpools(t, store, func() bool { return committed(t, two, more) }, one, two)
	if records, _ := store.stored(); records != 2516 || store.inserts != inserts+1 {
		t.Errorf("%d records after %d more inserts, want 2516 after 1", records, store.inserts-inserts)
	}
}

// TestBacklog checks the backlog of a spool before and after a collector
// acknowledges its records.
func TestBacklog(t *testing.T) {
	dir := t.TempDir()
	one, two := writeSession(t, dir, 100), writeSession(t, dir, 50)
	b := backlog{dir: dir, waiting: map[string]waiting{}, finished: map[string]struct{}{}}
	size := func(ids ...string) (n int64) {
		for _, id := range ids {
			i, err := os.Stat(filepath.Join(dir, "sessions", id, "00000001.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			n += i.Size()
		}
		return n
	}
	if bytes, longest, err := b.look(t.Context()); err != nil || bytes != size(one, two) || longest != 0 {
		t.Errorf("at first %d bytes wait, for %v, %v, want %d", bytes, longest, err, size(one, two))
	}
	if _, longest, err := b.look(t.Context()); err != nil || longest == 0 {
		t.Errorf("later they wait for %v, %v", longest, err)
	}
	collectSpools(t, newFakeStore(), func() bool { return committed(t, dir, one, two) }, dir)
	if bytes, longest, err := b.look(t.Context()); err != nil || bytes != 0 || longest != 0 {
		t.Errorf("after all was acknowledged %d bytes wait, for %v, %v", bytes, longest, err)
	}
}

// TestBacklogOfOpenCall checks that a call without an answer is no backlog, however
// long it takes.
func TestBacklogOfOpenCall(t *testing.T) {
	dir := t.TempDir()
	s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.Always}, audit.NewID(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		<-done
		s.Close()
	}()
	write := func(line []byte) {
		t.Helper()
		if _, err := s.Append(line, false); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the line is durable", func() bool {
			e, _ := spool.Look(dir, s.ID())
			return e.Durable == e.End
		})
	}
	b := backlog{dir: dir, waiting: map[string]waiting{}, finished: map[string]struct{}{}}
	want := func(what string, waits bool) {
		t.Helper()
		if bytes, _, err := b.look(t.Context()); err != nil || bytes > 0 != waits {
			t.Errorf("%s: %d bytes wait, %v", what, bytes, err)
		}
	}
	record := audit.Record{RecordID: audit.NewID(time.Now()), SessionID: s.ID(), CallNo: 1}
	write(audit.AppendIntent(nil, &record))
	want("an open call", false)
	write(append(line(1, func(r *audit.Record) { r.SessionID, r.RecordID = s.ID(), record.RecordID }), '\n'))
	want("its answer", true)
}

// TestHostileSpool checks that damage in one session is a dead letter, a gap or a
// warning, and stops no other session.
func TestHostileSpool(t *testing.T) {
	dir := t.TempDir()
	segment := func(id string) string { return filepath.Join(dir, "sessions", id, "00000001.jsonl") }
	good := writeSession(t, dir, 3)

	foreign := writeSession(t, dir, 1)
	edit := func(id string, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(segment(id))
		if err != nil {
			t.Fatal(err)
		}
		b = change(b)
		if err := os.WriteFile(segment(id), b, 0o600); err != nil {
			t.Fatal(err)
		}
		durable(t, filepath.Join(dir, "sessions", id), 1, len(b))
	}
	// Another session's record.
	edit(foreign, func(b []byte) []byte { return append(b, append(line(2), '\n')...) })
	// A flipped bit, which the checksum finds.
	flipped := writeSession(t, dir, 2)
	edit(flipped, func(b []byte) []byte { b[len(b)-200] ^= 1; return b })
	// A line that is too long, and one after it.
	long := writeSession(t, dir, 1)
	edit(long, func(b []byte) []byte {
		b = append(append(b, bytes.Repeat([]byte("x"), 2<<20)...), '\n')
		return append(append(b, line(2, func(r *audit.Record) { r.SessionID = long })...), '\n')
	})
	// Ten gigabytes without an end, which use neither memory nor disk.
	huge := writeSession(t, dir, 1)
	if err := os.Truncate(segment(huge), 10<<30); err != nil {
		t.Fatal(err)
	}
	// A FIFO, which blocks an ordinary open.
	fifo := writeSession(t, dir, 1)
	if err := os.Remove(segment(fifo)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(segment(fifo), 0o600); err != nil {
		t.Fatal(err)
	}
	// A symbolic link to a file that is readable.
	link := writeSession(t, dir, 1)
	if err := os.Rename(segment(link), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), segment(link)); err != nil {
		t.Fatal(err)
	}

	store := newFakeStore()
	collectSpools(t, store, func() bool {
		records, _ := store.stored() // of the ten gigabytes no end is committed
		return records >= 3+1+1+2+1 && committed(t, dir, good, foreign, flipped, long)
	}, dir)
	if records, _ := store.stored(); records != 3+1+1+2+1 {
		t.Errorf("%d records, want 8", records)
	}
	reasons := store.reasons()
	if reasons["key"] != 1 || reasons["damaged"] != 2 || len(reasons) != 2 {
		t.Errorf("dead letters %v, want one of another session and two that are damaged", reasons)
	}
	for source := range store.letters {
		if source.Topic != ingest.SpoolTopic || source.Partition != 1 {
			t.Errorf("a dead letter of %+v", source)
		}
	}
}

// durable makes a session's reader see a segment up to an offset.
func durable(t *testing.T, session string, segment, offset int) {
	t.Helper()
	b := []byte{byte(segment), byte(segment >> 8), byte(segment >> 16), byte(segment >> 24),
		byte(offset), byte(offset >> 8), byte(offset >> 16), byte(offset >> 24)}
	if err := os.WriteFile(filepath.Join(session, "durable"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMissingSegments checks that a missing segment is a gap, and that the records
// after it are read.
func TestMissingSegments(t *testing.T) {
	dir := t.TempDir()
	id := writeSession(t, dir, 2)
	session := filepath.Join(dir, "sessions", id)
	for i, n := range []int{3, 4} {
		b := append(line(10+i, func(r *audit.Record) { r.SessionID = id }), '\n')
		if err := os.WriteFile(filepath.Join(session, "0000000"+strconv.Itoa(n)+".jsonl"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		durable(t, session, n, len(b))
	}
	store := newFakeStore()
	collectSpools(t, store, func() bool { return committed(t, dir, id) }, dir)
	if records, letters := store.stored(); records != 4 || letters != 0 {
		t.Errorf("%d records and %d dead letters, want 4 and none", records, letters)
	}
	want := ingest.Gap{Topic: ingest.SpoolTopic, Partition: 2, From: 2, To: 2, Session: id, Reason: "segments are missing"}
	if len(store.gaps) != 1 || !store.gaps[want] {
		t.Errorf("gaps %v, want %v", store.gaps, want)
	}
}

// TestSpoolReadTwice: another reader of the spool takes sessions away from this
// one, which is said once.
func TestSpoolReadTwice(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		other, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: writeSession(t, dir, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	free := writeSession(t, dir, 3)
	core, logs := observer.New(zap.WarnLevel)
	store := newFakeStore()
	collectWith(t, Config{Store: store, Spools: []string{dir}, Log: zap.New(core)}, store, func() bool { return committed(t, dir, free) })
	if list := logs.FilterMessageSnippet("another process reads this spool too").All(); len(list) != 1 || list[0].ContextMap()["dir"] != dir {
		t.Errorf("said %v, want it once", list)
	}
}

// scanned returns a collector that reads a spool when its source is scanned.
func scanned(t *testing.T, store Inserter, dir string) (*Collector, *spoolSource) {
	t.Helper()
	c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, BatchWait: time.Millisecond, Spools: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSpoolSource(c)
	var running sync.WaitGroup
	running.Go(func() { s.pipeline.run(t.Context(), s.out) })
	t.Cleanup(running.Wait) // the context ends before it
	return c, s
}

// TestLongFirstSession: a collector is ready once it reads a session, however long that
// is, and not at its end.
func TestLongFirstSession(t *testing.T) {
	dir := t.TempDir()
	writeSession(t, dir, 3*chunkRows)
	c, err := New(Config{Store: newFakeStore(), Keep: 400 * 24 * time.Hour, Spools: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSpoolSource(c)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.scan(ctx) })
	defer running.Wait()
	defer cancel()
	if err := c.Ready(); err == nil {
		t.Error("ready before anything is read")
	}
	<-s.out // what follows waits for the store
	eventually(t, "ready", func() bool { return c.Ready() == nil })
}

// TestSessionNotRead: a session whose files cannot be opened is a part that fails until
// it is read, and delays no other.
func TestSessionNotRead(t *testing.T) {
	dir, store := t.TempDir(), newFakeStore()
	bad, good := writeSession(t, dir, 2), writeSession(t, dir, 2)
	lock := filepath.Join(dir, "sessions", bad, "ship.lock")
	if err := os.MkdirAll(filepath.Join(lock, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, s := scanned(t, store, dir)
	want := fmt.Sprintf("reading sessions of spool %q", dir)
	for range 2 { // also while it is not tried again
		s.scan(t.Context())
		if parts := c.Failing(); len(parts) != 1 || parts[0].Part != want || !strings.Contains(parts[0].Err.Error(), bad) {
			t.Fatalf("%v fails, want %s because of %s", parts, want, bad)
		}
	}
	eventually(t, "the other session is stored", func() bool { s.scan(t.Context()); return committed(t, dir, good) })
	if err := os.RemoveAll(lock); err != nil {
		t.Fatal(err)
	}
	s.next[key(dir, bad)] = attempt{text: s.next[key(dir, bad)].text} // its time has come
	s.scan(t.Context())
	if err := c.Ready(); err != nil {
		t.Errorf("%v fails after the session was read", err)
	}
	eventually(t, "it is stored", func() bool { s.scan(t.Context()); return committed(t, dir, bad) })

	// A session that is removed fails no more.
	bad = writeSession(t, dir, 2)
	if err := os.MkdirAll(filepath.Join(dir, "sessions", bad, "ship.lock", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.scan(t.Context())
	if c.Ready() == nil {
		t.Error("nothing fails while a second session cannot be read")
	}
	if err := os.RemoveAll(filepath.Join(dir, "sessions", bad)); err != nil {
		t.Fatal(err)
	}
	s.scan(t.Context())
	if err := c.Ready(); err != nil {
		t.Errorf("%v fails after the session was removed", err)
	}
}

// TestStuckReader: another process that has a session and reads nothing of it, as one
// that is stopped, is a failure. One that goes on is not, however long it takes.
func TestStuckReader(t *testing.T) {
	dir := t.TempDir()
	id := writeSession(t, dir, 2)
	other, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: id})
	if err != nil {
		t.Fatal(err)
	}
	c, s := scanned(t, newFakeStore(), dir)
	later := func() {
		t.Helper()
		was, ok := s.stuck[key(dir, id)]
		if !ok {
			t.Fatal("the session is not known to be locked")
		}
		was.since = was.since.Add(-stuckAfter - time.Second)
		s.stuck[key(dir, id)] = was
		s.scan(t.Context())
	}
	s.scan(t.Context())
	if err := c.Ready(); err != nil {
		t.Errorf("%v fails at once", err)
	}
	later()
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "another process has locked it") {
		t.Errorf("Ready() = %v after minutes in which nothing was read", err)
	}
	line, err := other.Next()
	if err == nil {
		err = other.Commit(line.End())
	}
	if err != nil {
		t.Fatal(err)
	}
	if later(); c.Ready() != nil {
		t.Errorf("%v fails although the other process went on", c.Ready())
	}
	later()
	if c.Ready() == nil {
		t.Error("nothing fails while the other process is stuck again")
	}
	other.Close()
	s.scan(t.Context())
	if err := c.Ready(); err != nil {
		t.Errorf("%v fails after the other process ended", err)
	}
	eventually(t, "it is stored", func() bool { s.scan(t.Context()); return committed(t, dir, id) })
}

// TestManySpooledSessions: while the store does not answer, only some of many
// sessions have open files, of which a process may have few. One that is read to its
// end is closed.
func TestManySpooledSessions(t *testing.T) {
	const many, few = 20, 3
	dir := t.TempDir()
	var ids []string
	for range many {
		ids = append(ids, writeSession(t, dir, 1))
	}
	store := newFakeStore()
	store.always = lost
	c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, BatchWait: time.Millisecond, Spools: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSpoolSource(c)
	s.room = few
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	until := func(is func() bool) {
		for tick := time.NewTicker(5 * time.Millisecond); !is(); <-tick.C {
		}
	}
	until(func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.tries > 1
	})
	open := func() (n int) {
		for _, id := range ids {
			other, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: id})
			if errors.Is(err, spool.ErrBusy) {
				n++
			} else if err != nil {
				t.Error(err)
			} else {
				other.Close()
			}
		}
		return n
	}
	if n := open(); n == 0 || n > few {
		t.Errorf("%d sessions are open, want 1 to %d", n, few)
	}
	store.mu.Lock()
	store.always = 0
	store.mu.Unlock()
	until(func() bool { return committed(t, dir, ids...) })
	until(func() bool { return open() == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSpoolUnreadable checks that the reason why a directory cannot be read is
// logged now and then, not at each attempt, and that records flow afterwards.
func TestSpoolUnreadable(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "spool")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		absent, other := filepath.Join(parent, "absent"), filepath.Join(parent, "other") // of another program
		if err := os.MkdirAll(filepath.Join(other, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{Store: newFakeStore(), Keep: time.Hour, Spools: []string{dir, absent, other}, Log: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		<-time.After(90 * time.Second)
		if n := logs.FilterMessage("spool not read").Len(); n != 2 || c.Ready() == nil {
			t.Errorf("in 90 s said %d times, want 2; Ready = %v", n, c.Ready())
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		if err := c.Ready(); err != nil {
			t.Errorf("once it can be read, Ready = %v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if yet := logs.FilterMessageSnippet("there is no spool yet").All(); len(yet) != 2 || yet[0].ContextMap()["dir"] != absent || yet[1].ContextMap()["dir"] != other {
			t.Errorf("said %v, want once each that %q and %q are none", yet, absent, other)
		}
	})
}

// TestCursorNotCommitted has a directory in the way of a session's cursor: what is
// stored is read again once a minute, and not any more once the cursor is written. Until
// then that is a failure, also while it is read again.
func TestCursorNotCommitted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		id := writeSession(t, dir, 5)
		inTheWay := filepath.Join(dir, "sessions", id, "shipped.tmp")
		if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		store := newFakeStore()
		c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, BatchWait: time.Millisecond, Spools: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		inserts := func(after time.Duration) int {
			<-time.After(after)
			store.mu.Lock()
			defer store.mu.Unlock()
			return store.inserts
		}
		inserts(time.Second)
		for range 149 {
			<-time.After(time.Second)
			if parts := c.Failing(); len(parts) != 1 || parts[0].Part != fmt.Sprintf("writing cursors of spool %q", dir) || !strings.Contains(parts[0].Err.Error(), id) {
				t.Fatalf("%v fails, want the cursor of %s", parts, id)
			}
		}
		if n := inserts(0); n < 2 || n > 4 {
			t.Errorf("%d inserts in 150 s, want one each minute", n)
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
		n := inserts(2 * time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("%v fails once the cursor was written", err)
		}
		if m := inserts(5 * time.Minute); m != n {
			t.Errorf("%d inserts once the cursor was written", m-n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if e, there := spool.Look(dir, id); !there || e.Unshipped() || len(store.rows) != 5 {
			t.Errorf("%d rows, %+v", len(store.rows), e)
		}
	})
}

// TestDeadSession checks that the calls of a killed proxy are stored although no
// other proxy starts. A session that is alive or cannot be recovered stays
// unchanged and stops no other recovery.
func TestDeadSession(t *testing.T) {
	dir := t.TempDir()
	foreign := writeDead(t, dir, 1)
	if err := os.WriteFile(filepath.Join(dir, "sessions", foreign, "machine"), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	live := writeSession(t, dir, 1)
	dead := writeDead(t, dir, 3)
	now := time.Now()
	intent := audit.AppendIntent(nil, &audit.Record{RecordID: audit.NewID(now), SessionID: dead, CallNo: 4, TS: now, Method: "tools/call", Tool: "pipe_pane"})
	segment := filepath.Join(dir, "sessions", dead, "00000001.jsonl")
	f, err := os.OpenFile(segment, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.Write(append(intent, `{"torn`...)) // not published: the proxy was killed before
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	store := newFakeStore()
	const all = 1 + 1 + 3 + 2 // foreign, live, dead, and what recovery adds
	collectSpools(t, store, func() bool {
		e, _ := spool.Look(dir, dead)
		records, _ := store.stored()
		return e.Finished() && records >= all
	}, dir)
	if records, letters := store.stored(); records != all || letters != 0 {
		t.Errorf("%d records and %d dead letters, want 7 and none", records, letters)
	}
	text, err := os.ReadFile(segment)
	if err != nil || !bytes.Contains(text, []byte(`"outcome":"unknown","error_type":"ProxyDied"`)) || bytes.Contains(text, []byte("torn")) {
		t.Errorf("the session is %s, %v, want an unknown call and no torn line", text, err)
	}
	for _, id := range []string{foreign, live} {
		if e, _ := spool.Look(dir, id); e.State == spool.Ended {
			t.Errorf("session %q was ended", id)
		}
	}
}

// TestDeadSessionIsSigned ends a session whose proxy signed it with a key that is not
// in the spool. Without that key, the end has no signature.
func TestDeadSessionIsSigned(t *testing.T) {
	dir := t.TempDir()
	private, _, err := note.GenerateKey(rand.Reader, "auditproxy/h")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "host.key")
	if err := os.WriteFile(file, []byte(private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func() string {
		id := audit.NewID(time.Now())
		_, public, err := note.GenerateKey(rand.Reader, evidence.Origin("h", id))
		if err != nil {
			t.Fatal(err)
		}
		link, e, err := chain.Begin(chain.Config{Dir: dir, KeyFile: file, Host: "h"}, id, public)
		if err != nil {
			t.Fatal(err)
		}
		start := audit.AppendRecord(nil, &audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(time.Now()), SessionID: id, TS: time.Now(), Duration: -1, Host: "h", Evidence: e.JSON()})
		s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS}, id)
		if err == nil {
			_, err = s.Append(start, false)
		}
		if err == nil {
			err = errors.Join(link.Enter(evidence.Leaf(bytes.TrimSuffix(start, []byte("\n")))), link.Written(), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for key, want := range map[string]int{"": 2, file: 3} {
		id := write()
		store := newFakeStore()
		collectWith(t, Config{Store: store, Spools: []string{dir}, HostKey: key}, store, func() bool {
			e, _ := spool.Look(dir, id)
			return e.Finished()
		})
		text, err := os.ReadFile(filepath.Join(dir, "sessions", id, "00000001.jsonl"))
		if n := bytes.Count(text, []byte(`"kind":`)); err != nil || n != want || bytes.Contains(text, []byte(`"kind":"checkpoint"`)) != (key != "") {
			t.Errorf("with the key %q the session is %s, %v, want %d records", key, text, err, want)
		}
	}
}

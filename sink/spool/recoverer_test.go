package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// A watchedFS is the real file system, with a count of the files that were
// opened and with names that cannot be opened for writing.
type watchedFS struct {
	disk.FS
	opened   int
	readOnly string // part of the names; "": none
}

func (f *watchedFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f.opened++
	if f.readOnly != "" && strings.Contains(name, f.readOnly) && flag&(os.O_RDWR|os.O_WRONLY) != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.EROFS}
	}
	return f.FS.OpenFile(name, flag, perm)
}

// deadSession leaves a session with an open call, as a killed proxy does.
func deadSession(t *testing.T, dir, id string) *Session {
	t.Helper()
	s, err := Create(Config{Dir: dir, Head: head}, id)
	must(t, err)
	appendLines(t, s, boundary(audit.KindSessionStart, 0), true)
	appendLines(t, s, intent(1), false)
	die(t, s)
	return s
}

// TestRecovererReadOnly: sessions that cannot be written are logged once, not
// per pass and session. Others are recovered meanwhile, and they are once
// that is possible.
func TestRecovererReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		deadSession(t, dir, "locked-1")
		deadSession(t, dir, "locked-2")
		core, logs := observer.New(zap.WarnLevel)
		f := &watchedFS{FS: disk.Host(), readOnly: "locked"}
		r := NewRecoverer(RecoverConfig{Dir: dir, Log: zap.New(core), FS: f})
		for n := range 100 {
			if n == 50 {
				deadSession(t, dir, "open")
			}
			done, skipped, err := r.Pass(t.Context())
			must(t, err)
			if want := n == 50; (len(done) == 1) != want {
				t.Fatalf("pass %d recovered %v, want one only of pass 50", n, done)
			}
			if n == 1 && len(skipped) > 0 {
				t.Errorf("the second pass tries %v again at once", skipped)
			}
			<-time.After(passEvery)
		}
		list := logs.FilterMessage("session not recovered").All()
		if len(list) != 1 || list[0].ContextMap()["sessions"] != int64(2) {
			t.Errorf("logged %v, want one line about two sessions", list)
		}
		f.readOnly = ""
		<-time.After(recoverLast)
		if done, _, err := r.Pass(t.Context()); err != nil || len(done) != 2 {
			t.Errorf("once they can be written: %v, %v, want both recovered", done, err)
		}
	})
}

// TestRecovererCost: a pass opens no file of settled sessions, however many
// there are.
func TestRecovererCost(t *testing.T) {
	dir := t.TempDir()
	for n := range 20 {
		deadSession(t, dir, "session-"+string(rune('a'+n)))
	}
	f := &watchedFS{FS: disk.Host()}
	r := NewRecoverer(RecoverConfig{Dir: dir, FS: f})
	for n := range 3 {
		done, skipped, err := r.Pass(t.Context())
		must(t, err)
		if len(skipped) > 0 || len(done) != []int{20, 0, 0}[n] {
			t.Fatalf("pass %d recovered %d sessions and skipped %v", n, len(done), skipped)
		}
		if n == 1 { // the pass after the recovery settles it
			f.opened = 0
		}
	}
	if f.opened > 0 {
		t.Errorf("a pass over settled sessions opened %d files", f.opened)
	}
	must(t, os.RemoveAll(filepath.Join(dir, sessionsDir)))
	_, _, err := r.Pass(t.Context())
	must(t, err)
	if len(r.settled) > 0 {
		t.Errorf("%d sessions that are removed are still known", len(r.settled))
	}
}

// TestRecovererOtherMachine: of the sessions that another machine wrote, as a
// container that is gone, only those that need recovery count as not recovered.
func TestRecovererOtherMachine(t *testing.T) {
	dir := t.TempDir()
	deadSession(t, dir, "dead")
	for _, id := range []string{"ended-1", "ended-2", "unsynced"} {
		s, err := Create(Config{Dir: dir, Head: head}, id)
		must(t, err)
		appendLines(t, s, boundary(audit.KindSessionStart, 0), true)
		appendLines(t, s, boundary(audit.KindSessionEnd, 1), true)
		must(t, s.Close())
	}
	must(t, os.Truncate(filepath.Join(dir, sessionsDir, "unsynced", durableFile), 0))
	f := &watchedFS{FS: disk.Host()}
	r := NewRecoverer(RecoverConfig{Dir: dir, Machine: "another", FS: f})
	done, skipped, err := r.Pass(t.Context())
	must(t, err)
	var names []string
	for _, s := range skipped {
		if !errors.Is(s.Err, errForeign) {
			t.Errorf("session %q: %v", s.Session, s.Err)
		}
		names = append(names, s.Session)
	}
	if len(done) > 0 || !slices.Equal(names, []string{"dead", "unsynced"}) {
		t.Errorf("recovered %v and skipped %q, want the two that are not complete", done, names)
	}
	f.opened = 0
	if _, _, err := r.Pass(t.Context()); err != nil || f.opened > 0 {
		t.Errorf("the second pass: %v, opened %d files, want none", err, f.opened)
	}
}

// TestRecovererForeignDirectory: a directory that another user owns, or that
// others can write, is refused as a whole.
func TestRecovererForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	s := deadSession(t, dir, testID)
	must(t, os.Chmod(filepath.Dir(s.dir), 0o777))
	done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: dir})
	if err == nil || len(done)+len(skipped) > 0 || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("Recover = %v, %v, %v, want it refused", done, skipped, err)
	}
}

// TestRecoverHostileSize: an impossible size costs neither memory nor disk,
// and does not stop the recovery of other sessions.
func TestRecoverHostileSize(t *testing.T) {
	dir := t.TempDir()
	segment := func(s *Session) string { return filepath.Join(s.dir, segmentName(1)) }
	tail := deadSession(t, dir, "a-long-tail")
	must(t, os.Truncate(segment(tail), maxTail+1<<20))
	huge := deadSession(t, dir, "b-huge")
	must(t, os.Truncate(segment(huge), 1<<40))
	pipe := deadSession(t, dir, "c-fifo")
	must(t, os.Remove(segment(pipe)))
	must(t, unix.Mkfifo(segment(pipe), 0o600))
	deadSession(t, dir, "d-good")

	done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: dir})
	must(t, err)
	if len(done) != 2 || done[0].Session != "a-long-tail" || done[0].Unknown != 1 || len(done[0].Torn) > 0 || done[1].Session != "d-good" {
		t.Errorf("recovered %+v, want the one with a long tail, which stays, and the good one", done)
	}
	if len(skipped) != 2 || !strings.Contains(skipped[0].Err.Error(), "more than a proxy writes") || !strings.Contains(skipped[1].Err.Error(), "not a regular file") {
		t.Errorf("skipped %v", skipped)
	}
	if e, _ := Look(dir, "a-long-tail"); e.State != Ended || e.Durable != e.End || len(e.Segments) != 2 {
		t.Errorf("the session with a long tail is %+v, want it ended in a segment of its own", e)
	}
	if _, err := os.Lstat(filepath.Join(tail.dir, ballastFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ballast is still there: %v", err)
	}
}

// TestRecovererNewestFirst: a session that dies while thousands are recovered is
// recovered before the rest of them.
func TestRecovererNewestFirst(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"session-1", "session-2", "session-3"} {
		deadSession(t, dir, id)
	}
	r := NewRecoverer(RecoverConfig{Dir: dir})
	for i, want := range []string{"session-3", "session-9", "session-2", "session-1"} {
		if i == 1 {
			deadSession(t, dir, want)
		}
		done, skipped, more, err := r.pass(t.Context(), time.Now()) // whose time is over at once
		must(t, err)
		if len(done) != 1 || done[0].Session != want || len(skipped) > 0 || more != (want != "session-1") {
			t.Fatalf("pass %d recovered %+v, skipped %v, more is %t; want %s", i, done, skipped, more, want)
		}
	}
}

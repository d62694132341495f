package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// Wait waits until everything before pos is synced, at most limit (0: no
// bound), and reports whether it is. It makes Run sync immediately. It
// returns false before limit if the sync fails and the lines cannot be
// written elsewhere either. Under OS it returns true: written lines count.
// Without Run it syncs itself, which has no limit: before Run has begun, only
// without one.
func (s *Session) Wait(pos int64, limit time.Duration) bool {
	if s.c.Durability == OS {
		return true
	}
	s.wait.Lock()
	if s.synced >= pos {
		s.wait.Unlock()
		return true
	}
	if !s.running && (s.ran || limit == 0) {
		s.wait.Unlock()
		losses, _ := s.sync()
		s.reportLosses(losses)
		s.wait.Lock()
		defer s.wait.Unlock()
		return s.synced >= pos
	}
	w := s.newWaiter(pos)
	s.wait.Unlock()
	s.wake()

	var expired <-chan time.Time
	if limit > 0 {
		w.timer.Reset(limit)
		expired = w.timer.C
	}
	var ok bool
	select {
	case ok = <-w.done:
	case <-expired:
	}
	w.timer.Stop()

	s.wait.Lock()
	defer s.wait.Unlock()
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
	}
	select {
	case ok = <-w.done: // between the two locks
	default:
	}
	s.idle = append(s.idle, w)
	return ok
}

// newWaiter is called with wait held.
func (s *Session) newWaiter(pos int64) *waiter {
	var w *waiter
	if n := len(s.idle); n > 0 {
		w, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		w = &waiter{done: make(chan bool, 1), timer: time.NewTimer(time.Hour)}
		w.timer.Stop()
	}
	w.pos = pos
	s.waiters = append(s.waiters, w)
	return w
}

// wake asks Run to sync now.
func (s *Session) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // requested already, and the sync has not started
	}
}

// Run syncs until ctx ends; then it syncs once more and returns. While nothing
// is written it sleeps.
func (s *Session) Run(ctx context.Context) error {
	s.setRunning(true)
	var reports sync.WaitGroup
	defer reports.Wait()
	for {
		select {
		case <-ctx.Done():
			// The last sync answers earlier waiters; later ones see that Run
			// has ended.
			s.setRunning(false)
			losses, err := s.sync()
			s.reportLosses(losses)
			return err
		case <-s.kick:
		case <-s.due.C:
		}
		// An error is logged and reported to the waiters, and the sync is
		// retried.
		if losses, _ := s.sync(); len(losses) > 0 {
			// OnLoss may append, and so may wait for the next sync.
			reports.Go(func() { s.reportLosses(losses) })
		}
	}
}

func (s *Session) setRunning(running bool) {
	s.wait.Lock()
	defer s.wait.Unlock()
	s.running = running
	s.ran = s.ran || running
}

// hasRun reports whether Run has begun.
func (s *Session) hasRun() bool {
	s.wait.Lock()
	defer s.wait.Unlock()
	return s.ran
}

// reportLosses calls OnLoss, with nothing locked.
func (s *Session) reportLosses(losses []Loss) {
	for _, l := range losses {
		s.log.Error("segment lost", zap.String("session", s.id), zap.Uint32("segment", l.Segment), zap.String("reason", l.Reason))
		if s.c.OnLoss != nil {
			s.c.OnLoss(l)
		}
	}
}

// sync makes the written lines durable, in a new segment if necessary, and
// answers the waiters.
func (s *Session) sync() (losses []Loss, err error) {
	s.syncing.Lock()
	s.setSyncSince(time.Now())
	pos, losses, err := s.syncAll()
	s.setSyncSince(time.Time{})
	s.syncing.Unlock()

	s.wait.Lock()
	if err == nil {
		s.synced = max(s.synced, pos)
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if s.synced < w.pos && err == nil {
			return false // written after this sync started: the next one covers it
		}
		w.done <- s.synced >= w.pos
		return true
	})
	s.wait.Unlock()
	return losses, err
}

func (s *Session) setSyncSince(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncSince = t
}

// syncAll syncs; if that fails, it writes the lines to a new segment and
// syncs that, once. It is called with syncing held.
func (s *Session) syncAll() (pos int64, losses []Loss, err error) {
	for attempt := range 2 {
		var loss *Loss
		if pos, loss, err = s.syncOnce(); err == nil {
			return pos, losses, nil
		}
		if !errors.Is(err, errWaiting) {
			s.log.Warn("sync failed", zap.String("session", s.id), zap.Error(err))
		}
		if loss != nil {
			losses = append(losses, *loss)
		}
		if stop := s.moveOn(attempt, loss != nil); stop != nil {
			return 0, losses, errors.Join(err, stop)
		}
	}
	return 0, losses, err
}

// moveOn starts a segment after the first failed sync. After the second it
// leaves that to a later sync, because each attempt costs a segment. Until
// then lines go to the current segment, unless it was lost: they are not
// refused for not being durable.
func (s *Session) moveOn(attempt int, lost bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	var err error
	if attempt == 0 {
		if err = s.restart(); err == nil {
			return nil
		}
	} else {
		s.backOff(time.Now())
	}
	for _, g := range s.old {
		g.f.Close() // finished; its lines are kept in memory
	}
	s.old, s.failed = nil, true
	if lost && s.cur != nil {
		s.cur.f.Close()
		s.cur = nil
	}
	return err
}

// A batch is the set of files and lines that one sync covers.
type batch struct {
	files            []*segment
	cur              *segment
	end              Position
	pos              int64
	newNames, newDir bool
	sync             bool // false under OS: check only that the path still leads to the file
}

// syncOnce syncs everything written before it started. After an error its
// segments are finished.
func (s *Session) syncOnce() (pos int64, loss *Loss, err error) {
	b, loss, err := s.begin()
	if err != nil || b.cur == nil {
		return b.pos, loss, err
	}
	for _, g := range b.files {
		if !b.sync {
			break
		}
		if err := g.f.Sync(); err != nil {
			return 0, nil, fmt.Errorf("syncing segment %d: %w", g.no, err)
		}
	}
	if b.newNames && b.sync {
		if err := s.syncDir(s.dir); err != nil {
			return 0, nil, fmt.Errorf("syncing %q: %w", s.dir, err)
		}
	}
	if b.newDir && b.sync {
		// It may be missing during recovery.
		if err := disk.SyncFile(s.fs, filepath.Join(s.dir, machineFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, nil, fmt.Errorf("syncing %q: %w", machineFile, err)
		}
		if err := s.syncParents(); err != nil {
			return 0, nil, err
		}
	}
	// The name is checked last, so that a removal before the sync is found by
	// this sync.
	if loss := s.namesUs(b.cur); loss != nil {
		return 0, loss, fmt.Errorf("segment %d was %s", loss.Segment, loss.Reason)
	}
	s.commit(b)
	return b.pos, nil, nil
}

// begin collects the batch. Appends continue meanwhile.
func (s *Session) begin() (b batch, loss *Loss, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return b, nil, errClosed
	}
	if s.cur == nil || s.failed {
		if err := s.restart(); err != nil {
			return b, nil, err
		}
	}
	s.dirty = false
	b.pos = s.written
	b.sync = s.c.Durability != OS || s.closing
	if b.sync && s.pending() == 0 && len(s.old) == 0 && !s.newNames && !s.closing {
		return b, nil, nil // clean
	}
	if s.repeat == 0 {
		s.repeat = s.cur.no
		if len(s.old) > 0 {
			s.repeat = s.old[0].no
		}
	}
	if s.torn {
		if err := s.cut(); err != nil {
			return b, nil, err // restart may work, and repeats
		}
	}
	b.cur = s.cur
	s.batch = append(append(s.batch[:0], s.old...), s.cur)
	b.files = s.batch
	b.end = Position{s.cur.no, s.cur.size}
	b.newNames, b.newDir = s.newNames, s.newDir
	if b.sync {
		s.newNames = false // if the sync fails, restart sets it again
	}
	if len(s.inflight) == 0 {
		s.inflight, s.live = s.live, s.inflight[:0]
	} else {
		s.inflight, s.live = append(s.inflight, s.live...), s.live[:0]
	}
	// Under mu, so that no append changes the size between the two reads.
	i, err := s.cur.f.Stat()
	if err != nil {
		return b, nil, fmt.Errorf("looking at segment %d: %w", s.cur.no, err)
	}
	switch {
	case i.Links == 0:
		loss = &Loss{s.cur.no, s.syncedOf(s.cur), "removed"}
	case i.Size != s.cur.size:
		loss = &Loss{s.cur.no, s.syncedOf(s.cur), "changed"}
	}
	if loss != nil {
		return b, loss, fmt.Errorf("segment %d was %s", loss.Segment, loss.Reason)
	}
	return b, nil, nil
}

// syncParents makes the name of the session's directory durable, and that of
// the spool directory: this may be its first session.
func (s *Session) syncParents() error {
	sessions := filepath.Dir(s.dir)
	root := filepath.Dir(sessions)
	for _, dir := range []string{sessions, root, filepath.Dir(root)} {
		err := s.syncDir(dir)
		if errors.Is(err, fs.ErrPermission) && dir == filepath.Dir(root) {
			return nil // another user's, so this process did not make it
		}
		if err != nil {
			return fmt.Errorf("syncing %q: %w", dir, err)
		}
	}
	return nil
}

// syncDir makes the names in dir durable, and logs once if directories cannot be
// synced. It is called with syncing held.
func (s *Session) syncDir(dir string) error {
	err := disk.TrySyncNames(s.fs, dir)
	if !errors.Is(err, disk.ErrNoDirSync) {
		return err
	}
	if !s.noDirSync {
		s.noDirSync = true
		s.log.Warn("directories cannot be synced, a power cut may take the latest segment", zap.String("dir", dir), zap.Error(err))
	}
	return nil
}

// syncedOf returns how many bytes of g had been synced before the running
// sync. It is called with mu held.
func (s *Session) syncedOf(g *segment) int64 {
	return max(0, g.size-int64(s.pending()))
}

// namesUs reports whether the path of a segment still leads to it.
func (s *Session) namesUs(g *segment) *Loss {
	i, err := s.fs.Lstat(g.name)
	if err == nil && i.Inode == g.inode {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := "removed"
	if err == nil {
		reason = "replaced"
	}
	return &Loss{g.no, s.syncedOf(g), reason}
}

// commit publishes a successful sync and drops its lines. A crash before it
// leaves the published position too low, never too high.
func (s *Session) commit(b batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range b.files {
		if g != b.cur {
			g.f.Close() // synced, so close has no error to report
		}
	}
	s.old = slices.DeleteFunc(s.old, func(g *segment) bool { return slices.Contains(b.files, g) && g != b.cur })
	if n := len(s.inflight); len(s.live) == 0 && cap(s.inflight) > 2*softPending && n < cap(s.inflight)/8 {
		s.inflight = nil // after a burst: no line arrived during this sync
	} else {
		s.inflight = s.inflight[:0]
	}
	if b.newDir && b.sync {
		s.newDir = false
	}
	s.repeat, s.segmentAt, s.retryAfter = 0, time.Time{}, retryFirst
	s.publish(b.end)
}

// Last says that the next lines are the last ones: if there is no segment for them, it
// is tried at once to start one.
func (s *Session) Last() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segmentAt = time.Time{}
}

// Close syncs, publishes and unlocks. The session's files stay, except the
// ballast. Run must have returned.
func (s *Session) Close() error {
	s.Last()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	losses, err := s.sync()
	s.reportLosses(losses)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.ballast {
		// After a crash before this, Recover removes the ballast of the ended
		// session.
		_ = s.fs.Remove(filepath.Join(s.dir, ballastFile))
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("closing session %q: %w", s.id, err)
	}
	return nil
}

package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"auditproxy/internal/diskfull"
)

// The functions of this file are called with mu held.

// restart starts a segment after a failed sync or a loss, with the lines that
// are not known to be synced. The previous segment is finished: a second sync
// of it could report success for pages that the first one lost.
func (s *Session) restart() error {
	now := time.Now()
	if now.Before(s.segmentAt) {
		s.due.Reset(s.segmentAt.Sub(now))
		return errWaiting
	}
	seg, err := s.newSegment(s.repeat, s.inflight, s.live)
	if errors.Is(err, fs.ErrNotExist) {
		seg, err = s.remake()
	}
	if diskfull.Is(err) && s.freeBallast() {
		seg, err = s.newSegment(s.repeat, s.inflight, s.live)
	}
	if err != nil {
		s.backOff(now)
		return fmt.Errorf("beginning segment %d: %w", s.next, err)
	}
	for _, g := range append(s.old, s.cur) {
		if g != nil {
			g.f.Close() // its lines are in the new segment, so its error does not matter
		}
	}
	s.old, s.cur, s.torn, s.failed = nil, seg, false, false
	s.live, s.inflight = append(s.inflight, s.live...), nil
	s.dirty = true
	s.due.Reset(syncEvery)
	return nil
}

// backOff sets when Run next tries to start a segment.
func (s *Session) backOff(now time.Time) {
	s.segmentAt = now.Add(s.retryAfter)
	s.due.Reset(s.retryAfter)
	s.retryAfter = min(2*s.retryAfter, retryLast)
}

// remake makes the session's directory again after another process removed
// it. Its synced lines are gone. The lock on the removed file does not
// protect the new directory, so that is locked too.
func (s *Session) remake() (*segment, error) {
	if _, err := s.fs.Lstat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for %q: %w", s.dir, err)
	}
	if err := s.makeRoot(); err != nil {
		return nil, err
	}
	lock, durable := s.lock, s.durable
	seg, err := s.makeDir(s.repeat, s.inflight, s.live)
	if err != nil {
		s.lock, s.durable = lock, durable
		return nil, err
	}
	s.ballast = false // removed with the directory
	return seg, errors.Join(lock.Close(), durable.Close())
}

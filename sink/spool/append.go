package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/zap"
)

// Append writes sealed lines with one write(2) and returns the position to
// Wait for. After an error no reader sees any of them: the remains of a
// failed write are cut off before the next. For finals of open calls it uses
// the ballast when the disk is full; for others it returns ErrFull until the
// ballast is back.
//
// It keeps a copy of the lines until they are synced. When 8 MiB wait for a
// sync, it waits for the running sync until that has taken a second, and then
// returns ErrFull. Ordinary traffic needs longer to fill 8 MiB, so a hanging
// sync does not delay it. Only lines that arrive at more than 8 MiB a second
// wait for a slow disk: refusing them within milliseconds would refuse calls
// on every slow disk. Finals have another 8 MiB.
func (s *Session) Append(lines []byte, final bool) (pos int64, err error) {
	if len(lines) > segmentSize {
		return 0, fmt.Errorf("appending %d bytes: more than a segment holds", len(lines))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	room := maxPending
	if final {
		room *= 2
	}
	for s.pending() > 0 && s.pending()+len(lines) > room && !s.closed {
		if !s.waitForRoom() {
			return 0, &fullError{errors.New("too many unsynced bytes")}
		}
	}
	if s.closed {
		return 0, errClosed
	}
	if err := s.append(lines, final); err != nil {
		return 0, &fullError{err}
	}
	s.written += int64(len(lines))
	every := syncEvery
	if s.c.Durability == OS {
		s.publish(Position{s.cur.no, s.cur.size})
		every = lookEvery
	} else {
		s.live = append(s.live, lines...)
	}
	if !s.dirty {
		s.dirty = true
		s.due.Reset(every)
	}
	if s.pending() >= softPending {
		s.wake()
	}
	return s.written, nil
}

// waitForRoom waits for the running or next sync, and reports whether it
// succeeded within behindAfter. It is called with mu held, and unlocks it
// meanwhile.
func (s *Session) waitForRoom() bool {
	pos, limit := s.written, behindAfter
	if !s.syncSince.IsZero() {
		limit -= time.Since(s.syncSince)
		if len(s.inflight) > 0 {
			pos -= int64(len(s.live)) // the next sync covers those
		}
	}
	if limit <= 0 {
		return false
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.Wait(pos, limit)
}

// pending returns the number of bytes written and not known to be synced. It
// is called with mu held, like everything below.
func (s *Session) pending() int { return len(s.live) + len(s.inflight) }

func (s *Session) append(lines []byte, final bool) error {
	if s.cur == nil {
		if err := s.restart(); err != nil {
			return err
		}
	}
	if !final && !s.ballast {
		if err := s.regainBallast(); err != nil {
			return err
		}
	}
	if s.cur.size+int64(len(lines)) > s.cur.limit && s.cur.size > s.cur.head {
		if err := s.rotate(0); err != nil && s.cur.size+int64(len(lines)) > maxOffset {
			return err
		} else if err != nil {
			// The size is not a guarantee: a long segment is better than none.
			s.cur.limit += softPending
		}
	}
	before := s.cur
	err := s.write(lines)
	if noSpace(err) && final && s.freeBallast() {
		err = s.write(lines)
	}
	if err == nil || noSpace(err) {
		return err
	}
	// The file exceeds a limit or is in a bad place of the device: a new one
	// may work, unless this one is empty already.
	if s.cur != before || s.cur.size > s.cur.head && s.rotate(0) == nil {
		err = s.write(lines)
	}
	return err
}

// write writes lines after the last good line. A crash in the middle leaves a
// torn line, which recovery sets aside.
func (s *Session) write(lines []byte) error {
	if s.torn {
		if err := s.cut(); err != nil {
			return err
		}
	}
	if _, err := s.cur.f.Write(lines); err != nil {
		s.torn = true
		// Now, to shorten the time that readers see it; if it fails, again
		// before the next write.
		return errors.Join(err, s.cut())
	}
	s.cur.size += int64(len(lines))
	return nil
}

// cut removes the remains of a failed write. If that fails, the segment is
// abandoned: its last line stays torn, and the next segment records that it
// may repeat it.
func (s *Session) cut() error {
	err := s.cur.f.Truncate(s.cur.size)
	if err == nil {
		s.torn = false
		return nil
	}
	seg, nerr := s.newSegment(s.cur.no)
	if nerr != nil {
		return errors.Join(err, nerr)
	}
	s.log.Warn("segment abandoned", zap.String("session", s.id), zap.Uint32("segment", s.cur.no), zap.Error(err))
	s.old = append(s.old, s.cur)
	s.cur, s.torn = seg, false
	return nil
}

// rotate starts the next segment, which may repeat lines of segment repeat
// and later ones; 0 for none. The next sync syncs and closes the previous
// segment.
func (s *Session) rotate(repeat uint32) error {
	if s.torn {
		repeat = s.cur.no
	}
	seg, err := s.newSegment(repeat)
	if err != nil {
		return err
	}
	s.old = append(s.old, s.cur)
	s.cur, s.torn = seg, false
	return nil
}

// regainBallast resumes service after a full disk. Intents are refused until
// the ballast is back, because their final records may need it.
func (s *Session) regainBallast() error {
	now := time.Now()
	if now.Before(s.ballastAt) {
		return errors.New("ballast is not back")
	}
	s.ballastAt = now.Add(ballastEvery)
	if err := s.fillBallast(); err != nil {
		return fmt.Errorf("getting ballast back: %w", err)
	}
	s.log.Warn("ballast is back", zap.String("session", s.id))
	return nil
}

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
	if noSpace(err) && s.freeBallast() {
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

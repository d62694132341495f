package spool

import (
	"errors"
	"fmt"
	"time"

	"auditproxy/internal/diskfull"
)

// Append writes sealed lines with one write(2) and returns the position to
// Wait for. After an error no reader sees any of them: the remains of a
// failed write are cut off before the next. Only where cutting fails too, readers
// see the whole lines among them, and an intent as a call without an answer.
// For finals of open calls it uses the ballast when the disk is full; for others
// it returns ErrFull until the ballast is back.
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
		return 0, &fullError{diskfull.WithRemedy(err)}
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
	if !s.hasRun() {
		limit = 0 // recovery syncs itself
	}
	return s.Wait(pos, limit)
}

// append writes lines to the current segment, and makes one where there is none
// or it is full. It is called with mu held, like write.
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
	if diskfull.Is(err) && final && s.freeBallast() {
		err = s.write(lines)
	}
	if err == nil || diskfull.Is(err) {
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

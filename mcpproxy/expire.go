package mcpproxy

import (
	"time"

	"auditproxy/schemas/audit"
)

// appendEvicted ends the oldest calls beyond maxNameless, maxOpen and
// maxOpenBytes, in s.lines. The last call stays: one is bounded by the size of a
// record.
func (s *session) appendEvicted(now time.Time) {
	for s.open.nameless > maxNameless || s.open.n > maxOpen || s.open.bytes > maxOpenBytes && s.open.n > 1 {
		c := s.open.oldest
		if s.open.nameless > maxNameless {
			c = s.open.find(noID)
		}
		c.anomaly("evicted")
		s.giveUp(c, audit.ErrNoResponse, now)
	}
}

// giveUp ends a call without an answer. One that comes later is an anomaly.
func (s *session) giveUp(c *call, why string, now time.Time) {
	switch {
	case c.class.wanted():
		s.wanted.Add(-1)
	case c.class != recorded:
	case c.early != nil:
		s.concludeEarly(c)
	default:
		if c.rec.CancelRequested {
			why = audit.ErrCancelled
		}
		s.remember(c, now)
		s.conclude(c, audit.OutcomeError, why, now)
	}
	s.open.remove(c)
	s.release(c)
	s.spill()
}

// spill writes final lines once they fill a write, so that memory stays
// bounded.
func (s *session) spill() {
	if len(s.lines) >= maxAppend {
		s.appendFinal(s.lines)
		s.lines = s.lines[:0]
	}
}

// remember keeps the ids of a call that ends, for an answer that comes late.
// When the first unanswered one is forgotten, a record reports it.
func (s *session) remember(c *call, now time.Time) {
	if s.ended {
		return // no answer is read any more
	}
	forgotten := s.late.add(c)
	if forgotten == 0 || s.forgetful {
		return
	}
	s.forgetful = true
	r := s.record(audit.KindAnomaly, now)
	r.CallNo, r.Anomalies = forgotten, []string{"evicted"}
	s.lines = audit.AppendRecord(s.lines, &r)
	s.spill()
}

// arm sets the timer for the first call that is open too long, if it is not
// set: so a call costs no timer of its own, and an idle proxy has none.
func (s *session) arm(now time.Time) {
	if s.armed || s.open.n == 0 || s.ended {
		return
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(openAfter, s.expire)
	} else {
		s.timer.Reset(openAfter)
	}
}

// expire writes an interim record for each call that is open for openAfter,
// and ends those that were cancelled as long ago.
func (s *session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if s.ended {
		return
	}
	now := time.Now()
	s.lines = s.lines[:0]
	next := openAfter
	for c, newer := s.open.oldest, (*call)(nil); c != nil; c = newer {
		newer = c.newer
		switch {
		case c.cancelled > 0 && now.Sub(c.start)-c.cancelled >= openAfter:
			s.giveUp(c, audit.ErrCancelled, now)
			continue
		case c.cancelled > 0:
			next = min(next, openAfter-(now.Sub(c.start)-c.cancelled))
		}
		if c.interim || c.class != recorded {
			continue
		}
		if age := now.Sub(c.start) - c.waited; age < openAfter {
			next = min(next, openAfter-age)
			continue
		}
		c.interim = true
		s.appendOpen(c, now)
	}
	s.appendFinal(s.lines)
	if s.open.n > 0 {
		s.armed = true
		// Calls that fall due together are one look.
		s.timer.Reset(max(next, time.Second))
	}
}

// appendOpen appends an interim record of the call.
func (s *session) appendOpen(c *call, now time.Time) {
	r := s.recordOf(c)
	r.Kind, r.RecordID, r.Seq = audit.KindOpen, audit.NewID(now), s.seq
	r.Duration = now.Sub(c.start) - c.waited
	s.place(r)
	s.seq++
	s.lines = audit.AppendRecord(s.lines, r)
	s.spill()
}

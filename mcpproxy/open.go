package mcpproxy

import (
	"time"

	"auditproxy/schemas/audit"
)

// enter makes the item's call findable by its answer.
func (s *session) enter(it *item) {
	it.entered = true
	it.call.part = it.begun
	s.open.add(it.call, it.id)
	s.open.alias(it.call, it.variant)
	if it.opaque && it.id == nil {
		s.open.name(it.call, noID)
		it.call.nameless = true
		s.open.nameless++
	} else if it.opaque && it.variant == nil {
		s.open.alias(it.call, noID)
	}
	if it.call.class.wanted() {
		s.wanted.Add(1)
	}
}

// leave undoes enter.
func (s *session) leave(it *item) {
	it.entered = false
	s.open.remove(it.call)
	if it.call.class.wanted() {
		s.wanted.Add(-1)
	}
}

func (s *session) cancel(it *item, now time.Time) {
	if c := s.open.findOf(it.cancel, onlyCalls); c != nil && c.cancelled == 0 && it.refused == "" {
		c.cancelled = max(now.Sub(c.start), 1)
		c.rec.CancelRequested = true
		it.found = true
	}
}

// noID is the id of an answer to a message that the server could not read.
var noID = []byte("null")

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
		s.answered.add(c)
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

// remember keeps the ids of a call that ends, for an answer that comes late.
// When the first unanswered one is forgotten, a record reports it.
func (s *session) remember(c *call, now time.Time) {
	if s.ended {
		return // no answer is read any more
	}
	forgotten := s.expired.add(c)
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
func (s *session) arm() {
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
		loose := c.early != nil && c.early.loose
		if c.class != recorded || c.interim && !loose {
			continue
		}
		switch age := now.Sub(c.start) - c.waited; {
		case age < openAfter:
			next = min(next, openAfter-age)
			continue
		case loose:
			s.giveUp(c, "", now)
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

// conclude appends c's final record.
func (s *session) conclude(c *call, outcome audit.Outcome, errorType string, now time.Time) {
	r := s.recordOf(c)
	r.Outcome, r.ErrorType = outcome, errorType
	r.Duration = max(now.Sub(c.start)-c.waited, 0)
	s.place(r)
	r.Seq = s.seq
	s.seq++
	s.lines = audit.AppendRecord(s.lines, r)
	if c.early != nil {
		close(c.early.recorded) // waiters lock mu, and find the lines written
		c.early = nil
	}
}

// concludeEarly ends a call with the answer that came before.
func (s *session) concludeEarly(c *call) {
	e, r := c.early, &c.rec
	r.ResultBytes, r.ErrorCode, r.ErrorDigest, r.ResultType = e.bytes, e.code, audit.JSON(e.digest), e.resultType
	s.conclude(c, e.outcome, e.errorType, e.at)
}

// place sets session, client, server, host and user.
func (s *session) place(r *audit.Record) {
	b := &s.base
	r.SessionID, r.Server, r.ServerCommand = b.SessionID, b.Server, b.ServerCommand
	r.Host, r.User, r.PID, r.Labels, r.Tenant = b.Host, b.User, b.PID, b.Labels, b.Tenant
	if r.Client == (audit.Peer{}) {
		r.Client = b.Client
	}
	if r.ProtocolVersion == "" {
		r.ProtocolVersion = b.ProtocolVersion
	}
}

// recordOf returns what c's record has without the session's part, see place. It
// is good until the next one. Every member that any call's record may have is
// set here or in place; assigning them takes a third of the time of a new Record.
func (s *session) recordOf(c *call) *audit.Record {
	f, r := &c.rec, &s.whole
	r.Kind, r.RecordID, r.Seq, r.CallNo, r.TS = audit.KindCall, f.RecordID, 0, f.CallNo, c.start
	r.Method, r.Tool, r.Target, r.Candidates = f.Method, f.Tool, f.Target, f.Candidates
	r.Outcome, r.ErrorType, r.ErrorCode, r.ResultType, r.Duration = "", "", f.ErrorCode, f.ResultType, 0
	r.Forwarded, r.CancelRequested, r.NotDurable = f.Forwarded, f.CancelRequested, f.NotDurable
	r.ClientID, r.RequestID, r.RequestIDType = f.ClientID, f.RequestID, f.RequestIDType
	r.Client, r.ProtocolVersion = f.Client, f.ProtocolVersion
	r.Tier, r.Annotations, r.ToolHash = f.Tier, f.Annotations, f.ToolHash
	r.Args, r.ArgsBytes, r.ResultBytes, r.ErrorDigest = f.Args, f.ArgsBytes, f.ResultBytes, f.ErrorDigest
	r.Risk, r.Detections, r.Policy, r.Approval = f.Risk, f.Detections, f.Policy, f.Approval
	r.TraceID, r.SpanID, r.Anomalies = f.TraceID, f.SpanID, f.Anomalies
	r.At, r.Bytes, r.Digest = f.At, f.Bytes, f.Digest
	return r
}

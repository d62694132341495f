package mcpproxy

import (
	"bytes"
	"errors"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// session is what the proxy knows between the two directions: which calls are
// open, what was numbered, what could not be written.
type session struct {
	cfg Config
	red *redact.Redactor

	// wanted counts open requests whose answers the proxy reads whole.
	wanted atomic.Int32
	// head is what a segment of the journal starts with.
	head atomic.Pointer[[]byte]

	mu     sync.Mutex // guards all below; held while the journal is written, so that seq is in file order
	base   audit.Record
	seq    uint64 // of the next record
	callNo uint64 // of the last call
	open   calls
	free   []*call
	tools  tools
	late   late
	ended  bool

	lines   []byte // scratch: what is being written
	news    []byte // context and tool lines for the next intents
	backlog []byte // record lines whose write failed; they keep their numbers and come before any other line
	gap     gap
	failing bool // the log was told that the journal takes no lines

	timer *time.Timer
	armed bool
}

// gap is what was not recorded since from.
type gap struct {
	from          time.Time
	count, denied int64
}

var errEnded = errors.New("the session has ended")

func newSession(c Config) *session {
	s := &session{cfg: c, red: c.Redactor, base: c.Base, open: newCalls(), tools: newTools(c.Tiers)}
	s.base.Duration = -1
	s.setHead()
	return s
}

func (s *session) wireHash() hash.Hash { return s.red.NewHash(redact.Wire) }

func (s *session) wantsAnswers() bool { return s.wanted.Load() > 0 }

func (s *session) appendHead(dst []byte) []byte { return append(dst, *s.head.Load()...) }

// setHead makes the head anew after base or tools changed.
func (s *session) setHead() {
	head := audit.AppendContext(nil, &s.base)
	head = s.tools.appendLines(head)
	s.head.Store(&head)
}

// start writes session_start. Nothing was started yet that could be lost.
func (s *session) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.record(audit.KindSessionStart, time.Now())
	r.Proxy = s.cfg.Proxy
	s.lines = audit.AppendRecord(s.lines[:0], &r)
	s.lines = audit.AppendContext(s.lines, &s.base)
	if _, err := s.append(s.lines, false); err != nil {
		s.backlog = append(s.backlog, s.lines...) // for when it can be written
		s.tell(err)
		return err
	}
	return nil
}

// record is a record of the session's own, with the next number.
func (s *session) record(k audit.Kind, now time.Time) audit.Record {
	r := s.base
	r.Kind, r.RecordID, r.TS, r.Seq = k, audit.NewID(now), now, s.seq
	s.seq++
	return r
}

// baseRecord is what all records of the session share.
func (s *session) baseRecord() audit.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// append writes lines after what could not be written before.
func (s *session) append(lines []byte, final bool) (int64, error) {
	if s.cfg.Journal == nil {
		return 0, ErrNotRecorded
	}
	for len(s.backlog) > 0 {
		n := wholeLines(s.backlog)
		if _, err := s.cfg.Journal.Append(s.backlog[:n], true); err != nil {
			return 0, err
		}
		if s.backlog = s.backlog[n:]; len(s.backlog) == 0 {
			s.backlog = nil
		}
	}
	return s.cfg.Journal.Append(lines, final)
}

// appendFinal writes record lines that already have their numbers. What cannot
// be written now is kept and tried again before anything else is.
func (s *session) appendFinal(lines []byte) (pos int64) {
	for len(lines) > 0 {
		n := wholeLines(lines)
		var err error
		if pos, err = s.append(lines[:n], true); err != nil && s.cfg.Journal != nil {
			s.backlog = append(s.backlog, lines...)
			s.tell(err)
			return 0
		}
		lines = lines[n:]
	}
	return pos
}

// tell logs when the journal begins to fail and when it is over, not each call
// between.
func (s *session) tell(err error) {
	switch {
	case err != nil && !s.failing && !s.ended && s.cfg.Journal != nil:
		s.cfg.Log.Error("the spool takes no lines", zap.Bool("calls refused", s.cfg.OnAuditFailure == Deny), zap.Error(err))
	case err == nil && s.failing:
		s.cfg.Log.Warn("the spool takes lines again", zap.Int64("calls not recorded", s.gap.count))
	}
	s.failing = err != nil
}

// wholeLines is how much of lines one Append may take: maxAppend, if the last
// line ends there, or the first line.
func wholeLines(lines []byte) int {
	if len(lines) <= maxAppend {
		return len(lines)
	}
	if i := bytes.LastIndexByte(lines[:maxAppend], '\n'); i >= 0 {
		return i + 1
	}
	return bytes.IndexByte(lines, '\n') + 1
}

// lost records that lines which were written may be gone.
func (s *session) lost(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	r := s.record(audit.KindAnomaly, time.Now())
	r.Anomalies = []string{word}
	s.appendFinal(audit.AppendRecord(nil, &r))
}

// take returns an empty call.
func (s *session) take() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		return c
	}
	return new(call)
}

// reclaim takes c out of the open calls, if it is still the call numbered
// callNo, so that its record can be completed.
func (s *session) reclaim(c *call, callNo uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.rec.CallNo != callNo {
		return false
	}
	s.open.remove(c)
	return true
}

// release ends the use of c and of every string in its record.
func (s *session) release(c *call) {
	buf := c.buf[:0]
	if cap(buf) > maxSpare {
		buf = nil
	}
	if len(s.free) < 256 {
		*c = call{buf: buf}
		s.free = append(s.free, c)
	}
}

// intend numbers the items of one read and writes their lines, in one write.
// After an error none of them has a number, and what they are is counted for
// the gap record.
func (s *session) intend(items []item, now time.Time) (pos int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq, callNo := s.seq, s.callNo
	s.lines = s.lines[:0]
	if s.gap.count > 0 {
		s.appendGap(now)
	}
	s.lines = append(s.lines, s.news...)
	written := len(s.news) > 0
	for i := range items {
		written = s.number(&items[i], now) || written
	}
	if s.ended {
		err = errEnded
	} else if written {
		pos, err = s.append(s.lines, false)
		s.tell(err)
	}
	if err != nil {
		s.seq, s.callNo = seq, callNo
		s.unrecorded(items, now)
		return 0, err
	}
	s.gap = gap{}
	s.news = s.news[:0]
	for i := range items {
		s.settle(&items[i])
	}
	s.appendEvicted(now)
	s.arm(now)
	return pos, nil
}

// number appends the lines of one item and reports whether there are any. A
// call can be found from here on, by the items that come after it in the same
// read, too: how bytes are cut into reads changes no record.
func (s *session) number(it *item, now time.Time) bool {
	switch {
	case it.cancel != nil:
		if c := s.open.find(it.cancel); c != nil && c.cancelled.IsZero() {
			c.cancelled = now
			c.rec.CancelRequested = true
		}
		return false
	case it.junk != nil:
		it.junk.Seq = s.seq
		s.seq++
		s.lines = audit.AppendRecord(s.lines, it.junk)
	case it.call == nil:
		return false
	case it.call.class != recorded:
		s.enter(it)
		return false
	default:
		r := &it.call.rec
		if !it.again {
			s.callNo++
			r.CallNo = s.callNo
		}
		if s.open.taken(it.id) || s.open.taken(it.variant) {
			it.call.anomaly("id_reused")
		}
		s.tools.describe(r, it.tool)
		s.lines = audit.AppendIntent(s.lines, r)
		it.callNo = r.CallNo
		if it.refused != "" {
			s.conclude(it.call, audit.OutcomeError, it.refused, now)
		} else {
			s.enter(it)
		}
	}
	return true
}

// enter makes the item's call findable by its answer.
func (s *session) enter(it *item) {
	s.open.add(it.call, it.id)
	s.open.alias(it.call, it.variant)
	if it.call.class != recorded {
		s.wanted.Add(1)
	}
}

// settle ends what number began, once the item's lines are written.
func (s *session) settle(it *item) {
	switch {
	case it.call == nil:
	case it.refused != "":
		s.release(it.call)
		it.call = nil
	default:
		it.call.rec.Forwarded = true
	}
}

// unrecorded takes back what could not be written: calls are counted for the
// gap record, anomalies wait with the records of answered calls.
func (s *session) unrecorded(items []item, now time.Time) {
	for i := range items {
		switch it := &items[i]; {
		case it.junk != nil && len(s.backlog) < maxBacklog && s.cfg.Journal != nil && !s.ended:
			it.junk.Seq = s.seq
			s.seq++
			s.backlog = audit.AppendRecord(s.backlog, it.junk)
		case it.junk != nil:
			s.missed(now, false)
		case it.call != nil && it.call.class == recorded && !it.again:
			s.missed(now, s.cfg.OnAuditFailure == Deny || it.refused != "")
			if it.refused == "" {
				s.open.remove(it.call)
			}
			s.release(it.call)
			it.call = nil
		case it.again && it.refused != "":
			s.enter(it)
		}
		// What else number entered stays: a call that was begun before needs a
		// record, and what is not recorded is passed on.
	}
}

// missed counts one thing that has no record.
func (s *session) missed(now time.Time, denied bool) {
	if s.gap.count == 0 {
		s.gap.from = now
	}
	s.gap.count++
	if denied {
		s.gap.denied++
	}
}

func (s *session) appendGap(now time.Time) {
	r := s.record(audit.KindGap, now)
	r.From, r.To, r.Count, r.Denied = s.gap.from, now, s.gap.count, s.gap.denied
	s.lines = audit.AppendRecord(s.lines, &r)
}

// amend changes calls that may have been answered meanwhile.
func (s *session) amend(items []item, change func(*audit.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		if it := &items[i]; it.call != nil && it.callNo != 0 && it.call.rec.CallNo == it.callNo {
			change(&it.call.rec)
		}
	}
}

// end writes the records of all open calls and session_end. Nothing is
// recorded afterwards.
func (s *session) end(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	now := time.Now()
	s.lines = s.lines[:0]
	if s.gap.count > 0 {
		s.appendGap(now)
	}
	for s.open.oldest != nil {
		s.giveUp(s.open.oldest, why, now)
	}
	r := s.record(audit.KindSessionEnd, now)
	s.lines = audit.AppendRecord(s.lines, &r)
	s.appendFinal(s.lines)
	if len(s.backlog) > 0 && s.cfg.Journal != nil {
		s.cfg.Log.Error("records lost: the spool took no more lines", zap.Int("bytes", len(s.backlog)))
	}
}

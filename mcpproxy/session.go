package mcpproxy

import (
	"bytes"
	"errors"
	"hash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// session is the state shared by both directions: open calls, numbers given,
// lines not yet written.
type session struct {
	cfg Config
	red *redact.Redactor

	// wanted counts open requests whose answers the proxy reads whole.
	wanted atomic.Int32
	// head holds the first lines of a journal segment.
	head atomic.Pointer[[]byte]
	gate atomic.Pointer[gate]
	// listed counts what was learned from listings of tools.
	listed atomic.Uint64

	mu     sync.Mutex // guards all below; held while the journal is written, so that seq is in file order
	base   audit.Record
	seq    uint64 // of the next record
	callNo uint64 // of the last call
	open   calls
	free   []*call
	// waiting are the calls that wait for a person, in the order of their numbers.
	waiting []*call
	tools   tools
	late    late

	capabilities []byte // of the client, from initialize

	unrecorded []*early         // answers that finish is about to get
	refunds    []policy.Counter // that finish is about to give back
	noRest     bool             // the server has ended: the rest of no call can reach it

	forgetful bool // late forgot a call, and a record reports it

	ended bool

	newContext bool // base changed: a context line goes before the next intents

	pos     int64        // of the journal, after the last lines written
	lines   []byte       // scratch: lines being written
	whole   audit.Record // scratch: see recordOf
	backlog []byte       // record lines whose write failed; they keep their numbers and come before any other line
	gap     gap
	failing bool // it is logged that the journal fails

	timer *time.Timer
	armed bool
}

// gap counts the calls not recorded since from.
type gap struct {
	from          time.Time
	count, denied int64
}

var errEnded = errors.New("the session has ended")

func newSession(c Config, g *gate) *session {
	s := &session{cfg: c, red: c.Redactor, base: c.Base, open: newCalls(), tools: newTools(c.Tiers)}
	s.base.Duration = -1
	s.gate.Store(g)
	s.setHead()
	return s
}

func (s *session) wireHash() hash.Hash { return s.red.NewHash(redact.Wire) }

func (s *session) wantsAnswers() bool { return s.wanted.Load() > 0 }

func (s *session) appendHead(dst []byte) []byte { return append(dst, *s.head.Load()...) }

// setHead rebuilds the head after base or tools changed. Definitions that do
// not fit are left out: they are in the segments before.
func (s *session) setHead() {
	head := s.tools.appendLines(audit.AppendContext(nil, &s.base), maxHead)
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
	if g := s.gate.Load(); g.Policy != nil {
		s.lines = s.appendPolicy(s.lines, g.loaded())
	}
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

// append writes the backlog, then lines.
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
	pos, err := s.cfg.Journal.Append(lines, final)
	if err == nil {
		s.pos = pos
	}
	return pos, err
}

// appendFinal writes record lines that already have their numbers. Lines that
// cannot be written now are kept and retried before any others.
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

// tell logs the first failed append and the recovery, not each call between.
func (s *session) tell(err error) {
	switch {
	case err != nil && !s.failing && !s.ended && s.cfg.Journal != nil:
		s.cfg.Log.Error("spool not writable", zap.Bool("calls refused", s.cfg.OnAuditFailure == Deny), zap.Error(err))
	case err == nil && s.failing:
		s.cfg.Log.Warn("spool writable again", zap.Int64("calls not recorded", s.gap.count))
	}
	s.failing = err != nil
}

// wholeLines is how much of lines one Append may get: maxAppend, if the last
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

// intend numbers the items of one read and writes their lines, in pieces that
// the journal accepts. All of them are written before any byte of the read is
// forwarded.
//
// After an error the items before some point are in the journal and the others
// are not: those have no number and are counted for the gap record. Under Deny
// every frame with a call that is not in the journal is refused; calls of such
// a frame that are in the journal get their final record here. After a crash
// only its intent may be left, which reads as a call whose outcome is unknown.
func (s *session) intend(items []item, now time.Time) (pos int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		s.resume(&items[i], true)
	}
	written := 0
	if s.ended {
		err = errEnded
	} else {
		pos, written, err = s.write(items, now)
	}
	if err != nil {
		for i := written; i < len(items); i++ {
			s.join(items, i)
			// What is not in the journal is missed once.
			items[i].again = items[i].again && (items[i].line == 0 || items[i].line <= written)
		}
		if s.cfg.OnAuditFailure == Deny {
			refuseFrames(items, written, audit.ErrAuditFailure, func(*item) bool { return true })
		} else { // nothing is approved that is not recorded
			refuseFrames(items, written, audit.ErrApprovalUnavailable, func(it *item) bool { return it.waits != nil })
		}
	}
	s.lines = s.lines[:0]
	for i := range items {
		s.settle(&items[i], i < written, now)
	}
	s.appendEvicted(now)
	if len(s.lines) > 0 {
		s.appendFinal(s.lines)
	}
	if cap(s.lines) > 4*maxAppend {
		s.lines = nil
	}
	s.arm(now)
	return pos, err
}

// write writes the gap record, if one is due, the new context, and the lines of
// the items. It returns the number of items whose lines it wrote.
func (s *session) write(items []item, now time.Time) (pos int64, written int, err error) {
	seq, callNo := s.seq, s.callNo
	s.lines = s.lines[:0]
	if s.gap.count > 0 {
		s.appendGap(now)
	}
	if s.newContext {
		s.lines = audit.AppendContext(s.lines, &s.base)
	}
	fresh := 0 // definitions in s.lines
	for i := 0; ; {
		if last := i == len(items) && fresh == len(s.tools.fresh); last || len(s.lines) >= maxAppend {
			if len(s.lines) > 0 {
				pos, err = s.flush(pos)
			}
			if err != nil {
				s.seq, s.callNo = seq, callNo
				return pos, written, err
			}
			seq, callNo, written = s.seq, s.callNo, i
			s.gap, s.newContext = gap{}, false
			s.tools.told(fresh)
			fresh = 0
			if last {
				return pos, written, nil
			}
		}
		if fresh < len(s.tools.fresh) {
			s.lines = s.tools.fresh[fresh].appendLine(s.lines)
			fresh++
			continue
		}
		s.join(items, i)
		s.number(&items[i], now)
		i++
	}
}

// flush writes s.lines. After an error it returns the position before them.
func (s *session) flush(before int64) (int64, error) {
	pos, err := s.append(s.lines, false)
	s.tell(err)
	if err != nil {
		return before, err
	}
	s.lines = s.lines[:0]
	return pos, nil
}

// number appends the lines of one item, if it has any. A call can be found from
// here on, by the items that come after it in the same read, too. An opaque line
// and the message that it becomes have an intent each and the number of the
// line, also in one read: no number depends on where reads cut the bytes.
func (s *session) number(it *item, now time.Time) {
	switch {
	case it.waits != nil && it.refused == "":
		if it.isCall() {
			s.hold(it)
		}
	case it.cancel != nil:
		s.cancel(it, now)
	case it.call == nil:
	case it.call.class != recorded:
		if it.refused == "" {
			if c := s.open.findOf(it.id, onlyCalls); c != nil && !slices.Contains(c.rec.Anomalies, "id_reused") {
				c.anomaly("id_reused")
			}
			s.enter(it)
		}
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
		s.lines = audit.AppendIntent(s.lines, s.recordOf(it.call))
		it.callNo = r.CallNo
		switch {
		case it.refused != "":
			s.conclude(it.call, audit.OutcomeError, it.refused, now)
			it.ended = true
		case it.call.early == nil:
			s.enter(it)
		}
	}
}

func (s *session) cancel(it *item, now time.Time) {
	if c := s.open.findOf(it.cancel, onlyCalls); c != nil && c.cancelled == 0 && it.refused == "" {
		c.cancelled = max(now.Sub(c.start), 1)
		c.rec.CancelRequested = true
		it.found = true
	}
}

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

// refuseFrames refuses those frames that have a call which is not written.
func refuseFrames(items []item, written int, errorType string, those func(*item) bool) {
	for from := 0; from < len(items); {
		to, refuse := from, false
		for ; to < len(items) && items[to].frame == items[from].frame; to++ {
			refuse = refuse || to >= written && items[to].isCall() && those(&items[to])
		}
		for ; from < to; from++ {
			if refuse && items[from].refused == "" {
				items[from].refused = errorType
			}
		}
	}
}

// settle forwards an item to the server or ends it here, depending on whether
// its lines are written.
func (s *session) settle(it *item, written bool, now time.Time) {
	switch {
	case it.waits != nil && it.refused == "":
		return // written, see intend
	case it.cancel != nil && !written:
		s.cancel(it, now)
		return
	case it.call == nil:
		return
	case it.refused == "" && it.call.early == nil && (written || it.again || it.call.class != recorded):
		it.call.rec.Forwarded = true
		if !it.entered {
			s.enter(it)
		}
		return
	}
	if it.entered {
		s.leave(it)
	}
	s.unhold(it.call)
	switch {
	case it.call.class != recorded:
	case !written && !it.again:
		s.missed(now, it.refused != "")
	case it.refused == "":
		it.call.rec.Forwarded = true
		s.concludeEarly(it.call)
	case !it.ended || !written:
		// Its intent is in the journal and the server does not get it whole.
		s.conclude(it.call, audit.OutcomeError, it.refused, now)
	}
	s.release(it.call)
	it.call = nil
}

// join has an item continue the call of an opaque line of the same read.
func (s *session) join(items []item, i int) {
	it := &items[i]
	if it.line == 0 || it.earlier.call != nil {
		return
	}
	line := &items[it.line-1]
	it.earlier = begun{call: line.call, callNo: line.call.rec.CallNo}
	s.resume(it, line.entered)
	line.call, line.entered, line.joined = nil, false, true
}

// resume has the end of an oversize call continue the call that its begin
// made, unless that has ended meanwhile. open means that the call is in the
// table.
func (s *session) resume(it *item, open bool) {
	e := it.earlier.call
	if e == nil || e.rec.CallNo != it.earlier.callNo {
		return
	}
	it.again = true
	defer s.release(e)
	if open {
		s.open.remove(e)
	}
	c := it.call
	c.start, c.cancelled, c.interim, c.early = e.start, e.cancelled, e.interim, e.early
	from := len(c.buf)
	c.buf = append(c.buf, e.rec.RecordID...)
	c.rec.RecordID, c.rec.CallNo = c.text(from), e.rec.CallNo
	c.rec.CancelRequested, c.rec.NotDurable = e.rec.CancelRequested, e.rec.NotDurable
	s.tools.describe(&c.rec, it.tool)
}

// noID is the id of an answer to a message that the server could not read.
var noID = []byte("null")

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
func (s *session) amend(items []item, change func(*facts)) {
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
	s.endWaiting(now)
	r := s.record(audit.KindSessionEnd, now)
	s.lines = audit.AppendRecord(s.lines, &r)
	s.appendFinal(s.lines)
	s.lines = nil
	if len(s.backlog) > 0 && s.cfg.Journal != nil {
		s.cfg.Log.Error("records lost: the spool took no more lines", zap.Int("bytes", len(s.backlog)))
	}
}

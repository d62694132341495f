package mcpproxy

import (
	"time"

	"auditproxy/schemas/audit"
)

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
	s.arm()
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
	s.logJournalState(err)
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
			if c := s.open.findOf(it.id, onlyCalls); c != nil {
				c.reuses()
			}
			s.enter(it)
		}
	default:
		r := &it.call.rec
		if !it.again {
			s.callNo++
			r.CallNo = s.callNo
		}
		s.open.reuse(it.call, it.id, it.variant)
		s.tools.describe(r, it.tool)
		s.lines = audit.AppendIntent(s.lines, s.recordOf(it.call))
		it.callNo = r.CallNo
		switch {
		case it.refused != "":
			s.conclude(it.call, audit.OutcomeError, it.refused, now)
			it.ended = true
		case !it.call.answered():
			s.enter(it)
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
	case it.refused == "" && !it.call.answered() && (written || it.again || it.call.class != recorded):
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
	it.earlier = earlierCall{call: line.call, callNo: line.call.rec.CallNo}
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

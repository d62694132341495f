package mcpproxy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
)

// question describes the calls of a frame to a person.
func (s *session) question(w *waiting) approval.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.base
	server := b.Server.Name
	if server == "" && len(s.cfg.Command) > 0 {
		server = filepath.Base(s.cfg.Command[0])
	}
	q := approval.Question{
		Asked: w.since.UTC().Truncate(time.Microsecond), Expires: w.until.UTC().Truncate(time.Microsecond),
		SessionID: b.SessionID, Host: b.Host, User: b.User, PID: b.PID, Server: server, Client: b.Client.Name,
	}
	calls := callsOf(w.items)
	if len(calls) > 0 {
		q.ID = strings.Clone(calls[0].call.rec.RecordID)
	}
	slices.SortStableFunc(calls, func(a, b heldCall) int { return a.before(b.danger) })
	for _, it := range calls[:min(len(calls), approval.MaxCalls)] {
		r := &it.call.rec
		p, _ := audit.ParsePolicy(r.Policy)
		inside, more := s.inside(w.about, it.tool)
		q.Calls = append(q.Calls, approval.Call{Operations: inside, MoreOperations: more,
			CallNo: r.CallNo, Method: strings.Clone(r.Method), Tool: strings.Clone(r.Tool), Target: strings.Clone(r.Target), Rule: p.Rule, Reason: p.Reason,
			Args: audit.JSON(strings.Clone(string(r.Args))), Risk: r.Risk, Detections: audit.JSON(strings.Clone(string(r.Detections))),
		})
	}
	q.More = len(calls) - len(q.Calls)
	return q
}

// danger is what is known of how dangerous something is that a person is asked about.
type danger struct {
	level string // of the risk
	found int    // detections
}

// before compares what a question shows, the most dangerous first: it has room for some,
// and an agent chooses their order.
func (d danger) before(other danger) int {
	return cmp.Or(approval.CompareLevels(other.level, d.level), other.found-d.found)
}

type heldCall struct {
	*item
	danger
}

func callsOf(items []item) (list []heldCall) {
	for i := range items {
		if it := &items[i]; it.isCall() && it.call != nil {
			r, _ := audit.ParseRisk(it.call.rec.Risk)
			found, _ := audit.ParseDetections(it.call.rec.Detections)
			list = append(list, heldCall{it, danger{r.Level, len(found)}})
		}
	}
	return list
}

// inside returns the names of the tools inside a call of one tool that a person is
// asked about, and how many more there are.
func (s *session) inside(list []operation, tool string) (names []string, more int) {
	list = slices.DeleteFunc(slices.Clone(list), func(o operation) bool { return o.of != tool || !o.inner() })
	slices.SortStableFunc(list, func(a, b operation) int {
		return danger{a.level, len(a.detections)}.before(danger{b.level, len(b.detections)})
	})
	seen := make(map[string]bool)
	for _, o := range list {
		if seen[o.tool] {
			continue
		}
		seen[o.tool] = true
		if len(names) == approval.MaxOperations {
			more++
			continue
		}
		names = append(names, s.short(o.tool))
	}
	return names, more
}

// hold writes the intent of a call that waits. It cannot be found by its answer
// until it is forwarded.
func (s *session) hold(it *item) {
	r := &it.call.rec
	s.callNo++
	r.CallNo = s.callNo
	it.callNo = r.CallNo
	s.tools.describe(r, it.tool)
	s.lines = audit.AppendIntent(s.lines, s.recordOf(it.call))
	s.waiting = append(s.waiting, it.call)
}

// unhold removes a call from those that wait, and reports whether it was there.
func (s *session) unhold(c *call) bool {
	i := slices.Index(s.waiting, c)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}

// admit records that a frame is approved, before it is forwarded: a second intent
// of each call, which replaces the first, has the approval. A crash after this
// leaves calls whose outcome is unknown, and who approved them. pos is where the
// journal has them. ok is false if the frame must not be forwarded: it cannot be
// recorded, or the session has ended.
func (s *session) admit(w *waiting, given audit.Approval, now time.Time) (pos int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, false
	}
	s.lines = s.lines[:0]
	shown := given.JSON()
	for i := range w.items {
		if c := w.items[i].call; c != nil && c.class == recorded {
			c.rec.Approval = shown
			c.waited = now.Sub(c.start)
			s.open.reuse(c, w.items[i].id, w.items[i].variant)
			s.lines = audit.AppendIntent(s.lines, s.recordOf(c))
		}
	}
	var err error
	for rest := s.lines; len(rest) > 0 && err == nil; {
		n := wholeLines(rest)
		pos, err = s.append(rest[:n], false)
		rest = rest[n:]
	}
	if s.logJournalState(err); err != nil { // nothing is approved that is not recorded
		return 0, false
	}
	s.lines = s.lines[:0]
	for i := range w.items {
		it := &w.items[i]
		switch {
		case it.cancel != nil:
			s.cancel(it, now)
		case it.call != nil:
			s.unhold(it.call)
			it.call.rec.Forwarded = it.isCall()
			s.enter(it)
		}
	}
	s.appendEvicted(now)
	if len(s.lines) > 0 {
		s.appendFinal(s.lines)
	}
	s.arm()
	return pos, true
}

// turnDown ends the calls of a frame that is not forwarded, unless endWaiting has.
func (s *session) turnDown(w *waiting, v audit.Approval, errorType string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = s.lines[:0]
	for i := range w.items {
		it := &w.items[i]
		switch c := it.call; {
		case c == nil:
			continue
		case c.class == recorded && s.unhold(c):
			c.rec.Approval = v.JSON()
			c.waited = now.Sub(c.start)
			s.conclude(c, audit.OutcomeError, errorType, now)
			s.release(c)
		case c.class != recorded:
			s.release(c)
		}
		it.call = nil
	}
	s.appendFinal(s.lines)
}

// concludeAsked ends the call of a frame whose result is a question.
func (s *session) concludeAsked(w *waiting, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := w.items[0].call
	if !s.unhold(c) { // endWaiting has ended it
		return
	}
	s.lines = s.lines[:0]
	c.rec.Approval, c.rec.ResultType = "", "input_required"
	s.conclude(c, audit.OutcomeOK, "", now)
	s.release(c)
	s.appendFinal(s.lines)
	w.items[0].call = nil
}

// endWaiting ends the calls that wait when the session ends.
func (s *session) endWaiting(now time.Time) {
	for _, c := range s.waiting {
		c.rec.Approval = audit.Approval{Outcome: "cancelled", WaitMS: now.Sub(c.start).Milliseconds()}.JSON()
		c.waited = now.Sub(c.start)
		s.conclude(c, audit.OutcomeError, audit.ErrCancelled, now)
		s.spill()
	}
	s.waiting = nil
}

// amendWaiting adds a word to the records of calls that wait.
func (s *session) amendWaiting(w *waiting, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.items {
		if c := w.items[i].call; c != nil && slices.Contains(s.waiting, c) && !slices.Contains(c.rec.Anomalies, word) {
			c.anomaly(word)
		}
	}
}

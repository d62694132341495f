package replay

import (
	"container/heap"
	"time"

	"auditproxy/schemas/audit"
)

// maxSessions is how many sessions are kept before those without calls in any
// window are dropped.
const maxSessions = 16384

// Records replays records that come in the order in which their calls started,
// as a store has them. It has no intents: what happened at the end of a call is
// done when the next call starts later.
type Records struct {
	r        *Replay
	sel      Selection
	from     time.Time // of the first record that is asked for; zero: all
	sessions map[string]*stored
	ends     ends
	last     string // record_id of the last one
}

// A stored is a session of a store.
type stored struct {
	Session
	high    uint64    // call_no
	seen    time.Time // of the last call
	counted bool
}

// An end is that of a call that gives back to counters.
type end struct {
	at   time.Time
	call *Call
	rec  audit.Record // without arguments
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Records returns a reader of records, and the time from which it needs them:
// limits count what was before sel.Since. Zero: all.
func (r *Replay) Records(sel Selection) (*Records, time.Time) {
	from := sel.Since
	if !from.IsZero() {
		from = from.Add(-max(r.cfg.Policy.Longest("session"), r.cfg.Policy.Longest("user")))
	}
	return &Records{r: r, sel: sel, from: from, sessions: map[string]*stored{}}, from
}

// Add replays the next call.
func (l *Records) Add(rec *audit.Record) {
	if rec.RecordID == l.last {
		return // stored in two versions; the review page shows them
	}
	l.last = rec.RecordID
	l.end(rec.TS)
	s := l.sessions[rec.SessionID]
	if s == nil {
		if len(l.sessions) >= maxSessions {
			l.drop(rec.TS)
		}
		s = new(stored)
		l.sessions[rec.SessionID] = s
	}
	if rec.CallNo > s.high+1 {
		// Calls before this one are not there, or started before l.from.
		before := rec.TS
		if s.high == 0 && !l.from.IsZero() {
			before = l.from
		}
		s.counters.From = before
		if u := l.r.user(rec); before.After(u.From) {
			u.From = before
		}
	}
	s.high, s.seen = max(s.high, rec.CallNo), rec.TS
	counts := l.sel.has(rec.SessionID, rec.TS)
	if counts && !s.counted {
		s.counted = true
		l.r.report.Sessions++
	}
	c := l.r.Call(&s.Session, rec, counts)
	if rec.ErrorType == audit.ErrJSONRPC && c.decision.Refundable() {
		short := audit.Record{Outcome: rec.Outcome, ErrorType: rec.ErrorType, Forwarded: rec.Forwarded, Anomalies: rec.Anomalies}
		heap.Push(&l.ends, end{rec.TS.Add(max(rec.Duration, 0)), c, short})
		return
	}
	l.r.End(c, rec)
}

// end ends the calls that ended until a time.
func (l *Records) end(now time.Time) {
	for len(l.ends) > 0 && !l.ends[0].at.After(now) {
		e := heap.Pop(&l.ends).(end)
		l.r.End(e.call, &e.rec)
	}
}

// Close ends the calls that are left.
func (l *Records) Close() {
	for len(l.ends) > 0 {
		e := heap.Pop(&l.ends).(end)
		l.r.End(e.call, &e.rec)
	}
}

// drop forgets sessions whose windows are over. If one continues, its earlier calls
// are not known.
func (l *Records) drop(now time.Time) {
	old := now.Add(-max(l.r.cfg.Policy.Longest("session"), time.Hour))
	for id, s := range l.sessions {
		if s.seen.Before(old) {
			delete(l.sessions, id)
		}
	}
}

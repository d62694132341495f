package mcpproxy

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"auditproxy/schemas/audit"
)

// beginAfter is when session_start is written if no other record needs it before:
// most servers have answered initialize by then.
const beginAfter = 50 * time.Millisecond

// start writes the first lines. Nothing was started yet that could be lost.
//
// Without evidence, these are session_start and the context. With it, making the
// keys takes longer than the rest of a start, so only the context is written, which
// shows before the server starts that the journal can be written. session_start
// follows, see begin, and what it says of the proxy is made then.
func (s *session) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.record(audit.KindSessionStart, time.Now())
	lines := audit.AppendContext(nil, &s.base)
	var policy []byte
	if g := s.gate.Load(); g.Policy != nil {
		policy = s.policyLine(g.loaded())
	}
	if s.proof.keys != nil {
		s.first, s.afterFirst = &r, policy
		s.proof.due.Reset(beginAfter)
		_, err := s.cfg.Journal.Append(lines, false)
		if err != nil {
			s.newContext = true
			s.logJournalState(err)
		}
		return err
	}
	r.Proxy = s.proxy()
	return s.appendStart(slices.Concat(audit.AppendRecord(nil, &r), lines, policy))
}

// end writes the records of all open calls, session_end and the checkpoint of all
// records. Nothing is recorded afterwards.
func (s *session) end(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.begin()
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
	s.lines = s.appendLastCheckpoint(audit.AppendRecord(s.lines, &r), now)
	if s.cfg.Journal != nil {
		s.cfg.Journal.Last()
	}
	s.appendFinal(s.lines)
	s.lines = nil
	if len(s.backlog) > 0 && s.cfg.Journal != nil {
		s.cfg.Log.Error("records lost: the spool took no more lines", zap.Int("bytes", len(s.backlog)))
	}
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

func (s *session) setGate(g *gate) {
	s.gate.Store(g)
	s.tellPolicy((*gate).loaded)
}

// tellPolicy records an event of the policy. Calls that were read before may
// have their lines after it.
func (s *session) tellPolicy(event func(*gate) audit.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.seq == 0 {
		return // start records the policy that is in force then
	}
	s.appendFinal(s.policyLine(event(s.gate.Load())))
}

// policyLine is the line of a record about the policy.
func (s *session) policyLine(event audit.Policy) []byte {
	r := s.record(audit.KindPolicy, time.Now())
	event.Source, event.Detail = s.short(event.Source), s.short(event.Detail)
	r.Policy = event.JSON()
	return audit.AppendRecord(nil, &r)
}

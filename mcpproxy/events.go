package mcpproxy

import (
	"time"

	"go.uber.org/zap"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// start writes session_start. Nothing was started yet that could be lost.
func (s *session) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.record(audit.KindSessionStart, time.Now())
	r.Proxy = s.cfg.Proxy
	link := s.beginEvidence(&r)
	first := audit.AppendRecord(nil, &r)
	rest := audit.AppendContext(nil, &s.base)
	if g := s.gate.Load(); g.Policy != nil {
		rest = s.appendPolicy(rest, g.loaded())
	}
	var err error
	if link != nil {
		err = s.writeStart(link, append(first, rest...), evidence.Leaf(first[:len(first)-1]))
		if err == nil {
			return nil
		}
		s.cfg.Log.Error("session has no evidence", zap.Error(err))
		s.proof.signer, r.Evidence = nil, ""
		first = audit.AppendRecord(nil, &r)
	}
	lines := append(first, rest...)
	if _, err = s.append(lines, false); err != nil {
		s.backlog = append(s.backlog, lines...) // for when it can be written
		s.tell(err)
	}
	return err
}

// end writes the records of all open calls, session_end and the checkpoint of all
// records. Nothing is recorded afterwards.
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
	s.lines = s.appendLastCheckpoint(audit.AppendRecord(s.lines, &r), now)
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
	s.appendFinal(s.appendPolicy(nil, event(s.gate.Load())))
}

func (s *session) appendPolicy(dst []byte, event audit.Policy) []byte {
	r := s.record(audit.KindPolicy, time.Now())
	event.Source, event.Detail = s.short(event.Source), s.short(event.Detail)
	r.Policy = event.JSON()
	return audit.AppendRecord(dst, &r)
}

// short is a text of the configuration for a record.
func (s *session) short(text string) string { return string(s.red.AppendText(nil, []byte(text))) }

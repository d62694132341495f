package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/schemas/evidence"
)

// chains compares sessions with those before them and with a log's.
type chains struct {
	cfg    Config
	ended  []*Session
	known  map[string][]known
	starts map[string]evidence.Entry
}

// A link is a session's place among those of its host's key.
type link struct {
	seq     uint64
	id      string
	session *Session // nil: only a log knows it
	entry   evidence.Entry
}

// check adds what it finds to the sessions, and returns the results of sessions that are not here.
func (c *chains) check() (missing []Result) {
	hosts, here := map[string][]link{}, map[string]*Session{}
	for _, s := range c.ended {
		here[s.id] = s
		e, known := c.starts[s.id]
		if b := s.start(); b != nil && b.err == nil {
			hosts[b.evidence.HostKey] = append(hosts[b.evidence.HostKey], link{seq: b.evidence.HostSeq, id: s.id, session: s})
			if !known || b.leaf == e.Leaf {
				continue
			}
		}
		if known && s.start() != nil {
			s.find(finding{Finding: Finding{What: Forked}, text: "seq 0 forked: the log knows another session_start of this session"})
		}
	}
	for id, k := range c.known {
		if here[id] == nil && !c.cfg.Partial {
			missing = append(missing, lost(id, finding{Finding: Finding{What: MissingSession},
				text: fmt.Sprintf("session %s is missing: it has a checkpoint of size %d from %s", id, k[len(k)-1].Size, k[len(k)-1].from)}))
		}
	}
	if c.cfg.Partial {
		return missing
	}
	for id, e := range c.starts {
		if here[id] == nil {
			hosts[e.HostKey] = append(hosts[e.HostKey], link{seq: e.HostSeq, id: id, entry: e})
		}
	}
	for _, list := range hosts {
		slices.SortFunc(list, func(a, b link) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id)) })
		missing = append(missing, c.chain(list, here)...)
	}
	return missing
}

// chain follows the sessions of one key.
func (c *chains) chain(list []link, here map[string]*Session) (missing []Result) {
	last := 0 // the last one that is here
	for i, l := range list {
		if l.session != nil {
			last = i
		}
	}
	for i, l := range list {
		var before *link
		if i > 0 {
			before = &list[i-1]
		}
		switch {
		case l.session == nil && i > last:
			missing = append(missing, lost(l.id, finding{Finding: Finding{What: RolledBack, Seq: l.seq, To: l.seq},
				text: fmt.Sprintf("host_seq %d is rolled back: the log knows session %s, and the last one here is host_seq %d", l.seq, l.id, list[last].seq)}))
		case l.session == nil:
			missing = append(missing, lost(l.id, finding{Finding: Finding{What: MissingSession, Seq: l.seq, To: l.seq},
				text: fmt.Sprintf("host_seq %d is missing: the log knows session %s", l.seq, l.id)}))
		case before == nil:
			p := l.session.start().evidence.Previous
			if p != nil && here[p.SessionID] != nil {
				changedStart(here[p.SessionID], l)
			} else if p != nil && !c.cfg.Complete.IsZero() && c.mustHave(p.SessionID) {
				missing = append(missing, lost(p.SessionID, finding{Finding: Finding{What: MissingSession, Seq: l.seq - 1, To: l.seq - 1},
					text: fmt.Sprintf("host_seq %d is missing before %s", l.seq-1, l.id)}))
			}
		default:
			missing = append(missing, c.follows(*before, l, here)...)
		}
	}
	return missing
}

// follows compares a session with the one before it.
func (c *chains) follows(a, b link, here map[string]*Session) []Result {
	p := b.session.start().evidence.Previous
	fork := func(s *Session, text string) {
		s.find(finding{Finding: Finding{What: Forked}, text: text})
	}
	switch {
	case a.seq == b.seq:
		fork(b.session, fmt.Sprintf("host_seq %d forked: sessions %s and %s have it", b.seq, a.id, b.id))
	case p == nil:
		fork(b.session, fmt.Sprintf("host_seq %d forked: session %s says that it is the first one, and %s came before it", b.seq, b.id, a.id))
	case a.seq+1 < b.seq && here[p.SessionID] != nil:
		changedStart(here[p.SessionID], b)
	case a.seq+1 < b.seq:
		if !c.mustHave(p.SessionID) {
			return nil
		}
		numbers := fmt.Sprintf("%d is", a.seq+1)
		if a.seq+2 < b.seq {
			numbers = fmt.Sprintf("%d to %d are", a.seq+1, b.seq-1)
		}
		return []Result{lost(p.SessionID, finding{Finding: Finding{What: MissingSession, Seq: a.seq + 1, To: b.seq - 1},
			text: fmt.Sprintf("host_seq %s missing between %s and %s", numbers, a.id, b.id)})}
	case p.SessionID != a.id:
		fork(b.session, fmt.Sprintf("host_seq %d forked: session %s follows session %s, which is not here, instead of %s", a.seq, b.id, p.SessionID, a.id))
	case a.session != nil:
		changedStart(a.session, b)
	}
	return nil
}

// changedStart reports a session that has not the session_start that the next one
// follows: another one, or one without evidence. The next one may have another key:
// keys are rotated.
func changedStart(s *Session, next link) {
	if b := s.start(); b != nil && b.leaf == next.session.start().evidence.Previous.Leaf {
		return
	}
	s.find(finding{Finding: Finding{What: Forked}, text: fmt.Sprintf("seq 0 forked: session %s follows another session_start of this session", next.id)})
}

// mustHave reports whether a session is so young that the copy must have it, and
// not so young that it may be on its way.
func (c *chains) mustHave(id string) bool {
	at := startedAt(id)
	return (c.cfg.Complete.IsZero() || at.After(c.cfg.Complete)) && (c.cfg.Until.IsZero() || at.Before(c.cfg.Until))
}

func lost(id string, f finding) Result {
	f.Detail = f.text
	return Result{SessionID: id, State: Tampered, Findings: []Finding{f.Finding}}
}

// startedAt is when a session started: its id is a UUIDv7, whose first 48 bits are
// milliseconds since 1970 (RFC 9562, section 5.7). For other ids it is the zero
// time.
func startedAt(id string) time.Time {
	digits := strings.ReplaceAll(id, "-", "")
	if len(digits) != 32 || digits[12] != '7' {
		return time.Time{}
	}
	var ms int64
	for _, d := range []byte(digits[:12]) {
		n := strings.IndexByte("0123456789abcdef", d)
		if n < 0 {
			return time.Time{}
		}
		ms = ms<<4 | int64(n)
	}
	return time.UnixMilli(ms)
}

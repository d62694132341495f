package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// chains compares sessions with those before them and with a log's.
type chains struct {
	cfg    Config
	ended  []*ended
	known  map[string][]known
	starts map[string][]evidence.Entry

	trusted map[string]bool
	last    map[*hostKey]moment // of a host's records
}

// A link is a session's place among those of its host's key.
type link struct {
	seq     uint64
	id      sessionID
	session *ended // nil: only a log knows it
}

// check adds what it finds to the sessions, and returns the results of sessions
// that are not here.
func (c *chains) check(here map[sessionID]*ended) (missing []Result) {
	hosts := map[string][]link{}
	for _, s := range c.ended {
		if s.host != nil {
			hosts[s.host.key] = append(hosts[s.host.key], link{seq: s.seq, id: s.id, session: s})
		}
		if len(c.starts) == 0 {
			continue
		}
		other := func(e evidence.Entry) bool { return s.unsound() || !s.startsWith(e.Leaf) }
		if list := c.starts[s.id.String()]; len(list) > 1 || slices.ContainsFunc(list, other) { // of two, one is another
			s.find(finding{Finding: Finding{What: Forked}, text: "seq 0 forked: the log knows another session_start of this session"})
		}
	}
	for id, k := range c.known {
		switch {
		case here[packID(id)] != nil || !c.selected(id):
		case !c.mustHave(id, moment{}):
			why := "they may have been removed when they were old"
			if c.onTheWay(id, moment{}) {
				why = "it is so young that they may be on their way"
			}
			missing = append(missing, Result{SessionID: id, State: Incomplete, Unclear: true,
				Note: fmt.Sprintf("there is a checkpoint of it from %s, and none of its records: %s", k[len(k)-1].from, why)})
		default:
			missing = append(missing, lost(id, finding{Finding: Finding{What: MissingSession},
				text: fmt.Sprintf("session %s is missing: it has a checkpoint of size %d from %s", id, k[len(k)-1].Size, k[len(k)-1].from)}))
		}
	}
	if c.cfg.Partial {
		return missing
	}
	for id, list := range c.starts {
		if e := list[0]; here[packID(id)] == nil && c.selected(id) {
			hosts[e.HostKey] = append(hosts[e.HostKey], link{seq: e.HostSeq, id: packID(id)})
		}
	}
	for _, list := range hosts {
		// Of slices.SortFunc for so large a struct auditproxy would have 15 kB.
		sort.Slice(list, func(i, j int) bool {
			a, b := list[i], list[j]
			return cmp.Or(cmp.Compare(a.seq, b.seq), bytes.Compare(a.id.uuid[:], b.id.uuid[:]), cmp.Compare(a.id.text, b.id.text)) < 0
		})
		missing = append(missing, c.chain(list, here)...)
	}
	if len(hosts) > 1 {
		c.forks()
	}
	return merged(missing)
}

// forks finds two sessions of different keys that follow the same one: after a rotation,
// the old key can sign no session of the chain any more. Anyone can write one of a key that
// is not trusted beside one of a key that is.
func (c *chains) forks() {
	type place struct {
		after   sessionID
		trusted bool
	}
	next := map[place]*ended{}
	for _, s := range c.ended {
		if s.host == nil || !s.follows {
			continue
		}
		at := place{s.previous, c.trusted[s.host.key]}
		other := next[at]
		if other == nil {
			next[at] = s
		} else if other.host.key != s.host.key {
			s.find(twins(s.seq, other, s))
		}
	}
}

// twins is the finding that two sessions follow the same one.
func twins(seq uint64, a, b *ended) finding {
	return finding{Finding: Finding{What: Forked}, text: fmt.Sprintf("host_seq %d forked: sessions %s and %s follow the same one", seq, a.id, b.id)}
}

// here returns the sessions that are here. One of which only leaves are here is, if its
// session_start is among them: anyone could write another leaf.
func (c *chains) here() map[sessionID]*ended {
	here := make(map[sessionID]*ended, len(c.ended))
	for _, s := range c.ended {
		full := s.session
		if full == nil || !full.about.Gone || full.records > 0 || full.why != "" || s.host != nil || full.start() == nil && len(full.bare) > 0 {
			here[s.id] = s
		}
	}
	return here
}

// merged returns one result for each session, in the memory of list.
func merged(list []Result) []Result {
	sort.SliceStable(list, func(i, j int) bool { return list[i].SessionID < list[j].SessionID }) // as above, for the size
	results := list[:0]
	for _, r := range list {
		if n := len(results); n > 0 && results[n-1].SessionID == r.SessionID && r.State == Tampered {
			results[n-1].State, results[n-1].Findings = Tampered, append(results[n-1].Findings, r.Findings...)
			continue
		}
		results = append(results, r)
	}
	return results
}

// chain follows the sessions of one key. Several spool directories may have the
// same key, and chains of their own: only the links between sessions count.
func (c *chains) chain(list []link, here map[sessionID]*ended) (missing []Result) {
	last := -1 // the last one that is here
	next := map[sessionID]*ended{}
	for i, l := range list {
		if l.session == nil {
			continue
		}
		last = i
		if !l.session.follows {
			continue
		}
		if other := next[l.session.previous]; other != nil {
			l.session.find(twins(l.seq, other, l.session))
		}
		next[l.session.previous] = l.session
	}
	tails := make([]link, 0, 1) // that no session here follows: few, among a year of sessions
	for _, l := range list {
		if _, followed := next[l.id]; !followed && l.session != nil {
			tails = append(tails, l)
		}
	}
	for i, l := range list {
		switch {
		case last >= 0 && i > last:
			missing = append(missing, lost(l.id.String(), finding{Finding: Finding{What: RolledBack, Seq: l.seq, To: l.seq},
				text: fmt.Sprintf("host_seq %d is rolled back: the log knows session %s, and the last one here is host_seq %d", l.seq, l.id, list[last].seq)}))
		case l.session == nil:
			missing = append(missing, lost(l.id.String(), finding{Finding: Finding{What: MissingSession, Seq: l.seq, To: l.seq},
				text: fmt.Sprintf("host_seq %d is missing: the log knows session %s", l.seq, l.id)}))
		default:
			missing = append(missing, c.follows(before(tails, l.seq), l, here)...)
		}
	}
	return missing
}

// before returns the last of these links, which are sorted, that is not the one right
// before seq; the zero link for none.
func before(tails []link, seq uint64) link {
	if n := sort.Search(len(tails), func(i int) bool { return tails[i].seq >= seq || tails[i].seq+1 == seq }); n > 0 {
		return tails[n-1]
	}
	return link{}
}

// follows compares a session with the one before it, which may be missing: then
// before is the last one that is here of those before that.
func (c *chains) follows(before, l link, here map[sessionID]*ended) []Result {
	if !l.session.follows {
		return nil
	}
	if s := here[l.session.previous]; s != nil {
		switch {
		case s.empty() && !s.session.about.Arriving:
			s.find(finding{Finding: Finding{What: Deleted}, text: fmt.Sprintf("seq 0 deleted: session %s follows the session_start of this session", l.id)})
		case !s.startsWith(l.session.leafOf) && (s.host == nil || !c.trusted[s.host.key] || c.trusted[l.session.host.key]):
			changedStart(s, l) // of a trusted host no stranger can say it
		}
		return nil
	}
	id, none := l.session.previous.String(), before.session == nil
	if _, logged := c.starts[id]; logged || !c.selected(id) {
		return nil // it is reported as such, or nobody looked for it
	}
	if !c.mustHave(id, c.last[l.session.host]) || none && c.cfg.Complete.IsZero() && c.cfg.Since.IsZero() {
		if none {
			l.session.began(l.seq)
		}
		return nil
	}
	if key := l.session.host.key; len(c.trusted) > 0 && !c.trusted[key] {
		l.session.began(l.seq) // anyone can follow a session that never was
		return nil
	}
	from, numbers := l.seq-1, fmt.Sprintf("%d is missing before %s", l.seq-1, l.id)
	switch {
	case none:
	case before.seq+2 < l.seq:
		from, numbers = before.seq+1, fmt.Sprintf("%d to %d are missing between %s and %s", before.seq+1, l.seq-1, before.id, l.id)
	default:
		numbers = fmt.Sprintf("%d is missing between %s and %s", l.seq-1, before.id, l.id)
	}
	return []Result{lost(id, finding{Finding: Finding{What: MissingSession, Seq: from, To: l.seq - 1}, text: "host_seq " + numbers})}
}

// changedStart reports that a session has not the session_start that the next one
// follows: another one, or one without evidence.
func changedStart(s *ended, next link) {
	s.find(finding{Finding: Finding{What: Forked}, text: fmt.Sprintf("seq 0 forked: session %s follows another session_start of this session", next.id)})
}

// mustHave reports whether a session is so young that the copy must have it, and
// not so young that it may be on its way.
func (c *chains) mustHave(id string, last moment) bool {
	at := audit.TimeOfID(id)
	return (c.cfg.Complete.IsZero() || at.After(c.cfg.Complete)) && c.selected(id) && !c.onTheWay(id, last)
}

// onTheWay reports whether a session is so young that none of it may have arrived yet, also
// by the last record of its host, whose clock may be ahead.
func (c *chains) onTheWay(id string, last moment) bool {
	at := audit.TimeOfID(id)
	old := !c.cfg.Now.IsZero() && last.time().Sub(at) > c.cfg.Now.Sub(c.cfg.Until)
	return !c.cfg.Until.IsZero() && !at.Before(c.cfg.Until) && !old
}

// selected reports whether a session would be checked if it were here.
func (c *chains) selected(id string) bool {
	return !c.cfg.Partial && (c.cfg.Session == "" || id == c.cfg.Session) && (c.cfg.Since.IsZero() || !audit.TimeOfID(id).Before(c.cfg.Since))
}

func lost(id string, f finding) Result {
	f.Detail = f.text
	return Result{SessionID: id, State: Tampered, Findings: []Finding{f.Finding}}
}

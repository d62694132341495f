package verify

import (
	"errors"
	"fmt"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// result judges the session.
func (s *Session) result(trusted map[string]bool) Result {
	if text := s.startProblem(); text != "" {
		s.find(finding{Finding: Finding{What: BadSignature}, text: "seq 0 has a bad signature: " + text})
	}
	r := Result{SessionID: s.id, Records: s.records, Removed: s.dropped, Checkpoints: s.checkpoints, Begins: s.begins, Subtrees: s.roots, Findings: s.finds.done(), NotShown: s.finds.notShown}
	b := s.start()
	if b != nil && b.err == nil && trusted[b.evidence.HostKey] {
		r.Verified = s.verified()
		r.Recovered = r.Verified - s.own
	}
	through := fmt.Sprintf("verified through %d of %d", r.Verified, r.Records)
	switch {
	case len(r.Findings) > 0:
		r.State = Tampered
	case s.why != "":
		r.State, r.Note = Unreadable, s.why
	case s.empty() && s.about.Live:
		// A proxy writes session_start shortly after the session's files.
		r.State, r.Note = Incomplete, "running, and has no record yet"
		if at := audit.TimeOfID(s.id); !at.IsZero() && !s.now.IsZero() && s.now.Sub(at) > lastOnTheWay {
			r.Note, r.Unclear = "running, and has no record, although it began on "+at.UTC().Format("2006-01-02 15:04:05")+": its files may have been emptied", true
		}
	case b == nil:
		r.State, r.Note, r.Unclear = Incomplete, "its session_start is not here, so nothing can be verified", true
	case b.err != nil:
		r.State, r.Note = Unsigned, "no evidence: it was off, or could not be made"
	case !trusted[b.evidence.HostKey]:
		r.State, r.Note = Unknown, "signed by a host that is not trusted: "+b.evidence.HostKey
		r.Findings = []Finding{{What: UnknownKey, Detail: r.Note}}
	case s.closed < 0 || r.Verified < r.Records:
		r.State, r.Note, r.Unclear = s.unfinished(through)
	case s.erased > 0:
		r.State, r.Note = Erased, fmt.Sprintf("%s: %s", count(s.erased, "record"), s.erasedBy)
	default:
		r.State = OK
	}
	if short := s.shortNote(); short != "" && (r.State == OK || r.State == Erased || r.State == Incomplete) {
		if r.Note != "" {
			short += "; " + r.Note
		}
		r.State, r.Note, r.Unclear = Incomplete, short, true
		r.Verified = max(0, r.Verified-int64(len(s.short))-s.moreShort) // what these say is not here
	}
	return r
}

// empty reports whether the session has no record, and had none that were old.
func (s *Session) empty() bool {
	return len(s.starts) == 0 && s.records == 0 && s.why == "" && !s.about.Cut
}

// unfinished says why the session is not verified to its end.
func (s *Session) unfinished(through string) (State, string, bool) {
	switch {
	case s.about.Dead && s.endSeq >= 0:
		return Incomplete, "its process ended and recovery has not signed its end, " + through, true
	case s.about.Dead:
		return Incomplete, "its process ended and recovery has not run, " + through, true
	case s.about.Arriving:
		return Incomplete, "records are on their way, " + through, s.unclear || s.about.Late && s.endSeq >= 0
	case s.closed >= 0:
		return Incomplete, through, true
	case s.records-s.provedRecords > maxUnsigned:
		return Incomplete, "no end, and more records without a signature than a running session leaves, " + through, true
	}
	if last := s.last.time(); !s.about.Live && !last.IsZero() && s.others.time().Sub(last) > silentFor {
		return Incomplete, fmt.Sprintf("no end, and no record for %d hours in which its host wrote others, %s", int(s.others.time().Sub(last).Hours()), through), true
	}
	return Incomplete, "running, " + through, false
}

// silentFor is for how long a session that is running may have written nothing while
// its host wrote records of others. It may have been idle, or its end was cut off.
const silentFor = 24 * time.Hour

// maxUnsigned is how many records may follow the last checkpoint of a running
// session. A proxy signs after 256 of them and a sync; an attacker may have
// removed what it signed.
const maxUnsigned = 1024

// startProblem says what is wrong with the start of the session, "" if nothing is.
func (s *Session) startProblem() string {
	b := s.start()
	switch {
	case b == nil:
		return ""
	case errors.Is(b.err, evidence.ErrUnsigned) && s.checkpoints > 0:
		return "session_start has no evidence, and the session has checkpoints"
	case errors.Is(b.err, evidence.ErrUnsigned):
		return ""
	case b.err != nil:
		return b.err.Error()
	}
	return ""
}

// shortNote says which records have a short one in their place, "" for none.
func (s *Session) shortNote() string {
	n := int64(len(s.short)) + s.moreShort
	if n == 0 {
		return ""
	}
	first := ^uint64(0)
	for seq := range s.short {
		first = min(first, seq)
	}
	others := ""
	if n > 1 {
		others = fmt.Sprintf(", and %s", count(n-1, "other"))
	}
	return fmt.Sprintf("seq %d%s: Kafka refused the whole record, and its host signed the short one in its place", first, others)
}

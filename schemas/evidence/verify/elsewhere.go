package verify

import (
	"bytes"
	"fmt"
	"slices"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// compare compares the tree, which has the size of the next known checkpoint.
func (s *Session) compare(k known, root evidence.Hash) {
	text := ""
	switch {
	case len(s.starts) > 0 && !s.signedByUs(k.signed):
		text = fmt.Sprintf("the session has a checkpoint of size %d from %s that is not signed with the key of its session_start", k.Size, k.from)
	case k.Root != root:
		text = fmt.Sprintf("the first %d records are others than those of the checkpoint from %s", k.Size, k.from)
	default:
		s.trust(k.Size, -1, !s.signedByKey(k.signed))
		if k.Record != (evidence.Hash{}) {
			s.pinned = append(s.pinned, k)
		}
		return
	}
	s.find(finding{Finding: Finding{What: Forked, Seq: s.unproved(), To: uint64(k.Size) - 1}, text: text})
	s.broken = true
}

// signedByUs reports whether the session's key or its host's has signed a
// checkpoint of the session.
func (s *Session) signedByUs(signed []byte) bool {
	return s.signedByKey(signed) || slices.ContainsFunc(s.starts, func(b start) bool { return b.signed(b.host, signed) })
}

// signedByKey reports whether the session's key has.
func (s *Session) signedByKey(signed []byte) bool {
	return slices.ContainsFunc(s.starts, func(b start) bool { return b.signed(b.key, signed) })
}

// pin compares the next record with the checkpoints that were signed in it: of the
// last one of a session, no tree covers the record.
func (s *Session) pin(seq uint64, row Row) {
	for _, k := range s.pinned {
		if uint64(k.Size) == seq && !holds(row, k.signed) {
			s.find(finding{Finding: Finding{What: Forked, Seq: seq, To: seq},
				text: fmt.Sprintf("seq %d forked: the checkpoint from %s was signed in another record", seq, k.from)})
			break
		}
	}
	s.pinned = s.pinned[:0]
}

// holds reports whether a record has the checkpoint that was signed, under whatever
// further signatures.
func holds(row Row, signed []byte) bool {
	r := audit.Record{Evidence: row.Evidence}
	if row.Line != nil {
		var err error
		if r, err = audit.Parse(bytes.Clone(row.Line)); err != nil {
			return false
		}
	} else if row.Evidence == "" {
		return true // only its leaf is here
	}
	own, err := evidence.CheckpointOf(&r)
	text, _, _ := bytes.Cut(own, []byte("\n\n"))
	return err == nil && bytes.HasPrefix(signed, append(text, "\n\n"...))
}

// beyond reports what is known of records that the copy does not have.
func (s *Session) beyond(next uint64) {
	for _, k := range slices.Backward(s.known) {
		switch {
		case uint64(k.Size) <= next || s.about.Thin || s.onTheWay(next):
		case s.signedBefore() && !s.signedByUs(k.signed):
			s.find(finding{Finding: Finding{What: Forked, Seq: min(s.unproved(), next), To: uint64(k.Size) - 1},
				text: fmt.Sprintf("the session has a checkpoint of size %d from %s that is not signed with the key of its session_start", k.Size, k.from)})
			continue
		default:
			s.find(finding{Finding: Finding{What: Truncated, Seq: next, To: uint64(k.Size) - 1},
				text: fmt.Sprintf("%s truncated: the checkpoint from %s has size %d", seqs(next, uint64(k.Size)-1), k.from, k.Size)})
		}
		return
	}
}

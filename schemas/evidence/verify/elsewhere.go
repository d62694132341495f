package verify

import (
	"fmt"

	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// compare compares the tree, which has the size of the next known checkpoint.
func (s *Session) compare(k known, root evidence.Hash) {
	text := ""
	switch {
	case !s.signedByUs(k.signed):
		text = fmt.Sprintf("the session has a checkpoint of size %d from %s that is not signed with the key of its session_start", k.Size, k.from)
	case k.Root != root:
		text = fmt.Sprintf("the first %d records are others than those of the checkpoint from %s", k.Size, k.from)
	default:
		s.trust(k.Size, -1)
		return
	}
	s.find(finding{Finding: Finding{What: Forked, Seq: s.unproved(), To: uint64(k.Size) - 1}, text: text})
	s.broken = true
}

// signedByUs reports whether the session's key or its host's has signed a
// checkpoint of the session.
func (s *Session) signedByUs(signed []byte) bool {
	for _, b := range s.starts {
		for _, v := range []note.Verifier{b.key, b.host} {
			if v == nil {
				continue
			}
			if c, _, err := evidence.OpenCheckpoint(signed, note.VerifierList(v)); err == nil && c.Origin == b.evidence.Origin {
				return true
			}
		}
	}
	return false
}

// beyond reports what is known of records that the copy does not have.
func (s *Session) beyond(next uint64) {
	if len(s.known) == 0 {
		return
	}
	if k := s.known[len(s.known)-1]; uint64(k.Size) > next && !s.about.Arriving {
		s.find(finding{Finding: Finding{What: Truncated, Seq: next, To: uint64(k.Size) - 1},
			text: fmt.Sprintf("%s truncated: the checkpoint from %s has size %d", seqs(next, uint64(k.Size)-1), k.from, k.Size)})
	}
}

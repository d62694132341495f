package verify

import (
	"bytes"
	"fmt"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// checkpoint reads the checkpoint of a record. It returns nil if it proves nothing,
// which is a finding unless the session's keys are not here.
func (s *Session) checkpoint(seq uint64, line []byte) *checkpoint {
	s.checkpoints++
	if b := s.start(); b == nil || b.key == nil {
		return nil
	}
	r, err := audit.Parse(bytes.Clone(line))
	var signed []byte
	if err == nil {
		signed, err = evidence.CheckpointOf(&r)
	}
	var c checkpoint
	if err == nil {
		c.Checkpoint, err = evidence.ReadCheckpoint(signed)
	}
	if err != nil {
		s.badSignature(seq, "its checkpoint cannot be read")
		return nil
	}
	c.seq = seq
	by := s.signedBy(signed)
	if by == nobody {
		s.badSignature(seq, "its checkpoint is not signed by this session")
		return nil
	}
	switch moved := int64(seq) - c.Size - s.shift; {
	case moved != 0 && c.Size <= s.lastSize():
		s.find(finding{Finding: Finding{What: Edited, Seq: seq, To: seq}, text: fmt.Sprintf("seq %d edited: it has the checkpoint of an earlier record", seq)})
		return nil
	case moved != 0:
		s.renumbered(c.Size, seq, moved)
	case c.CheckRecord(line, signed) != nil:
		s.find(finding{Finding: Finding{What: Edited, Seq: seq, To: seq}, about: describe(line)})
	}
	if c.byHost = by == theHost; c.byHost {
		if why := s.hostMayNot(&r); why != "" {
			s.badSignature(seq, why)
			return nil
		}
	} else if s.byHost || s.keptByHost {
		s.badSignature(seq, "it follows the checkpoint of recovery")
		return nil
	}
	s.sizes = append(s.sizes, c.Size)
	s.finds.signed(c.Size)
	return &c
}

// keptCheckpoint reads the checkpoint of a record that is here no more: the leaf in
// its place stands for the record, and the tree of the next checkpoint proves it.
func (s *Session) keptCheckpoint(seq uint64, kept audit.JSON) *checkpoint {
	s.checkpoints++
	if b := s.start(); b == nil || b.key == nil {
		return nil
	}
	signed, err := evidence.CheckpointOf(&audit.Record{Evidence: kept})
	c := checkpoint{seq: seq}
	if err == nil {
		c.Checkpoint, err = evidence.ReadCheckpoint(signed)
	}
	if err != nil || c.Size != int64(seq) {
		s.badSignature(seq, "what is kept of its checkpoint is not of this record")
		return nil
	}
	by := s.signedBy(signed)
	if by == nobody {
		s.badSignature(seq, "its checkpoint is not signed by this session")
		return nil
	}
	if s.keptByHost {
		s.badSignature(seq, "it follows the checkpoint of recovery")
		return nil
	}
	// Whether the record was recovery's is not kept. Recovery's is the last one.
	s.keptByHost = by == theHost
	c.byHost, s.kept = by == theHost, int64(seq)
	s.sizes = append(s.sizes, c.Size)
	s.finds.signed(c.Size)
	return &c
}

// Signers of a checkpoint.
type signer int

const (
	nobody signer = iota
	theSession
	theHost
)

// signedBy returns who has signed a checkpoint, and makes the first version of the
// session's start whose keys fit the one to use.
func (s *Session) signedBy(signed []byte) signer {
	for i, b := range s.starts {
		if b.signed(b.key, signed) {
			s.use = i
			return theSession
		}
		// Another host's key may be trusted too: it is not one of this session.
		if b.key != nil && b.signed(b.host, signed) {
			return theHost
		}
	}
	return nobody
}

// hostMayNot says why the host's key may not have signed a record. A holder of that
// key could sign a session again, long after its own key is gone.
func (s *Session) hostMayNot(r *audit.Record) string {
	switch {
	case !r.Recovered:
		return "it is signed with the host's key, and not by recovery"
	case s.endSeq < 0:
		return "it is signed with the host's key, and the session has not ended"
	case s.closed >= 0:
		return "it is signed with the host's key, and the session's end was signed before"
	}
	return ""
}

func (s *Session) badSignature(seq uint64, why string) {
	s.find(finding{Finding: Finding{What: BadSignature, Seq: seq, To: seq}, text: fmt.Sprintf("seq %d has a bad signature: %s", seq, why)})
}

// renumbered reports that a checkpoint's record has another number than it was
// signed with.
func (s *Session) renumbered(size int64, seq uint64, moved int64) {
	what, n, to := Inserted, moved, seq-1
	if moved < 0 {
		what, n, to = Deleted, -moved, max(seq, s.unproved()+1)-1
	}
	records := "1 record"
	if n > 1 {
		records = fmt.Sprintf("%d records", n)
	}
	from := s.unproved()
	text := fmt.Sprintf("%s %s between %s and the checkpoint of size %d, which is seq %d here", records, what, s.lastName(), size, seq)
	s.find(finding{Finding: Finding{What: what, Seq: min(from, to), To: to}, text: text})
	s.shift += moved
	s.broken = true
}

func (s *Session) lastName() string {
	if n := s.lastSize(); n >= 0 {
		return fmt.Sprintf("checkpoint %d", n)
	}
	return "the start"
}

package verify

import (
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// maxShort is how many short records are remembered, so that the whole ones that come
// behind them count.
const maxShort = 1 << 16

// standsFor returns the leaf of the record that a line stands for, and whether it does: if
// the session's host signed that. Else the line counts as it is, and is not the one that
// was written.
func (s *Session) standsFor(h head, line []byte) (leaf evidence.Hash, ok bool) {
	if !evidence.IsStandIn(line) {
		return leaf, false
	}
	for i := range s.starts {
		if leaf, ok = evidence.OpenStandIn(line, s.starts[i].host); ok {
			return leaf, ok
		}
	}
	if h.kind == audit.KindSessionStart && h.seq == 0 {
		b := readStart(line)
		return evidence.OpenStandIn(line, b.host)
	}
	return leaf, false
}

// shorten notes that a record has a short one in its place.
func (s *Session) shorten(seq uint64, short bool) {
	if !short {
		return
	}
	if len(s.short) == maxShort {
		s.moreShort++
		return
	}
	if s.short == nil {
		s.short = map[uint64]bool{}
	}
	s.short[seq] = true
}

// whole notes that a record is here: a short one may have been in its place.
func (s *Session) whole(seq uint64, row Row) {
	if !row.short {
		delete(s.short, seq)
	}
}

package verify

import (
	"errors"
	"slices"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// About is what is known of a session beside its records.
type About struct {
	Live     bool // its writer is alive: more records may follow
	Dead     bool // its writer is gone, and its end is not written yet
	Arriving bool // records may be on their way: what is missing is not deleted
	Late     bool // all that are here are so old that others are hardly on their way
	Cut      bool // its first records may have been removed when they were old
	Gone     bool // only leaves are here: the session counts as the one before another, if its session_start is known
	Thin     bool // and most of these may have been removed too, because they were old; the first one stays
}

// A Row is one record of a copy.
type Row struct {
	Line []byte // without its line feed; valid until Add returns. nil: erased, or dropped when it was old

	// Seq is what the copy says of the record beside its line, if HasSeq is set. It
	// is set for a row without a line.
	Seq    uint64
	HasSeq bool

	Leaf   evidence.Hash // of a row without a line
	Erased string        // of a row without a line: who erased its content and when; "": it was old
	Lost   bool          // of a row without a line: neither is a reason that it has none

	// Evidence is what the record of a row without a line had signed, "" if it had
	// signed nothing: that of a session_start, or a checkpoint.
	Evidence audit.JSON

	Differs []string // the names of columns that differ from what Line says

	short     bool // Line stands for another one, whose leaf is standsFor
	standsFor evidence.Hash
}

func (row *Row) leaf() evidence.Hash {
	switch {
	case row.Line == nil:
		return row.Leaf
	case row.short:
		return row.standsFor
	}
	return evidence.Leaf(row.Line)
}

// A Session checks the records of one session. It belongs to one goroutine.
type Session struct {
	now   time.Time // zero: not known
	end   func(*Session)
	id    string
	about About

	last   moment // of its records
	others moment // the last one of the sessions of its host; known once all are read

	win     window
	pending []*checkpoint // whose trees were not found yet
	damaged []damage      // lines without a place yet
	wild    *wildRow      // a record far ahead, until the next one shows whether records are missing
	all     *memory
	known   []known // the next one first
	pinned  []known // those that were signed in the next record
	forgot  bool

	starts  []start
	bare    []evidence.Hash // of versions of session_start whose evidence was not kept
	use     int             // the start whose keys fit
	endSeq  int64
	endTime time.Time

	sizes  []int64         // of checkpoints with good signatures, ascending
	proved int64           // the size of the last tree that was proved
	roots  []evidence.Hash // its subtrees'
	signer int64           // seq of its checkpoint, which signs its own record; -1: it is not here
	closed int64           // seq of the last record, which signs the session's end; -1: none
	kept   int64           // seq of the last checkpoint in a row without a line; -1: none
	byHost bool            // that is signed by the host's key

	keptByHost bool  // a checkpoint in a row without a line is
	shift      int64 // by how much records are numbered differently than when they were signed
	unclear    bool  // records are missing, and it is not likely that they are on their way
	broken     bool  // a record is not the one that was signed: trees prove nothing from here on

	begins uint64 // its host_seq, if it is the first one that is here

	records       int64
	provedRecords int64
	own           int64 // of them, those that the session's own key has signed
	dropped       int64 // rows without a line because they were old
	erased        int64
	erasedBy      string
	short         map[uint64]bool // records of which only a short one is here, up to maxShort
	moreShort     int64           // further ones
	checkpoints   int64

	finds findings
	why   string // it cannot be read
}

type damage struct {
	seq   uint64
	named bool // seq is what it says
	about string
}

type wildRow struct {
	head head
	row  Row
}

func newSession(cfg Config, id string, about About, known []known, end func(*Session)) *Session {
	s := &Session{now: cfg.Now, end: end, id: id, about: about, known: known, endSeq: -1, closed: -1, signer: -1, kept: -1}
	s.all = &memory{limit: 1024}
	if cfg.Remember {
		s.all.limit = 0
	}
	return s
}

// find adds a finding, with the checkpoints around it.
func (s *Session) find(n finding) {
	n.after, n.before = s.around(n.Seq, n.To)
	s.finds.add(n)
}

// around returns the sizes of the signed checkpoints around records; -1: none.
func (s *Session) around(from, to uint64) (after, before int64) {
	after, before = -1, -1
	for i := len(s.sizes) - 1; i >= 0; i-- {
		size := uint64(s.sizes[i])
		if size > to {
			before = s.sizes[i]
		}
		if size <= from {
			return s.sizes[i], before
		}
	}
	return after, before
}

func (s *Session) lastSize() int64 {
	if len(s.sizes) == 0 {
		return -1
	}
	return s.sizes[len(s.sizes)-1]
}

// unproved returns the first record that no signature covers.
func (s *Session) unproved() uint64 { return uint64(max(s.proved, s.signer+1)) }

// trust notes that the first size records, of which the running tree is, are proved, by the
// host's key or the session's own, and the checkpoint that proves it, which signs its own
// record too.
func (s *Session) trust(size, seq int64, byHost bool) {
	if size < s.proved {
		return
	}
	s.proved, s.provedRecords, s.roots = size, size-s.dropped, s.win.run.Subtrees()
	if seq == size {
		s.signer = seq
	}
	if !byHost {
		s.own = s.verified()
	}
}

// verified is how many records are, if the host is trusted.
func (s *Session) verified() int64 {
	if s.signer == s.proved {
		return s.provedRecords + 1
	}
	return s.provedRecords
}

func (s *Session) start() *start {
	if len(s.starts) == 0 {
		return nil
	}
	return &s.starts[s.use]
}

// startsWith reports whether the session's first record has that leaf, as far as it is here.
func (s *Session) startsWith(leaf evidence.Hash) bool {
	if b := s.start(); b != nil {
		return b.leaf == leaf
	}
	return len(s.bare) == 0 || slices.Contains(s.bare, leaf)
}

// onTheWay reports whether a missing record and those behind it may be on their way.
func (s *Session) onTheWay(seq uint64) bool {
	if !s.about.Arriving {
		return false
	}
	known := len(s.known) > 0 && uint64(s.known[len(s.known)-1].Size) > seq
	s.unclear = s.unclear || s.about.Late || known
	return !s.about.Late || !known
}

// unsigned reports whether the session is from a proxy without evidence, as far as its
// records say.
func (s *Session) unsigned() bool {
	b := s.start()
	return s.checkpoints == 0 && len(s.known) == 0 && (b == nil || errors.Is(b.err, evidence.ErrUnsigned))
}

// signedBefore reports whether the session has evidence.
func (s *Session) signedBefore() bool { return s.start() != nil && s.start().signs }

func (s *Session) hostKey() string {
	if b := s.start(); b != nil && b.signs {
		return b.evidence.HostKey
	}
	return ""
}

func (s *Session) hostName() string {
	if b := s.start(); b != nil {
		return b.hostName
	}
	return ""
}

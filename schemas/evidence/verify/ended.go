package verify

import (
	"encoding/hex"

	"auditproxy/schemas/evidence"
)

// An ended session is what is kept of one until all are compared, 200 bytes: of a year
// there may be a million.
type ended struct {
	id   sessionID
	host *hostKey      // of its session_start; nil: that is not here or not in order
	leaf evidence.Hash // of its session_start
	seq  uint64        // its host_seq

	follows  bool // another one
	previous sessionID
	leafOf   evidence.Hash // that previous must begin with

	records, own, checkpoints int64
	begins                    uint64
	roots                     []evidence.Hash

	gone    bool     // only its first record was read
	session *Session // nil: gone, or verified to its end, if the host is trusted
}

// keep returns what is to be kept of a session. one returns one copy of equal hosts.
func keep(s *Session, one func(hostKey) *hostKey) *ended {
	e := &ended{id: packID(s.id), session: s, records: s.records, own: s.own, checkpoints: s.checkpoints, roots: s.roots}
	b := s.start()
	if b == nil {
		return e
	}
	e.leaf = b.leaf
	if b.err == nil {
		e.host, e.seq = one(hostKey{b.hostName, b.evidence.HostKey}), b.evidence.HostSeq
		if p := b.evidence.Previous; p != nil {
			e.follows, e.previous, e.leafOf = true, packID(p.SessionID), p.Leaf
		}
	}
	odd := len(s.starts) > 1 || len(s.bare) > 0 || len(s.finds.list) > 0 || s.why != "" || s.dropped > 0 || s.erased > 0 || len(s.short) > 0
	switch {
	case odd:
	case s.about.Gone: // with or without evidence: anyone can write a million
		if e.gone = b.err == nil || s.unsigned(); e.gone {
			e.session = nil
		}
	case b.err == nil && s.closed >= 0 && s.verified() == s.records:
		e.session = nil
	}
	return e
}

// full returns the session. Of one that is not kept it makes another one.
func (e *ended) full() *Session {
	if e.session != nil {
		return e.session
	}
	b := start{leaf: e.leaf, err: evidence.ErrUnsigned}
	if e.host != nil {
		b = start{leaf: e.leaf, hostName: e.host.name, evidence: evidence.Session{HostKey: e.host.key, HostSeq: e.seq}, signs: true}
	}
	if e.follows {
		b.evidence.Previous = &evidence.Previous{SessionID: e.previous.String(), Leaf: e.leafOf}
	}
	return &Session{id: e.id.String(), about: About{Gone: e.gone, Live: e.gone}, starts: []start{b}, signer: -1, kept: -1, endSeq: -1,
		records: e.records, provedRecords: e.records, own: e.own, checkpoints: e.checkpoints, begins: e.begins, roots: e.roots}
}

// find adds a finding.
func (e *ended) find(n finding) {
	e.session = e.full()
	e.session.find(n)
}

// began notes that the session is the first one of its host that is here.
func (e *ended) began(seq uint64) {
	if e.begins = seq; e.session != nil {
		e.session.begins = seq
	}
}

func (e *ended) empty() bool { return e.session != nil && e.session.empty() }

// startsWith is that of the session.
func (e *ended) startsWith(leaf evidence.Hash) bool {
	if e.session != nil {
		return e.session.startsWith(leaf)
	}
	return e.leaf == leaf
}

// unsound reports whether the session has a session_start that is not in order.
func (e *ended) unsound() bool {
	return e.host == nil && (e.session == nil || e.session.start() != nil)
}

// A sessionID is the id of a session: of a UUID its bytes.
type sessionID struct {
	uuid [16]byte
	text string // of another one
}

func packID(id string) (p sessionID) {
	if len(id) == 36 {
		n, err := hex.Decode(p.uuid[:], []byte(id[:8]+id[9:13]+id[14:18]+id[19:23]+id[24:]))
		if err == nil && n == len(p.uuid) && p.String() == id {
			return p
		}
	}
	return sessionID{text: id}
}

func (p sessionID) String() string {
	if p.uuid == [16]byte{} {
		return p.text
	}
	t := hex.EncodeToString(p.uuid[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

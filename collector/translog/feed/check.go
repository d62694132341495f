package feed

import (
	"context"
	"fmt"
	"time"

	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// maxSeen is how many sessions and checkpoints a checker remembers, at 100 to 500
// bytes each. Of a session that is forgotten, checkpoints are compared with those
// that come from then on.
const maxSeen = 100_000

// A checker compares the checkpoints of sessions with each other. One goroutine owns
// it.
type checker struct {
	source   Source
	sessions map[evidence.Hash]*session // by the hash of the origin, which may be long
	seen     int                        // in sessions
	old      map[evidence.Hash]*session // what was remembered before, of which a part is still used
}

// A session is what is known of one.
type session struct {
	start         evidence.Hash           // the leaf of the session_start; zero: it did not come yet
	session, host note.Verifier           // nil: the session_start is not there yet
	roots         map[int64]evidence.Hash // of its checkpoints, by their size
	largest       int64
}

func newChecker(source Source) checker {
	return checker{source: source, sessions: map[evidence.Hash]*session{}}
}

// check returns the entry of a record, nil for none, and what it contradicts. Of sessions
// from before old, the start may have come before this process.
func (c *checker) check(ctx context.Context, raw []byte, old time.Time) ([]byte, *Contradiction, error) {
	r, err := audit.Parse(raw)
	if err != nil {
		return nil, nil, nil // what is no record is found by the verification of records
	}
	e, ok := entryOf(&r, raw)
	if !ok {
		return nil, contradiction(&r, "bad_signature", "its evidence cannot be read"), nil
	}
	s := c.session(evidence.Leaf([]byte(e.Origin)))
	if s.session == nil && (e.Checkpoint != nil || audit.TimeOfID(r.SessionID).Before(old)) {
		if err := c.learn(ctx, s, r.SessionID); err != nil {
			return nil, nil, err
		}
	}
	if e.Checkpoint == nil {
		return e.Bytes(), s.begin(&r, e.Leaf), nil
	}
	before := len(s.roots)
	found := s.compare(&r, e)
	c.seen += len(s.roots) - before
	return e.Bytes(), found, nil
}

func contradiction(r *audit.Record, what, detail string) *Contradiction {
	return &Contradiction{SessionID: r.SessionID, What: what, Seq: r.Seq, Detail: detail, Record: *r}
}

// session returns what is known of an origin.
func (c *checker) session(origin evidence.Hash) *session {
	s, ok := c.sessions[origin]
	if ok {
		return s
	}
	if s, ok = c.old[origin]; !ok || len(s.roots) >= maxSeen/4 {
		s = &session{roots: map[int64]evidence.Hash{}}
	}
	if c.seen >= maxSeen/2 {
		c.old, c.sessions, c.seen = c.sessions, map[evidence.Hash]*session{}, 0
	}
	c.sessions[origin] = s
	c.seen += 1 + len(s.roots)
	return s
}

// begin takes a session_start, and returns what it contradicts, nil for nothing. The
// first one counts: whoever has the host's key can sign another, with another key.
func (s *session) begin(r *audit.Record, leaf evidence.Hash) *Contradiction {
	if s.start != (evidence.Hash{}) && s.start != leaf {
		return contradiction(r, "forked", "the session has two versions of its session_start")
	}
	start, err := evidence.ReadSession(r)
	if err == nil {
		err = s.know(&start)
	}
	if err != nil {
		return contradiction(r, "bad_signature", err.Error())
	}
	s.start = leaf
	return nil
}

// learn reads the keys of a session whose start came before this process.
func (c *checker) learn(ctx context.Context, s *session, id string) error {
	raw, err := c.source.SessionStart(ctx, id)
	if err != nil || raw == "" {
		return err
	}
	r, err := audit.Parse([]byte(raw))
	if err != nil {
		return nil
	}
	if start, err := evidence.ReadSession(&r); err == nil && s.know(&start) == nil { // else it is found where the start itself is looked at
		s.start = evidence.StartLeaf([]byte(raw), &start)
	}
	return nil
}

// know takes the keys of a session.
func (s *session) know(start *evidence.Session) error {
	if err := start.Verify(); err != nil {
		return err
	}
	key, err := note.NewVerifier(start.Key)
	if err != nil {
		return err
	}
	host, err := note.NewVerifier(start.HostKey)
	if err != nil {
		return err
	}
	s.session, s.host = key, host
	return nil
}

// compare returns what a checkpoint contradicts, nil for nothing. Without the
// session's start, its signature is looked at by the verification of records.
func (s *session) compare(r *audit.Record, e evidence.Entry) *Contradiction {
	if s.session != nil {
		by := s.session
		if r.Recovered {
			by = s.host
		}
		if _, _, err := evidence.OpenCheckpoint(e.Checkpoint, note.VerifierList(by)); err != nil {
			return contradiction(r, "bad_signature", err.Error())
		}
	}
	cp, err := evidence.ReadCheckpoint(e.Checkpoint)
	if err != nil {
		return contradiction(r, "bad_signature", err.Error())
	}
	root, again := s.roots[cp.Size]
	if again && root != cp.Root {
		return contradiction(r, "forked", fmt.Sprintf("two checkpoints of %d records have different hashes", cp.Size))
	}
	s.roots[cp.Size] = cp.Root
	if !again && cp.Size < s.largest {
		return contradiction(r, "rolled_back", fmt.Sprintf("a checkpoint of %d records arrived after one of %d", cp.Size, s.largest))
	}
	s.largest = max(s.largest, cp.Size)
	return nil
}

// entryOf returns the entry of a record, and false if it has no evidence that can be
// read or that a log can have: an entry that is too long would keep all others out.
func entryOf(r *audit.Record, line []byte) (evidence.Entry, bool) {
	if r.Kind == audit.KindCheckpoint {
		signed, err := evidence.CheckpointOf(r)
		if err != nil || len(signed) == 0 || len(signed) > tiles.MaxEntry {
			return evidence.Entry{}, false
		}
		e, err := evidence.ReadEntry(signed)
		return e, err == nil && e.Checkpoint != nil
	}
	s, err := evidence.ReadSession(r)
	if err != nil {
		return evidence.Entry{}, false
	}
	e := evidence.Entry{Origin: s.Origin, HostKey: s.HostKey, HostSeq: s.HostSeq, Leaf: evidence.StartLeaf(line, &s)}
	if len(e.Bytes()) > tiles.MaxEntry {
		return e, false
	}
	// Values with line feeds would make another entry of it.
	again, err := evidence.ReadEntry(e.Bytes())
	return e, err == nil && again.Origin == e.Origin && again.HostKey == e.HostKey && again.HostSeq == e.HostSeq && again.Leaf == e.Leaf
}

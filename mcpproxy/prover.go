package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// When a checkpoint is written, and when lines are hashed without one.
const (
	checkpointRecords = 256
	checkpointEvery   = 10 * time.Second // after the first record that no checkpoint covers
	calmAfter         = 50 * time.Millisecond
	hashBytes         = 128 << 10 // of lines that wait, then the goroutine hashes them
	maxUnhashed       = 256 << 10 // then the goroutine that writes lines hashes them
)

// A prover has the Merkle tree of a session's records, and the key that signs it.
// The key is nowhere else: once the process has ended, no other records of this
// session can be signed.
type prover struct {
	origin string
	kick   chan struct{} // one pending request to hash or to write a checkpoint
	due    *time.Timer   // fires when a checkpoint is due by time, at first when session_start is
	// keys makes the session's keys, once. nil: the session has no evidence.
	keys func() (keys, error)

	// The session's mutex guards these.
	signer    note.Signer // nil: the session has no evidence, or has ended
	fresh     []byte      // lines of records that are written and not hashed
	spare     []byte      // memory for the next ones
	uncovered int         // records, but for checkpoints, that no checkpoint covers
	since     time.Time   // when the first of them was written
	failing   bool        // the last checkpoint could not be written; that is logged

	// growing guards the rest. It is locked after the session's mutex.
	growing sync.Mutex
	tree    evidence.Tree
}

// keys are what a session's checkpoints are signed and verified with.
type keys struct {
	signer note.Signer
	public string
}

func newKeys(origin string) (k keys, err error) {
	private, public, err := note.GenerateKey(rand.Reader, origin)
	if err == nil {
		k.public = public
		k.signer, err = note.NewSigner(private)
	}
	if err != nil {
		return k, fmt.Errorf("making the session's key: %w", err)
	}
	return k, nil
}

func (p *prover) init(c Config) {
	if c.Evidence != nil && c.Journal != nil {
		p.origin = evidence.Origin(c.Base.Host, c.Base.SessionID)
		p.keys = sync.OnceValues(func() (keys, error) { return newKeys(p.origin) })
	}
	p.kick, p.due = make(chan struct{}, 1), time.NewTimer(time.Hour)
	p.due.Stop()
}

// add takes lines that are written. The caller holds the session's mutex.
func (p *prover) add(lines []byte) {
	if p.signer == nil {
		return
	}
	inPlace := len(p.fresh)+len(lines) > maxUnhashed
	if inPlace {
		p.growing.Lock()
		p.grow()
		p.hash(lines)
		p.growing.Unlock()
	}
	for len(lines) > 0 {
		n := bytes.IndexByte(lines, '\n') + 1
		if isRecord(lines) {
			if !inPlace {
				p.fresh = append(p.fresh, lines[:n]...)
			}
			p.count()
		}
		lines = lines[n:]
	}
	// While no checkpoint can be written, only the timer asks for one.
	if p.uncovered >= checkpointRecords && !p.failing || len(p.fresh) >= hashBytes {
		p.wake()
	}
}

// wake has the goroutine do what is due.
func (p *prover) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *prover) count() {
	if p.uncovered == 0 {
		p.since = time.Now()
		p.due.Reset(checkpointEvery)
	}
	p.uncovered++
}

// isDue reports whether a checkpoint is to be written.
func (p *prover) isDue(now time.Time) bool {
	return p.uncovered >= checkpointRecords || p.uncovered > 0 && now.Sub(p.since) >= checkpointEvery
}

// isRecord reports whether lines begin with a record. Others begin with what they
// are, see audit.AppendIntent.
func isRecord(lines []byte) bool { return !bytes.HasPrefix(lines, []byte(`{"line":`)) }

// grow hashes the lines that wait. Both mutexes are held.
func (p *prover) grow() {
	p.hash(p.fresh)
	p.fresh = p.fresh[:0]
}

// hash adds the records among lines to the tree, with growing held.
func (p *prover) hash(lines []byte) {
	for len(lines) > 0 {
		n := bytes.IndexByte(lines, '\n')
		if isRecord(lines) {
			p.tree.Append(evidence.Leaf(lines[:n]))
		}
		lines = lines[n+1:]
	}
}

// checkpoint returns the line of a signed checkpoint of the tree, with growing held.
func (p *prover) checkpoint(base audit.Record, now time.Time, by note.Signer) ([]byte, error) {
	r := base
	r.Kind, r.RecordID, r.TS, r.Seq = audit.KindCheckpoint, audit.NewID(now), now, uint64(p.tree.Size())
	if err := (evidence.Checkpoint{Origin: p.origin, Size: p.tree.Size(), Root: p.tree.Root()}).SignRecord(&r, by); err != nil {
		return nil, err
	}
	return audit.AppendRecord(nil, &r), nil
}

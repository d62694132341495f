// Package translog keeps the collector's append-only log of checkpoints and
// session starts in C2SP tlog-tiles form.
//
// A log is a directory of static files: the Merkle tree of its entries and a
// signed checkpoint, which commits to all of them. tessera writes them. To this
// package an entry is bytes.
//
// Add returns once its entries are in the tree on the disk, so that a crash
// loses none. It writes an entry once, however often it is added. A checkpoint
// that covers them follows within the interval, and the witnesses' signatures
// later. While nothing is added, nothing runs.
//
// The key that signs, and the memory of the last checkpoint that it signed, are
// outside the log's directory. A log that does not continue this checkpoint was
// replaced by an older copy, or rewritten: Open refuses it with ErrRolledBack.
//
// The files, from the top: serve, run, add, open, tree, translog, witness, seen,
// signer, key, config, library.
package translog

import (
	"context"
	"sync"
	"time"

	"auditproxy/collector/translog/tiles"
	"auditproxy/sink/spool/disk"

	"github.com/transparency-dev/tessera"
	"golang.org/x/mod/sumdb/tlog"
)

// A Log is open for writing. Its methods may be called concurrently.
type Log struct {
	config Config
	key    *key
	signer *signer
	reader *tiles.Reader
	locks  []disk.File

	added     chan struct{} // there are entries without a checkpoint
	witnesses *witnesses

	mu      sync.Mutex
	idle    sync.Cond // no call of Add is waiting
	waiting int       // calls of Add
	closed  bool
	broken  error // the index could not be read: it is opened again
	seen    *seen
	pending map[tlog.Hash]tessera.IndexFuture // entries on their way
	writer  *writer                           // nil while nothing is written
	used    time.Time                         // by the last Add
	rest    time.Duration                     // idleAfter
	late    bool                              // whether a missing checkpoint was reported
	failed  bool                              // a call of Add failed since the last sweep

	// Changed with both mutexes, so that Status does not wait for the disk.
	statusMu sync.Mutex
	status   Status
}

// A writer is tessera's part, which runs goroutines.
type writer struct {
	*tessera.Appender
	shutdown func(context.Context) error
	cancel   context.CancelFunc
}

// A Status is what is known of a log.
type Status struct {
	Name      string // the origin
	Key       string // the verifier key
	Size      int64  // entries
	Published int64  // entries that the newest checkpoint covers; -1: there is none

	// Behind is since when the newest checkpoint does not cover all entries; zero if
	// it does. Run sets it.
	Behind time.Time

	Err error // why no checkpoint was signed last; nil: it was

	Witnessed int64 // entries that the newest checkpoint covers that a quorum of witnesses has signed
	Quorum    int
	Witnesses []WitnessStatus
}

// report changes the status. mu is held, or nothing else uses l.
func (l *Log) report(change func(s *Status)) {
	l.statusMu.Lock()
	defer l.statusMu.Unlock()
	change(&l.status)
}

// Checkpoint returns the newest checkpoint, with the signatures of witnesses that it has by
// now. Its error is fs.ErrNotExist if there is none yet.
func (l *Log) Checkpoint() ([]byte, error) {
	signed, err := l.reader.Checkpoint(context.Background())
	if err != nil {
		return nil, err
	}
	return l.witnesses.merged(signed), nil
}

// Status returns what is known of the log.
func (l *Log) Status() Status {
	l.statusMu.Lock()
	s := l.status
	l.statusMu.Unlock()
	s.Err = l.signer.failed()
	s.Witnessed, s.Witnesses = l.witnesses.status()
	return s
}

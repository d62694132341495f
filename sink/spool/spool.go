// Package spool is the durable local log: a directory of JSON lines for each
// session, written by one process and read by any.
//
// A session is a directory of segments, 00000001.jsonl and so on. Each line ends
// in its own checksum (see audit.Seal), so a torn or changed line is detected.
// Next to the segments are the writer's lock, the position up to which the
// writer has synced, and the cursor of the session's one consumer.
//
//   - A Session appends lines with one write each. Run syncs them in another
//     goroutine; Wait waits for that. One sync serves all that wait.
//   - A Reader reads the lines in order, without a lock, also while the session
//     is written. It reports damage as an Item and continues after it.
//   - A Consumer takes records away, for example to Kafka, and commits how far
//     it has come. It reads only what is synced: otherwise a power cut could give
//     one sequence number to two records.
//   - Recover completes the sessions of dead writers. It sets bad bytes aside,
//     and appends a record for each call without one, and the session's end.
//   - Retain removes what has been consumed and is old enough.
//
// After a failed write the segment is truncated to its last good line. After a
// failed sync it receives no more lines, and its unsynced lines go to a new
// segment. On a full disk a ballast file is freed for the final records of open
// calls, and other lines are refused with ErrFull until there is space.
//
// Files are kept from other users. They are not kept from the user that the
// process runs as, and a file system that hangs in write(2) is not survived.
//
// The files, from the top: key, recoverer, recover, append, retain, history,
// list, consumer, read, sync, restart, create, ballast, segment, repeat, item,
// layout, machine_darwin, machine_linux, spool.
package spool

import (
	"errors"
	"sync"
	"time"

	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// Durability selects when a line counts as written, and what a call waits
// for.
type Durability uint8

// The modes. The zero value is the default.
const (
	Intent   Durability = iota // a call waits for its intent's group sync, at most SyncWait
	Always                     // also the final record, before the answer is forwarded; no bound
	Interval                   // sync every 50 ms, nothing waits
	OS                         // no sync; written lines count
)

// Sizes and times. Only the first concerns the format, and a reader need not
// know it.
const (
	segmentSize = 8 << 20                // bytes after which a new segment is started
	maxHead     = 1 << 20                // bytes of Head that a segment starts with
	ballastSize = 256 << 10              // bytes kept for the final records of open calls
	maxPending  = 8 << 20                // bytes written and not yet synced; more waits for the sync
	softPending = 1 << 20                // bytes after which the sync does not wait for its time
	maxOffset   = 1 << 30                // bytes a segment may grow to if no other can be made
	maxSegment  = maxOffset + maxPending // bytes of a segment; a longer one was made by another program

	syncEvery    = 50 * time.Millisecond
	behindAfter  = time.Second            // that a sync runs before appends beyond maxPending no longer wait for it
	lookEvery    = time.Second            // under OS: whether the segment is still there
	ballastEvery = 100 * time.Millisecond // between two attempts to get the ballast back
	retryFirst   = time.Second            // between two attempts to begin a segment, doubled
	retryLast    = time.Minute            // until here
)

// ErrFull means that nothing can be written now, because the disk is full or
// failing. It ends when an Append succeeds.
var ErrFull = errors.New("spool cannot take more lines")

// errClosed is returned by Append after Close.
var errClosed = errors.New("session is closed")

// errWaiting is the reason that no segment is started after one whose sync
// failed.
var errWaiting = errors.New("waiting to begin a segment")

// A fullError is ErrFull with its cause.
type fullError struct{ cause error }

func (e *fullError) Error() string        { return ErrFull.Error() + ": " + e.cause.Error() }
func (e *fullError) Is(target error) bool { return target == ErrFull }
func (e *fullError) Unwrap() error        { return e.cause }

// A Config configures a spool.
type Config struct {
	Dir        string      // the spool directory. Required.
	Durability Durability  // zero: Intent
	Log        *zap.Logger // nil: none

	// Head appends the sealed context and tool lines that a new segment
	// starts with. It is called with the session's lock held, so it must not
	// call the session. Lines beyond 1 MiB are omitted: a segment must have
	// room for records. nil for none.
	Head func(dst []byte) []byte

	// OnLoss is called after another process removed, renamed, cut or wrote
	// to a segment. Unsynced lines are already in a new segment; synced ones
	// may be gone. It is called by the syncing goroutine, with nothing
	// locked, and may call Append; nil for none.
	OnLoss func(Loss)

	Machine string  // id of this machine; "" for its machine-id(5)
	FS      disk.FS // the file system; nil for the real one. Tests inject faults here.
}

// A Loss is a change or removal of a segment by another process.
type Loss struct {
	Segment uint32
	Offset  int64  // bytes of it that had been synced
	Reason  string // "removed", "replaced" or "changed"
}

// A Session is the log of one run of the proxy. Append and Wait may be called
// concurrently.
type Session struct {
	c    Config
	fs   disk.FS
	log  *zap.Logger
	id   string
	dir  string
	kick chan struct{} // one pending request to sync now
	due  *time.Timer   // fires when lines have waited for syncEvery

	// syncing is held during a sync; it is locked before mu and guards batch
	// and noDirSync.
	syncing   sync.Mutex
	batch     []*segment // space for a batch's files
	noDirSync bool       // logged that directories cannot be synced

	// mu is held over write(2), never over a sync. It guards everything down to
	// the next blank line with a comment.
	mu         sync.Mutex
	lock       disk.File // the flock
	durable    disk.File // where the synced offset is published
	cur        *segment  // nil: after a loss, until a segment can be started
	failed     bool      // a sync of cur failed: it is written to and never synced again
	next       uint32    // number of the next segment
	old        []*segment
	written    int64  // bytes appended over all segments
	live       []byte // the lines written since the last sync began
	inflight   []byte // the lines of the running sync, or of one that failed
	dirty      bool   // lines were written since the last sync began
	torn       bool   // cur may hold bytes after cur.size
	newNames   bool   // the directory has names that are not synced
	newDir     bool   // the directory's own name is not synced
	repeat     uint32 // first segment with lines that may have to be repeated, 0 for none
	scratch    []byte
	ballast    bool
	ballastAt  time.Time // no attempt to get it back before
	segmentAt  time.Time // no attempt to start a segment before
	retryAfter time.Duration
	syncSince  time.Time // when the running sync began, zero if none runs
	closing    bool      // Close was called
	closed     bool

	// wait guards the rest.
	wait    sync.Mutex
	synced  int64 // of written
	running bool  // Run is running
	ran     bool  // it is, or was
	waiters []*waiter
	idle    []*waiter
}

// A segment is an open file of a session.
type segment struct {
	f     disk.File
	no    uint32
	name  string // path
	inode uint64
	head  int64 // bytes that every segment starts with
	size  int64 // bytes up to the last good line
	limit int64 // size after which a new one is started
}

// A waiter is one call of Wait. It is reused, so that waiting does not
// allocate.
type waiter struct {
	pos   int64
	done  chan bool // capacity 1
	timer *time.Timer
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Attach sets Head and OnLoss for a writer that is made after its session.
// The first segment exists by then, so it starts with the first appended
// lines. Attach must be called before Append and Run, and once.
func (s *Session) Attach(head func(dst []byte) []byte, onLoss func(Loss)) {
	s.c.Head, s.c.OnLoss = head, onLoss
}

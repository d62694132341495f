package feed

import (
	"context"
	"time"

	"auditproxy/schemas/audit"

	"go.uber.org/zap"
)

// A Config configures a Feed.
type Config struct {
	Source Source // Required.
	Log    Log    // Required.

	// Mark is the file that says how far the log has what arrived. Without it, all
	// is read again. Required.
	Mark string

	// Found is called with what contradicts, once or more for each. It returns nil
	// when that will not be forgotten. Required.
	Found func(context.Context, Contradiction) error

	Logger *zap.Logger // nil: none
}

// A Status is what a feed did last.
type Status struct {
	Upto    time.Time // everything that arrived before is in the log; zero: nothing yet
	Failing time.Time // since when no pass has succeeded; zero: the last one has
	Err     error
}

// A Source has the stored records.
type Source interface {
	// Evidence calls do with the session_starts and checkpoints that have
	// evidence and arrived in [from, to), in the order of their arrival. A record
	// may come twice. It ends with the first error of do.
	Evidence(ctx context.Context, from, to time.Time, do func(raw []byte) error) error

	// SessionStart returns the session_start of a session, "" for none.
	SessionStart(ctx context.Context, session string) (string, error)

	// FirstEvidence returns when the first such record arrived from a time on, zero
	// for none.
	FirstEvidence(ctx context.Context, from time.Time) (time.Time, error)
}

// A Log keeps entries. Add returns once they are durable, and adds each once.
type Log interface {
	Add(ctx context.Context, entries [][]byte) error
}

// A Contradiction is what a session's checkpoints say against each other. All of
// them are in the log.
type Contradiction struct {
	SessionID string
	What      string // bad_signature, forked, rolled_back
	Seq       uint64 // of the checkpoint
	Detail    string
	Record    audit.Record
}

// Package sink defines how records leave a host: a Queue holds the records of
// a session, a Sink receives them, and Forward moves them.
package sink

import (
	"context"
	"fmt"
	"time"
)

// A Queue returns the records of one session in order. One goroutine calls
// its methods.
type Queue interface {
	// Next returns the line of the next record, without its line feed. It is
	// valid until the next call. Next returns io.EOF while there is none.
	Next() ([]byte, error)
	// Ack acknowledges every record that Next has returned.
	Ack()
	// Commit makes the acknowledgements durable. Records not committed when a
	// process ends are returned again.
	Commit() error
	// SetAside keeps a line that cannot be delivered where people find it,
	// and returns the name of that place. It returns nil only when the line
	// would survive a crash of this machine. Setting a line aside twice has
	// the effect of once.
	SetAside(line []byte) (where string, err error)
}

// A Sink takes lines as they are.
type Sink interface {
	// Write returns nil only when every line is safe in the sink, so that the
	// queue may forget them. It retries temporary failures until ctx ends.
	// After a *RefusedError the lines before its Index are kept. After
	// another error any of them may be kept, so the caller writes the same
	// lines again, and readers ignore duplicates. A sink that takes many
	// sessions at once may return a *StalledError rather than retry, so that
	// nothing is kept in memory meanwhile. Lines of one session are
	// kept in the order of the calls and, in a call, in the order of lines.
	// Write must not keep or change lines; it may be called concurrently for
	// different sessions.
	Write(ctx context.Context, session string, lines [][]byte) error
}

// A RefusedError means that a sink will never accept one line, because of its
// contents.
type RefusedError struct {
	Index int   // of the line among those written
	Err   error // why
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refusing record %d: %v", e.Index, e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// A StalledError means that a sink cannot take lines of this session now, for a
// cause that will pass.
type StalledError struct {
	Until time.Time // before which another attempt would be in vain
	Err   error     // why; nil if the sink has told another session
}

func (e *StalledError) Error() string {
	if e.Err == nil {
		return "the sink is stalled for the session"
	}
	return fmt.Sprintf("the sink is stalled for the session: %v", e.Err)
}

func (e *StalledError) Unwrap() error { return e.Err }

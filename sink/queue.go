package sink

import (
	"context"
	"fmt"
)

// A Queue gives out the records of one session in order. One goroutine calls
// its methods.
type Queue interface {
	// Next returns the line of the next record, without its line feed. It is
	// valid until the next call. Where there is none now Next returns io.EOF.
	Next() ([]byte, error)
	// Ack says that every record that Next has returned is safe elsewhere.
	Ack()
	// Commit makes what was acknowledged durable. What was not committed when a
	// process ends is given out again.
	Commit() error
	// SetAside keeps a line that cannot be delivered where people find it, and
	// returns the name of that place. It returns nil only when the line would
	// survive a crash of this machine. To set a line aside twice is to do it
	// once.
	SetAside(line []byte) (where string, err error)
}

// A Sink takes lines as they are.
type Sink interface {
	// Write returns nil only when the sink answers for every line, so that the
	// queue may forget them. It tries for as long as ctx lives and what is wrong
	// may pass. After a *RefusedError the lines before its Index are kept. After
	// another error any of them may be kept, so the caller writes the same lines
	// again, and whoever reads them ignores repeats. Lines of one session are
	// kept in the order of the calls and, in a call, in the order of lines. Write
	// must not keep or change lines; it may be called concurrently for different
	// sessions.
	Write(ctx context.Context, session string, lines [][]byte) error
}

// A RefusedError means that a sink will never take one line, for what the line
// is.
type RefusedError struct {
	Index int   // of the line in what was written
	Err   error // why
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refusing record %d: %v", e.Index, e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

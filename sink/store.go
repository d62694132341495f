// Package sink is the contract between those who hold records and those who take
// them: a queue and a sink for what is on its way, a store for where it ends.
package sink

import (
	"context"
	"errors"
	"time"

	"auditproxy/schemas/audit"
)

// SpoolTopic stands for a topic where a record was read from a spool. Its
// partition is the segment's number, its offset the line's.
const SpoolTopic = "spool"

// A Source is where a record was read. Two records of one source are copies.
type Source struct {
	Topic     string
	Partition uint32
	Offset    uint64
}

// A Row is a record as a store keeps it.
type Row struct {
	Record     audit.Record
	Operations []audit.Operation // of Record
	Raw        string            // the record's bytes as they arrived; Record's texts are parts of it
	Hash       [16]byte          // SHA-256 of Raw, its first half
	Source     Source
}

// Size is about the most memory that r takes, in bytes: its raw bytes, as much
// again for texts that had escapes in them, and the structure.
func (r *Row) Size() int64 { return 2*int64(len(r.Raw)) + 1024 }

// A DeadLetter is what could not become a row, and why.
type DeadLetter struct {
	Source
	Time   time.Time // when it was produced; zero if that is not known
	Key    string    // of the message; of a spool the session's id
	Raw    []byte
	Reason string // one word, see package collector
	Error  string // a sentence
	Seen   time.Time
}

// A Gap is a run of offsets that were never shown to us.
type Gap struct {
	Topic     string
	Partition uint32
	From, To  uint64 // both missing
	Session   string // of a spool
	Reason    string
	Seen      time.Time
}

// A Store keeps rows, dead letters and gaps. Each method returns nil only when
// all that it was given would survive a crash. After an error any of it may
// have been stored, so the caller gives the same again and the store ignores
// repeats. The methods may be called concurrently; they keep and change none of
// their arguments.
type Store interface {
	// InsertRows stores rows that arrived at a time, all of them as one.
	InsertRows(ctx context.Context, rows []Row, at time.Time) error
	InsertDeadLetters(ctx context.Context, letters []DeadLetter) error
	InsertGaps(ctx context.Context, gaps []Gap) error
}

// A Class says what to do about an error of a Store.
type Class uint8

// The classes. An error without one is worth a retry.
const (
	Retry         Class = iota // the same again, later
	Configuration              // the same again, after somebody has done something
	Poison                     // the same again will fail for ever: find the rows that are to blame
)

func (c Class) String() string { return [...]string{"retry", "configuration", "poison"}[c] }

// An Error is an error with its class.
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Retry
}

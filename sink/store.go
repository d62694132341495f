// Package sink defines the interfaces between holders and receivers of
// records: a Queue and a Sink for records in transit, a Store for their
// destination.
package sink

import (
	"context"
	"errors"
	"time"

	"auditproxy/schemas/audit"
)

// SpoolTopic is the topic of records that were read from a spool. Its
// partition is the segment's number, its offset the line's.
const SpoolTopic = "spool"

// A Source is the place a record was read from. Two records of one source are
// copies.
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

// Size is an upper estimate of the memory of r, in bytes: its raw bytes, as
// much again for texts that had escapes in them, and the structure.
func (r *Row) Size() int64 { return 2*int64(len(r.Raw)) + 1024 }

// A DeadLetter is a message that could not become a row, and the reason.
type DeadLetter struct {
	Source
	Time   time.Time // when it was produced; zero if that is not known
	Key    string    // of the message; of a spool the session's id
	Raw    []byte
	Reason string // one word, see package collector
	Error  string // a sentence
	Seen   time.Time
}

// A Gap is a range of offsets that were never received.
type Gap struct {
	Topic     string
	Partition uint32
	From, To  uint64 // both missing
	Session   string // of a spool
	Reason    string
	Seen      time.Time
}

// A Store keeps rows, dead letters and gaps. Each method returns nil only
// when all its arguments would survive a crash. After an error any part may
// have been stored, so the caller repeats the call and the store ignores
// duplicates. The methods may be called concurrently; they neither keep nor
// change their arguments.
type Store interface {
	// InsertRows stores the rows of one arrival time, all or none.
	InsertRows(ctx context.Context, rows []Row, at time.Time) error
	InsertDeadLetters(ctx context.Context, letters []DeadLetter) error
	InsertGaps(ctx context.Context, gaps []Gap) error
}

// A Class is the reaction that an error of a Store calls for.
type Class uint8

// The classes. An error without one is worth a retry.
const (
	Retry         Class = iota // retry later
	Configuration              // retry after an administrator has acted
	Poison                     // a retry would always fail: find the rows at fault
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

package exportfile

import (
	"context"
	"io"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
)

// A Source has records in the order of their arrival, see source.Source.
type Source interface {
	Settled(ctx context.Context, now time.Time) (time.Time, error)
	Count(ctx context.Context, after source.Position, upto time.Time) (n uint64, first time.Time, err error)
	Read(ctx context.Context, after source.Position, upto time.Time, do func([]receiver.Record) error, unreadable func(source.Position, error) error) error
}

// Stored is the Source of stored records.
type Stored struct{ source.Source }

// Read implements Source.
func (s Stored) Read(ctx context.Context, after source.Position, upto time.Time, do func([]receiver.Record) error, unreadable func(source.Position, error) error) error {
	s.Unreadable = unreadable
	return s.Source.Read(ctx, after, upto, do)
}

// A Config configures an export.
type Config struct {
	Source Source // Required.
	Format Format // Required.

	Since, Until time.Time // of arrival; zero: no limit
	Follow       bool      // wait for more records, up to Until, and for the source

	Waiting func(error) // the source fails; it is tried again. Required with Follow.

	When  string                      // describes Match, see mark
	Match func(*receiver.Record) bool // nil: all records

	File     string    // "": to Out
	Resume   bool      // continue File where its mark says, if there is one
	Out      io.Writer // Required without File
	Terminal bool      // Out is one

	PartBytes int // of records in one of several Parquet files. Zero: 1 GiB

	// Start is called with the number of records to read, and Progress with that
	// of records that were read since. nil: not counted.
	Start    func(n uint64)
	Progress func(n int)
	Refused  func(id string, err error) // a record that the format cannot have, or that is damaged; it is left out. Required.
}

// An output is where records go.
type output interface {
	// add takes a record. An error that is neither a refusedError nor errWithout
	// is about the output.
	add(r *receiver.Record) error
	// commit makes what was added durable, with the position after it. It may
	// leave that to a later commit unless last is set.
	commit(after source.Position, last bool) error
	close() error
	files() []string
}

// Package receiver defines how stored records are given to other systems.
package receiver

import (
	"context"
	"errors"
	"time"

	"auditproxy/collector/ingest"
)

// A Record is a stored record.
type Record struct {
	ingest.Row           // without its Source
	Arrived    time.Time // when it was stored, in milliseconds, by the collector's clock
}

// ErrRefused means that a receiver answered and will never take what was sent,
// because of its contents or its size. It may have taken a part.
var ErrRefused = errors.New("the receiver does not take it")

// A Receiver takes records. One goroutine calls its methods.
type Receiver interface {
	// Send returns nil only when the receiver has acknowledged every record. It
	// tries once, or as long as a library's retry does, and ends with ctx. After
	// ErrRefused the caller sends parts of the same records, to find those at
	// fault. After any other error it sends the same records again later. So a
	// receiver may get a record twice, always under the same id. Send must not keep
	// the records.
	Send(ctx context.Context, records []Record) error
	Close() error
}

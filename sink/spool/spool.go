// Package spool is the durable local log: one directory of JSON lines for each
// session, written by one process, read by any.
package spool

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// Durability says when a line counts as written, and what a call waits for.
type Durability uint8

// The modes. The zero value is the default.
const (
	Intent   Durability = iota // a call waits for its intent's group sync, at most SyncWait
	Always                     // also the final record, before the answer is passed on; no bound
	Interval                   // sync every 50 ms, nothing waits
	OS                         // no sync; what was written counts
)

// ErrFull means that nothing can be written now: no space, or the device
// fails. It is over when an Append succeeds again.
var ErrFull = errors.New("spool cannot take more lines")

// A Config says where a spool is and how it behaves.
type Config struct {
	Dir        string     // the spool directory. Required.
	Durability Durability // zero: Intent
	Log        *zap.Logger

	// Head appends the sealed context and tool lines that a new segment starts
	// with. It is called with the session's lock held, so it must not call the
	// session; nil for none.
	Head func(dst []byte) []byte

	// FS is the file system; nil for the real one. Tests inject faults here.
	FS FS
}

// FS is what the spool needs of a file system, so that a test can fail or stop
// at each operation.
type FS interface{}

// A Session is the log of one run of the proxy. Append and Wait may be called
// concurrently.
type Session struct{}

// Create makes the directory of a new session, locks it and returns it open.
// It leaves behind a `.new-<id>` directory if the process dies in between.
func Create(c Config, id string) (*Session, error) { return &Session{}, nil }

// Append writes sealed lines with one write(2) and returns the position to
// Wait for. After an error none of them is in the log, as far as any reader
// can tell: what a failed write left is cut off before the next. For finals of
// open calls it uses the ballast when the disk is full; for others it returns
// ErrFull until the ballast is back.
func (s *Session) Append(lines []byte, final bool) (pos int64, err error) { return 0, nil }

// Wait waits until everything before pos is synced, at most limit (0: no
// bound), and reports whether it is.
func (s *Session) Wait(pos int64, limit time.Duration) bool { return true }

// Run syncs until ctx ends; then it syncs once more and returns.
func (s *Session) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Close syncs, publishes and unlocks. The session's files stay.
func (s *Session) Close() error { return nil }

// Package stream writes records as events to a Kafka topic, a file or an HTTP
// address.
//
// The files, from the top: http, file, old, tail, kafka, stream.
package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"auditproxy/collector/export/receiver"

	"go.uber.org/zap"
)

// A Config configures what all streams have.
type Config struct {
	// Encode appends the event of a record to dst: one line of text, without a
	// line feed. A record for which it appends nothing has no event. Required.
	Encode func(dst []byte, r *receiver.Record) ([]byte, error)

	Log *zap.Logger // nil: none
}

// An Event is a line of text.
type Event struct {
	ID   string // the same each time that the event is sent
	Key  string // events with one key stay in order, for example a session's
	Body []byte
}

// A Writer is a receiver.Receiver that writes events. One goroutine calls its
// methods.
type Writer struct {
	config Config
	target target
}

var _ receiver.Receiver = (*Writer)(nil)

// A target is where events go.
type target interface {
	// limit returns the most bytes and events that write gets, though always at
	// least one event.
	limit() (bytes, events int)
	// write returns nil when the events would survive a crash at the target. The
	// memory is the target's.
	write(ctx context.Context, b *batch) error
	close() error
}

// A batch is a list of events, each followed by a line feed.
type batch struct {
	text   []byte
	events []place
}

// A place is an event of a batch. It ends where the next begins.
type place struct {
	id, key string
	from    int
}

func newWriter(c Config, t target) *Writer { return &Writer{c, t} }

// log returns c.Log, or one that logs nothing.
func (c Config) log() *zap.Logger {
	if c.Log == nil {
		return zap.NewNop()
	}
	return c.Log
}

func (c Config) problems() []error {
	if c.Encode == nil {
		return []error{errors.New("no encoding")}
	}
	return nil
}

// Send implements receiver.Receiver. A record that cannot be encoded is refused.
func (w *Writer) Send(ctx context.Context, records []receiver.Record) error {
	return w.send(ctx, len(records), func(dst []byte, i int) ([]byte, string, string, error) {
		r := &records[i]
		text, err := w.config.Encode(dst, r)
		return text, r.Record.RecordID, r.Record.SessionID, err
	})
}

// SendEvents is Send for events that are not records'.
func (w *Writer) SendEvents(ctx context.Context, events []Event) error {
	return w.send(ctx, len(events), func(dst []byte, i int) ([]byte, string, string, error) {
		return append(dst, events[i].Body...), events[i].ID, events[i].Key, nil
	})
}

// Close releases what the target holds.
func (w *Writer) Close() error { return w.target.close() }

// send writes n events, in batches, so that its memory does not depend on n.
func (w *Writer) send(ctx context.Context, n int, encode func(dst []byte, i int) (text []byte, id, key string, err error)) error {
	most, mostEvents := w.target.limit()
	b := new(batch)
	for i := range n {
		from := len(b.text)
		text, id, key, err := encode(b.text, i)
		switch {
		case err != nil:
			// What is in b was not written, and comes again.
			return fmt.Errorf("%w: encoding %q: %w", receiver.ErrRefused, id, err)
		case len(text) == from:
			continue
		case bytes.IndexByte(text[from:], '\n') >= 0:
			return fmt.Errorf("%w: the event of %q has a line feed", receiver.ErrRefused, id)
		}
		b.text = append(text, '\n')
		if len(b.events) > 0 && (len(b.text) > most || len(b.events) == mostEvents) {
			next := append(make([]byte, 0, from), b.text[from:]...)
			b.text = b.text[:from]
			if err := w.target.write(ctx, b); err != nil {
				return err
			}
			b, from = &batch{text: next}, 0
		}
		b.events = append(b.events, place{id, key, from})
	}
	if len(b.events) == 0 {
		return nil
	}
	return w.target.write(ctx, b)
}

// body returns an event of b, without its line feed.
func (b *batch) body(i int) []byte {
	end := len(b.text)
	if i+1 < len(b.events) {
		end = b.events[i+1].from
	}
	return b.text[b.events[i].from : end-1]
}

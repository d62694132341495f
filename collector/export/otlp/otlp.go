// Package otlp sends stored records to a receiver of OpenTelemetry's protocol.
//
//   - Every record is a log record: event name mcp.audit.KIND, time ts, observed
//     time its arrival, and the record's id as log.record.uid.
//   - A call with its outcome (kind call) is also a span of kind SERVER. Its ids
//     come from record_id: the span's are the last 8 bytes, and without a
//     traceparent of the client the trace's are all 16. With one, the span is a
//     child of the client's, in the client's trace. The operations of a batch call
//     are its child spans.
//   - The durations of calls and sessions are histograms.
//
// Attributes have the names of the semantic conventions of SchemaURL. Members of
// the record without such a name begin with "auditproxy.". The redacted arguments
// are sent only with Config.Arguments; results are never in a record.
//
// # What a repeated batch does
//
// Log records and spans are sent at least once, under ids that depend only on the
// record. A metric has no id. So metrics are sent last, when the receiver has
// acknowledged all log records and spans of a batch, and a batch that is refused or
// fails before does not count. If it is unknown whether the receiver took the
// metrics themselves, they are sent again: the points of the same batch have the
// same times, so that a receiver that compares times counts them once. A program
// that dies between this acknowledgement and its own mark counts one batch twice.
//
// The times of a point are those of the records' arrival, which never go back, so
// that those of successive batches do not overlap.
//
// The files, from the top: otlp, env, batch, logs, spans, metrics, conventions,
// attributes, slab, convert, link, answer, config.
package otlp

import (
	"context"
	"errors"
	"fmt"

	"auditproxy/collector/export/receiver"
)

// A Receiver sends records to one receiver.
type Receiver struct {
	links   []*link // in the order of sending
	batch   *batch
	metrics *metrics
}

var _ receiver.Receiver = (*Receiver)(nil)

// New returns a receiver. It connects when it sends.
func New(c Config) (*Receiver, error) {
	targets, err := c.targets()
	if err != nil {
		return nil, err
	}
	r := &Receiver{batch: newBatch(&c), metrics: newMetrics(&c)}
	for _, t := range targets {
		r.links = append(r.links, &link{target: t})
	}
	return r, nil
}

// Send implements receiver.Receiver. The memory it needs depends on the largest
// record, not on their number.
func (r *Receiver) Send(ctx context.Context, records []receiver.Record) error {
	defer r.batch.reset()
	for i := range records {
		r.batch.add(&records[i])
		if r.batch.full() || i == len(records)-1 {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
	if l := r.link(Metrics); l != nil {
		r.metrics.begin(records)
		for i := range records {
			r.metrics.add(&records[i])
		}
		for part := range r.metrics.requests() {
			if err := send(ctx, l, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush sends the log records and spans collected so far. Logs are first: a
// record's log record is its evidence, the span its picture.
func (r *Receiver) flush(ctx context.Context) error {
	defer r.batch.reset()
	if l := r.link(Logs); l != nil {
		if err := send(ctx, l, r.batch.logs.groups); err != nil {
			return err
		}
	}
	if l := r.link(Traces); l != nil && len(r.batch.spans.groups) > 0 {
		return l.upload(ctx, r.batch.spans.groups)
	}
	return nil
}

func (r *Receiver) link(s Signal) *link {
	for _, l := range r.links {
		if l.signal == s {
			return l
		}
	}
	return nil
}

// Close implements receiver.Receiver.
func (r *Receiver) Close() error {
	var errs []error
	for _, l := range r.links {
		if err := l.close(); err != nil {
			errs = append(errs, fmt.Errorf("closing the connection to %q: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

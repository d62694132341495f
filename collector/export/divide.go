package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/schemas/escape"

	"go.uber.org/zap"
)

const (
	sendLongest = 2 * time.Minute // a receiver limits its own times; this is for one that does not
	wrongAfter  = 16              // records refused in a row, after which the receiver may be at fault
	sampleBytes = 16 << 10        // of the record that is kept to find out
	growAfter   = 64              // sends, after which more records are sent at once
)

// take sends those of the records that are for the receiver. done is called with the
// last record of those that are dealt with, whenever there are more.
func (d *delivery) take(ctx context.Context, records []receiver.Record, done func(*receiver.Record) error) error {
	d.batch = d.batch[:0]
	for i := range records {
		r := &records[i]
		if d.e.c.Erased(r.Record.SessionID) || d.r.Match != nil && !d.r.Match(&r.Row) {
			continue
		}
		d.batch = append(d.batch, *r)
	}
	if err := d.deliver(ctx, d.batch, done); err != nil || len(records) == 0 {
		return err
	}
	return done(&records[len(records)-1])
}

// deliver sends records in pieces. What the receiver refuses is sent in smaller ones,
// until single records at fault remain. These are stored as refused once the receiver
// took another record, or few are left at the end; a crash before that sends them
// again. After an error, what was taken is not sent again.
func (d *delivery) deliver(ctx context.Context, records []receiver.Record, done func(*receiver.Record) error) error {
	var (
		refused  []Refused // since the receiver took a record
		until    int       // the end of pieces that were refused
		smallest int       // of them; 0: none
		single   bool      // one of their records is at fault
	)
	for i := 0; i < len(records); {
		n := min(d.piece, d.most, len(records)-i)
		err := d.send(ctx, records[i:i+n])
		switch {
		case err == nil:
			if err := d.leaveOut(ctx, refused); err != nil {
				return err
			}
			refused = nil
			i += n
			d.piece = min(2*d.piece, d.most)
			if err := done(&records[i-1]); err != nil {
				return err
			}
		case !errors.Is(err, receiver.ErrRefused):
			return err
		case n > 1:
			d.piece = n / 2
			until, smallest = max(until, i+n), n
		default:
			if d.streak++; d.streak >= wrongAfter {
				if err := d.blame(ctx, err); err != nil {
					return err
				}
			}
			refused = append(refused, d.refusal(&records[i], err))
			single = true
			i++
		}
		if smallest > 0 && i >= until {
			if !single { // they were too large
				d.most, d.well = smallest/2, 0
			}
			smallest, single = 0, false
		}
	}
	return d.leaveOut(ctx, refused)
}

// leaveOut stores records as refused, before the position moves over them.
func (d *delivery) leaveOut(ctx context.Context, refused []Refused) error {
	if len(refused) == 0 {
		return nil
	}
	if err := d.e.c.Store.SetRefused(ctx, refused); err != nil {
		return err
	}
	d.e.metrics.refused.WithLabelValues(d.name).Add(float64(len(refused)))
	d.log.Warn("the receiver refused records; see auditcollector receivers refused",
		zap.Int("records", len(refused)), zap.String("first", refused[0].RecordID), zap.String("reason", refused[0].Reason))
	return nil
}

// blame returns an error if the receiver is at fault for refusing so many records,
// and not their contents. Then none of them may count as refused: a receiver that was
// set up wrongly would get none, one attempt for each. It is at fault if it refuses a
// record that it took before, or has taken none.
func (d *delivery) blame(ctx context.Context, err error) error {
	if len(d.good) == 0 {
		return &sendError{fmt.Errorf("it refuses every record, so it is at fault and none is left out; the last: %w", notRefused(err))}
	}
	switch again := d.send(ctx, d.good); {
	case errors.Is(again, receiver.ErrRefused):
		return &sendError{fmt.Errorf("it now refuses a record that it took before, so it is at fault and none is left out; the last: %w", notRefused(err))}
	default:
		return again
	}
}

// notRefused returns an error's text: it is not about records any more.
func notRefused(err error) error { return errors.New(err.Error()) }

// send sends records once.
func (d *delivery) send(ctx context.Context, records []receiver.Record) error {
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendLongest)
	defer cancel()
	if err := d.r.To.Send(ctx, records); err != nil {
		if errors.Is(err, receiver.ErrRefused) {
			return err
		}
		return &sendError{err}
	}
	d.works(len(records))
	d.streak = 0
	if r := &records[0]; len(r.Raw) <= sampleBytes && len(d.good) == 0 {
		d.good = []receiver.Record{*r}
	}
	if len(records) == d.most {
		if d.well++; d.well >= growAfter {
			d.most, d.well = min(2*d.most, source.Page), 0
		}
	}
	return nil
}

func (d *delivery) refusal(r *receiver.Record, err error) Refused {
	now := d.e.c.Now()
	return Refused{
		Receiver: d.name, Tenant: r.Record.Tenant, SessionID: r.Record.SessionID, Seq: r.Record.Seq, Hash: r.Hash, RecordID: r.Record.RecordID,
		User: r.Record.User, Arrived: r.Arrived, Reason: short(err), RefusedAt: now, At: now,
	}
}

// A sendError is an error of the receiver, not of the store.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// works notes that the receiver took something.
func (d *delivery) works(records int) {
	d.e.metrics.sent.WithLabelValues(d.name).Add(float64(records))
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mark.Failing.IsZero() {
		d.log.Info("the receiver works again")
	}
	d.mark.Failing, d.mark.Error = time.Time{}, ""
	d.mark.Sent += uint64(records)
	d.changed = true
}

// short returns an error as text that can be shown and stored.
func short(err error) string {
	const most = 1000
	text := escape.Text(err.Error())
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// passOver stores, as refused, a row that is not the record any more that it was when
// it was stored, as after someone has changed it in the database. The others are not
// held up.
func (d *delivery) passOver(ctx context.Context, at source.Position, problem error) error {
	now := d.e.c.Now()
	d.log.Error("a stored record is damaged and cannot be sent", zap.String("session_id", escape.Text(at.Session)), zap.Uint64("seq", at.Seq))
	d.e.metrics.refused.WithLabelValues(d.name).Inc()
	return d.e.c.Store.SetRefused(ctx, []Refused{{
		Receiver: d.name, SessionID: at.Session, Seq: at.Seq, Hash: at.Hash, Arrived: at.Arrived, Reason: short(problem), RefusedAt: now, At: now,
	}})
}

package export

import (
	"context"
	"errors"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
)

// sinceAhead is more than clocks differ.
const sinceAhead = 2 * time.Minute

// sendLate sends what became visible after the position may have passed it. A crash
// before that is recorded has it sent again.
func (d *delivery) sendLate(ctx context.Context) error {
	d.mu.Lock()
	since := d.mark.Since
	d.mu.Unlock()
	if since.Sub(d.e.c.Now()) > sinceAhead { // the receiver was first served by a clock that was ahead
		since = time.Time{}
	}
	list, err := d.e.c.Store.Late(ctx, d.name)
	if err != nil {
		return err
	}
	var done []Late
	for _, l := range list {
		at := l.Arrived.Truncate(time.Millisecond)
		for from, more := (source.Position{Arrived: at}), !at.Before(since); more; {
			if from, more, err = d.e.c.Store.ReadSome(ctx, from, at, readMost, func(records []receiver.Record) error {
				return d.take(ctx, records, func(*receiver.Record) error { return nil })
			}, func(at source.Position, problem error) error { return d.passOver(ctx, at, problem) }); err != nil {
				return err
			}
		}
		if done = append(done, l); !at.Before(since) || len(done) == 1000 {
			if err := d.e.c.Store.LateSent(ctx, d.name, done, d.e.c.Now()); err != nil {
				return err
			}
			done = done[:0]
		}
	}
	return d.e.c.Store.LateSent(ctx, d.name, done, d.e.c.Now())
}

// sendAsked sends refused records that someone asked to send again. The position
// does not move.
func (d *delivery) sendAsked(ctx context.Context) error {
	for {
		list, err := d.e.c.Store.Asked(ctx, d.name)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, refused := range list {
			if err := d.sendOne(ctx, refused); err != nil {
				return err
			}
		}
	}
}

// errGone is the reason of a refused record that cannot be sent again.
var errGone = errors.New("the record is no longer stored")

func (d *delivery) sendOne(ctx context.Context, refused Refused) error {
	record, err := d.e.c.Store.Find(ctx, refused)
	if err != nil && !errors.Is(err, source.ErrDamaged) {
		return err
	}
	switch {
	case err != nil:
	case record == nil || d.e.c.Erased(refused.SessionID):
		err = errGone
	default:
		err = d.send(ctx, []receiver.Record{*record})
	}
	refused.At = d.e.c.Now()
	switch {
	case err == nil:
		refused.SentAt = refused.At
	case errors.Is(err, receiver.ErrRefused), errors.Is(err, errGone), errors.Is(err, source.ErrDamaged):
		refused.Reason, refused.RefusedAt = short(err), refused.At
	default:
		return err
	}
	refused.AskedAt = time.Time{}
	return d.e.c.Store.SetRefused(ctx, []Refused{refused})
}

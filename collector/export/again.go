package export

import (
	"context"
	"errors"
	"slices"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
)

// sinceAhead is more than clocks differ.
const sinceAhead = 2 * time.Minute

// sendLate sends what became visible after the position may have passed it, and
// reports whether more may come. A crash before that is recorded has it sent again.
func (d *delivery) sendLate(ctx context.Context) (open bool, err error) {
	d.mu.Lock()
	since := d.mark.Since
	d.mu.Unlock()
	if since.Sub(d.e.c.Now()) > sinceAhead { // the receiver was first served by a clock that was ahead
		since = time.Time{}
	}
	list, err := d.e.c.Store.Late(ctx, d.name)
	if err != nil || len(list) == 0 {
		return false, err
	}
	// Only now: a collector that reported a period has a mark before it.
	settled, err := d.e.c.Store.Settled(ctx, d.e.c.Now())
	if err != nil {
		return false, err
	}
	start := func(l Late) time.Time {
		from := l.From
		for _, t := range []time.Time{since, l.Sent.Add(time.Millisecond)} {
			if t.After(from) {
				from = t
			}
		}
		return from.Truncate(time.Millisecond)
	}
	slices.SortStableFunc(list, func(a, b Late) int { return start(a).Compare(start(b)) })
	var done []Late
	flush := func() error {
		err := d.e.c.Store.LateSent(ctx, d.name, done, d.e.c.Now())
		done = done[:0]
		return err
	}
	var read time.Time // up to then, since some period's start: periods overlap
	some := false      // records were read
	for _, l := range list {
		upto := l.Upto.Truncate(time.Millisecond)
		if l.From.Before(l.Upto) && settled.Before(upto) {
			upto, open = settled, true
		}
		from := start(l)
		if !from.After(read) {
			from = read.Add(time.Millisecond)
		}
		for at, more := (source.Position{Arrived: from}), !upto.Before(from); more; {
			if at, more, err = d.e.c.Store.ReadSome(ctx, at, upto, readMost, func(records []receiver.Record) error {
				some = true
				return d.take(ctx, records, func(*receiver.Record) error { return nil })
			}, func(at source.Position, problem error) error { return d.passOver(ctx, at, problem) }); err != nil {
				return false, err
			}
			read = at.Arrived.Add(-time.Millisecond)
			if more {
				done = append(done, Late{l.ID, l.From, l.Upto, read})
				if err := flush(); err != nil {
					return false, err
				}
			}
		}
		if some || !upto.Before(l.Upto.Truncate(time.Millisecond)) {
			done = append(done, Late{l.ID, l.From, l.Upto, upto})
		}
		if some || len(done) == 1000 {
			if err := flush(); err != nil {
				return false, err
			}
		}
	}
	return open, flush()
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

package export

import (
	"context"
	"errors"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/internal/wait"

	"go.uber.org/zap"
)

const (
	retryFirst  = time.Second
	retryLast   = time.Minute
	readLongest = 10 * time.Second // a query that takes longer, because the receiver does, reads fewer next time

	// While the collector is behind, a pass is short, and pauses follow that are so
	// many times as long for each receiver. The longest is for a receiver that is slow
	// itself: its passes take time and not the processor's.
	giveWayRead  = 10 * source.Page
	giveWayTimes = 100
	giveWayMost  = time.Minute
	giveWayLook  = 250 * time.Millisecond
)

// errTaken ends a pass of which another collector has taken the mark.
var errTaken = errors.New("another collector sends to the receiver")

// run sends until ctx ends.
func (d *delivery) run(ctx context.Context) {
	pause := retryFirst
	for more := false; ; {
		if !more {
			select {
			case <-ctx.Done():
				return
			case <-d.wake:
			}
		}
		var err error
		before, began := d.sent(), d.e.c.Now()
		more, err = d.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, errTaken) {
			pause = retryFirst
			if d.giveWay(ctx, d.e.c.Now().Sub(began)) != nil {
				return
			}
			continue
		}
		// While it fails, no query is open and nothing but the position is kept, and an
		// attempt reads little: each would leave its memory to the garbage collector.
		more, d.limit, d.batch = false, readFirst, nil
		if d.sent() > before { // it works, with pauses
			pause, d.limit = retryFirst, source.Page
		}
		d.fail(err, pause)
		if wait.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, retryLast)
	}
}

// giveWay waits after a pass of some time while the collector is behind, so that
// all receivers together get a small part of the time.
func (d *delivery) giveWay(ctx context.Context, took time.Duration) error {
	left := min(took*giveWayTimes*time.Duration(len(d.e.deliveries)), giveWayMost)
	for ; left > 0 && d.e.c.Behind(); left -= giveWayLook {
		if err := wait.For(ctx, min(left, giveWayLook)); err != nil {
			return err
		}
	}
	return nil
}

// sent returns how many records the receiver has taken.
func (d *delivery) sent() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mark.Sent
}

// fail notes an error.
func (d *delivery) fail(err error, pause time.Duration) {
	var of *sendError
	if !errors.As(err, &of) {
		d.log.Warn("the store failed; exports wait", zap.Duration("retry_in", pause), zap.Error(err))
		return
	}
	reason := short(err)
	d.e.metrics.failures.WithLabelValues(d.name).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mark.Failing.IsZero() {
		d.mark.Failing = d.e.c.Now()
	}
	if d.mark.Error != reason {
		d.log.Warn("the receiver fails; records wait", zap.Duration("retry_in", pause), zap.String("error", reason))
	}
	d.mark.Error, d.changed = reason, true
}

// pass sends what there is, at most a query's records, and reports whether there may
// be more.
func (d *delivery) pass(ctx context.Context) (more bool, err error) {
	h := d.e.now()
	d.mu.Lock()
	position, epoch, sending := d.mark.Position, d.epoch, d.sending
	late, asked := d.lateOpen || d.lateSeen != h.news.Late, d.askedSeen != h.news.Asked
	d.mu.Unlock()
	if !sending || h.upto.IsZero() {
		return false, nil
	}
	if asked {
		if err := d.sendAsked(ctx); err != nil {
			return false, err
		}
		d.seen(epoch, &d.askedSeen, h.news.Asked)
	}
	if late {
		if d.lateOpen, err = d.sendLate(ctx); err != nil {
			return false, err
		}
		d.seen(epoch, &d.lateSeen, h.news.Late)
	}
	if !position.Arrived.Before(source.Upto(h.last).Arrived) {
		d.move(epoch, source.Upto(h.upto)) // nothing arrived in between
		return false, nil
	}
	limit := d.limit
	if d.e.c.Behind() {
		limit = min(limit, giveWayRead)
	}
	began := d.e.c.Now()
	next, more, err := d.e.c.Store.ReadSome(ctx, position, h.upto, limit, func(records []receiver.Record) error {
		return d.take(ctx, records, func(r *receiver.Record) error { return d.move(epoch, source.After(r)) })
	}, func(at source.Position, problem error) error { return d.passOver(ctx, at, problem) })
	if err != nil {
		return false, err
	}
	switch took := d.e.c.Now().Sub(began); {
	case took > readLongest:
		d.limit = max(d.limit/2, source.Page)
	default:
		d.limit = min(4*d.limit, readMost)
	}
	return more, d.move(epoch, next)
}

// seen notes news that were dealt with.
func (d *delivery) seen(epoch uint64, of *uint64, news uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.epoch == epoch {
		*of = news
	}
}

// move moves the position, unless the mark is not the same any more.
func (d *delivery) move(epoch uint64, to source.Position) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.epoch != epoch || !d.sending {
		return errTaken
	}
	if to.Arrived.Before(d.mark.Position.Arrived) { // a time before it: the horizon is behind
		return nil
	}
	// An idle position moves with the time, and is stored when the mark is renewed.
	d.mark.Position = to
	return nil
}

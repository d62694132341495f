package export

import (
	"context"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/source"

	"go.uber.org/zap"
)

const (
	leaseFor   = 30 * time.Second // a mark this old has no owner
	renewEvery = 10 * time.Second
	countEvery = 30 * time.Second
	raiseAfter = 5 * time.Minute // of failing, an alert is raised
)

// keep reads the marks, takes those that have no owner, and stores its own. A crash
// before they are stored has the next owner send again from the last position.
func (e *Engine) keep(ctx context.Context) error {
	claimed, err := e.exchange(ctx)
	if err == nil && claimed {
		// Who has the marks now? Of two that claimed one, the later.
		_, err = e.exchange(ctx)
	}
	return err
}

func (e *Engine) exchange(ctx context.Context) (claimed bool, err error) {
	list, err := e.c.Store.Marks(ctx)
	if err != nil {
		return false, err
	}
	stored := map[string]Mark{}
	for _, m := range list {
		stored[m.Receiver] = m
	}
	var write []Mark
	for _, d := range e.deliveries {
		m, known := stored[d.name]
		to, claims := d.exchange(m, known, e.c.Now(), e.now().upto)
		claimed = claimed || claims
		if to != nil {
			write = append(write, *to)
		}
	}
	if len(write) == 0 {
		return claimed, nil
	}
	return claimed, e.c.Store.SetMarks(ctx, write)
}

// exchange compares the mark with that of the store, and returns what to store, nil
// for nothing, and whether that claims the mark.
func (d *delivery) exchange(stored Mark, known bool, now, settled time.Time) (write *Mark, claims bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	others := known && stored.Owner != d.e.c.Run
	if !stored.At.Equal(d.theirAt) {
		d.theirAt, d.theirSeen = stored.At, now
	}
	age := now.Sub(stored.At)
	if age < 0 { // the owner's clock is ahead, and it may be dead: does the mark still change?
		age = now.Sub(d.theirSeen)
	}
	fresh := others && stored.Owner != "" && age < leaseFor && !d.e.c.Dead(stored.Owner)
	at := now.Truncate(time.Millisecond)
	if known && !at.After(stored.At) {
		at = stored.At.Add(time.Millisecond) // of marks of one receiver, the latest counts
	}
	switch {
	case fresh: // also after this process was stopped for long: the other goes on
		if d.sending {
			d.log.Warn("another collector sends to the receiver now", zap.String("owner", stored.Owner))
		}
		d.sending, d.mark = false, stored
		d.epoch++
		return nil, false
	case d.sending:
		if !d.changed && now.Sub(d.kept) < renewEvery {
			return nil, false
		}
		d.changed = false
	case known && !others: // claimed before
		d.sending, d.mark, d.lateSeen, d.askedSeen = true, stored, none, none
		d.epoch++
		return nil, false
	case known:
		d.mark, claims = stored, true
	default:
		d.mark = Mark{Receiver: d.name, Since: d.since, Position: source.Position{Arrived: d.since}}
		if d.since.IsZero() {
			d.mark.Since, d.mark.Position = settled, source.Upto(settled)
		}
		claims = true
	}
	d.mark.Owner, d.mark.Format, d.mark.At, d.kept = d.e.c.Run, d.format, at, now
	m := d.mark
	return &m, claims
}

// expired notes a position from which on records may have been removed because they
// are old. The caller holds mu.
func (d *delivery) expired(now time.Time) {
	if d.e.c.Keep == 0 || now.Sub(d.mark.Position.Arrived) <= d.e.c.Keep || now.Sub(d.expiredAt) < expiredFor {
		return
	}
	d.expiredAt = now
	d.log.Error("records may have been removed before the receiver got them: its position is older than retention.events",
		zap.Time("position", d.mark.Position.Arrived))
}

// release stores the last positions, so that another collector can send at once.
func (e *Engine) release(ctx context.Context) error {
	var write []Mark
	for _, d := range e.deliveries {
		d.mu.Lock()
		if d.sending {
			d.sending = false
			m := d.mark
			m.Owner, m.At = "", m.At.Add(time.Millisecond)
			if now := e.c.Now().Truncate(time.Millisecond); now.After(m.At) {
				m.At = now
			}
			write = append(write, m)
		}
		d.mu.Unlock()
	}
	if len(write) == 0 {
		return nil
	}
	return e.c.Store.SetMarks(ctx, write)
}

// count counts what waits for receivers that are behind.
func (e *Engine) count(ctx context.Context) error {
	h := e.now()
	for _, d := range e.deliveries {
		position, behind := d.behind(h)
		d.mu.Lock()
		if behind && d.sending {
			d.expired(e.c.Now())
		}
		due := behind && e.c.Now().Sub(d.counted) >= countEvery
		if !behind {
			d.waiting = 0
		}
		d.mu.Unlock()
		if !due {
			continue
		}
		n, _, err := e.c.Store.Count(ctx, position, e.c.Now())
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.waiting, d.counted = n, e.c.Now()
		d.mu.Unlock()
	}
	return nil
}

// raise raises an alert about each receiver that has failed for long, and closes it
// once the receiver works. A crash in between raises or closes it again.
func (e *Engine) raise(ctx context.Context) error {
	if e.c.Raise == nil {
		return nil
	}
	for _, d := range e.deliveries {
		d.mu.Lock()
		failing, reason, sending, raised := d.mark.Failing, d.mark.Error, d.sending, d.raised
		d.mu.Unlock()
		fails := !failing.IsZero()
		if !sending || fails && e.c.Now().Sub(failing) < raiseAfter || raised != nil && *raised == fails {
			continue
		}
		if err := e.c.Raise(ctx, alert.ExportCannotRun(d.name, failing, e.c.Now(), reason)); err != nil {
			return err
		}
		d.mu.Lock()
		d.raised = &fails
		d.mu.Unlock()
	}
	return nil
}

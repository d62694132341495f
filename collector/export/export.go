// Package export takes stored records to other systems.
//
// Each receiver has a goroutine, a filter and a mark of its own. It reads stored
// records in the order of their arrival, so one that is slow or absent delays
// neither the storing of records nor the others; while it fails, nothing but its
// position is kept. A record is sent at least once:
//
//   - A position moves only over records that the receiver took, that its filter
//     leaves out, or that are stored as refused. So each position that was ever
//     written is true, and it does no harm if an old one overwrites a newer one:
//     records are sent again, under the same ids.
//   - It moves up to the time that source.Source.Settled returns. What becomes
//     visible behind it is reported by whoever stored it, see alert.Engine, and sent
//     when that is read. That it was sent is recorded afterwards.
//   - Several collectors may have the same receivers. One owns the mark, renews it
//     and sends; the others watch. If two send for a while, records are sent twice.
//
// Sessions that were erased are not sent. Records that were removed because they
// were old are not sent either: a receiver that was away for so long is reported.
//
// The files, from the top: export, keep, delivery, again, divide, state, engine, metrics,
// status, tables, config.
package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/internal/wait"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	pollEvery = time.Second
	keepEvery = 5 * time.Second  // positions are stored, and the marks of others read
	endWait   = 10 * time.Second // for the last positions
	heldAfter = 10 * time.Second // some collector holds back what arrived since
)

// New checks c and returns an engine. It does not close the receivers.
func New(c Config) (*Engine, error) {
	c, err := c.checked()
	if err != nil {
		return nil, fmt.Errorf("configuring exports: %w", err)
	}
	e := &Engine{c: c, metrics: newMetrics()}
	for _, r := range c.Receivers {
		e.deliveries = append(e.deliveries, newDelivery(e, r))
		e.metrics.of(r.Name)
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(append([]prometheus.Collector{state{e}}, e.metrics.all()...)...)
	}
	return e, nil
}

// Run sends until ctx ends, and then stores how far it is. It returns no other
// error: while the store or a receiver does not answer, records wait.
func (e *Engine) Run(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { e.tend(running); return nil })
	for _, d := range e.deliveries {
		g.Go(func() error { d.run(running); return nil })
	}
	err := g.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	if releaseErr := e.release(end); releaseErr != nil {
		e.c.Log.Warn("the last positions of exports were not stored; some records are sent twice", zap.Error(releaseErr))
	}
	return err
}

// tend looks how far records can be read, and keeps the marks.
func (e *Engine) tend(ctx context.Context) {
	var kept, said time.Time
	for {
		err := e.look(ctx)
		if now := e.c.Now(); err == nil && (now.Sub(kept) >= keepEvery || now.Before(kept)) {
			kept = now
			err = errors.Join(e.keep(ctx), e.count(ctx), e.raise(ctx))
		}
		if now := e.c.Now(); err != nil && ctx.Err() == nil && now.Sub(said) >= time.Minute {
			said = now
			e.c.Log.Warn("the store failed; exports wait", zap.Error(err))
		}
		for _, d := range e.deliveries {
			select {
			case d.wake <- struct{}{}:
			default:
			}
		}
		pause := pollEvery
		if e.c.Behind() {
			pause = keepEvery
		}
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}

// look reads how far records can be read. It costs the same whether there are many
// records or few.
func (e *Engine) look(ctx context.Context) error {
	settled, err := e.c.Store.Settled(ctx, e.c.Now())
	if err != nil {
		return err
	}
	h := e.now()
	first := h.upto.IsZero()
	if !settled.After(h.upto) { // a run has begun with an earlier mark
		settled = h.upto
	}
	news, err := e.c.Store.News(ctx, h.upto, settled)
	if err != nil {
		return err
	}
	h.upto, h.news, h.held = settled, news, false
	if now := e.c.Now(); now.Sub(settled) > heldAfter {
		later, err := e.c.Store.News(ctx, settled, now)
		if err != nil {
			return err
		}
		h.held = later.Records
	}
	if first || news.Records {
		h.last = settled
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.horizon = h
	return nil
}

// Package alert decides which records somebody should look at.
//
// Rules are data, see rules/ and schemas/alert-rules.v1.schema.json. Most look
// at each record as it is stored; others are questions that the store is asked
// again and again.
//
// Nobody waits for it, and nothing is lost. What was stored is handed over
// through a queue that never blocks. A mark in the store says up to which
// arrival all is evaluated; it stays behind whatever waits in the queue, found
// the queue full, or is still being stored. So a record that was committed and
// not evaluated, because the queue was full or because we died, lies after the
// mark: a sweep reads it again from the store, here or in another collector
// that finds a mark which nobody moves any more. What is evaluated twice gives
// the same alerts, because an alert's identity is a function of rule and record.
package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"auditproxy/sink"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	queued     = 2                // batches that wait; each may hold a whole batch's memory
	markEvery  = 20 * time.Second // a mark is written
	markLag    = time.Minute      // a mark stays behind the clock, which may be set back by less
	staleAfter = 3 * time.Minute  // a mark that was not written for so long is nobody's
	sweepSlice = time.Hour        // of arrivals, after which a sweep's progress is kept
	retryFirst = 100 * time.Millisecond
	retryLast  = 10 * time.Second
)

// A Store is what alerts need of where records are kept.
type Store interface {
	// InsertAlerts stores alerts that are not there yet, and returns those. One
	// whose suppression key is there already is stored as suppressed.
	InsertAlerts(ctx context.Context, alerts []sink.Alert) ([]sink.Alert, error)

	// Arrived calls do with the records that arrived after one time and up to
	// another, in pages. It ends with the first error of do.
	Arrived(ctx context.Context, after, upto time.Time, do func([]sink.Row) error) error

	// Ask calls do with each row of the answer to a question, which has the
	// parameter since.
	Ask(ctx context.Context, sql string, since time.Time, do func(map[string]any) error) error

	Marks(ctx context.Context) ([]sink.Mark, error)
	SetMarks(ctx context.Context, marks []sink.Mark) error
}

// A Config says what to look for.
type Config struct {
	Rules *Rules // Required.
	Store Store  // Required.
	Name  string // of this run, unlike that of any other. Required.

	// Stored is told of alerts when they are stored; it must not block. nil:
	// nobody is told.
	Stored func([]sink.Alert)

	Now func() time.Time // nil: time.Now
	Log *zap.Logger      // nil: none
}

// An Engine evaluates records and stores the alerts.
type Engine struct {
	Config
	queue chan batch
	wake  chan struct{} // somebody found the queue full

	storing chan struct{} // full while alerts are stored: what suppresses what is decided one by one

	mu       sync.Mutex
	number   uint64               // of the last batch; guarded by mu
	pending  map[uint64]time.Time // when batches arrived that are not evaluated; guarded by mu
	missed   time.Time            // arrival of the first record that only a sweep will see; zero: none; guarded by mu
	sweeping time.Time            // where a sweep began that is under way; zero: none; guarded by mu
}

// A batch is what was stored at once.
type batch struct {
	number uint64
	rows   []sink.Row
}

// New checks c and returns an engine.
func New(c Config) (*Engine, error) {
	var problems []error
	if c.Rules == nil {
		problems = append(problems, errors.New("there are no rules"))
	}
	if c.Store == nil {
		problems = append(problems, errors.New("there is no store"))
	}
	if c.Name == "" {
		problems = append(problems, errors.New("this run has no name"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring alerts: %w", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return &Engine{
		Config: c, pending: map[uint64]time.Time{},
		queue: make(chan batch, queued), wake: make(chan struct{}, 1), storing: make(chan struct{}, 1),
	}, nil
}

// Register writes this run's first mark. It must have returned before the first
// record is stored: a run that died without a mark has left none to sweep from.
func (e *Engine) Register(ctx context.Context) error {
	if err := e.Store.SetMarks(ctx, []sink.Mark{e.mark()}); err != nil {
		return fmt.Errorf("registering for alerts: %w", err)
	}
	return nil
}

// Begin is called before records are stored as having arrived at a time. What
// it returns is called once they are stored, before anybody is told so, or with
// nil if they are not. Neither blocks.
func (e *Engine) Begin(arrived time.Time) (end func(stored []sink.Row)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number++
	number := e.number
	e.pending[number] = arrived
	return func(stored []sink.Row) {
		if len(stored) > 0 {
			select {
			case e.queue <- batch{number, stored}:
				return
			default:
			}
		}
		e.drop(number, len(stored) > 0)
	}
}

// drop forgets a batch. What it held lies after the mark if it was stored.
func (e *Engine) drop(number uint64, stored bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	arrived := e.pending[number]
	delete(e.pending, number)
	if !stored {
		return
	}
	e.missed = earliest(e.missed, arrived)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// mark says how far this run has come.
func (e *Engine) mark() sink.Mark {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now()
	upto := earliest(e.missed, e.sweeping)
	for _, arrived := range e.pending {
		upto = earliest(upto, arrived)
	}
	upto = earliest(upto, now).Add(-markLag)
	return sink.Mark{Name: e.Name, Kind: sink.MarkRun, Upto: upto, At: now}
}

// Run evaluates until ctx ends. It returns no other error: while the store does
// not answer, alerts wait and records do not.
func (e *Engine) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { e.stream(ctx); return nil })
	g.Go(func() error { e.keep(ctx); return nil })
	g.Go(func() error { e.schedule(ctx); return nil })
	return g.Wait()
}

// stream evaluates what is handed over.
func (e *Engine) stream(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return // a sweep finds what is left
		case b := <-e.queue:
			alerts := e.evaluate(b.rows)
			if e.insist(ctx, "alerts wait", func() error { return e.store(ctx, alerts) }) != nil {
				return
			}
			// A crash before the next mark evaluates this again.
			e.mu.Lock()
			delete(e.pending, b.number)
			e.mu.Unlock()
		}
	}
}

func (e *Engine) evaluate(rows []sink.Row) (alerts []sink.Alert) {
	for i := range rows {
		alerts = append(alerts, e.Rules.Match(&rows[i])...)
	}
	return alerts
}

// store stores alerts and tells of those that are new.
func (e *Engine) store(ctx context.Context, alerts []sink.Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	select {
	case e.storing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	stored, err := e.Store.InsertAlerts(ctx, alerts)
	<-e.storing
	// A crash here leaves alerts that nobody was told of; the deliverer finds
	// them in the store.
	if len(stored) > 0 && e.Stored != nil {
		e.Stored(stored)
	}
	return err
}

// insist does something until it succeeds or ctx ends, whose error it returns.
func (e *Engine) insist(ctx context.Context, what string, do func() error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		e.Log.Warn("the store failed; "+what, zap.Duration("retry_in", wait), zap.Error(err))
		if sleep(ctx, wait) != nil {
			return ctx.Err()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

package alert

import (
	"context"
	"fmt"

	"auditproxy/internal/wait"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// Run evaluates until ctx ends. It returns no other error: while the store
// does not answer, alerts wait, but records do not.
func (e *Engine) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { e.stream(ctx); return nil })
	g.Go(func() error { e.keep(ctx); return nil })
	g.Go(func() error { e.seek(ctx); return nil })
	g.Go(func() error { e.schedule(ctx); return nil })
	return g.Wait()
}

// End evaluates what is queued and closes this run's mark, unless a sweep is needed.
// It is called once Run has returned and nothing is being stored any more. Without
// it, the next run evaluates from the mark on.
func (e *Engine) End(ctx context.Context) error {
	for len(e.queue) > 0 {
		b := <-e.queue
		if err := e.evaluate(b.rows, func(alerts []Alert) error { return e.store(ctx, alerts) }); err != nil {
			return fmt.Errorf("evaluating the last records: %w", err)
		}
		e.done(b)
	}
	if !e.idle() {
		return nil
	}
	if err := e.setMark(ctx, true); err != nil {
		return fmt.Errorf("closing the mark of what is evaluated: %w", err)
	}
	return nil
}

// stream evaluates the queued batches.
func (e *Engine) stream(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return // a sweep finds the rest
		case b := <-e.queue:
			err := e.evaluate(b.rows, func(alerts []Alert) error {
				return e.insist(ctx, "alerts wait", func() error { return e.store(ctx, alerts) })
			})
			if err != nil {
				return
			}
			e.done(b)
		}
	}
}

// done forgets a batch that is evaluated. A crash before the next mark evaluates
// it again.
func (e *Engine) done(b batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, b.number)
}

// insist retries until success, or until ctx ends, whose error it returns.
func (e *Engine) insist(ctx context.Context, what string, do func() error) error {
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		e.Log.Warn("the store failed; "+what, zap.Duration("retry_in", pause), zap.Error(err))
		if wait.For(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

package alert

import (
	"context"

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
	g.Go(func() error { e.schedule(ctx); return nil })
	return g.Wait()
}

// stream evaluates the queued batches.
func (e *Engine) stream(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return // a sweep finds the rest
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

// Package wait waits for a time unless something else ends first.
package wait

import (
	"context"
	"time"
)

// For waits for d. It returns ctx's error if that ends first.
func For(ctx context.Context, d time.Duration) error { return Until(ctx, nil, d) }

// Until waits until done is closed, for d at most. It returns ctx's error if
// that ends first.
func Until(ctx context.Context, done <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	case <-t.C:
	}
	return nil
}

// Limit returns what f returns, or slow if f takes longer than d. In that case f continues
// in a goroutine of its own, perhaps for ever: use Limit for reads that may hang, such as
// those of a file server that does not answer.
func Limit[T any](d time.Duration, slow error, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(d):
		var none T
		return none, slow
	}
}

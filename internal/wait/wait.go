// Package wait waits for a time unless a context ends first.
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

package alert

import (
	"context"
	"fmt"
	"time"
)

// abandonedFor is how old a mark is made that is to be swept at once. It is far
// more than clocks differ.
const abandonedFor = time.Hour

// HandOver calls store, which stores records that arrive now, in a program that
// evaluates none. What enters events by any path is evaluated: the records are
// left like those of a dead run, to be swept by a collector that runs or starts.
// name is unlike that of any run.
func HandOver(ctx context.Context, k Keeper, name string, now time.Time, store func() error) error {
	upto := now.Add(-markLag)
	guard := Mark{Name: name, Kind: MarkRun, Upto: upto, At: now}
	if err := k.SetMarks(ctx, []Mark{guard}); err != nil {
		return fmt.Errorf("handing records over for alerts: %w", err)
	}
	if err := store(); err != nil {
		return err // some may be stored; the guard is swept once it is stale
	}
	// Another mark than the guard: a collector whose clock is ahead may have
	// closed that before the records were stored.
	left := Mark{Name: name + " stored", Kind: MarkRun, Upto: upto, At: now.Add(-abandonedFor)}
	guard.Closed, guard.At = true, now.Add(time.Millisecond)
	if err := k.SetMarks(ctx, []Mark{left, guard}); err != nil {
		return fmt.Errorf("handing records over for alerts: %w", err)
	}
	return nil
}

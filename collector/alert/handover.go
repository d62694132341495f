package alert

import (
	"context"
	"fmt"
	"time"
)

// abandonedFor is the age of a mark that is to be swept immediately. It is far
// more than clocks differ.
const abandonedFor = time.Hour

// HandOver calls store, which stores records that arrive at a time, in a program that
// evaluates none. It leaves them like the records of a dead run, so that a
// collector that runs or starts sweeps them: rules see every record in events,
// whichever program stored it. name is unlike that of any run.
func HandOver(ctx context.Context, k Keeper, name string, now time.Time, store func() error) error {
	upto := before(now)
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

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
//
// Those who read records in the order of their arrival wait while the mark is open.
// They may have passed the time if other clocks are far ahead of this one, or store
// took long; then it says that the records came late.
func HandOver(ctx context.Context, k Keeper, name string, clock func() time.Time, store func(arrived time.Time) error) error {
	began := clock()
	now := began.Round(0)
	upto := before(now)
	guard := Mark{Name: name, Kind: MarkRun, Upto: upto, At: now}
	if err := k.SetMarks(ctx, []Mark{guard}); err != nil {
		return fmt.Errorf("handing records over for alerts: %w", err)
	}
	passed, err := k.LatestMark(ctx) // after the guard, as in Register
	if err != nil {
		return fmt.Errorf("handing records over for alerts: %w", err)
	}
	arrived := now
	if ahead := passed.Sub(now); ahead >= 0 && ahead <= aheadMost {
		arrived = passed.Add(time.Millisecond)
	}
	if err := store(arrived); err != nil {
		return err // some may be stored; the guard is swept once it is stale
	}
	if clock().Sub(began) > lapsed || !arrived.Truncate(time.Millisecond).After(passed) {
		if err := k.InsertLate(ctx, name, arrived, arrived, now); err != nil {
			return fmt.Errorf("handing records over: %w", err)
		}
	}
	// Another mark than the guard: a collector whose clock is ahead may have
	// closed that before the records were stored.
	left := Mark{Name: name + " stored", Kind: MarkRun, Upto: upto, At: now.Add(-abandonedFor)}
	guard.Closed, guard.At = true, now.Add(time.Millisecond)
	guard.Upto = guard.At
	if err := k.SetMarks(ctx, []Mark{left, guard}); err != nil {
		return fmt.Errorf("handing records over for alerts: %w", err)
	}
	return nil
}

package main

import (
	"testing"

	"auditproxy/sink/spool"
)

// The unshipped records of a live session are not a problem, and must not hide
// those of ended sessions.
func TestUnshippedAndOver(t *testing.T) {
	written := spool.Position{Segment: 1, Offset: 100}
	sessions := []spool.Entry{
		{State: spool.Live, Durable: written},
		{State: spool.Live, Durable: written, Shipped: written},
		{State: spool.Live, Durable: written, Shipped: written},
		{State: spool.Ended, Durable: written},
		{State: spool.Ended, Durable: written, Shipped: written},
		{State: spool.Dead, Durable: written},
	}
	if got := countUnshipped(sessions); got != 2 {
		t.Errorf("%d sessions are over and not shipped, want 2", got)
	}
}

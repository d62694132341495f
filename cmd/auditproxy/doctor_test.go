package main

import (
	"testing"

	"auditproxy/sink/spool"
)

// What a session that is alive has not shipped is its own matter, and hides
// nothing of those that are over.
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
	if got := unshippedAndOver(sessions); got != 2 {
		t.Errorf("%d sessions are over and not shipped, want 2", got)
	}
}

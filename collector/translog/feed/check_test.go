package feed

import (
	"encoding/binary"
	"testing"

	"auditproxy/schemas/evidence"
)

// TestCheckerIsBounded has more sessions than a checker may remember.
func TestCheckerIsBounded(t *testing.T) {
	c := newChecker(nil)
	most := 0
	for i := range uint32(3 * maxSeen) {
		var origin evidence.Hash
		binary.BigEndian.PutUint32(origin[:], i)
		c.session(origin)
		most = max(most, len(c.sessions)+len(c.old))
	}
	if most > maxSeen {
		t.Errorf("%d sessions are remembered, want %d at most", most, maxSeen)
	}
}

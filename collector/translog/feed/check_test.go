package feed

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
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

// TestCheckerCounts counts sessions and checkpoints, of which some came twice.
func TestCheckerCounts(t *testing.T) {
	c := newChecker(nil)
	h := evidencetest.NewHost("build-7", time.Unix(1_700_000_000, 0))
	for range 3 {
		lines := slices.DeleteFunc(h.Session(evidencetest.Plan{Calls: 50}).Lines, func(line []byte) bool {
			return !bytes.Contains(line, []byte(`,"evidence":`))
		})
		for _, line := range append(lines, lines...) {
			if _, found, err := c.check(t.Context(), line, time.Time{}); found != nil || err != nil {
				t.Fatalf("found %v: %v", found, err)
			}
		}
	}
	want := 0
	for _, s := range c.sessions {
		want += 1 + len(s.roots)
	}
	if c.seen != want || want < 15 {
		t.Errorf("%d sessions and checkpoints are counted, want %d", c.seen, want)
	}
}

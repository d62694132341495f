package policy

import (
	"math"
	"testing"
	"time"
)

// A history knows a counter in its last window and the one before; of an older window
// it knows nothing, and of a newer one that nothing was counted.
func TestHistoryWindows(t *testing.T) {
	var h History
	h.add("k", 60, 60, 3, 4)
	h.add("k", 120, 60, 1, 2)
	c := &Counter{Key: "k", Window: 60}
	for at, want := range map[int64][2]int64{0: {0, math.MaxInt64}, 60: {3, 4}, 120: {1, 2}, 179: {1, 2}, 180: {0, 0}} {
		if _, low, high := h.at(c, time.Unix(at, 0)); low != want[0] || high != want[1] {
			t.Errorf("at %d: %d to %d, want %d", at, low, high, want)
		}
	}
}

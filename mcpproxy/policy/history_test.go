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
	c := &Counter{Key: "k", Window: 60}
	look := func(when string, want map[int64][2]int64) {
		t.Helper()
		for at, want := range want {
			if _, low, high := h.at(c, time.Unix(at, 0)); low != want[0] || high != want[1] {
				t.Errorf("%s: at %d: %d to %d, want %d", when, at, low, high, want)
			}
		}
	}
	h.add("k", 60, 60, 3, 4)
	h.add("k", 120, 60, 1, 2)
	look("two windows", map[int64][2]int64{0: {0, math.MaxInt64}, 60: {3, 4}, 120: {1, 2}, 179: {1, 2}, 180: {0, 0}})
	h.add("k", 60, 60, 1, 1)
	h.add("k", 0, 60, 9, 9)
	look("what comes late", map[int64][2]int64{60: {4, 5}, 120: {1, 2}})
	h.From = time.Unix(120, 0)
	look("calls are known from 120 on", map[int64][2]int64{60: {4, math.MaxInt64}, 120: {1, 2}})
	h.add("k", 300, 60, 1, 1)
	look("a window behind others", map[int64][2]int64{240: {0, 0}, 300: {1, 1}})
	for at, want := range map[int64]bool{300 + Idle - 1: false, 300 + Idle: true} {
		if got := h.Idle(time.Unix(at, 0)); got != want {
			t.Errorf("at %d the history is idle: %v, want %v", at, got, want)
		}
	}
}

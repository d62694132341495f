package policy

import (
	"math"
	"time"
)

// A held is what a call may have added to a counter.
type held struct {
	of        *History
	key       string
	start     int64
	window    int64
	low, high int64
	refund    bool
}

// A History is the counters of one scope, as far as records have them: for
// each, bounds of its value. Its zero value knows all calls.
type History struct {
	From time.Time // earlier calls are not known; zero: there were none

	counts map[string]bounds
}

// bounds are those of a counter in its last window, and in the one before.
type bounds struct {
	start     int64
	low, high [2]int64
}

// at returns the window of a time and the bounds of the counter's value in it.
func (h *History) at(c *Counter, at time.Time) (start, low, high int64) {
	start = windowStart(at, c.Window)
	b := h.counts[c.Key]
	switch b.start - start {
	case 0:
		low, high = b.low[0], b.high[0]
	case c.Window:
		low, high = b.low[1], b.high[1]
	default:
		if b.start > start { // the count is not kept
			high = math.MaxInt64
		}
	}
	if start < h.From.Unix() && !h.From.IsZero() {
		high = math.MaxInt64
	}
	return start, low, high
}

// add adds to a counter. What is older than the window before is forgotten.
func (h *History) add(key string, start, window, low, high int64) {
	if h.counts == nil {
		h.counts = make(map[string]bounds)
	}
	b, known := h.counts[key]
	switch {
	case known && b.start == start, known && b.start == start+window:
	case known && start == b.start+window:
		b = bounds{start: start, low: [2]int64{0, b.low[0]}, high: [2]int64{0, b.high[0]}}
	case !known || start > b.start:
		b = bounds{start: start}
	default:
		return
	}
	i := 0
	if b.start != start {
		i = 1
	}
	b.low[i] = max(sum(b.low[i], max(low, 0))+min(low, 0), 0)
	b.high[i] = max(sum(b.high[i], max(high, 0))+min(high, 0), 0)
	h.counts[key] = b
}

// Idle reports whether no counter of h is in a window that holds at a time.
func (h *History) Idle(at time.Time) bool {
	for _, b := range h.counts {
		if b.start > at.Unix()-Idle {
			return false
		}
	}
	return true
}

// Histories are the counters that a call is decided by.
type Histories struct{ Session, User *History }

func (h Histories) of(s Scope) *History {
	if s == User {
		return h.User
	}
	return h.Session
}

// Longest returns the longest window of a scope's limits, 0 if there is none.
func (p *Policy) Longest(s Scope) time.Duration {
	var longest int64
	look := func(t *tool) {
		for _, c := range t.counters {
			if c.Scope == s {
				longest = max(longest, c.Window)
			}
		}
	}
	for name := range p.tools {
		look(p.of(name))
	}
	look(p.of(""))
	return time.Duration(longest) * time.Second
}

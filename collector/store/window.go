package store

import (
	"slices"
	"time"
)

// A Window is the time from From to To, without To.
type Window struct{ From, To time.Time }

// The bounds of an unbounded window: the range of DateTime64(6).
var (
	minTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

// bounded returns w with bounds.
func (w Window) bounded() Window {
	if w.From.Before(minTime) {
		w.From = minTime
	}
	if w.To.IsZero() || w.To.After(maxTime) {
		w.To = maxTime
	}
	return w
}

// steps are the widths of a series' counts, in hours.
var steps = []time.Duration{1, 2, 3, 6, 12, 24, 2 * 24, 7 * 24, 14 * 24, 28 * 24, 91 * 24, 365 * 24}

// maxBars is the most counts of a series.
const maxBars = 64

// hours widens w to whole hours and chooses a step for its series.
func (w Window) hours() (Window, time.Duration) {
	w.From, w.To = w.From.UTC().Truncate(time.Hour), w.To.UTC().Add(time.Hour-1).Truncate(time.Hour)
	step := time.Hour
	for _, n := range steps {
		if step = n * time.Hour; w.To.Sub(w.From) <= maxBars*step {
			break
		}
	}
	return w, step
}

func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func earlier(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

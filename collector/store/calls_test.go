package store

import (
	"testing"
	"time"
)

// TestSpans: a list is read in time ranges without a hole, from where it begins to
// the end of its window. The first ones are short, but for the time that has not
// come yet.
func TestSpans(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		f    Filter
		p    Page
		most int // time ranges
	}{
		"all":                 {Filter{}, Page{}, 12},
		"before a record":     {Filter{}, Page{Before: &Cursor{TS: now.Add(-time.Hour)}}, 12},
		"after a record":      {Filter{}, Page{After: &Cursor{TS: now.Add(-time.Hour)}}, 12},
		"after the first one": {Filter{}, Page{After: &Cursor{TS: minTime}}, 12},
		"the last hour":       {Filter{Window: Window{From: now.Add(-time.Hour)}}, Page{}, 3},
		"a day of last year":  {Filter{Window: Window{now.AddDate(-1, 0, -1), now.AddDate(-1, 0, 0)}}, Page{}, 4},
	} {
		q := newSeek(tt.f, tt.p, now)
		at, ranges, past := q.at, 0, 0
		for ; !q.done() && ranges <= tt.most; ranges++ {
			w := q.next()
			from, to := w.To, w.From
			if q.ascending {
				from, to = to, from
			}
			if !from.Equal(at) || !w.From.Before(w.To) {
				t.Errorf("%s: from %v on, %v is read", name, at, w)
			}
			if ahead := !q.ascending && from.After(now); !ahead {
				if past++; past == 1 && w.To.Sub(w.From) > firstSpan {
					t.Errorf("%s: the first range is %v", name, w)
				}
			}
			at = to
		}
		if !q.done() || !at.Equal(q.end) || ranges > tt.most {
			t.Errorf("%s: %d ranges until %v, want at most %d until %v", name, ranges, at, tt.most, q.end)
		}
	}
}

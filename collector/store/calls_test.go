package store

import (
	"testing"
	"time"
)

// TestSpans: a list is read in time ranges without a hole, from where it begins to
// the end of its window. The first ones are short, also where the newest records are
// old, and where clocks are ahead.
func TestSpans(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	old, ahead := now.AddDate(0, 0, -3), now.Add(20*time.Hour)
	for name, tt := range map[string]struct {
		f      Filter
		p      Page
		latest latest // zero: not asked
		most   int    // time ranges
	}{
		"all":                   {Filter{}, Page{}, latest{Newest: now, Ahead: now}, 14},
		"without any record":    {Filter{}, Page{}, latest{Newest: time.UnixMicro(0), Ahead: time.UnixMicro(0)}, 2},
		"of last weekend":       {Filter{}, Page{}, latest{Newest: old, Ahead: old}, 14},
		"some of them tomorrow": {Filter{}, Page{}, latest{Newest: old, Ahead: ahead}, 20},
		"all of them tomorrow":  {Filter{}, Page{}, latest{Newest: time.UnixMicro(0), Ahead: ahead}, 10},
		"before a record":       {Filter{}, Page{Before: &Cursor{TS: now.Add(-time.Hour)}}, latest{}, 14},
		"after a record":        {Filter{}, Page{After: &Cursor{TS: now.Add(-time.Hour)}}, latest{}, 14},
		"after the first one":   {Filter{}, Page{After: &Cursor{TS: minTime}}, latest{}, 14},
		"the last hour":         {Filter{Window: Window{From: now.Add(-time.Hour)}}, Page{}, latest{Newest: now, Ahead: now}, 5},
		"a day of last year":    {Filter{Window: Window{now.AddDate(-1, 0, -1), now.AddDate(-1, 0, 0)}}, Page{}, latest{Newest: now, Ahead: now}, 6},
	} {
		q := newSeek(tt.f, tt.p, now)
		if !tt.latest.Newest.IsZero() {
			q.latest = tt.latest
		}
		at, ranges := q.at, 0
		covered := map[time.Time]bool{} // a newest record was in a range
		for ; !q.done() && ranges <= tt.most; ranges++ {
			w := q.next()
			from, to := w.To, w.From
			if q.ascending {
				from, to = to, from
			}
			if !from.Equal(at) || !w.From.Before(w.To) {
				t.Errorf("%s: from %v on, %v is read", name, at, w)
			}
			for _, newest := range []time.Time{tt.latest.Newest, tt.latest.Ahead} {
				if !covered[newest] && !newest.Before(w.From) && newest.Before(w.To.Add(1)) {
					covered[newest] = true
					if newest.Unix() > 0 && newest.Sub(w.From) > firstSpan {
						t.Errorf("%s: the newest record is from %v, the first range that has it is %v", name, newest, w)
					}
				}
			}
			at = to
		}
		if !q.done() || !at.Equal(q.end) || ranges > tt.most {
			t.Errorf("%s: %d ranges until %v, want at most %d until %v", name, ranges, at, tt.most, q.end)
		}
	}
}

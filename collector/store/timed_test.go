package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// TestTimed: latency is of the last calls, whose number is bounded but for one
// count of the series.
func TestTimed(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		calls []uint64 // by hour
		from  int      // the hour in which the measured time begins
	}{
		"few":                {[]uint64{10, 20, 0, 30}, 0},
		"as many as allowed": {[]uint64{timedCalls / 2, 0, timedCalls / 2, 0}, 0},
		"too many":           {[]uint64{1, timedCalls / 2, timedCalls / 2, 0}, 1},
		"one hour has more":  {[]uint64{1, 2 * timedCalls, 0, 0}, 1},
		"more, and before":   {[]uint64{1, 2 * timedCalls, 2 * timedCalls, 0}, 2},
		"none":               {[]uint64{0, 0, 0}, 0},
	} {
		o := Overview{Window: Window{begin, begin.Add(time.Duration(len(tt.calls)) * time.Hour)}, Step: time.Hour}
		for i, n := range tt.calls {
			o.Series = append(o.Series, Count{Start: begin.Add(time.Duration(i) * time.Hour), OK: n})
		}
		want := Window{begin.Add(time.Duration(tt.from) * time.Hour), o.Window.To}
		if got := o.timed(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	long := Overview{Window: Window{begin, begin.Add(30 * 24 * time.Hour)}, Step: 24 * time.Hour}
	if got, want := long.timed().From, long.Window.To.Add(-timedSpan); !got.Equal(want) {
		t.Errorf("of a month, from %v, want %v", got, want)
	}
}

// TestAtLimit: what the server refuses for its own limits is no failure of it.
func TestAtLimit(t *testing.T) {
	for code, want := range map[int32]bool{159: true, 241: true, 497: false, 60: false} {
		err := atLimit(fmt.Errorf("sending: %w", &ch.Exception{Code: code}))
		if got := errors.Is(err, ErrTooMuch); got != want {
			t.Errorf("code %d: %v, a limit: %t, want %t", code, err, got, want)
		}
	}
	if !errors.Is(errTooLong, ErrTooMuch) {
		t.Errorf("%v is no limit", errTooLong)
	}
}

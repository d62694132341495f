package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the layouts of the times that people write, the most specific
// first.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02 15:04",
	"2006-01-02",
}

// ParseTime reads a point in time as journalctl does: RFC 3339, a date and time or
// a date in the location of now, a time of today, "now", "today" or "yesterday".
// It also reads a span before now, such as "7d", "-1h30m" or "10 minutes ago".
func ParseTime(s string, now time.Time) (time.Time, error) {
	midnight := func(days int) time.Time {
		y, m, d := now.Date()
		return time.Date(y, m, d+days, 0, 0, 0, 0, now.Location())
	}
	switch s {
	case "now":
		return now, nil
	case "today":
		return midnight(0), nil
	case "yesterday":
		return midnight(-1), nil
	}
	span, ago := strings.CutSuffix(s, " ago")
	if !ago {
		span = strings.TrimPrefix(s, "-")
	}
	if d, ok := parseSpan(span); ok {
		return now.Add(-d), nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			y, m, d := now.Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; use \"2026-11-21 10:00\", 10:00, 7d, \"2 days ago\", today or yesterday", s)
}

// spanUnits are the units that people write for a time, besides those of
// time.ParseDuration.
var spanUnits = map[string]time.Duration{
	"sec": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// parseSpan is time.ParseDuration with those units, one of them at a time.
func parseSpan(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil && s != "0" && s[0] != '+' { // which could mean the epoch, or a time to come
		return d, d >= 0
	}
	word := strings.TrimLeft(s, "0123456789")
	unit := spanUnits[strings.TrimPrefix(word, " ")]
	n, err := strconv.ParseUint(strings.TrimSuffix(s, word), 10, 32)
	if err != nil || unit == 0 || time.Duration(n) > math.MaxInt64/unit {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

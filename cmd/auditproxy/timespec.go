package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the points in time that people write, most telling first.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02 15:04",
	"2006-01-02",
}

// parseWhen reads a point in time as journalctl does: RFC 3339, a date and
// time or a date in the location of now, a time of today, "now", "today",
// "yesterday", or a span before now such as "-1h30m", "-2d" or "2d ago".
func parseWhen(s string, now time.Time) (time.Time, error) {
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
		span, ago = strings.CutPrefix(s, "-")
	}
	if ago {
		if d, ok := parseSpan(span); ok {
			return now.Add(-d), nil
		}
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
	return time.Time{}, fmt.Errorf("%q is no time; write it as \"2026-11-21 10:00\", 10:00, -1h, today or yesterday", s)
}

// parseSpan is time.ParseDuration with days and weeks.
func parseSpan(s string) (time.Duration, bool) {
	unit, last := time.Duration(0), strings.TrimRight(s, "dw")
	switch strings.TrimPrefix(s, last) {
	case "d":
		unit = 24 * time.Hour
	case "w":
		unit = 7 * 24 * time.Hour
	default:
		d, err := time.ParseDuration(s)
		return d, err == nil && d >= 0
	}
	n, err := strconv.ParseUint(last, 10, 32)
	return time.Duration(n) * unit, err == nil && time.Duration(n) <= math.MaxInt64/unit
}

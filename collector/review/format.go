package review

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"
)

// clip returns at most n code points of a text. The record's page shows all of
// it.
func clip(n int, s string) string { return clipped(n, s, escape.Text) }

// clipName is clip of the name of a tool or a server, whose letters that look like others
// are shown as their escapes.
func clipName(n int, s string) string {
	if strings.Contains(s, " ") {
		return clip(n, s) // a method and what it is about
	}
	return clipped(n, s, escape.Name)
}

func clipped(n int, s string, escaped func(string) string) string {
	// A code point takes at most four bytes: no need to count a long text's.
	if len(s) > 4*n || utf8.RuneCountInString(s) > n {
		cut := 0
		for i := range s {
			if cut++; cut > n {
				return escaped(s[:i]) + "…"
			}
		}
	}
	return escaped(s)
}

// shortID returns the end of a UUIDv7: its start is the time, which many
// share.
func shortID(id string) string {
	if len(id) > 12 {
		return "…" + escape.Text(id[len(id)-8:])
	}
	return escape.Text(id)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// ago is how long before now a moment was, in its largest unit.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < 0 {
		return "just now"
	}
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := uint64(d / u.unit); n > 0 {
			return plural(n, u.name) + " ago"
		}
	}
	return "just now"
}

// count is n with its thousands apart, by a space that does not break.
func count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural is n with its noun.
func plural(n any, name string) string {
	s := count(n)
	if s == "1" {
		return s + " " + name
	}
	return s + " " + name + "s"
}

// percent is a part of a whole. A nonzero part never shows as 0%, nor an
// incomplete one as 100%.
func percent(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case part < whole && p > 99.9:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// millis is a time in ms as people read it: three digits and a unit.
func millis(v any) string {
	var ms float64
	switch v := v.(type) {
	case float64:
		ms = v
	case *float64:
		if v == nil {
			return "–"
		}
		ms = *v
	}
	switch {
	case math.IsNaN(ms):
		return "–"
	case ms < 1000:
		return digits(ms) + " ms"
	case ms < 60_000:
		return digits(ms/1000) + " s"
	}
	return digits(ms/60_000) + " min"
}

// digits is v with three digits.
func digits(v float64) string {
	places := 0
	switch {
	case v < 10:
		places = 2
	case v < 100:
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}

// maxLinked is the most bytes of a value in a link's filter: a request with a
// longer one would be refused.
const maxLinked = 2048

// link is a path with parameters; it is "" if a value does not fit in.
func link(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if len(pairs[i+1]) > maxLinked {
			return ""
		}
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// A mark shows how something ended: a sign, a word and a class that colours
// them, so that the meaning never depends on colour alone.
type mark struct{ Sign, Word, Class string }

// newMark is the mark of a call's outcome, or of a record of another kind.
func newMark(kind, outcome string) mark {
	switch {
	case kind == "open":
		return mark{"◌", "open", "warn"}
	case kind == "anomaly":
		return mark{"!", "anomaly", "warn"}
	case kind == "gap":
		return mark{"∅", "gap", "bad"}
	case kind == "session_start":
		return mark{"▸", "start", "faint"}
	case kind == "session_end":
		return mark{"▪", "end", "faint"}
	case kind == "policy":
		return mark{"◆", "policy", "warn"}
	case kind != "call" && kind != "":
		return mark{"·", clip(24, kind), "faint"} // a newer proxy's
	case outcome == "ok":
		return mark{"✓", "ok", "ok"}
	case outcome == "error":
		return mark{"✕", "error", "bad"}
	case outcome == "unknown":
		return mark{"?", "unknown", "warn"}
	}
	return mark{"·", escape.Text(outcome), "faint"}
}

func newSeverity(severity alert.Severity) mark {
	switch severity {
	case alert.Critical:
		return mark{"▲", "critical", "bad"}
	case alert.Warning:
		return mark{"▲", "warning", "warn"}
	}
	return mark{"●", clip(20, string(severity)), "faint"}
}

// effectMark shows a decision with its effect.
func effectMark(effect string) mark {
	switch effect {
	case store.Denied:
		return mark{"⊘", "denied", "bad"}
	case store.WouldDeny:
		return mark{"⊘", "would be denied", "warn"}
	case store.Asked:
		return mark{"◇", "asked", "warn"}
	case store.WouldAsk:
		return mark{"◇", "would be asked", "faint"}
	}
	return mark{"·", clip(24, effect), "faint"}
}

// dangerous reports whether a category of risk ranks highest.
func dangerous(category string) bool { return category == "destructive" || category == "financial" }

// bytesOf is a size; zero is not known.
func bytesOf(n int64) string {
	if n == 0 {
		return ""
	}
	return plural(n, "byte")
}

// plainNumber is a number that is a name: without anything between its digits.
func plainNumber(n int64) string { return strconv.FormatInt(n, 10) }

// escapedLines is text on several lines.
func escapedLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = escape.Text(l)
	}
	return strings.Join(lines, "\n")
}

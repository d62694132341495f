package view

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A filter selects lines. It is immutable, so that several goroutines can use
// it.
type filter struct {
	since, until int64 // microseconds since 1970 by the line's ts; 0 for none
	tool         pattern
	method       pattern
	tier         pattern
	outcome      pattern
	kind         pattern
	decision     pattern
	risk         pattern
	detector     pattern
	grep         *regexp.Regexp // over the line as written in the spool

	checkpoints bool // these too, which tell a reader nothing that verify does not
}

// A pattern is a list of words with * and ?, any of which may match. The zero
// pattern matches everything.
type pattern struct {
	re *regexp.Regexp

	// Text that a matching line must contain, nil where that is not known.
	needles [][]byte
}

// newPattern makes a pattern of words separated by commas. member is the text
// before the word in a line, as in `"tier":`, or "" for anywhere.
func newPattern(words []string, member string) pattern {
	if len(words) == 0 {
		return pattern{}
	}
	var p pattern
	var alternatives []string
	plain := true
	for _, word := range words {
		quoted := regexp.QuoteMeta(word)
		alternatives = append(alternatives, strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted))
		plain = plain && !strings.ContainsAny(word, "*?")
		p.needles = append(p.needles, append([]byte(member), jsontext.AppendQuote(nil, word)...))
	}
	p.re = regexp.MustCompile(`(?s)\A(?:` + strings.Join(alternatives, "|") + `)\z`)
	if !plain {
		p.needles = nil
	}
	return p
}

func (p pattern) match(s string) bool { return p.re == nil || p.re.MatchString(s) }

// mayMatch is false only where no part of line can match. A word can be written
// with escapes, so a line with one may always match.
func (p pattern) mayMatch(line []byte) bool {
	return p.needles == nil ||
		slices.ContainsFunc(p.needles, func(n []byte) bool { return bytes.Contains(line, n) }) ||
		bytes.Contains(line, []byte(`\u`))
}

// mayMatch reports whether line has to be parsed. It is why a gigabyte is read
// in seconds: it excludes most lines.
func (f *filter) mayMatch(line []byte) bool {
	if f.since != 0 || f.until != 0 {
		if ts, ok := lineTime(line); ok && !f.inTime(ts) {
			return false
		}
	}
	return f.tool.mayMatch(line) && f.tier.mayMatch(line) && f.outcome.mayMatch(line) && f.kind.mayMatch(line) &&
		f.method.mayMatch(line) && f.decision.mayMatch(line) && f.risk.mayMatch(line) && f.detector.mayMatch(line) && (f.grep == nil || f.grep.Match(line))
}

// inTime reports whether a time in microseconds is asked for.
func (f *filter) inTime(ts int64) bool {
	return (f.since == 0 || ts >= f.since) && (f.until == 0 || ts <= f.until)
}

// match reports whether r is selected. outcome is r's, or the word in its place
// for a call that has none yet.
func (f *filter) match(r *audit.Record, outcome string) bool {
	if r.Kind == audit.KindCheckpoint && !f.checkpoints {
		return false
	}
	if !f.tier.match(r.Tier) || !f.outcome.match(outcome) || !f.kind.match(string(r.Kind)) {
		return false
	}
	if !f.matchDecision(r) {
		return false
	}
	if f.tool.re == nil && f.method.re == nil {
		return true
	}
	return slices.ContainsFunc(audit.Operations(r), func(op audit.Operation) bool {
		return f.tool.match(op.Tool) && f.method.match(op.Method)
	})
}

// matchDecision reports whether the decision about r and its risk are asked
// for.
func (f *filter) matchDecision(r *audit.Record) bool {
	if f.decision.re != nil {
		p := decisionOf(r)
		if p.Decision == "" || !f.decision.match(p.Decision) && !f.decision.match(effect(p)) {
			return false
		}
	}
	if f.risk.re != nil {
		k := riskOf(r)
		if k.Category == "" || !f.risk.match(k.Category) && !f.risk.match(k.Level) {
			return false
		}
	}
	return f.detector.re == nil ||
		slices.ContainsFunc(detectionsOf(r), func(d audit.Detection) bool { return f.detector.match(d.Detector) })
}

// parses reports whether a line that mayMatch has to be parsed before it is
// known to match.
func (f *filter) parses() bool {
	for _, p := range []pattern{f.tool, f.method, f.tier, f.outcome, f.kind, f.decision, f.risk, f.detector} {
		if p.re != nil {
			return true
		}
	}
	return false
}

// lineTime reads a line's ts without parsing the line. Text that a client chose
// comes after it, and inside a string a quotation mark is escaped.
func lineTime(line []byte) (us int64, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte(`,"ts":"`))
	if !ok || len(rest) < len("2006-01-02T15:04:05.000000Z") {
		return 0, false
	}
	return parseMicros(rest[:len("2006-01-02T15:04:05.000000Z")])
}

// parseMicros is time.Parse of the one form that the proxy writes, a tenth of
// whose cost matters here.
func parseMicros(s []byte) (us int64, ok bool) {
	const form = "0000-00-00T00:00:00.000000Z"
	for i, c := range s {
		if digit := '0' <= c && c <= '9'; form[i] == '0' && !digit || form[i] != '0' && c != form[i] {
			return 0, false
		}
	}
	n := func(from, to int) (n int) {
		for _, c := range s[from:to] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	t := time.Date(n(0, 4), time.Month(n(5, 7)), n(8, 10), n(11, 13), n(14, 16), n(17, 19), 0, time.UTC)
	return t.UnixMicro() + int64(n(20, 26)), true
}

// lineDuration reads a line's duration_ms in the same way, in microseconds; 0
// where it has none.
func lineDuration(line []byte) int64 {
	head, _, _ := bytes.Cut(line, []byte(`,"args":`)) // where a client could write one
	_, rest, ok := bytes.Cut(head, []byte(`,"duration_ms":`))
	if !ok {
		return 0
	}
	var us int64
	scale := int64(1000)
	point := false
	for _, c := range rest {
		switch {
		case c == '.' && !point:
			point = true
		case '0' <= c && c <= '9' && us < 1<<53:
			if us = us*10 + int64(c-'0'); point {
				scale /= 10
			}
		default:
			return us * scale
		}
	}
	return us * scale
}

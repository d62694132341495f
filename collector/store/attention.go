package store

import (
	"context"
	"time"
)

// Attention lists possible problems. Fields that this reader may not see are
// nil.
type Attention struct {
	Window   Window
	Sessions SessionsState
	Alerts   *Alerts
	Offsets  *Offsets
	Letters  *Letters
	Decided  DecisionCount
	Rewrites Rewrites
	Arrival  Arrival
	Failed   []Failure // the parts that could not be read, in this order
}

// The parts of an Attention.
const (
	PartSessions  = "sessions"
	PartAlerts    = "open alerts"
	PartOffsets   = "offsets never received"
	PartLetters   = "dead letters"
	PartDecisions = "decisions"
	PartRewrites  = "records in two versions"
	PartArrival   = "arrivals"
)

// Has reports whether a part could be read.
func (a Attention) Has(part string) bool {
	return !failed(a.Failed, part)
}

// SessionsState sums up the sessions that were active in the window, over the
// whole of each.
type SessionsState struct {
	Sessions  uint64 `ch:"sessions"`
	Running   uint64 `ch:"running"`   // not ended, with a record within quietAfter
	Quiet     uint64 `ch:"quiet"`     // not ended, without one
	Died      uint64 `ch:"died"`      // whose end was written by recovery
	Open      uint64 `ch:"open"`      // calls that were open for a minute and have no record yet
	Unknown   uint64 `ch:"unknown"`   // calls that outlived the proxy
	Missing   uint64 `ch:"missing"`   // records whose numbers are missing
	Holed     uint64 `ch:"holed"`     // sessions that Missing is of
	Anomalies uint64 `ch:"anomalies"` // records that have or are one
	Gaps      uint64 `ch:"gaps"`      // records that count calls without a record
}

// Alerts are unacknowledged alerts of any time.
type Alerts struct {
	Critical uint64 `ch:"critical"`
	Warning  uint64 `ch:"warning"`
	Info     uint64 `ch:"info"`
}

// All is the sum of a.
func (a Alerts) All() uint64 { return a.Critical + a.Warning + a.Info }

// Offsets are offsets in topics and spools that the collector never received.
type Offsets struct {
	Gaps    uint64 `ch:"gaps"`
	Missing uint64 `ch:"missing"`
}

// Letters are pending dead letters of any time.
type Letters struct {
	Waiting uint64 `ch:"waiting"`
}

// Rewrites are records with more than one version.
type Rewrites struct {
	Window  Window // looked at: the end of the overview's
	Records uint64 `ch:"records"` // versions beyond the first of each place in a session
}

// Arrival measures how far behind the store is.
type Arrival struct {
	Newest time.Time     `ch:"newest"` // when the last record arrived; zero: none ever did
	P95    float64       `ch:"p95"`    // seconds from the end of a call to its arrival, of those of the last Span
	Calls  uint64        `ch:"calls"`  // that P95 is of
	Span   time.Duration // an hour, less if there were many calls
}

// rewriteSpan is the time searched for rewritten records.
const rewriteSpan = 24 * time.Hour

// Attention looks for possible problems in w. Each part is asked for alone and
// has the limits of one query: one that fails is in Failed, its field stays
// empty, and the others are there. An error means that every part failed.
func (r *Reader) Attention(ctx context.Context, w Window) (Attention, error) {
	w, _ = w.bounded().hours()
	at := Attention{Window: w}
	micro := w.args(args{"quiet": micros(time.Now().Add(-quietAfter))})
	parts := []struct {
		name string
		read func() error
	}{
		{PartSessions, func() (err error) {
			at.Sessions, err = r.sessionsState(ctx, micro)
			return err
		}},
		{PartAlerts, func() (err error) {
			at.Alerts, err = askIfAllowed[Alerts](ctx, r, "open alerts", `
				SELECT countIf(severity = 'critical') AS critical, countIf(severity = 'warning') AS warning,
				       countIf(severity NOT IN ('critical', 'warning')) AS info
				FROM open_alerts`, args{})
			return err
		}},
		{PartOffsets, func() (err error) {
			at.Offsets, err = askIfAllowed[Offsets](ctx, r, "gaps", `
				SELECT count() AS gaps, sum(toUInt64(to_offset - greatest(from_offset, read_to) + 1)) AS missing FROM gaps FINAL
				WHERE read_to <= to_offset AND seen_at >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND seen_at < fromUnixTimestamp64Micro({to:Int64}, 'UTC')`, micro)
			return err
		}},
		{PartLetters, func() (err error) {
			at.Letters, err = askIfAllowed[Letters](ctx, r, "dead letters", `
				SELECT count() AS waiting FROM dead_letters FINAL WHERE replayed_at = toDateTime64(0, 3, 'UTC')`, args{})
			return err
		}},
		{PartDecisions, func() (err error) {
			at.Decided, err = askOne[DecisionCount](ctx, r, "decisions", "SELECT "+effectCounts+" FROM decision_states"+withinDecisions,
				args{"from": w.From.Unix(), "to": w.To.Unix()})
			return err
		}},
		{PartRewrites, func() (err error) {
			at.Rewrites, err = r.rewrites(ctx, w)
			return err
		}},
		{PartArrival, func() (err error) {
			at.Arrival, err = r.arrival(ctx)
			return err
		}},
	}
	for _, part := range parts {
		if err := part.read(); err != nil {
			at.Failed = append(at.Failed, Failure{part.name, err})
		}
	}
	if len(at.Failed) == len(parts) {
		return at, at.Failed[0].Err
	}
	return at, nil
}

// sessionsState counts in several queries, because in memory a set of numbers is
// many times larger than on disk: FINAL holds a block of each part that has rows of
// the same sessions, with all columns that are read.
func (r *Reader) sessionsState(ctx context.Context, a args) (all SessionsState, err error) {
	for _, counts := range []string{
		`count() AS sessions,
		 countIf(NOT ended AND last_ingested >= fromUnixTimestamp64Micro({quiet:Int64}, 'UTC')) AS running,
		 countIf(NOT ended AND last_ingested < fromUnixTimestamp64Micro({quiet:Int64}, 'UTC')) AS quiet,
		 countIf(died) AS died`,
		"sum(" + missingSQL + ") AS missing, countIf(" + holedSQL + ") AS holed",
		"sum(bitmapAndnotCardinality(opened, calls)) AS open",
		"sum(bitmapCardinality(unknown)) AS unknown",
		"sum(bitmapCardinality(anomalies)) AS anomalies",
		"sum(bitmapCardinality(gaps)) AS gaps",
	} {
		part, err := askOne[SessionsState](ctx, r, "sessions", "SELECT "+counts+" FROM session_states FINAL WHERE "+sessionActive, a)
		if err != nil {
			return all, err
		}
		all.Sessions, all.Running, all.Quiet, all.Died = all.Sessions+part.Sessions, all.Running+part.Running, all.Quiet+part.Quiet, all.Died+part.Died
		all.Missing, all.Holed, all.Open, all.Unknown = all.Missing+part.Missing, all.Holed+part.Holed, all.Open+part.Open, all.Unknown+part.Unknown
		all.Anomalies, all.Gaps = all.Anomalies+part.Anomalies, all.Gaps+part.Gaps
	}
	return all, nil
}

// askIfAllowed is askOne for tables that not every reader may see.
func askIfAllowed[T any](ctx context.Context, r *Reader, what, sql string, a args) (*T, error) {
	row, err := askOne[T](ctx, r, what, sql, a)
	if denied(err) {
		return nil, nil
	}
	return &row, err
}

// maxRewritten is the most sessions that are looked at by their ids.
const maxRewritten = 1000

func (r *Reader) rewrites(ctx context.Context, w Window) (Rewrites, error) {
	w.To = earlier(w.To, time.Now().UTC().Add(time.Hour).Truncate(time.Hour))
	w.From = later(w.From, w.To.Add(-rewriteSpan))
	a := w.args(args{"limit": maxRewritten + 1})
	// Each number of a session arrived from one place, or from more: a producer
	// repeated it, or it was rewritten. Only of these are the records read.
	sessions, err := ask[struct {
		ID string `ch:"session_id"`
	}](ctx, r, "sessions with repeated numbers", "SELECT DISTINCT session_id FROM session_states FINAL WHERE "+sessionActive+
		" AND bitmapCardinality(places) != bitmapCardinality(seqs) LIMIT {limit:UInt32}", a)
	if err != nil || len(sessions) == 0 {
		return Rewrites{Window: w}, err
	}
	among := ""
	if len(sessions) <= maxRewritten {
		ids := make([]string, len(sessions))
		for i, s := range sessions {
			ids[i] = s.ID
		}
		among, a["ids"] = " AND session_id IN {ids:Array(String)}", ids
	}
	// A session with more versions than numbers. A bitmap of the numbers needs two
	// bytes per record or less; a group per record, 300, and an agent decides how
	// many records there are.
	found, err := askOne[Rewrites](ctx, r, "rewritten records", `
		SELECT sum(toUInt64(versions - numbers)) AS records FROM (
			SELECT count() AS versions, groupBitmap(seq) AS numbers FROM events FINAL
			PREWHERE ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({to:Int64}, 'UTC')`+among+`
			GROUP BY tenant, session_id)`, a)
	found.Window = w
	return found, err
}

// maxTimed is about the most calls that the delay of arrivals is of.
const maxTimed = 100_000

func (r *Reader) arrival(ctx context.Context) (Arrival, error) {
	now := time.Now()
	last, err := r.latest(ctx, now)
	newest := Arrival{Newest: zeroTime(last.Arrived)}
	if err != nil {
		return newest, err
	}
	a := args{"from": now.Add(-time.Hour).Truncate(time.Hour).Unix(), "to": now.Add(time.Hour).Unix()}
	// Of two hours at most, so of one hour not more than this.
	recent, err := askOne[struct {
		Calls uint64 `ch:"n"`
	}](ctx, r, "recent calls", "SELECT sum(bitmapCardinality(numbers)) AS n"+withinHours+"AND part = 'call'", a)
	if err != nil {
		return newest, err
	}
	newest.Span = time.Hour / time.Duration(recent.Calls/maxTimed+1)
	behind, err := askOne[Arrival](ctx, r, "arrivals", `
		SELECT quantileExact(0.95)(toFloat64(ingested_at) - toFloat64(ts) - ifNull(duration_ms, 0) / 1000) AS p95, count() AS calls
		FROM events FINAL PREWHERE kind = 'call' AND ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC')`,
		args{"from": micros(now.Add(-newest.Span))})
	behind.Newest, behind.Span = newest.Newest, newest.Span
	return behind, err
}

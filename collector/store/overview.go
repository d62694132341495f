package store

import (
	"context"
	"time"
)

// An Overview is what happened in a window, in whole hours.
type Overview struct {
	Window  Window        // as asked for, widened to whole hours
	Step    time.Duration // of Series
	Series  []Count
	Total   Count
	Tools   []ToolUse // the most used first
	Servers []PartyUse
	Hosts   []PartyUse
}

// A Count is calls by outcome. A call counts once, whatever it did.
type Count struct {
	Start              time.Time
	OK, Error, Unknown uint64
}

// Calls is the sum of c.
func (c Count) Calls() uint64 { return c.OK + c.Error + c.Unknown }

// NotOK is how many of c's calls did not end well.
func (c Count) NotOK() uint64 { return c.Error + c.Unknown }

func (c *Count) add(outcome string, n uint64) {
	switch outcome {
	case "ok":
		c.OK += n
	case "error":
		c.Error += n
	default: // unknown, and what a newer program calls something else
		c.Unknown += n
	}
}

// A ToolUse is the operations with one name: calls, what stood inside other
// calls, and what some server read in the same bytes.
type ToolUse struct {
	Operation  string    `ch:"operation"`
	Operations uint64    `ch:"operations"`
	Nested     uint64    `ch:"nested"`
	Candidates uint64    `ch:"candidates"`
	NotOK      uint64    `ch:"not_ok"` // in calls that did not end well
	Latency    []float64 `ch:"latency"`
	Timed      uint64    `ch:"timed"` // calls that Latency is of, in ms: p50, p95, p99
}

// A PartyUse is the calls at one server or on one host.
type PartyUse struct {
	Name, Version string
	Count
	Sessions uint64
}

// maxTools is how many names of operations an overview has.
const maxTools = 20

// maxBars is how many counts a series has at most.
const maxBars = 64

// steps are the widths of a series' counts.
var steps = []time.Duration{1, 2, 3, 6, 12, 24, 2 * 24, 7 * 24, 14 * 24, 28 * 24, 91 * 24, 365 * 24}

// hours widens w to whole hours and chooses a step that divides it.
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

// Overview counts what happened in w.
func (s *Store) Overview(ctx context.Context, w Window) (Overview, error) {
	w, step := w.bounded().hours()
	o := Overview{Window: w, Step: step}
	a := args{"from": w.From.Unix(), "to": w.To.Unix(), "step": int64(step / time.Second)}
	if err := s.series(ctx, &o, a); err != nil {
		return o, err
	}
	if err := s.parties(ctx, &o, a); err != nil {
		return o, err
	}
	a["limit"] = maxTools
	var err error
	o.Tools, err = ask[ToolUse](ctx, s, "operations", `
		SELECT operation,
		       sum(length(calls.keys)) AS operations,
		       sumIf(length(calls.keys), part = 'nested') AS nested,
		       sumIf(length(calls.keys), part = 'candidate') AS candidates,
		       sumIf(length(calls.keys), outcome != 'ok') AS not_ok,
		       quantilesExactArray(0.5, 0.95, 0.99)(if(part = 'call', arrayFilter(ms -> ms >= 0, calls.values), [])) AS latency,
		       sum(if(part = 'call', arrayCount(ms -> ms >= 0, calls.values), 0)) AS timed
		FROM operation_states FINAL
		WHERE hour >= fromUnixTimestamp({from:Int64}) AND hour < fromUnixTimestamp({to:Int64})
		GROUP BY operation
		ORDER BY operations DESC, operation
		LIMIT {limit:UInt32}`, a)
	return o, err
}

func (s *Store) series(ctx context.Context, o *Overview, a args) error {
	rows, err := ask[struct {
		Bar     int64  `ch:"bar"`
		Outcome string `ch:"outcome"`
		Calls   uint64 `ch:"n"`
	}](ctx, s, "calls over time", `
		SELECT intDiv(toUnixTimestamp(hour) - {from:Int64}, {step:Int64}) AS bar, outcome, sum(length(calls.keys)) AS n
		FROM operation_states FINAL
		WHERE hour >= fromUnixTimestamp({from:Int64}) AND hour < fromUnixTimestamp({to:Int64}) AND part = 'call'
		GROUP BY bar, outcome`, a)
	if err != nil {
		return err
	}
	bars := (o.Window.To.Sub(o.Window.From) + o.Step - 1) / o.Step
	o.Series = make([]Count, max(bars, 0))
	for i := range o.Series {
		o.Series[i].Start = o.Window.From.Add(time.Duration(i) * o.Step)
	}
	for _, r := range rows {
		if r.Bar >= 0 && r.Bar < int64(len(o.Series)) {
			o.Series[r.Bar].add(r.Outcome, r.Calls)
			o.Total.add(r.Outcome, r.Calls)
		}
	}
	return nil
}

// maxParties is how many servers, and how many hosts, an overview has.
const maxParties = 20

func (s *Store) parties(ctx context.Context, o *Overview, a args) error {
	a["limit"] = maxParties
	rows, err := ask[struct {
		IsHost   uint8  `ch:"is_host"`
		Host     string `ch:"host"`
		Server   string `ch:"server_name"`
		Version  string `ch:"server_version"`
		OK       uint64 `ch:"ok"`
		Error    uint64 `ch:"error"`
		Unknown  uint64 `ch:"unknown"`
		Sessions uint64 `ch:"sessions"`
	}](ctx, s, "servers and hosts", `
		SELECT toUInt8(grouping(host) = 0) AS is_host, host, server_name, server_version,
		       sumIf(length(calls.keys), outcome = 'ok') AS ok,
		       sumIf(length(calls.keys), outcome = 'error') AS error,
		       sumIf(length(calls.keys), outcome NOT IN ('ok', 'error')) AS unknown,
		       uniqExact(session_id) AS sessions
		FROM operation_states FINAL
		WHERE hour >= fromUnixTimestamp({from:Int64}) AND hour < fromUnixTimestamp({to:Int64}) AND part = 'call'
		GROUP BY GROUPING SETS ((host), (server_name, server_version))
		ORDER BY is_host, ok + error + unknown DESC, host, server_name, server_version
		LIMIT {limit:UInt32} BY is_host`, a)
	for _, r := range rows {
		p := PartyUse{r.Server, r.Version, Count{OK: r.OK, Error: r.Error, Unknown: r.Unknown}, r.Sessions}
		if r.IsHost != 0 {
			p.Name = r.Host
			o.Hosts = append(o.Hosts, p)
		} else {
			o.Servers = append(o.Servers, p)
		}
	}
	return err
}

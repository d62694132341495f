package store

import (
	"context"
	"slices"
	"time"
)

// An Overview summarizes a window, in whole hours.
type Overview struct {
	Window  Window        // as asked for, widened to whole hours
	Step    time.Duration // of Series
	Series  []Count
	Total   Count
	Tools   []ToolUse // the most used first
	Timed   Window    // the end of Window, which the tools' latency is of
	Servers []PartyUse
	Hosts   []PartyUse
	Failed  []Failure // PartLatency, PartNames, or nothing
}

// The parts of an Overview that fail alone.
const (
	PartLatency = "latency of tools"         // reads every call, where the others count
	PartNames   = "tools, servers and hosts" // counts by names, which an agent can make any number of
)

// Has reports whether a part could be read.
func (o Overview) Has(part string) bool { return !failed(o.Failed, part) }

// A Count is the number of calls by outcome. A call counts once, also a
// batch.
type Count struct {
	Start              time.Time
	OK, Error, Unknown uint64
}

// Calls is the sum of c.
func (c Count) Calls() uint64 { return c.OK + c.Error + c.Unknown }

// NotOK returns the number of c's calls that did not succeed.
func (c Count) NotOK() uint64 { return c.Error + c.Unknown }

func (c *Count) add(d Count) {
	c.OK += d.OK
	c.Error += d.Error
	c.Unknown += d.Unknown
}

// A ToolUse is the operations with one name: calls, operations inside other
// calls, and candidates, which some server reads in the same bytes.
type ToolUse struct {
	Operation  string
	Operations uint64
	Nested     uint64
	Candidates uint64
	NotOK      uint64    // in calls whose outcome is not ok
	Latency    []float64 // p50, p95, p99 of calls, ms; nil if none was timed
}

// A PartyUse is the calls at one server or on one host.
type PartyUse struct {
	Name, Version string
	Count
	Sessions uint64
}

const (
	maxTools   = 20 // names of operations in an overview
	maxParties = 20 // servers, and hosts
)

// Latency is measured over at most this time and about this many calls, because
// it means reading every one: the last of the window, and at least one count of
// the series.
const (
	timedSpan  = 7 * 24 * time.Hour
	timedCalls = 1_000_000
)

// maxTimedName is the most bytes of a tool's name whose latency is read: 256 code
// points, the longest that a proxy records. Parameters are in the head of a request,
// which longer names of other producers would make too large.
const maxTimedName = 1 << 10

// Overview counts what happened in w. An error means that nothing could be counted.
func (r *Reader) Overview(ctx context.Context, w Window) (Overview, error) {
	w, step := w.bounded().hours()
	o := Overview{Window: w, Step: step}
	if err := r.counts(ctx, &o); err != nil {
		if r.bars(ctx, &o) != nil {
			return o, err
		}
		o.Failed = append(o.Failed, Failure{PartNames, err})
		return o, nil
	}
	if err := r.latency(ctx, &o); err != nil {
		o.Failed = append(o.Failed, Failure{PartLatency, err})
	}
	return o, nil
}

// The sets that one query counts: reading is most of the work.
const (
	byTime uint8 = iota + 1
	byTool
	byHost
	byServer
)

type countRow struct {
	Set        uint8  `ch:"by"`
	Bar        int64  `ch:"bar"`
	Operation  string `ch:"operation"`
	Host       string `ch:"host"`
	Server     string `ch:"server_name"`
	Version    string `ch:"server_version"`
	OK         uint64 `ch:"ok"`
	Error      uint64 `ch:"error"`
	Unknown    uint64 `ch:"unknown"`
	Operations uint64 `ch:"operations"`
	Nested     uint64 `ch:"nested"`
	Candidates uint64 `ch:"candidates"`
	NotOK      uint64 `ch:"not_ok"`
	Sessions   uint64 `ch:"sessions"`
}

// withinHours reads operation_states for a window.
const withinHours = ` FROM operation_states FINAL WHERE hour >= fromUnixTimestamp({from:Int64}) AND hour < fromUnixTimestamp({to:Int64}) `

// callsByOutcome are columns of operation_states.
const callsByOutcome = `
		       sumIf(bitmapCardinality(numbers), part = 'call' AND outcome = 'ok') AS ok,
		       sumIf(bitmapCardinality(numbers), part = 'call' AND outcome = 'error') AS error,
		       sumIf(bitmapCardinality(numbers), part = 'call' AND outcome NOT IN ('ok', 'error')) AS unknown`

// bars counts over time alone, which needs little memory.
func (r *Reader) bars(ctx context.Context, o *Overview) error {
	o.clear()
	rows, err := ask[countRow](ctx, r, "counts of calls over time", `
		SELECT intDiv(toUnixTimestamp(hour) - {from:Int64}, {step:Int64}) AS bar,`+callsByOutcome+withinHours+`GROUP BY bar`,
		args{"from": o.Window.From.Unix(), "to": o.Window.To.Unix(), "step": int64(o.Step / time.Second)})
	for _, row := range rows {
		o.addBar(row)
	}
	return err
}

// clear makes the series empty.
func (o *Overview) clear() {
	bars := (o.Window.To.Sub(o.Window.From) + o.Step - 1) / o.Step
	o.Series, o.Total, o.Tools, o.Hosts, o.Servers = make([]Count, max(bars, 0)), Count{}, nil, nil, nil
	for i := range o.Series {
		o.Series[i].Start = o.Window.From.Add(time.Duration(i) * o.Step)
	}
}

// addBar adds a row of the calls over time.
func (o *Overview) addBar(row countRow) {
	if row.Bar >= 0 && row.Bar < int64(len(o.Series)) {
		c := Count{OK: row.OK, Error: row.Error, Unknown: row.Unknown}
		o.Series[row.Bar].add(c)
		o.Total.add(c)
	}
}

func (r *Reader) counts(ctx context.Context, o *Overview) error {
	o.clear()
	rows, err := ask[countRow](ctx, r, "counts of calls", `
		SELECT multiIf(grouping(bar) = 0, 1, grouping(operation) = 0, 2, grouping(host) = 0, 3, 4) AS by,
		       intDiv(toUnixTimestamp(hour) - {from:Int64}, {step:Int64}) AS bar, operation, host, server_name, server_version,`+callsByOutcome+`,
		       sum(bitmapCardinality(numbers)) AS operations,
		       sumIf(bitmapCardinality(numbers), part = 'nested') AS nested,
		       sumIf(bitmapCardinality(numbers), part = 'candidate') AS candidates,
		       sumIf(bitmapCardinality(numbers), outcome != 'ok') AS not_ok,
		       uniqExact(session_id) AS sessions
		`+withinHours+`
		GROUP BY GROUPING SETS ((bar), (operation), (host), (server_name, server_version))
		ORDER BY by, if(by = 2, operations, ok + error + unknown) DESC, operation, host, server_name, server_version
		LIMIT {limit:UInt32} BY by`,
		args{"from": o.Window.From.Unix(), "to": o.Window.To.Unix(), "step": int64(o.Step / time.Second), "limit": max(maxTools, maxParties, maxBars)})
	for _, row := range rows {
		c := Count{OK: row.OK, Error: row.Error, Unknown: row.Unknown}
		switch {
		case row.Set == byTime:
			o.addBar(row)
		case row.Set == byTool && len(o.Tools) < maxTools:
			o.Tools = append(o.Tools, ToolUse{row.Operation, row.Operations, row.Nested, row.Candidates, row.NotOK, nil})
		case row.Set == byHost && len(o.Hosts) < maxParties:
			o.Hosts = append(o.Hosts, PartyUse{row.Host, "", c, row.Sessions})
		case row.Set == byServer && len(o.Servers) < maxParties:
			o.Servers = append(o.Servers, PartyUse{row.Server, row.Version, c, row.Sessions})
		}
	}
	return err
}

// timed returns the end of o's window that has not too many calls.
func (o *Overview) timed() Window {
	w := Window{later(o.Window.From, o.Window.To.Add(-timedSpan)), o.Window.To}
	calls := uint64(0)
	for _, c := range slices.Backward(o.Series) {
		if before := calls; before > 0 && before+c.Calls() > timedCalls {
			w.From = later(w.From, c.Start.Add(o.Step))
			break
		}
		calls += c.Calls()
	}
	return w
}

type latencyRow struct {
	Operation string    `ch:"operation"`
	Latency   []float64 `ch:"latency"`
}

// latency fills in the times of the tools of o.
func (r *Reader) latency(ctx context.Context, o *Overview) error {
	o.Timed = o.timed()
	if len(o.Tools) == 0 {
		return nil
	}
	var names []string
	for _, t := range o.Tools {
		if len(t.Operation) <= maxTimedName {
			names = append(names, t.Operation)
		}
	}
	rows, err := ask[latencyRow](ctx, r, "latency", `
		SELECT operation, quantilesExactArray(0.5, 0.95, 0.99)(arrayMap(t -> toFloat64(reinterpretAsFloat32(toUInt32(bitShiftRight(t, 32)))), times)) AS latency
		`+withinHours+`
		  AND part = 'call' AND operation IN {names:Array(String)}
		GROUP BY operation HAVING sum(length(times)) > 0`,
		args{"from": o.Timed.From.Unix(), "to": o.Timed.To.Unix(), "names": names})
	for _, row := range rows {
		i := slices.IndexFunc(o.Tools, func(t ToolUse) bool { return t.Operation == row.Operation })
		o.Tools[i].Latency = row.Latency
	}
	return err
}

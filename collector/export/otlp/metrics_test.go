package otlp

import (
	"context"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

func (f *fake) points(metric int) (list []*metricspb.HistogramDataPoint) {
	for _, m := range f.metrics {
		list = append(list, m.ScopeMetrics[0].Metrics[metric].GetHistogram().DataPoints...)
	}
	return list
}

// TestWindows compares the times of points of successive batches, of which many
// arrived in one millisecond.
func TestWindows(t *testing.T) {
	f := &fake{}
	r := start(t, f, GRPC, func(c *Config) { c.Signals = []Signal{Metrics} })
	send := func(no int, arrived time.Duration) {
		t.Helper()
		batch := records(t, call(no))
		batch[0].Arrived = testStart.Truncate(time.Millisecond).Add(arrived)
		if err := r.Send(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	send(1, 0)
	send(2, 0)
	send(3, 0)
	send(4, time.Second)
	send(4, time.Second) // again
	send(5, time.Second-time.Minute)
	list := f.points(0)
	for i, p := range list {
		if p.StartTimeUnixNano >= p.TimeUnixNano {
			t.Errorf("point %d is from %d to %d", i, p.StartTimeUnixNano, p.TimeUnixNano)
		}
		switch {
		case i == 4 && (p.StartTimeUnixNano != list[3].StartTimeUnixNano || p.TimeUnixNano != list[3].TimeUnixNano):
			t.Error("the repeated batch has other times")
		case i > 0 && i != 4 && p.StartTimeUnixNano < list[i-1].TimeUnixNano:
			t.Errorf("point %d begins before the end of the one before", i)
		}
	}
	if end := uint64(testStart.Truncate(time.Millisecond).Add(1001 * time.Millisecond).UnixNano()); len(list) != 6 || list[3].TimeUnixNano != end {
		t.Errorf("%d points, the fourth until %d, want %d", len(list), list[3].TimeUnixNano, end)
	}
}

// TestDurations counts calls with a known duration, and sessions that ended
// themselves.
func TestDurations(t *testing.T) {
	f := &fake{}
	r := start(t, f, HTTP, func(c *Config) { c.Signals = []Signal{Metrics} })
	session := audit.NewID(testStart)
	end := func(r *audit.Record) {
		r.Kind, r.SessionID, r.TS, r.Outcome, r.CallNo, r.Duration = audit.KindSessionEnd, session, testStart.Add(90*time.Second), "", 0, 0
		r.Method, r.Tool = "", ""
	}
	if err := r.Send(t.Context(), records(t,
		call(1, func(r *audit.Record) { r.Duration = 10 * time.Millisecond }), // the bound is in its bucket
		call(2, func(r *audit.Record) { r.Duration = 301 * time.Second }),
		call(3, func(r *audit.Record) {
			r.Outcome, r.ErrorType, r.Duration = audit.OutcomeUnknown, audit.ErrProxyDied, -1
		}),
		call(4, func(r *audit.Record) { r.Kind, r.Outcome = audit.KindOpen, "" }),
		call(5, end), call(6, end, func(r *audit.Record) { r.Recovered = true }), call(7, end, func(r *audit.Record) { r.SessionID = "x" }),
	)); err != nil {
		t.Fatal(err)
	}
	calls, sessions := f.points(0), f.points(1)
	if len(calls) != 1 || calls[0].Count != 2 || calls[0].GetSum() != 301.01 || calls[0].BucketCounts[0] != 1 || calls[0].BucketCounts[14] != 1 || calls[0].GetMin() != .01 || calls[0].GetMax() != 301 {
		t.Errorf("the calls: %v", calls)
	}
	// An id has milliseconds.
	if len(sessions) != 1 || sessions[0].Count != 1 || sessions[0].GetSum() < 90 || sessions[0].GetSum() > 90.001 {
		t.Errorf("the sessions: %v", sessions)
	}
	m := f.metrics[0].ScopeMetrics[0].Metrics
	if m[0].Name != "mcp.server.operation.duration" || m[1].Name != "mcp.server.session.duration" || m[0].Unit != "s" || m[0].GetHistogram().AggregationTemporality != 1 {
		t.Errorf("the metrics: %v", m)
	}
}

// TestHalves counts each record once although batches are refused and halved.
func TestHalves(t *testing.T) {
	f := &fake{}
	var bad string
	f.fail = func(_ context.Context, s Signal) (bool, any) { return bad == "", refusal(bad) }
	r := start(t, f, HTTP)
	batch := records(t, call(1), call(2), call(3), call(4))
	bad = "x"
	if err := r.Send(t.Context(), batch); err == nil {
		t.Fatal("not refused")
	}
	bad = ""
	for _, half := range [][]receiver.Record{batch[:2], batch[2:]} {
		if err := r.Send(t.Context(), half); err != nil {
			t.Fatal(err)
		}
	}
	var n uint64
	for _, p := range f.points(0) {
		n += p.Count
	}
	if n != 4 {
		t.Errorf("%d calls were counted", n)
	}
}

func refusal(bad string) any {
	if bad == "" {
		return nil
	}
	return 400
}

package otlp

import (
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// bounds are those that the conventions advise, in seconds.
var bounds = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}

// maxPoints is the size of a request, in bytes, with which it is sent.
const maxPoints = 1 << 20

// maxStreams is how many sets of attributes have their own histogram, as in the
// SDKs. Clients choose names of tools, and a receiver keeps each. The others are
// counted together, with the SDKs' attribute.
const (
	maxStreams = 2000
	overflow   = "otel.metric.overflow"
)

// A stream is what a histogram is about.
type stream struct {
	session  bool // the duration of a session, not of a call
	overflow bool
	host     string
	method   string
	tool     string
	prompt   string
	protocol string
	failure  string
	code     int64 // valid if hasCode
	hasCode  bool
}

// A histogram is one point.
type histogram struct {
	stream        stream
	count         uint64
	sum, min, max float64
	buckets       [15]uint64
}

// metrics makes the points of a batch.
type metrics struct {
	scope      *commonpb.InstrumentationScope
	known      map[stream]struct{} // of all batches, at most maxStreams
	points     []*histogram        // of this batch
	byStream   map[stream]*histogram
	start, end uint64
	last       attempt
}

// An attempt identifies a batch.
type attempt struct {
	first, last [16]byte
	n           int
}

func newMetrics(c *Config) *metrics {
	return &metrics{scope: &commonpb.InstrumentationScope{Name: serviceName, Version: c.Version}, known: map[stream]struct{}{}, byStream: map[stream]*histogram{}}
}

// begin starts a batch. Its points are about the time between the last batch and
// its last arrival. A repeated batch keeps its times.
func (m *metrics) begin(records []receiver.Record) {
	m.points = nil
	clear(m.byStream)
	if len(records) == 0 {
		return
	}
	first, last := &records[0], &records[len(records)-1]
	if a := (attempt{first.Hash, last.Hash, len(records)}); a != m.last {
		m.last = a
		// Arrivals are in milliseconds, and many share one. Points of one stream must not
		// overlap nor end at the same time.
		m.start = max(m.end, nanos(first.Arrived))
		m.end = max(later(nanos(last.Arrived), time.Millisecond), m.start+1)
	}
}

// add counts a record.
func (m *metrics) add(rec *receiver.Record) {
	r := &rec.Record
	s := stream{host: r.Host, protocol: r.ProtocolVersion}
	var d time.Duration
	switch {
	case r.Kind == audit.KindCall && r.Method != "" && r.Duration >= 0 && r.Outcome != audit.OutcomeUnknown:
		d = r.Duration
		s.method, s.failure = r.Method, errorType(r)
		switch r.Method {
		case "tools/call":
			s.tool = r.Tool
		case "prompts/get":
			s.prompt = r.Target
		}
		if r.ErrorCode != nil {
			s.code, s.hasCode = *r.ErrorCode, true
		}
	case r.Kind == audit.KindSessionEnd && !r.Recovered:
		// The session's id has the time of its start. What a recovery wrote has the
		// recovery's.
		id, err := uuid.Parse(r.SessionID)
		if err != nil || id.Version() != 7 {
			return
		}
		sec, nsec := id.Time().UnixTime()
		if d = r.TS.Sub(time.Unix(sec, nsec)); d < 0 {
			return
		}
		s.session = true
	default:
		return
	}
	h := m.byStream[s]
	if h == nil {
		if _, ok := m.known[s]; !ok {
			if len(m.known) < maxStreams {
				m.known[s.clone()] = struct{}{} // the texts are parts of the record
			} else {
				s = stream{overflow: true, session: s.session}
				h = m.byStream[s]
			}
		}
		if h == nil {
			h = &histogram{stream: s}
			m.byStream[s] = h
			m.points = append(m.points, h)
		}
	}
	h.record(d.Seconds())
}

func (s stream) clone() stream {
	for _, p := range []*string{&s.host, &s.method, &s.tool, &s.prompt, &s.protocol, &s.failure} {
		*p = strings.Clone(*p)
	}
	return s
}

func (h *histogram) record(v float64) {
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.count++
	h.sum += v
	h.buckets[sort.SearchFloat64s(bounds, v)]++
}

// requests yields the points of the batch in requests of a bounded size.
func (m *metrics) requests() iter.Seq[[]*metricspb.ResourceMetrics] {
	return func(yield func([]*metricspb.ResourceMetrics) bool) {
		slices.SortStableFunc(m.points, func(a, b *histogram) int { return strings.Compare(a.stream.host, b.stream.host) })
		var (
			part []*metricspb.ResourceMetrics
			size int
			host string
		)
		for _, h := range m.points {
			if size >= maxPoints {
				if !yield(part) {
					return
				}
				part, size = nil, 0
			}
			if len(part) == 0 || h.stream.host != host {
				host, size = h.stream.host, size+groupSize+len(h.stream.host)
				part = append(part, m.group(host))
			}
			metric, bytes := h.point(m.start, m.end)
			size += bytes
			list := part[len(part)-1].ScopeMetrics[0].Metrics
			i := 0
			if h.stream.session {
				i = 1
			}
			d := list[i].GetHistogram()
			d.DataPoints = append(d.DataPoints, metric)
		}
		if len(part) > 0 {
			yield(part)
		}
		m.points = nil
		clear(m.byStream)
	}
}

// group returns the two metrics of a host, without points.
func (m *metrics) group(host string) *metricspb.ResourceMetrics {
	metric := func(name, unit, description string) *metricspb.Metric {
		return &metricspb.Metric{Name: name, Unit: unit, Description: description, Data: &metricspb.Metric_Histogram{
			Histogram: &metricspb.Histogram{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA},
		}}
	}
	var call mcpconv.ServerOperationDuration
	var session mcpconv.ServerSessionDuration
	return &metricspb.ResourceMetrics{Resource: resource(host), SchemaUrl: SchemaURL, ScopeMetrics: []*metricspb.ScopeMetrics{{
		Scope: m.scope, SchemaUrl: SchemaURL,
		Metrics: []*metricspb.Metric{
			metric(call.Name(), call.Unit(), call.Description()),
			metric(session.Name(), session.Unit(), session.Description()),
		},
	}}}
}

func (h *histogram) point(start, end uint64) (p *metricspb.HistogramDataPoint, size int) {
	var list []*commonpb.KeyValue
	text := func(key attribute.Key, v string) {
		if v != "" {
			list = append(list, textPair(key, v))
			size += len(key) + len(v) + 24
		}
	}
	s := &h.stream
	if s.overflow {
		list = append(list, &commonpb.KeyValue{Key: overflow, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}})
	} else {
		text(semconv.McpMethodNameKey, s.method)
		if s.method == "tools/call" {
			text(semconv.GenAIOperationNameKey, semconv.GenAIOperationNameExecuteTool.Value.AsString())
		}
		text(semconv.GenAIToolNameKey, s.tool)
		text(semconv.GenAIPromptNameKey, s.prompt)
		if s.hasCode {
			text(semconv.RPCResponseStatusCodeKey, strconv.FormatInt(s.code, 10))
		}
		text(semconv.ErrorTypeKey, s.failure)
		text(semconv.McpProtocolVersionKey, s.protocol)
		text(semconv.NetworkTransportKey, semconv.NetworkTransportPipe.Value.AsString())
	}
	return &metricspb.HistogramDataPoint{
		Attributes: list, StartTimeUnixNano: start, TimeUnixNano: end,
		Count: h.count, Sum: &h.sum, Min: &h.min, Max: &h.max, BucketCounts: h.buckets[:], ExplicitBounds: bounds,
	}, size + 400
}

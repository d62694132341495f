package otlp

import (
	"compress/gzip"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

// A fake is a receiver that fails as told. Without a failure it keeps what it gets.
type fake struct {
	// fail is called for each request, before it is kept, and returns whether it is
	// kept and the answer: nil for success, an error or an int for a status of HTTP.
	fail func(ctx context.Context, s Signal) (keep bool, answer any)
	// rejected and message are those of a partial success.
	rejected int64
	message  string

	mu      sync.Mutex
	logs    []*logspb.ResourceLogs
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
	sizes   []int             // of the requests
	headers map[string]string // of the last request
	peers   map[string]bool   // connections
	collogspb.UnimplementedLogsServiceServer
}

type traceService struct {
	f *fake
	coltracepb.UnimplementedTraceServiceServer
}

type metricsService struct {
	f *fake
	colmetricspb.UnimplementedMetricsServiceServer
}

func (f *fake) Export(ctx context.Context, r *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	reply := &collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: f.rejected, ErrorMessage: f.message}}
	return reply, f.take(ctx, Logs, r)
}

func (s traceService) Export(ctx context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	reply := &coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: s.f.rejected, ErrorMessage: s.f.message}}
	return reply, s.f.take(ctx, Traces, r)
}

func (s metricsService) Export(ctx context.Context, r *colmetricspb.ExportMetricsServiceRequest) (*colmetricspb.ExportMetricsServiceResponse, error) {
	reply := &colmetricspb.ExportMetricsServiceResponse{PartialSuccess: &colmetricspb.ExportMetricsPartialSuccess{RejectedDataPoints: s.f.rejected, ErrorMessage: s.f.message}}
	return reply, s.f.take(ctx, Metrics, r)
}

func (f *fake) take(ctx context.Context, s Signal, r proto.Message) error {
	headers := map[string]string{}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for k, v := range md {
			headers[k] = strings.Join(v, ",")
		}
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	switch answer := f.keep(ctx, s, r, headers, from).(type) {
	case error:
		return answer
	}
	return nil
}

func (f *fake) keep(ctx context.Context, s Signal, r proto.Message, headers map[string]string, from string) (answer any) {
	keep := true
	if f.fail != nil {
		keep, answer = f.fail(ctx, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.headers = headers
	if f.peers == nil {
		f.peers = map[string]bool{}
	}
	f.peers[from] = true
	f.sizes = append(f.sizes, proto.Size(r))
	if !keep {
		return answer
	}
	switch r := r.(type) {
	case *collogspb.ExportLogsServiceRequest:
		f.logs = append(f.logs, r.ResourceLogs...)
	case *coltracepb.ExportTraceServiceRequest:
		f.spans = append(f.spans, r.ResourceSpans...)
	case *colmetricspb.ExportMetricsServiceRequest:
		f.metrics = append(f.metrics, r.ResourceMetrics...)
	}
	return answer
}

// ServeHTTP is the same over HTTP.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, "no gzip", http.StatusBadRequest)
			return
		}
	}
	b, _ := io.ReadAll(body)
	var request, reply proto.Message
	var s Signal
	switch r.URL.Path {
	case "/v1/logs":
		s, request = Logs, new(collogspb.ExportLogsServiceRequest)
		reply = &collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: f.rejected, ErrorMessage: f.message}}
	case "/v1/traces":
		s, request = Traces, new(coltracepb.ExportTraceServiceRequest)
		reply = &coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: f.rejected, ErrorMessage: f.message}}
	case "/v1/metrics":
		s, request = Metrics, new(colmetricspb.ExportMetricsServiceRequest)
		reply = &colmetricspb.ExportMetricsServiceResponse{PartialSuccess: &colmetricspb.ExportMetricsPartialSuccess{RejectedDataPoints: f.rejected, ErrorMessage: f.message}}
	default:
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(b, request) != nil {
		http.Error(w, "not protobuf", http.StatusBadRequest)
		return
	}
	headers := map[string]string{}
	for k := range r.Header {
		headers[strings.ToLower(k)] = r.Header.Get(k)
	}
	if code, ok := f.keep(r.Context(), s, request, headers, r.RemoteAddr).(int); ok {
		http.Error(w, "the receiver's own words", code)
		return
	}
	b, _ = proto.Marshal(reply)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(b)
}

// serve starts f and returns its endpoint.
func (f *fake) serve(t testing.TB, protocol string) string {
	if protocol == HTTP {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collogspb.RegisterLogsServiceServer(s, f)
	coltracepb.RegisterTraceServiceServer(s, traceService{f: f})
	colmetricspb.RegisterMetricsServiceServer(s, metricsService{f: f})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return "http://" + l.Addr().String()
}

// logRecords returns the log records that f has, with their hosts.
func (f *fake) logRecords() (list []*logspb.LogRecord, hosts []string) {
	for _, r := range f.logs {
		for _, s := range r.ScopeLogs {
			for _, l := range s.LogRecords {
				list = append(list, l)
				hosts = append(hosts, texts(r.Resource.Attributes)["host.name"])
			}
		}
	}
	return list, hosts
}

func (f *fake) allSpans() (list []*tracepb.Span) {
	for _, r := range f.spans {
		for _, s := range r.ScopeSpans {
			list = append(list, s.Spans...)
		}
	}
	return list
}

// texts returns attributes as texts.
func texts(list []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		v := kv.Value.GetStringValue()
		if _, ok := kv.Value.Value.(*commonpb.AnyValue_StringValue); !ok {
			v = strings.ReplaceAll(kv.Value.String(), "  ", " ")
		}
		if _, ok := m[kv.Key]; ok {
			v = "duplicate of " + m[kv.Key]
		}
		m[kv.Key] = v
	}
	return m
}

func with(m map[string]string, more map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.Copy(m, more)
	return m
}

package otlp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// sampleRecords returns calls as proxies write them, with risk and policy.
func sampleRecords(t testing.TB, n int) []receiver.Record {
	list := make([]receiver.Record, n)
	start := time.Date(2026, 11, 20, 9, 14, 3, 123456000, time.UTC)
	for i := range list {
		r := ingesttest.Call(i+1, []string{"send_keys", "capture_pane", "list_panes"}[i%3], start)
		r.Forwarded, r.Duration = true, time.Duration(i)*7*time.Microsecond
		r.RequestID, r.RequestIDType = strconv.Itoa(i), "number"
		r.Client, r.Server = audit.Peer{Name: "claude-code", Version: "2.1.7"}, audit.Peer{Name: "libtmux-mcp", Version: "0.1.0a22"}
		r.ProtocolVersion, r.ServerCommand.Command = "2025-06-18", "libtmux-mcp"
		r.Tier, r.Annotations = "mutating", `{"readOnlyHint":false,"destructiveHint":true}`
		r.ToolHash = strings.Repeat("5d", 32)
		r.ArgsBytes, r.ResultBytes = 130, 2240
		r.Host, r.User, r.PID, r.Labels = "build-07", "agent", 41237, `{"team":"platform"}`
		r.Args = `{"keys":{"len":46,"hmac_sha256_prefix":"8d6a61b38d6a61b3"},"pane_id":"%3","enter":true,"cwd":"/srv/build/checkout"}`
		if i%20 == 0 {
			r.Args = `{"operations":[{"tool":"pipe_pane","arguments":{"pane_id":"%3"}}]}`
		}
		if i%50 == 0 {
			code := int64(-32603)
			r.Outcome, r.ErrorType, r.ErrorCode = audit.OutcomeError, audit.ErrJSONRPC, &code
		}
		r.Risk = `{"category":"execute","level":"high","source":"name"}`
		r.Policy = `{"hash":"9f2c41d09f2c41d0","mode":"enforce","decision":"allow","rule":"/rules/3"}`
		if i%2 == 0 {
			r.TraceID, r.SpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
		}
		list[i] = receiver.Record{Row: ingesttest.Row(t, r, ingest.Source{}), Arrived: start.Add(time.Duration(i) * time.Millisecond)}
	}
	return list
}

// raw is a codec that decodes nothing, so that only the sender is measured.
type raw struct{}

func (raw) Name() string                         { return "proto" }
func (raw) Marshal(any) (mem.BufferSlice, error) { return nil, nil }
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

var _ encoding.CodecV2 = raw{}

// BenchmarkSend sends calls as log records, spans and metrics to a server of this
// process that decodes nothing.
func BenchmarkSend(b *testing.B) {
	for _, protocol := range []string{GRPC, HTTP} {
		b.Run(protocol, func(b *testing.B) {
			endpoint := discardHTTP(b)
			if protocol == GRPC {
				endpoint = discardGRPC(b)
			}
			r, err := New(Config{Name: "bench", Target: Target{Endpoint: endpoint, Protocol: protocol}, Arguments: true})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			records := sampleRecords(b, 1000)
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				if err := r.Send(context.Background(), records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(records))/(processorTime(b)-before).Seconds(), "records/core-s")
		})
	}
}

func discardHTTP(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func discardGRPC(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(any)); err != nil {
			return err
		}
		return stream.SendMsg(nil)
	}))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return "http://" + l.Addr().String()
}

// processorTime returns what this process has used, with the server that it sends to.
func processorTime(t testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

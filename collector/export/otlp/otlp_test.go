package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testStart = time.Date(2026, 11, 20, 9, 14, 3, 123456000, time.UTC)

// call returns a call with changes.
func call(no int, change ...func(*audit.Record)) audit.Record {
	r := ingesttest.Call(no, "pipe_pane", testStart)
	r.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012x", no)
	r.TS = testStart
	for _, c := range change {
		c(&r)
	}
	return r
}

func records(t testing.TB, list ...audit.Record) (out []receiver.Record) {
	for i, r := range list {
		out = append(out, receiver.Record{Row: ingesttest.Row(t, r, ingest.Source{}), Arrived: testStart.Add(time.Duration(i+1) * time.Second).Truncate(time.Millisecond)})
	}
	return out
}

// start returns a receiver that sends to f.
func start(t testing.TB, f *fake, protocol string, change ...func(*Config)) *Receiver {
	t.Helper()
	c := Config{Name: "test", Target: Target{Endpoint: f.serve(t, protocol), Protocol: protocol, Timeout: 5 * time.Second}, Arguments: true, Version: "1.2.3"}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func protocols(t *testing.T, do func(t *testing.T, protocol string)) {
	for _, p := range []string{GRPC, HTTP} {
		t.Run(strings.ReplaceAll(p, "/", "-"), func(t *testing.T) { do(t, p) })
	}
}

// TestMapping compares all that is sent of a call with the conventions.
func TestMapping(t *testing.T) {
	code := int64(-32000)
	full := call(58, func(r *audit.Record) {
		r.Outcome, r.ErrorType, r.ErrorCode = audit.OutcomeError, audit.ErrJSONRPC, &code
		r.Duration = 40873 * time.Microsecond
		r.Forwarded, r.NotDurable = true, true
		r.RequestID, r.RequestIDType = "7", "number"
		r.Client, r.Server = audit.Peer{Name: "agent", Version: "2"}, audit.Peer{Name: "libtmux-mcp"}
		r.ProtocolVersion, r.Args, r.ArgsBytes = "2025-06-18", `{"output_path":"/home/ann/.bashrc"}`, 35
		r.Risk = `{"category":"execute","level":"high","source":"name","conflict":true}`
		r.Detections = `[{"detector":"path_sensitive","at":"args.output_path"}]`
		r.Policy = `{"hash":"9f2c41d0","decision":"ask","applied":true,"rule":"/rules/0"}`
		r.Approval = `{"outcome":"approved","scope":"once","by":"ann","wait_ms":8123}`
		r.Candidates = []audit.Candidate{{Method: "tools/call", Tool: "kill_server"}}
		r.Host, r.User, r.PID, r.Labels = "build-7", "ann", 4211, `{"team":"a"}`
		r.TraceID, r.SpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
		r.Anomalies = []string{"batch"}
	})
	shared := map[string]string{
		"auditproxy.record_id": full.RecordID, "mcp.session.id": full.SessionID, "mcp.method.name": "tools/call",
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pipe_pane", "rpc.response.status_code": "-32000", "error.type": "-32000",
		"mcp.protocol.version": "2025-06-18", "network.transport": "pipe", "jsonrpc.request.id": "7",
		"gen_ai.tool.call.arguments": `{"output_path":"/home/ann/.bashrc"}`, "user.name": "ann", "auditproxy.tenant": "acme",
		"auditproxy.outcome": "error", "auditproxy.error_type": "JSONRPCError",
		"auditproxy.client.name": "agent", "auditproxy.client.version": "2", "auditproxy.server.name": "libtmux-mcp",
		"auditproxy.risk.category": "execute", "auditproxy.risk.level": "high", "auditproxy.risk.source": "name", "auditproxy.risk.conflict": "bool_value:true",
		"auditproxy.detections":    `array_value:{values:{string_value:"path_sensitive"}}`,
		"auditproxy.detections_at": `array_value:{values:{string_value:"args.output_path"}}`,
		"auditproxy.policy.hash":   "9f2c41d0", "auditproxy.policy.decision": "ask", "auditproxy.policy.applied": "bool_value:true", "auditproxy.policy.rule": "/rules/0",
		"auditproxy.approval.outcome": "approved", "auditproxy.approval.scope": "once", "auditproxy.approval.by": "ann", "auditproxy.approval.wait_ms": "int_value:8123",
	}
	rest := map[string]string{
		"log.record.uid": full.RecordID, "auditproxy.kind": "call", "auditproxy.seq": "int_value:58", "auditproxy.call_no": "int_value:58",
		"auditproxy.candidates":      `array_value:{values:{string_value:"tools/call kill_server"}}`,
		"auditproxy.candidates_args": `array_value:{values:{string_value:""}}`,
		"auditproxy.forwarded":       "bool_value:true", "auditproxy.durable": "bool_value:false", "auditproxy.duration_us": "int_value:40873",
		"auditproxy.request_id_type": "number", "auditproxy.args_bytes": "int_value:35",
		"auditproxy.trace_id": full.TraceID, "auditproxy.span_id": full.SpanID, "process.pid": "int_value:4211",
		"auditproxy.labels": `{"team":"a"}`, "auditproxy.anomalies": `array_value:{values:{string_value:"batch"}}`,
	}
	protocols(t, func(t *testing.T, protocol string) {
		f := &fake{}
		sent := records(t, full)
		if err := start(t, f, protocol).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		list, hosts := f.logRecords()
		if len(list) != 1 || len(f.allSpans()) != 1 || hosts[0] != "build-7" {
			t.Fatalf("%d log records, %d spans, hosts %q", len(list), len(f.allSpans()), hosts)
		}
		l, s := list[0], f.allSpans()[0]
		hash := map[string]string{"auditproxy.payload_hash": hex.EncodeToString(sent[0].Hash[:])}
		if diff := cmp.Diff(with(with(shared, rest), hash), texts(l.Attributes)); diff != "" {
			t.Error("the log record's attributes (-want +got):\n" + diff)
		}
		if diff := cmp.Diff(shared, texts(s.Attributes)); diff != "" {
			t.Error("the span's attributes (-want +got):\n" + diff)
		}
		begin := uint64(testStart.UnixNano())
		got := []any{l.EventName, l.Body.GetStringValue(), l.SeverityText, l.TimeUnixNano, l.ObservedTimeUnixNano, hex.EncodeToString(l.TraceId), hex.EncodeToString(l.SpanId)}
		want := []any{"mcp.audit.call", "tools/call pipe_pane: error JSONRPCError", "ERROR", begin, uint64(sent[0].Arrived.UnixNano()), full.TraceID, "8bbb00000000003a"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("the log record (-want +got):\n" + diff)
		}
		got = []any{s.Name, s.Kind.String(), s.Status.String(), s.StartTimeUnixNano, s.EndTimeUnixNano - begin, hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), s.Flags}
		want = []any{"tools/call pipe_pane", "SPAN_KIND_SERVER", s.Status.String(), begin, uint64(8163873000), full.TraceID, "8bbb00000000003a", full.SpanID, uint32(0x301)}
		if diff := cmp.Diff(want, got); diff != "" || s.Status.GetCode() != 2 {
			t.Errorf("the span, with status %v (-want +got):\n%s", s.Status, diff)
		}
		scope := f.logs[0].ScopeLogs[0]
		if scope.Scope.Name != "auditproxy" || scope.Scope.Version != "1.2.3" || scope.SchemaUrl != SchemaURL || f.spans[0].ScopeSpans[0].SchemaUrl != SchemaURL {
			t.Errorf("the scope is %v of %q", scope.Scope, scope.SchemaUrl)
		}
		point := f.metrics[0].ScopeMetrics[0].Metrics[0].GetHistogram().DataPoints[0]
		if diff := cmp.Diff(map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pipe_pane", "rpc.response.status_code": "-32000",
			"error.type": "-32000", "mcp.protocol.version": "2025-06-18", "network.transport": "pipe",
		}, texts(point.Attributes)); diff != "" || point.Count != 1 || point.GetSum() != .040873 || point.BucketCounts[2] != 1 {
			t.Errorf("the point is %v (-want +got):\n%s", point, diff)
		}
	})
}

// TestTargetNames sends the target under a name that says what it is, where that is
// certain, and nothing of a call without a method is left out.
func TestTargetNames(t *testing.T) {
	code := int64(-32000)
	f := &fake{}
	var list []audit.Record
	for i, method := range []string{"resources/read", "prompts/get", "tools/call", "x/custom", ""} {
		list = append(list, call(i+1, func(r *audit.Record) {
			r.Method, r.Tool, r.Target = method, "", "T"
			r.Outcome, r.ErrorType, r.ErrorCode, r.ProtocolVersion = audit.OutcomeError, audit.ErrJSONRPC, &code, "2025-06-18"
		}))
	}
	begun := call(6, func(r *audit.Record) {
		*r = audit.Record{Kind: audit.KindSessionStart, RecordID: r.RecordID, SessionID: r.SessionID, TS: r.TS, Seq: 6, ProtocolVersion: "2025-06-18"}
	})
	if err := start(t, f, GRPC).Send(t.Context(), records(t, append(list, begun)...)); err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{
		{"mcp.resource.uri": "T"}, {"gen_ai.prompt.name": "T"}, {"auditproxy.target": "T"}, {"auditproxy.target": "T"}, {"auditproxy.target": "T"}, {},
	}
	logs, _ := f.logRecords()
	for i, l := range logs {
		got := texts(l.Attributes)
		for _, name := range []string{"mcp.resource.uri", "gen_ai.prompt.name", "auditproxy.target"} {
			if got[name] != want[i][name] {
				t.Errorf("record %d: %s is %q, want %q", i, name, got[name], want[i][name])
			}
		}
		status := map[bool]string{true: "-32000"}[i < 5]
		if got["rpc.response.status_code"] != status || got["error.type"] != status || got["mcp.protocol.version"] != "2025-06-18" {
			t.Errorf("record %d: attributes %v", i, got)
		}
	}
	if len(logs) != len(want) {
		t.Errorf("%d log records", len(logs))
	}
}

// TestArgumentsAreOptIn sends no arguments unless told to, of other readings
// neither.
func TestArgumentsAreOptIn(t *testing.T) {
	f := &fake{}
	r := start(t, f, GRPC, func(c *Config) { c.Arguments = false })
	if err := r.Send(t.Context(), records(t, call(1, func(r *audit.Record) {
		r.Args = `{"operations":[{"tool":"a","arguments":{"x":"canary"}}]}`
		r.Candidates = []audit.Candidate{{Method: "tools/call", Tool: "b", Args: `{"x":"canary"}`}}
	}))); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(f.logs, f.spans, f.metrics); strings.Contains(all, "canary") || !strings.Contains(all, "tools/call b") {
		t.Error("sent: " + all)
	}
}

// TestRefused tells what the receiver will never take from what it may take later.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		protocol string
		answer   any
		refused  bool
		remedy   string
	}{
		{GRPC, status.Error(codes.InvalidArgument, "bad"), true, "InvalidArgument (bad)"},
		{GRPC, status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), true, ""},
		{GRPC, status.Error(codes.ResourceExhausted, "quota"), false, "quota"},
		{GRPC, status.Error(codes.Unauthenticated, "no"), false, "check the headers"},
		{GRPC, status.Error(codes.Unimplemented, "no"), false, "remove the signal"},
		{GRPC, status.Error(codes.Internal, strings.Repeat("\x1b[2J", 200)), false, `\x1b[2J`},
		{HTTP, http.StatusBadRequest, true, "400 Bad Request (the receiver's own words)"},
		{HTTP, http.StatusRequestEntityTooLarge, true, ""},
		{HTTP, http.StatusUnauthorized, false, "check the headers"},
		{HTTP, http.StatusNotFound, false, "check the endpoint"},
		{HTTP, http.StatusInternalServerError, false, "check the endpoint"},
		{HTTP, http.StatusTemporaryRedirect, false, "not followed"},
	} {
		for _, signal := range []Signal{Logs, Traces, Metrics} {
			f := &fake{fail: func(_ context.Context, s Signal) (bool, any) {
				return s != signal, map[bool]any{true: tt.answer}[s == signal]
			}}
			r := start(t, f, tt.protocol, func(c *Config) { c.Headers = map[string]string{"Api-Key": "canary"} })
			err := r.Send(t.Context(), records(t, call(1)))
			if err == nil || errors.Is(err, receiver.ErrRefused) != tt.refused || !strings.Contains(err.Error(), tt.remedy) ||
				!strings.Contains(err.Error(), fmt.Sprintf(`sending %s to "test" at http://`, signal)) {
				t.Errorf("%s, %s answered with %v: %v", tt.protocol, signal, tt.answer, err)
			}
			if s := fmt.Sprint(err); strings.Contains(s, "canary") || len(s) > 2000 || strings.ContainsRune(s, '\x1b') {
				t.Errorf("the error is %q", s)
			}
			if f.headers["api-key"] != "canary" {
				t.Errorf("the headers are %q", f.headers)
			}
			if len(f.metrics) > 0 {
				t.Error("metrics of a batch that failed were sent")
			}
		}
	}
}

// TestHeadersComeBack has a receiver that repeats the headers in its answers.
func TestHeadersComeBack(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		f := &fake{rejected: 1, message: "the canary-1 is not for canary-2"}
		headers := map[string]string{"Authorization": "Bearer canary-1", "Api-Key": "canary-2"}
		for _, fails := range []bool{false, true} {
			if fails {
				f.fail = func(context.Context, Signal) (bool, any) {
					return true, status.Error(codes.Unauthenticated, "no: Bearer canary-1, canary-2")
				}
			}
			r := start(t, f, protocol, func(c *Config) { c.Headers = headers })
			err := r.Send(t.Context(), records(t, call(1)))
			if err == nil || strings.Contains(err.Error(), "canary") || (protocol == GRPC || !fails) && !strings.Contains(err.Error(), "<secret>") {
				t.Errorf("fails %t: %v", fails, err)
			}
		}
	})
}

// TestCurrentHeaders changes the headers between requests.
func TestCurrentHeaders(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		f := &fake{rejected: 1}
		headers := map[string]string{"Api-Key": "canary-1"}
		r := start(t, f, protocol, func(c *Config) {
			c.Headers, c.CurrentHeaders = headers, func() map[string]string { return headers }
		})
		for _, want := range []string{"canary-1", "canary-2", "canary-2"} {
			headers = map[string]string{"Api-Key": want}
			f.message = "not " + want
			if err := r.Send(t.Context(), records(t, call(1))); err == nil || !strings.Contains(err.Error(), "not <secret>") || f.headers["api-key"] != want {
				t.Errorf("Send: %v, with the headers %q, want %q", err, f.headers, want)
			}
		}
	})
}

// TestPathIsSecret fails to reach an endpoint whose path is a token, and has one that repeats
// it.
func TestPathIsSecret(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
	}))
	defer s.Close()
	for _, host := range []string{s.URL, "http://127.0.0.1:1"} {
		r := start(t, &fake{}, HTTP, func(c *Config) { c.Endpoint = host + "/in/canary-1%20x" })
		if err := r.Send(t.Context(), records(t, call(1))); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), host) {
			t.Errorf("%v", err)
		}
	}
}

// TestBusyForAYear has a receiver that asks for no request in a year: the attempt
// ends, and it is asked again when the caller sends again.
func TestBusyForAYear(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer s.Close()
	r := start(t, &fake{}, HTTP, func(c *Config) { c.Endpoint, c.Signals, c.Timeout = s.URL, []Signal{Logs}, time.Minute })
	if err := r.Send(t.Context(), records(t, call(1))); err == nil || errors.Is(err, receiver.ErrRefused) || !strings.Contains(err.Error(), "429") {
		t.Errorf("error %v", err)
	}
	if err := r.Send(t.Context(), records(t, call(1))); err != nil || n != 2 {
		t.Errorf("%d requests, %v", n, err)
	}
}

// TestPartialSuccess takes rejected parts as a refusal, and a mere message as
// success.
func TestPartialSuccess(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		for _, tt := range []struct {
			rejected int64
			message  string
			refused  bool
		}{{0, "", false}, {0, "next time, less", false}, {1, "", true}, {3, "(0 spans rejected)", true}, {-1, "", true}} {
			for _, signal := range []Signal{Logs, Traces, Metrics} {
				f := &fake{rejected: tt.rejected, message: tt.message}
				err := start(t, f, protocol, func(c *Config) { c.Signals = []Signal{signal} }).Send(t.Context(), records(t, call(1)))
				if errors.Is(err, receiver.ErrRefused) != tt.refused || !tt.refused && err != nil {
					t.Errorf("%s, %d rejected, %q: %v", signal, tt.rejected, tt.message, err)
				}
			}
		}
	})
}

// TestJSONAnswer reads a partial success in JSON.
func TestJSONAnswer(t *testing.T) {
	for body, refused := range map[string]bool{
		`{}`: false, `{"partialSuccess":{}}`: false, `{"partialSuccess":{"errorMessage":"less, next time"}}`: false,
		`{"partialSuccess":{"rejectedLogRecords":"1"}}`: true, `{"partialSuccess":{"rejectedSpans":2,"errorMessage":"bad"}}`: true, `{"partialSuccess":{"rejectedDataPoints":"3"}}`: true,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, body)
		}))
		err := start(t, &fake{}, HTTP, func(c *Config) { c.Endpoint = s.URL }).Send(t.Context(), records(t, call(1)))
		if errors.Is(err, receiver.ErrRefused) != refused || !refused && err != nil {
			t.Errorf("%s: %v", body, err)
		}
		s.Close()
	}
}

// TestRepeat repeats a batch that the receiver took and answered with an error.
func TestRepeat(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		for _, signal := range []Signal{Logs, Traces, Metrics} {
			times := 0
			f := &fake{fail: func(_ context.Context, s Signal) (bool, any) {
				if times++; s != signal || times > 3 {
					return true, nil
				}
				if protocol == GRPC {
					return true, status.Error(codes.Internal, "lost it")
				}
				return true, http.StatusInternalServerError
			}}
			r := start(t, f, protocol)
			batch := records(t, call(1), call(2))
			if err := r.Send(t.Context(), batch); err == nil || errors.Is(err, receiver.ErrRefused) {
				t.Fatalf("%s: %v", signal, err)
			}
			times = 100
			if err := r.Send(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			ids := map[string]int{}
			list, _ := f.logRecords()
			for _, l := range list {
				ids[texts(l.Attributes)["log.record.uid"]]++
			}
			if len(ids) != 2 || len(list) != 4 {
				t.Errorf("%s: log records by id: %v", signal, ids)
			}
			if n := len(f.metrics); signal != Metrics && n != 1 || signal == Metrics && (n != 2 || f.metrics[0].String() != f.metrics[1].String()) {
				t.Errorf("%s: metrics: %v", signal, f.metrics)
			}
		}
	})
}

// TestDown names the reason when there is no receiver.
func TestDown(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		addr := dev.FreeAddr(t)
		r := start(t, &fake{}, protocol, func(c *Config) { c.Endpoint, c.Timeout = "http://"+addr, 700*time.Millisecond })
		if err := r.Send(t.Context(), records(t, call(1))); errors.Is(err, receiver.ErrRefused) || !strings.Contains(fmt.Sprint(err), "connection refused") {
			t.Error(err)
		}
	})
}

// TestHang ends a request that gets no answer, and then uses another connection.
func TestHang(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		release := make(chan struct{})
		f := &fake{fail: func(context.Context, Signal) (bool, any) {
			<-release
			return true, nil
		}}
		r := start(t, f, protocol, func(c *Config) { c.Timeout, c.Signals = 100*time.Millisecond, []Signal{Logs} })
		err := r.Send(t.Context(), records(t, call(1)))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "no answer within 100ms") {
			t.Errorf("a hanging receiver: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Send(ctx, records(t, call(1))); !errors.Is(err, context.Canceled) {
			t.Errorf("after its end: %v", err)
		}
		close(release)
		r.links[0].timeout = time.Minute
		if err := r.Send(t.Context(), records(t, call(1))); err != nil {
			t.Fatal(err)
		}
		if f.mu.Lock(); len(f.peers) < 2 {
			t.Errorf("the connections are %v", f.peers)
		}
		f.mu.Unlock()
	})
}

// TestRedirect follows no redirect: another place must not get the headers.
func TestRedirect(t *testing.T) {
	elsewhere := &fake{}
	to := elsewhere.serve(t, HTTP)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusPermanentRedirect)
	}))
	defer s.Close()
	err := start(t, &fake{}, HTTP, func(c *Config) { c.Endpoint = s.URL }).Send(t.Context(), records(t, call(1)))
	if err == nil || !strings.Contains(err.Error(), "redirects are not followed") || len(elsewhere.sizes) > 0 {
		t.Errorf("%v; elsewhere, %d requests", err, len(elsewhere.sizes))
	}
}

// TestTLS sends to a server whose certificate the configuration trusts, and to no
// other.
func TestTLS(t *testing.T) {
	f := &fake{}
	s := httptest.NewUnstartedServer(f)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, trusted := range []bool{true, false} {
		err := start(t, &fake{}, HTTP, func(c *Config) {
			if c.Endpoint = s.URL; trusted {
				c.TLS = func() *tls.Config { return &tls.Config{RootCAs: roots} }
			}
		}).Send(t.Context(), records(t, call(1)))
		if (err == nil) != trusted || !trusted && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("trusted %v: %v", trusted, err)
		}
	}
}

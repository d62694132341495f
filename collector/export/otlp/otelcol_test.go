package otlp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/deploy/dev"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A collector is an OpenTelemetry Collector in a process of its own, which writes
// what it receives to files.
type collector struct {
	dir       string
	endpoints map[string]string // by protocol
	process   *exec.Cmd
	ended     chan struct{} // closed when process has
	starts    int
}

// startCollector starts one whose messages of gRPC have at most maxMiB, and whose
// requests of HTTP have as many bytes.
func startCollector(t testing.TB, maxMiB int) *collector {
	c := &collector{dir: t.TempDir(), endpoints: map[string]string{}}
	config := "receivers:\n  otlp:\n    protocols:\n"
	for protocol, limit := range map[string]string{GRPC: fmt.Sprintf("max_recv_msg_size_mib: %d", maxMiB), HTTP: fmt.Sprintf("max_request_body_size: %d", maxMiB<<20)} {
		address := dev.FreeAddr(t)
		c.endpoints[protocol] = "http://" + address
		name, _, _ := strings.Cut(protocol, "/")
		config += fmt.Sprintf("      %s: {endpoint: %q, %s}\n", name, address, limit)
	}
	// With a rotation, the exporter writes without a buffer, so that a kill loses
	// nothing that was acknowledged.
	exporters, pipelines := "", ""
	for _, s := range []Signal{Logs, Traces, Metrics} {
		exporters += fmt.Sprintf("  file/%s: {path: %q, rotation: {max_megabytes: 1000}}\n", s, filepath.Join(c.dir, string(s)))
		pipelines += fmt.Sprintf("    %s: {receivers: [otlp], exporters: [file/%s]}\n", s, s)
	}
	config += "exporters:\n" + exporters + "service:\n  pipelines:\n" + pipelines
	if err := os.WriteFile(filepath.Join(c.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(t)
	return c
}

// start starts the process, until the end of the test, and waits until it listens.
func (c *collector) start(t testing.TB) {
	t.Helper()
	c.process = exec.Command(dev.Fetched(t, "otelcol"), filepath.Join(c.dir, "config.yaml"))
	c.process.Stdout, c.process.Stderr = os.Stderr, os.Stderr
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	c.starts++
	process, ended := c.process, make(chan struct{})
	c.ended = ended
	go func() {
		_ = process.Wait() // of one that is killed
		close(ended)
	}()
	t.Cleanup(func() { _ = process.Process.Kill(); <-ended })
	for _, endpoint := range c.endpoints {
		for {
			conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
			if err == nil {
				conn.Close()
				break
			}
			select {
			case <-ended:
				t.Fatalf("otelcol ended before it listened at %s: %v", endpoint, process.ProcessState)
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// requests returns the requests of one line, and how many others were cut short. The
// exporter writes a request and its line feed in two writes, so that a kill can cut
// either, and the next run continues the line.
func requests(s Signal, line []byte) (whole [][]byte, cut int) {
	start := map[Signal]string{Logs: `{"resourceLogs":`, Traces: `{"resourceSpans":`, Metrics: `{"resourceMetrics":`}[s]
	for len(line) > 0 {
		var request json.RawMessage
		if json.NewDecoder(bytes.NewReader(line)).Decode(&request) == nil {
			whole, line = append(whole, request), line[len(request):]
			continue
		}
		cut++
		next := bytes.Index(line[1:], []byte(start))
		if next < 0 {
			break
		}
		line = line[1+next:]
	}
	return whole, cut
}

func TestRequests(t *testing.T) {
	const a, b = `{"resourceLogs":[{"resource":{},"x":"{\"resourceLogs\":"}]}`, `{"resourceLogs":[]}`
	for _, test := range []struct {
		line string
		want []string
		cut  int
	}{
		{a, []string{a}, 0},
		{a + b, []string{a, b}, 0},
		{a[:9] + b, []string{b}, 1},
		{a[:30] + b + a, []string{b, a}, 1},
		{a + b[:5], []string{a}, 1},
	} {
		whole, cut := requests(Logs, []byte(test.line))
		var got []string
		for _, w := range whole {
			got = append(got, string(w))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || cut != test.cut {
			t.Errorf("%s: %d cut (-want +got):\n%s", test.line, cut, diff)
		}
	}
}

// received returns what it has written.
func (c *collector) received(t testing.TB) *fake {
	t.Helper()
	f := &fake{}
	for _, s := range []Signal{Logs, Traces, Metrics} {
		file, err := os.Open(filepath.Join(c.dir, string(s)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		torn := 0
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			whole, cut := requests(s, lines.Bytes())
			torn += cut
			for _, request := range whole {
				switch s {
				case Logs:
					var m collogspb.ExportLogsServiceRequest
					fromJSON(t, request, &m)
					f.logs = append(f.logs, m.ResourceLogs...)
				case Traces:
					var m coltracepb.ExportTraceServiceRequest
					fromJSON(t, request, &m)
					f.spans = append(f.spans, m.ResourceSpans...)
				case Metrics:
					var m colmetricspb.ExportMetricsServiceRequest
					fromJSON(t, request, &m)
					f.metrics = append(f.metrics, m.ResourceMetrics...)
				}
			}
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			t.Fatal(err)
		}
		if torn >= c.starts {
			t.Fatalf("the collector started %d times, and %d requests of %s are cut short", c.starts, torn, s)
		}
	}
	// OTLP's JSON has ids as hexadecimal digits, protobuf's as base64.
	list, _ := f.logRecords()
	for _, l := range list {
		l.TraceId, l.SpanId = fromHex(l.TraceId), fromHex(l.SpanId)
	}
	for _, s := range f.allSpans() {
		s.TraceId, s.SpanId, s.ParentSpanId = fromHex(s.TraceId), fromHex(s.SpanId), fromHex(s.ParentSpanId)
	}
	return f
}

func fromJSON(t testing.TB, line []byte, m proto.Message) {
	t.Helper()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(line, m); err != nil {
		t.Fatalf("%v: %.200s", err, line)
	}
}

// fromHex returns the bytes of an id of which digits were read as base64.
func fromHex(misread []byte) []byte {
	b, _ := hex.DecodeString(encode64(misread))
	return b
}

// TestCollector sends ordinary and hostile records to an OpenTelemetry Collector,
// and compares what it wrote with what a plain server of protobuf received.
func TestCollector(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		c := startCollector(t, 4)
		sent := records(t, hostile()...)
		plain := &fake{}
		if err := start(t, plain, protocol).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		for _, compression := range []string{NoCompression, GzipCompression} {
			if err := start(t, &fake{}, protocol, func(config *Config) {
				config.Endpoint, config.Compression = c.endpoints[protocol], compression
			}).Send(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
		}
		got := c.received(t)
		want, _ := plain.logRecords()
		list, _ := got.logRecords()
		if len(want) != len(sent) || len(list) != 2*len(want) {
			t.Fatalf("%d records were sent twice, and gave %d and %d log records", len(sent), len(want), len(list))
		}
		for i, l := range list {
			same(t, "log record", want[i%len(want)], l)
		}
		spans, wantSpans := got.allSpans(), plain.allSpans()
		if len(spans) != 2*len(wantSpans) {
			t.Fatalf("%d spans, want twice %d", len(spans), len(wantSpans))
		}
		for i, s := range spans {
			if s.Status.GetCode() == 0 {
				s.Status = nil // it writes an empty one
			}
			same(t, "span", wantSpans[i%len(wantSpans)], s)
		}
		if len(got.metrics) != 2*len(plain.metrics) {
			t.Fatalf("%d metrics, want twice %d", len(got.metrics), len(plain.metrics))
		}
		for i, m := range got.metrics {
			// It leaves out metrics without points as we do.
			same(t, "metric", plain.metrics[i%len(plain.metrics)], m)
		}
	})
}

func same(t *testing.T, what string, want, got proto.Message) {
	t.Helper()
	if !proto.Equal(want, got) {
		t.Errorf("a %s differs (-want +got):\n%.3000s", what, cmp.Diff(protojson.Format(want), protojson.Format(got)))
	}
}

// TestCollectorKilled kills the collector again and again while records are sent,
// as an engine sends them: a batch again until it is acknowledged. No record is
// lost, and copies have one id.
func TestCollectorKilled(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		c := startCollector(t, 4)
		r := start(t, &fake{}, protocol, func(config *Config) { config.Endpoint = c.endpoints[protocol] })
		const batches, size = 60, 20
		failed := 0
		for b := range batches {
			var list []audit.Record
			for i := range size {
				list = append(list, call(b*size+i+1))
			}
			batch := records(t, list...)
			killed := make(chan struct{})
			restart := func() {}
			if b%12 == 6 {
				process := c.process
				go func() { // before, while or after it takes the batch
					defer close(killed)
					_ = wait.For(t.Context(), time.Duration(b)*50*time.Microsecond)
					_ = process.Process.Kill()
				}()
				restart = func() { <-killed; <-c.ended; c.start(t) }
			}
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				err := r.Send(ctx, batch)
				cancel()
				if err == nil {
					break
				}
				if failed++; errors.Is(err, receiver.ErrRefused) || t.Context().Err() != nil {
					t.Fatal(err)
				}
				restart()
				restart = func() {}
			}
			restart()
		}
		list, _ := c.received(t).logRecords()
		ids := map[string]int{}
		for _, l := range list {
			ids[texts(l.Attributes)["log.record.uid"]]++
		}
		if len(ids) != batches*size {
			t.Errorf("%d records were sent, %d arrived", batches*size, len(ids))
		}
		t.Logf("%d batches failed, %d copies", failed, len(list)-len(ids))
	})
}

// TestCollectorFull sends more than the collector takes at once. The refusal has
// the caller send less, until it fits.
func TestCollectorFull(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		c := startCollector(t, 1)
		r := start(t, &fake{}, protocol, func(config *Config) { config.Endpoint = c.endpoints[protocol] })
		var list []audit.Record
		for i := range 12 {
			list = append(list, call(i+1, func(r *audit.Record) { r.Args = audit.JSON(`{"x":"` + strings.Repeat("a", 200<<10) + `"}`) }))
		}
		batch := records(t, list...)
		var halve func(batch []receiver.Record) (refused int)
		halve = func(batch []receiver.Record) (refused int) {
			err := r.Send(t.Context(), batch)
			if err == nil {
				return 0
			}
			if !errors.Is(err, receiver.ErrRefused) || len(batch) == 1 {
				t.Fatal(err)
			}
			return 1 + halve(batch[:len(batch)/2]) + halve(batch[len(batch)/2:])
		}
		if n := halve(batch); n == 0 {
			t.Error("it refused nothing")
		}
		ids := map[string]bool{}
		list2, _ := c.received(t).logRecords()
		for _, l := range list2 {
			ids[texts(l.Attributes)["log.record.uid"]] = true
		}
		if len(ids) != len(batch) {
			t.Errorf("%d of %d records arrived", len(ids), len(batch))
		}
	})
}

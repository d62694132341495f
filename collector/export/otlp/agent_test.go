package otlp

import (
	"bufio"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// TestAgent has an agent of the Python SDK, with its instrumentation, call a server
// through the proxy. Agent and receiver send to one collector: there each call's
// span is a child of the agent's, in the agent's trace.
func TestAgent(t *testing.T) {
	python := dev.Fetched(t, "otel-agent", "bin", "python")
	c := startCollector(t, 4)
	dir := t.TempDir()
	root, err := dev.Root()
	if err != nil {
		t.Fatal(err)
	}
	proxy, spool := filepath.Join(dir, "auditproxy"), filepath.Join(dir, "spool")
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "AUDITPROXY_SPOOL_DIR="+spool, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.endpoints[HTTP], "OTEL_PROPAGATORS=tracecontext")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("go", "build", "-o", proxy, "./cmd/auditproxy")
	peers := filepath.Join(root, "deploy", "dev", "peers")
	const calls = 3
	run(python, filepath.Join(peers, "otel_agent.py"), "3", proxy, "--", python, filepath.Join(peers, "mcp_server.py"), filepath.Join(dir, "journal"))

	sent := spooled(t, spool)
	r := start(t, &fake{}, GRPC, func(config *Config) { config.Endpoint = c.endpoints[GRPC] })
	if err := r.Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	got := c.received(t)
	clients, task := map[string]*tracepb.Span{}, (*tracepb.Span)(nil)
	for _, s := range got.allSpans() {
		switch {
		case s.Kind == tracepb.Span_SPAN_KIND_CLIENT:
			clients[hex.EncodeToString(s.SpanId)] = s
		case s.Name == "agent's task":
			task = s
		}
	}
	if task == nil {
		t.Fatalf("the agent sent no span: %v", got.allSpans())
	}
	children := 0
	for _, s := range got.allSpans() {
		if s.Kind != tracepb.Span_SPAN_KIND_SERVER {
			continue
		}
		parent := clients[hex.EncodeToString(s.ParentSpanId)]
		if s.Name != "tools/call safe" || parent == nil || string(parent.ParentSpanId) != string(task.SpanId) || string(s.TraceId) != string(task.TraceId) {
			t.Errorf("the span %v has the parent %v", s, parent)
			continue
		}
		children++
	}
	if children != calls {
		t.Errorf("%d of %d calls are the agent's", children, calls)
	}
}

// spooled returns the records of all sessions in a spool.
func spooled(t *testing.T, spool string) (list []receiver.Record) {
	t.Helper()
	err := filepath.WalkDir(spool, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, audit.MaxLine)
		for lines.Scan() {
			line := append([]byte(lines.Text()), '\n')
			if kind, _, err := audit.ParseLine(lines.Bytes()); err == nil && kind == audit.LineRecord {
				list = append(list, receiver.Record{Row: ingesttest.RowOf(t, line, ingest.Source{}), Arrived: time.Now()})
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

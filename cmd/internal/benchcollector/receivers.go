package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
)

// events is a topic of exported events.
const events = "events"

// A destination is where records are sent.
type destination struct {
	name     string // in the table
	target   string // in a file of receivers
	receiver string // its name there
}

// receivers are an OpenTelemetry Collector that writes to nowhere, a server that
// discards, a topic and a file.
type receivers struct {
	list      []destination
	collector *exec.Cmd
	server    *httptest.Server
}

// newReceivers starts them. end ends them.
func newReceivers(ctx context.Context, b *bench) (*receivers, error) {
	r := &receivers{}
	var addrs [2]string
	for i := range addrs {
		var err error
		if addrs[i], err = freeAddr(); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(b.dir, "otelcol.yaml")
	text := fmt.Sprintf(`receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {file: {path: /dev/null}}
service:
  pipelines:
    logs: {receivers: [otlp], exporters: [file]}
    traces: {receivers: [otlp], exporters: [file]}
    metrics: {receivers: [otlp], exporters: [file]}
`, addrs[0], addrs[1])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	r.collector = exec.Command(b.otelcol, path)
	r.collector.Stderr = b.progress
	process.EndWithParent(r.collector, syscall.SIGKILL)
	if err := r.collector.Start(); err != nil {
		return nil, fmt.Errorf("starting an OpenTelemetry Collector: %w", err)
	}
	r.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
	}))
	r.list = []destination{
		{name: "to OTLP by gRPC", receiver: "otlp-grpc", target: fmt.Sprintf("otlp: {endpoint: %q, protocol: grpc}", "http://"+addrs[0])},
		{name: "to OTLP by HTTP", receiver: "otlp-http", target: fmt.Sprintf("otlp: {endpoint: %q, protocol: http/protobuf}", "http://"+addrs[1])},
		{name: "to OCSF in a file", receiver: "file", target: fmt.Sprintf("file: {path: %q, keep: 1}", filepath.Join(b.dir, "events.ndjson"))},
		{name: "to OCSF in Kafka", receiver: "kafka", target: fmt.Sprintf("kafka: {brokers: [%q], topic: %s}", b.broker.Addr, events)},
		{name: "to OCSF by HTTP", receiver: "http", target: fmt.Sprintf("http: {url: %q}", r.server.URL)},
	}
	for _, addr := range addrs {
		err := wait(ctx, 20*time.Millisecond, "the OpenTelemetry Collector listens", func() bool {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		if err != nil {
			return nil, errors.Join(err, r.end())
		}
	}
	return r, nil
}

func (r *receivers) end() error {
	r.server.Close()
	err := r.collector.Process.Kill()
	_ = r.collector.Wait() // says that it was killed
	return err
}

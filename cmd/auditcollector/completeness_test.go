package main

import (
	"context"
	"syscall"
	"testing"
	"time"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestCompleteness leaves out a number, and then lets the session fall silent:
// the metrics and the log report each.
func TestCompleteness(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	for range 3 {
		w.call()
	}
	p := h.collect(t, "--batch-wait", "20ms")
	defer w.stop()
	eventually(t, "the records are there", h.counts(t, distinct, 3))

	s, err := store.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(h.dir+"/local", chdb.Writer), Uncompressed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	registry := prometheus.NewRegistry()
	core, logs := observer.New(zapcore.WarnLevel)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		newCompleteness(registry).watch(ctx, 10*time.Millisecond, s, zap.New(core))
	}()
	says := func(missing, silent float64) func() bool {
		return func() bool {
			return gauge(t, registry, "auditcollector_missing_records") == missing && gauge(t, registry, "auditcollector_silent_sessions") == silent
		}
	}
	eventually(t, "nothing is missing", says(0, 0))
	w.call(func(r *audit.Record) { r.Seq++ })
	eventually(t, "a record is missing", says(1, 0))
	h.exec(t, "ALTER TABLE audit.session_states UPDATE last_ingested = last_ingested - INTERVAL 6 MINUTE WHERE 1 SETTINGS mutations_sync = 1")
	eventually(t, "the session is silent", says(1, 1))
	// A program that does not answer may still have something to report.
	p.end(syscall.SIGKILL)
	eventually(t, "nobody knows", func() bool { return !says(1, 1)() })
	cancel()
	<-ended
	for _, want := range []map[string]any{
		{"missing_records": uint64(1), "silent_sessions": uint64(0)},
		{"missing_records": uint64(1), "silent_sessions": uint64(1)},
	} {
		said := false
		for _, entry := range logs.All() {
			got := entry.ContextMap()
			said = said || got["missing_records"] == want["missing_records"] && got["silent_sessions"] == want["silent_sessions"]
		}
		if !said {
			t.Errorf("the log does not have %v: %v", want, logs.All())
		}
	}
}

// gauge returns a metric's value.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1 // not written yet
}

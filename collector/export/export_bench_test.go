package export_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// A discard takes everything.
type discard struct{ taken atomic.Int64 }

func (d *discard) Send(_ context.Context, records []receiver.Record) error {
	d.taken.Add(int64(len(records)))
	return nil
}

func (d *discard) Close() error { return nil }

// BenchmarkExport says how fast records are read and given to a receiver that discards
// them. benchcollector measures the program with real receivers.
func BenchmarkExport(b *testing.B) {
	const records = 1_000_000
	s, tables := open(b)
	now := time.Now()
	for from := 0; from < records; from += 20_000 {
		var rows []ingest.Row
		for i := range 20_000 {
			r := ingesttest.Call(from+i, "send_keys", now.Truncate(time.Hour))
			r.Args, r.Host, r.User, r.SessionID = `{"pane_id":"%4","keys":{"len":31,"hmac_sha256_prefix":"0123456789abcdef"},"enter":true}`, "build-7", "ann", fmt.Sprint("s", i%50)
			r.Client, r.Server = audit.Peer{Name: "claude-code", Version: "2.1.0"}, audit.Peer{Name: "tmux", Version: "0.1.0a22"}
			rows = append(rows, ingesttest.Row(b, r, ingest.Source{Topic: "t", Offset: uint64(from + i)}))
		}
		if err := s.InsertRows(b.Context(), rows, now.Add(time.Duration(from)*time.Microsecond)); err != nil {
			b.Fatal(err)
		}
	}
	mark := time.Now().Add(time.Minute)
	if err := s.SetMarks(b.Context(), []alert.Mark{{Name: "run", Kind: alert.MarkRun, Upto: mark, At: mark}}); err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		to := &discard{}
		e, err := export.New(export.Config{Store: tables, Run: "run", Receivers: []export.Receiver{{Name: fmt.Sprint("r", b.N, i), To: to, Since: now.Add(-time.Hour)}}})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		used, began := processorTime(b), time.Now()
		go func() { done <- e.Run(ctx) }()
		for to.taken.Load() < records {
			<-time.After(time.Millisecond)
		}
		used, took := processorTime(b)-used, time.Since(began)
		cancel()
		<-done
		b.ReportMetric(records/used.Seconds(), "records/cpu-s")
		b.ReportMetric(records/took.Seconds(), "records/s")
	}
}

// processorTime returns what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

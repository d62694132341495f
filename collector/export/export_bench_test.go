package export_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
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
type discard struct {
	taken atomic.Int64
	err   error
}

func (d *discard) Send(_ context.Context, records []receiver.Record) error {
	if d.err == nil {
		d.taken.Add(int64(len(records)))
	}
	return d.err
}

func (d *discard) Close() error { return nil }

// BenchmarkExport says how fast records are read and sent to a receiver that discards
// them, by a second of this process' processor time and of all.
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
	for _, absent := range []bool{false, true} {
		b.Run(fmt.Sprintf("absent=%v", absent), func(b *testing.B) {
			for i := range b.N {
				to := &discard{}
				if absent {
					to.err = errAway
				}
				e, err := export.New(export.Config{Store: tables, Run: "run", Receivers: []export.Receiver{{Name: fmt.Sprint("r", absent, b.N, i, time.Now().UnixNano()), To: to, Since: now.Add(-time.Hour)}}})
				if err != nil {
					b.Fatal(err)
				}
				debug.FreeOSMemory()
				resident := residentMemory(b)
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error, 1)
				used, began := processorTime(b), time.Now()
				go func() { done <- e.Run(ctx) }()
				for to.taken.Load() < records && !(absent && time.Since(began) > 90*time.Second) {
					<-time.After(time.Millisecond)
				}
				used, took := processorTime(b)-used, time.Since(began)
				cancel()
				<-done
				b.ReportMetric(float64(residentMemory(b)-resident)/1e6, "rss-MB-more")
				if !absent {
					b.ReportMetric(records/used.Seconds(), "records/cpu-s")
					b.ReportMetric(records/took.Seconds(), "records/s")
				}
			}
		})
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

// residentMemory returns the memory of this process, in bytes.
func residentMemory(b *testing.B) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("the memory of a process is read on Linux")
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		b.Fatal(err)
	}
	return resident * os.Getpagesize()
}

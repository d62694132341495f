// Package main measures the collector between a real broker and ClickHouse's
// own engine, the shipper of a host with many sessions, and the verification of
// records with evidence, and compares the results with the targets.
//
// It measures the program as it is released, with its defaults. Where
// ClickHouse is to cost nothing, a server of this program runs in front of the
// engine: it discards records and forwards everything else. The exit code is 1
// for a missed target and 2 if it could not be measured.
//
// The files, from the top: main, measure, evidence, exports, receivers, shipper,
// inserts, rules, records, cost, process, front, bench, report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// deadline ends a run in which something hangs. With ten million records the
// broker alone needs minutes.
const deadline = 2 * time.Hour

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("benchcollector", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.collector, "collector", "", "`path` of the auditcollector to measure (default: build it from this tree)")
	flags.StringVar(&o.proxy, "proxy", "", "`path` of the auditproxy to measure (default: build it from this tree)")
	flags.StringVar(&o.dir, "dir", "", "`directory` for the data of broker and engine (default: the temporary directory)")
	flags.StringVar(&o.library, "library", ".tools/libchdb/libchdb.so", "`path` of libchdb")
	flags.StringVar(&o.otelcol, "otelcol", ".tools/otelcol", "`path` of an OpenTelemetry Collector")
	flags.DurationVar(&o.awayFor, "away", 90*time.Second, "how long a receiver of exports is away; 10m is the promised `time`")
	flags.IntVar(&o.records, "records", 1_000_000, "`number` of records that wait in Kafka; 10000000 is the promised number, and needs 2 GB and some minutes")
	flags.IntVar(&o.size, "size", 1000, "`bytes` of one record")
	flags.StringVar(&o.only, "only", "", "measure only what has `text` in its name")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	rows, err := measure(ctx, o, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "benchcollector: %v\n", err)
		return 2
	}
	if err := printTable(stdout, rows); err != nil {
		fmt.Fprintf(stderr, "benchcollector: printing results: %v\n", err)
		return 2
	}
	for _, r := range rows {
		if !r.pass() {
			return 1
		}
	}
	return 0
}

// measure prepares the machine and makes all measurements.
func measure(ctx context.Context, o options, stderr io.Writer) (rows []row, err error) {
	dir, err := os.MkdirTemp(o.dir, "auditcollector-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.collector == "" {
		if o.collector, err = buildProgram(ctx, dir, "auditcollector"); err != nil {
			return nil, err
		}
	}
	if o.library, err = filepath.Abs(o.library); err != nil {
		return nil, err
	}
	if o.otelcol, err = filepath.Abs(o.otelcol); err != nil {
		return nil, err
	}
	b := &bench{options: o, dir: dir, progress: stderr}
	err = b.all(ctx)
	return b.rows, err
}

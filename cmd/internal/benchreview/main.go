// Package main measures the review page over millions of records in
// ClickHouse's own engine, and compares its pages with their targets.
//
// A page is measured whole: its queries, their answers, its HTML. The records
// are as inserts and merges left them, one in a hundred of them twice. Then all
// pages are measured again with the records of the last day, nearly a third of
// all, in new parts that nothing merged. The exit code is 1 for a missed target
// and 2 if it could not be measured.
//
// The files, from the top: main, measure, fill, options.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"auditproxy/collector/review"
	"auditproxy/collector/store"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "engine" {
		os.Exit(engine(os.Args[2], os.Args[3]))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// engine is the other part of this program: it serves dir until its standard
// input ends.
func engine(dir, library string) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		chdb.AwaitEnd(os.Stdin)
		cancel()
	}()
	err := chdb.Run(ctx, chdb.Config{Dir: dir, Library: library})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return chdb.ExitCode(err)
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("benchreview", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.dir, "dir", "", "`directory` of the engine's data, which is kept and used again (default: a temporary one)")
	flags.StringVar(&o.library, "library", ".tools/libchdb/libchdb.so", "`path` of libchdb")
	flags.IntVar(&o.records, "records", 1_000_000, "`number` of records; 10000000 is the promised number, and needs 2 GB and some minutes")
	flags.IntVar(&o.days, "days", 30, "`number` of days over which they lie")
	flags.IntVar(&o.rounds, "rounds", 9, "`number` of times that each page is asked for")
	flags.StringVar(&o.listen, "serve", "", "do not measure: serve the pages at `host:port`, to any client")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := bench(ctx, o, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "benchreview: %v\n", err)
		return 2
	}
	code := 0
	for _, r := range rows {
		verdict := "ok"
		if r.median > r.target {
			verdict, code = "MISSED", 1
		}
		fmt.Fprintf(stdout, "%-44s %8.1f ms   target %5.0f ms   %s\n", r.name, ms(r.median), ms(r.target), verdict)
	}
	return code
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bench starts the engine, fills it and measures.
func bench(ctx context.Context, o options, stderr io.Writer) (rows []row, err error) {
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "review-bench-"); err != nil {
			return nil, fmt.Errorf("making a directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	stopEngine, err := startEngine(ctx, dir, o.library, stderr)
	if err != nil {
		return nil, err
	}
	defer stopEngine()
	config := clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true, Timeout: deadline}
	if err := fill(ctx, config, o, stderr); err != nil {
		return nil, err
	}
	s, err := store.Open(config)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	reading := config
	reading.Dial = chdb.Dialer(dir, chdb.Reader)
	reader, err := store.OpenReader(reading)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	pages, err := review.New(review.Config{Reader: reader, Store: s})
	if err != nil {
		return nil, err
	}
	if o.listen != "" {
		fmt.Fprintf(stderr, "http://%s/\n", o.listen)
		server := &http.Server{Addr: o.listen, Handler: pages, ReadHeaderTimeout: time.Second}
		stop := context.AfterFunc(ctx, func() { server.Close() })
		defer stop()
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return nil, err
		}
		return nil, nil
	}
	if rows, err = measure(ctx, reader, pages, o.rounds, ""); err != nil {
		return nil, err
	}
	fmt.Fprintln(stderr, "merged parts are measured; writing fresh ones")
	if err := fresh(ctx, config, o); err != nil {
		return nil, err
	}
	more, err := measure(ctx, reader, pages, o.rounds, "fresh parts: ")
	return append(rows, more...), err
}

// startEngine runs this program as the engine. It is in a process of its own,
// as it is under a collector.
func startEngine(ctx context.Context, dir, library string, stderr io.Writer) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if library, err = filepath.Abs(library); err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "engine", dir, library)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	// An engine that exits immediately, its directory in use, is not waited
	// for.
	ctx, ended := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it has reported the reason, if any
		ended()
	}()
	stop = func() {
		stdin.Close()
		<-done
	}
	if err := chdb.Ready(ctx, dir); err != nil {
		stop()
		return nil, fmt.Errorf("waiting for the engine: %w", err)
	}
	return stop, nil
}

// Package main measures the proxy against a bare relay, two io.Copy between
// the same client and the same server, and compares the difference with the
// targets.
//
// Client, relay or proxy, and server share one CPU: that measures the length
// of the path and repeats within a few percent, where otherwise the scheduler's
// choice of CPUs decides. Relay and proxy alternate, round by round, and the
// medians of the rounds are compared, so that other load on the machine affects
// both alike. One row has a neighbour that walks 32 MiB of memory on another
// CPU, and some rows let all parts use all CPUs; with one CPU these rows are
// reported as not measured. The rows about policies compare proxies with each
// other: in place of the relay they have the proxy without a policy, one whose
// policy denies where the other asks, one in which no call waits, or that of
// -before. The exit code is 1 for a missed target, else 2 if something could not
// be measured.
//
// The files, from the top: main, measure, evidence, gate, approval, log, bench,
// neighbour, relay, session, server, report.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
)

// deadline ends a run in which something hangs.
const deadline = 20 * time.Minute

func main() {
	if code, ok := otherPart(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// otherPart runs the relay, the server or the neighbour: this program starts
// itself for all parts but the proxy's.
func otherPart(args []string) (code int, ok bool) {
	switch {
	case len(args) > 1 && args[0] == "relay":
		return relay(args[1:], os.Stdin, os.Stdout), true
	case len(args) == 1 && args[0] == "serve":
		return serve(os.Stdin, os.Stdout), true
	case len(args) == 1 && args[0] == "neighbour":
		return neighbour(os.Stdin, os.Stdout), true
	}
	return 0, false
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.proxy, "proxy", "", "`path` of the auditproxy to measure (default: build it from this tree)")
	flags.StringVar(&o.before, "before", "", "`path` of another auditproxy to compare it with, in the rows about policies (default: none)")
	flags.StringVar(&o.dir, "spool", "", "`directory` for spools, on the disk to measure (default: the temporary directory)")
	flags.IntVar(&o.cpu, "cpu", -1, "`number` of the CPU to share (default: the last one allowed)")
	flags.StringVar(&o.only, "only", "", "measure only what has `text` in its name")
	flags.BoolVar(&o.quick, "quick", false, "fewer and shorter rounds")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.BoolVar(&o.itself, "relay-twice", false, "measure the relay in the proxy's place too: every ratio must come out near 1")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	rows, err := measure(ctx, o, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	if o.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(rows)
	} else {
		err = printTable(stdout, rows)
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: printing results: %v\n", err)
		return 2
	}
	return exitCode(rows)
}

// exitCode returns 1 for a missed target, else 2 for a row that could not be
// measured, else 0.
func exitCode(rows []row) int {
	code := 0
	for _, r := range rows {
		switch {
		case r.Missing != "":
			code = 2
		case !r.Pass:
			return 1
		}
	}
	return code
}

// measure prepares the machine and makes all measurements.
func measure(ctx context.Context, o options, stderr io.Writer) (rows []row, err error) {
	dir, err := os.MkdirTemp(o.dir, "auditproxy-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.proxy == "" && !o.itself {
		if o.proxy, err = buildProxy(ctx, dir); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cpus, err := process.CPUs()
	if err != nil {
		return nil, err
	}
	if o.cpu < 0 {
		o.cpu = cpus[len(cpus)-1]
	}
	// The affinity belongs to a thread: this goroutine keeps its thread to the
	// end, and all measuring and starting is done from it.
	runtime.LockOSThread()
	if err := process.Bind(o.cpu); err != nil {
		return nil, err
	}
	b := &bench{options: o, cpus: cpus, dir: dir, self: self, progress: stderr}
	return b.all(ctx)
}

// buildProxy builds auditproxy as it is released.
func buildProxy(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "auditproxy")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "auditproxy/cmd/auditproxy")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building auditproxy: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return path, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/cmd/internal/samples"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

const (
	gigabyte    = 1_000_000_000
	logSessions = 16 // their calls interleave, as those of several clients do
	logRecord   = 1000
)

// logs measures auditproxy log over a spool, all of which it prints. It may use
// all CPUs, as it does for its users. With quick, the result for a fifth of the
// records is extrapolated, which counts the cost of a start five times.
func (b *bench) logs(ctx context.Context) (err error) {
	if b.itself {
		return nil // the relay has no log
	}
	want := int64(gigabyte)
	if b.quick {
		want /= 5
	}
	if err := process.Bind(b.cpus...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Bind(b.cpu)) }()
	dir, output := filepath.Join(b.dir, "spool-log"), filepath.Join(b.dir, "log")
	calls, err := fillSpool(ctx, dir, want)
	if err != nil {
		return fmt.Errorf("filling a spool: %w", err)
	}
	var times []float64
	var peak int64
	for range b.rounds(3) {
		took, rss, err := b.log(ctx, dir, output)
		if err != nil {
			return err
		}
		times, peak = append(times, took.Seconds()*gigabyte/float64(want)), max(peak, rss)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	if lines := bytes.Count(text, []byte("\n")); lines < calls {
		return fmt.Errorf("log printed %d lines for %d calls", lines, calls)
	}
	wall := median(times, func(t float64) float64 { return t })
	b.rows = append(b.rows,
		row{Name: "log, per GB of spool, all CPUs", Unit: "s", Alone: true, Proxy: wall, Compare: atMost, Value: wall, Target: 10},
		row{Name: "peak RSS, log over 1 GB", Unit: "MiB", Alone: true, Proxy: float64(peak) / (1 << 20), Compare: atMost, Value: float64(peak) / (1 << 20), Target: 96})
	return errors.Join(os.RemoveAll(dir), os.Remove(output))
}

// log runs auditproxy log over dir and returns how long it took and its largest
// resident set.
func (b *bench) log(ctx context.Context, dir, output string) (took time.Duration, peak int64, err error) {
	out, err := os.Create(output)
	if err != nil {
		return 0, 0, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, b.proxy, "log", "-n", "0", "--spool-dir", dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = b.environ(), out, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The resident set that wait4(2) reports may be this process's, which forked.
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			if err != nil {
				return 0, 0, fmt.Errorf("running auditproxy log: %w", err)
			}
			return time.Since(began), peak, nil
		case <-tick.C:
			if rss, err := process.PeakRSS(cmd.Process.Pid); err == nil { // an ended process has none
				peak = rss
			}
		}
	}
}

// fillSpool writes sessions of calls with the spool's own writer until they
// have size bytes together, and returns the number of calls.
func fillSpool(ctx context.Context, dir string, size int64) (calls int, err error) {
	var list [logSessions]*samples.Session
	var logs [logSessions]*spool.Session
	defer func() {
		for _, log := range logs {
			if log != nil {
				err = errors.Join(err, log.Close())
			}
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	for i := range logs {
		s := samples.New(logRecord)
		list[i] = s
		if logs[i], err = spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Head: s.Context}, s.ID); err != nil {
			return calls, err
		}
		if _, err = logs[i].Append(s.Mark(nil, audit.KindSessionStart), false); err != nil {
			return calls, err
		}
	}
	var lines []byte
	for written, i := int64(0), 0; written < size; i++ {
		if err := ctx.Err(); err != nil {
			return calls, err
		}
		lines = lines[:0]
		for range 64 {
			lines = list[i%logSessions].Lines(lines)
		}
		if _, err := logs[i%logSessions].Append(lines, true); err != nil {
			return calls, err
		}
		written, calls = written+int64(len(lines)), calls+64
	}
	for i, log := range logs {
		if _, err := log.Append(list[i].Mark(nil, audit.KindSessionEnd), true); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

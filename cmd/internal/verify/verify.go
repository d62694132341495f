// Package verify checks that no record of a spool is damaged or missing: the
// checksum of every line, numbers without holes, an intent and exactly one
// record for each call of a session that is over.
//
// The files, from the top: verify, print, check, head.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink/spool"
)

// A Config selects the sessions and how to show their problems.
type Config struct {
	Dir            string // the spool
	JSON           bool   // one object for each session
	Colour         bool
	Stdout, Stderr io.Writer // for the reports, and for progress
}

// Run reads sessions and reports what is damaged or missing. Its error is a
// cli.ExitError, without a text if Stdout has it already.
func Run(ctx context.Context, cfg Config, sessions []spool.Entry) error {
	var total int64
	for _, e := range sessions {
		total += e.Bytes
	}
	p := terminal.StartReading(cfg.Stderr, total)
	reports := checkAll(ctx, cfg.Dir, sessions, p)
	p.Finish()
	if ctx.Err() != nil {
		return cli.ExitError{Code: cli.ExitUnclear, Err: errors.New("verifying: interrupted")}
	}
	var err error
	if cfg.JSON {
		err = writeReportsJSON(cfg.Stdout, reports)
	} else {
		err = writeReports(cfg.Stdout, reports, cfg.Colour)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return verdict(reports)
}

// verdict is the exit code: a problem is certain, even if other sessions could
// not be read.
func verdict(reports []report) error {
	code := 0
	for _, r := range reports {
		switch {
		case len(r.Problems) > 0:
			return cli.ExitError{Code: cli.ExitFound}
		case r.Error != "":
			code = cli.ExitUnclear
		}
	}
	if code != 0 {
		return cli.ExitError{Code: code}
	}
	return nil
}

// checkAll reads sessions on all processors.
func checkAll(ctx context.Context, dir string, entries []spool.Entry, p *terminal.Progress) []report {
	reports := make([]report, len(entries))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				c := newCheck(entries[i])
				c.run(dir, p, func() bool { return ctx.Err() != nil }, func() (spool.State, error) { return stateOf(dir, entries[i].ID) })
				reports[i] = c.report
			}
		})
	}
	for i := range entries {
		next <- i
	}
	close(next)
	wait.Wait()
	return reports
}

// stateOf reads the state of a session again.
func stateOf(dir, id string) (spool.State, error) {
	e, there := spool.Look(dir, id)
	if !there {
		return 0, errors.New("session was removed while it was being read")
	}
	return e.State, e.Err
}

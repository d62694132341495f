// Package verify checks that no record of a spool or of a file is damaged, missing
// or changed: the checksum of every line, numbers without holes, an intent and
// exactly one record for each call of a session that is over, and the evidence.
//
// The files, from the top: verify, prove, file, merge, config, print, check,
// head.
package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"auditproxy/cmd/internal/terminal"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"
)

// Run reads sessions and reports what is damaged, missing or changed. Its error is
// a cli.ExitError, without a text if Stdout has it already. list lists the sessions
// again: new ones may have begun, and others may be missing without them.
func Run(ctx context.Context, cfg Config, sessions []spool.Entry, list func() ([]spool.Entry, error)) error {
	var total int64
	for _, e := range sessions {
		total += e.Bytes
	}
	p := terminal.StartReading(cfg.Stderr, total)
	var checker *evidence.Checker
	if !cfg.DamageOnly {
		if cfg.Retained != nil {
			cfg.Evidence.Complete = cfg.Retained(sessions)
		}
		checker = evidence.New(cfg.Evidence)
	}
	reports := checkAll(ctx, cfg.Dir, sessions, checker, p, false)
	if !cfg.DamageOnly && len(sessions) > 0 {
		late, err := overlooked(sessions, list)
		if err != nil {
			p.Finish()
			return fmt.Errorf("verifying: %w", err)
		}
		reports = append(reports, checkAll(ctx, cfg.Dir, late, checker, p, false)...)
		readBegun(ctx, cfg.Dir, append(sessions[:len(sessions):len(sessions)], late...), reports, checker, p)
	}
	p.Finish()
	if ctx.Err() != nil {
		return interrupted()
	}
	if !cfg.DamageOnly {
		return cfg.conclude(checker, reports)
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
	return exit(verdict(reports))
}

// overlooked returns sessions that a listing did not have, although they began
// before the last one in it: reading a directory takes time.
func overlooked(sessions []spool.Entry, list func() ([]spool.Entry, error)) (late []spool.Entry, err error) {
	again, err := list()
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, e := range sessions {
		listed[e.ID] = true
	}
	for _, e := range again {
		if !listed[e.ID] && e.ID < sessions[len(sessions)-1].ID {
			late = append(late, e)
		}
	}
	return late, nil
}

// readBegun reads the sessions again that had no record yet. Another one that names
// such a session began after its first record, so that record is there now.
func readBegun(ctx context.Context, dir string, entries []spool.Entry, reports []report, checker *evidence.Checker, p *terminal.Progress) {
	for i := range reports {
		if reports[i].begins() {
			reports[i] = checkAll(ctx, dir, entries[i:i+1], checker, p, true)[0]
		}
	}
}

// checkAll reads sessions on all processors. Unless they are the last ones, the
// evidence of those without a record is left out.
func checkAll(ctx context.Context, dir string, entries []spool.Entry, checker *evidence.Checker, p *terminal.Progress, last bool) []report {
	reports := make([]report, len(entries))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				c := newCheck(entries[i], checker, last)
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

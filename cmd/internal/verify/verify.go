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
	"sort"
	"sync"

	"auditproxy/cmd/internal/terminal"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"
)

// Run reads sessions and reports what is damaged, missing or changed. Its error is
// a cli.ExitError, without a text if Stdout has it already. list lists the ids of
// sessions again: new ones may have begun, and others may be missing without them.
func Run(ctx context.Context, cfg Config, sessions []spool.Entry, list func() ([]string, error)) error {
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
	reports := cfg.checkAll(ctx, sessions, checker, p, false)
	if !cfg.DamageOnly && len(sessions) > 0 {
		late, err := cfg.overlooked(sessions, list)
		if err != nil {
			p.Finish()
			return fmt.Errorf("verifying: %w", err)
		}
		reports = append(reports, cfg.checkAll(ctx, late, checker, p, false)...)
		cfg.readBegun(ctx, append(sessions[:len(sessions):len(sessions)], late...), reports, checker, p)
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
func (cfg Config) overlooked(sessions []spool.Entry, list func() ([]string, error)) (late []spool.Entry, err error) {
	again, err := list()
	if err != nil {
		return nil, err
	}
	for _, id := range again {
		i := sort.Search(len(sessions), func(i int) bool { return sessions[i].ID >= id })
		if i == len(sessions) || sessions[i].ID == id {
			continue
		}
		if e, there := spool.Look(cfg.Dir, id); there {
			late = append(late, e)
		}
	}
	return late, nil
}

// readBegun reads the sessions again that had no record yet. Another one that names
// such a session began after its first record, so that record is there now.
func (cfg Config) readBegun(ctx context.Context, entries []spool.Entry, reports []*report, checker *evidence.Checker, p *terminal.Progress) {
	for i, r := range reports {
		if r != nil && r.begins() {
			reports[i] = cfg.checkAll(ctx, entries[i:i+1], checker, p, true)[0]
		}
	}
}

// checkAll reads sessions on all processors. Unless they are the last ones, the
// evidence of those without a record is left out. A report that nothing will be printed
// of is nil.
func (cfg Config) checkAll(ctx context.Context, entries []spool.Entry, checker *evidence.Checker, p *terminal.Progress, last bool) []*report {
	reports := make([]*report, len(entries))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				c := newCheck(entries[i], checker, last)
				c.run(cfg.Dir, p, func() bool { return ctx.Err() != nil }, func() (spool.State, error) { return stateOf(cfg.Dir, entries[i].ID) })
				if r := c.report; cfg.JSON || cfg.DamageOnly || r.damaged() || r.begins() {
					reports[i] = &r
				}
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

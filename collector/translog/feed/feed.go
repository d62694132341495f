// Package feed takes the starts and checkpoints of stored sessions to a central
// log, and reports those that contradict each other.
//
// It reads them from the store, after the insert that made them visible. So a log
// that is slow or cannot be written delays no record. What was read and not yet
// logged is read again, and the log has an entry once however often it is added.
//
// The files, from the top: feed, source, check, mark, config.
package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/internal/wait"

	"go.uber.org/zap"
)

// Times of the feed.
const (
	passEvery = 5 * time.Second
	failEvery = time.Minute // after a pass that failed

	// An insert becomes visible after the time that it has, mostly at once. Each
	// pass looks back a little, and some look back far.
	lookBack  = time.Minute
	sweepBack = 24 * time.Hour
	sweepEach = time.Hour

	window = time.Hour // of arrivals that are read at once

	// Behind that much, a pass skips hours without arrivals: after a clock that was
	// wrong by years they would be many.
	farBehind = 24 * time.Hour
)

// ErrLog is in the chain of an error that is of the log or of the file of the mark,
// and not of the source.
var ErrLog = errors.New("feeding the log")

// A Feed takes evidence to a log. Use it once.
type Feed struct {
	c       Config
	checker checker
	swept   time.Time // when the last pass looked back far

	mu     sync.Mutex
	status Status
}

// New returns a feed. It starts nothing.
func New(c Config) (*Feed, error) {
	if c.Source == nil || c.Log == nil || c.Mark == "" || c.Found == nil {
		return nil, errors.New("configuring the feed of the log: source, log, mark and found are required")
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return &Feed{c: c, checker: newChecker(c.Source)}, nil
}

// Status returns what the feed did last.
func (f *Feed) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Run makes passes until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	for {
		pause := passEvery
		err := f.Pass(ctx, time.Now())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			pause = failEvery
		}
		if f.note(err) {
			f.c.Logger.Error("evidence is not logged", zap.Error(err))
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
	}
}

// note keeps the result of a pass, and reports whether it is a new failure.
func (f *Feed) note(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.status.Err
	f.status.Err = err
	if err == nil {
		f.status.Failing = time.Time{}
		return false
	}
	if was == nil {
		f.status.Failing = time.Now()
	}
	return was == nil || was.Error() != err.Error()
}

// Pass takes to the log what has arrived until now. After a crash in it, the
// mark is where it was, and the entries that are in the log already are not added
// again.
func (f *Feed) Pass(ctx context.Context, now time.Time) error {
	mark, err := readMark(f.c.Mark)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, diskfull.WithRemedy(err))
	}
	if mark.Add(-lookBack).After(now) {
		// This clock was ahead, and is set back. What arrived since, and what others
		// stored meanwhile, is before the mark.
		f.c.Logger.Warn("the clock was ahead; all evidence is read again for the log", zap.Time("mark", mark))
		mark = time.Time{}
	}
	from := mark.Add(-lookBack)
	if mark.IsZero() {
		if from, err = f.c.Source.FirstEvidence(ctx, time.Time{}); err != nil {
			return err
		}
		if from.IsZero() { // all of none is in the log
			f.reached(now)
			return nil
		}
		if !from.Before(now) { // by a clock that was ahead: it is read when it is that time
			from = now.Add(-time.Millisecond)
		}
	} else if now.Sub(f.swept) >= sweepEach {
		from = mark.Add(-sweepBack)
	}
	for to := from; to.Before(now); from = to {
		if to = from.Add(window); to.After(now) {
			to = now
		}
		read, err := f.take(ctx, from, to)
		if err == nil && read == 0 && now.Sub(to) > farBehind {
			to, err = f.skip(ctx, to, now)
		}
		if err != nil {
			return err
		}
		if to.After(mark) {
			// After a crash before this, the window is read again.
			if err := writeMark(f.c.Mark, to); err != nil {
				return fmt.Errorf("%w: %w", ErrLog, diskfull.WithRemedy(err))
			}
			mark = to
		}
	}
	if now.Sub(f.swept) >= sweepEach {
		f.swept = now
	}
	f.reached(mark)
	return nil
}

// reached notes that everything that arrived before upto is in the log.
func (f *Feed) reached(upto time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Upto = upto
}

// skip returns when the next evidence arrived, now if none did.
func (f *Feed) skip(ctx context.Context, from, now time.Time) (time.Time, error) {
	next, err := f.c.Source.FirstEvidence(ctx, from)
	if next.IsZero() || next.After(now) {
		next = now
	}
	return next, err
}

// batch is how many entries are added at once.
const batch = 1000

// take adds to the log what arrived in a window, and returns how many records it read.
func (f *Feed) take(ctx context.Context, from, to time.Time) (read int, err error) {
	var entries [][]byte
	var found []Contradiction
	flush := func() error {
		if len(entries) > 0 {
			if err := f.c.Log.Add(ctx, entries); err != nil {
				return fmt.Errorf("%w: %w", ErrLog, diskfull.WithRemedy(err))
			}
		}
		for _, c := range found {
			if err := f.c.Found(ctx, c); err != nil {
				return fmt.Errorf("reporting a contradiction: %w", err)
			}
		}
		entries, found = entries[:0], found[:0]
		return nil
	}
	err = f.c.Source.Evidence(ctx, from, to, func(raw []byte) error {
		read++
		// The first pass looks back a day. A start mostly arrives soon after its session
		// begins, so that few are asked for.
		entry, contradiction, err := f.checker.check(ctx, raw, to.Add(window-sweepBack))
		if err != nil {
			return err
		}
		if entry != nil {
			entries = append(entries, entry)
		}
		if contradiction != nil {
			found = append(found, *contradiction)
		}
		if len(entries) < batch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return read, err
	}
	return read, flush()
}

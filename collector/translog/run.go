package translog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// lateAfter is when a missing checkpoint is reported, after the interval.
const lateAfter = 10 * time.Second

// Run watches for checkpoints, brings them to the witnesses, and stops what is
// idle, until ctx ends. Without Run entries are safe too, but after a crash a
// checkpoint covers them only once there is a call of Add.
func (l *Log) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	if len(l.witnesses.list) > 0 {
		group.Go(func() { l.witnesses.run(ctx) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.added:
		case <-timer.C:
		}
		timer.Stop()
		if wait := l.follow(); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// follow looks for a new checkpoint, and returns when to look again; zero: after
// the next Add.
func (l *Log) follow() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	if _, err := l.intact(); err != nil {
		return l.lost(err)
	}
	published, err := l.published()
	if err == nil && published != l.status.Published {
		l.report(func(s *Status) { s.Published = published })
		l.witnesses.notify()
	}
	if err == nil && published >= l.status.Size {
		if l.late {
			l.config.Log.Info("log checkpoint published")
		}
		l.late, l.failed = false, l.failed || l.late
		if l.failed && l.waiting == 0 { // what a call of Add writes has such a name first
			if err := l.sweep(); err != nil {
				l.config.Log.Error("log not swept", zap.Error(err))
			}
			l.failed = false
		}
		l.report(func(s *Status) { s.Behind = time.Time{} })
		switch {
		case l.writer == nil:
			return 0
		case l.waiting > 0 || time.Since(l.used) < l.rest:
			return min(collectEvery, l.rest)
		}
		// Nothing is waited for: the checkpoint is there.
		if err := l.stop(); err != nil {
			l.config.Log.Error("log not stopped", zap.Error(err))
		}
		return 0
	}
	if l.status.Behind.IsZero() {
		l.report(func(s *Status) { s.Behind = time.Now() })
	}
	// After a crash nothing has started it yet.
	err = errors.Join(err, l.start(), l.signer.failed())
	if !l.late && time.Since(l.status.Behind) > lateAfter+l.config.Interval {
		l.late = true
		l.config.Log.Error("log checkpoint late", zap.Int64("entries", l.status.Size), zap.Int64("covered", published), zap.Error(err))
	}
	return l.config.Interval / 4
}

// lost stops tessera, which would report each tenth of a second that its directory is
// not there, and returns when to look again.
func (l *Log) lost(err error) time.Duration {
	if l.writer != nil && l.waiting == 0 {
		l.writer.cancel()
		l.writer = nil
	}
	if !l.late {
		l.late = true
		l.config.Log.Error("log not intact", zap.Error(err))
	}
	if l.status.Behind.IsZero() {
		l.report(func(s *Status) { s.Behind = time.Now() })
	}
	return lateAfter
}

// Close waits for calls of Add and for the last checkpoint, and closes the log.
// Run must have returned. Without a checkpoint after a few seconds it returns an
// error: the entries are safe then, and covered after the next start.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for l.waiting > 0 {
		l.idle.Wait()
	}
	var err error
	if e := l.stop(); e != nil {
		err = fmt.Errorf("closing the log: waiting for its checkpoint: %w", e)
	}
	return errors.Join(err, l.release())
}

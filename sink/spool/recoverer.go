package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// Times of a Recoverer. Calls of a dead proxy must be in the store within a
// minute; the longest pause leaves most of it to the consumer.
const (
	passEvery = 2 * time.Second
	passLast  = 15 * time.Second
	passShare = 20              // a pass uses at most this part of the time, up to passLast
	passLimit = 5 * time.Second // of one pass: sessions that died meanwhile are in the next

	recoverAgain = 10 * time.Second // after a session could not be recovered, doubled
	recoverLast  = 10 * time.Minute // until here
)

// A Recoverer recovers the sessions of a spool directory after their
// processes die. A pass reads the directory's names and opens only sessions
// that are not known to be settled, so that a long history is read once. One
// goroutine owns it.
type Recoverer struct {
	c       RecoverConfig
	fs      disk.FS
	settled map[string]struct{} // names of directories that need no more recovery
	failed  map[string]failure  // by name of the directory
	logged  map[string]struct{} // causes of failures that last
}

// A failure is the reason that a session was not recovered, and the time of
// the next attempt.
type failure struct {
	err  error
	wait time.Duration
	next time.Time
}

// NewRecoverer returns a Recoverer without any state.
func NewRecoverer(c RecoverConfig) *Recoverer {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Machine == "" {
		c.Machine = machineID()
	}
	return &Recoverer{c: c, fs: disk.OrHost(c.FS), settled: map[string]struct{}{}, failed: map[string]failure{}, logged: map[string]struct{}{}}
}

// Run makes passes until ctx ends, each from the newest session on: the calls of
// a session that died just now do not wait for thousands that died long ago.
// After a pass that could read the directory it calls after with the recovered
// sessions and the number of dead sessions that failed.
func (r *Recoverer) Run(ctx context.Context, after func(done []Recovered, left int)) {
	problem := "" // with the directory, as it was logged
	for {
		began := time.Now()
		done, _, more, err := r.pass(ctx, began.Add(passLimit))
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			problem = ""
			after(done, len(r.failed))
		} else if err.Error() != problem {
			problem = err.Error()
			r.c.Log.Warn("dead sessions not recovered", zap.String("dir", r.c.Dir), zap.Error(err))
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(passEvery, passShare*time.Since(began)), passLast)):
		}
	}
}

// Pass tries each dead session once; after a failure, only when its pause is
// over. A new cause of failures is logged once for all sessions.
func (r *Recoverer) Pass(ctx context.Context) (done []Recovered, skipped []Skipped, err error) {
	done, skipped, _, err = r.pass(ctx, time.Time{})
	return done, skipped, err
}

// pass is Pass, oldest first. With a limit it is newest first, and ends after the
// session that it recovers at that time; more means that it left some.
func (r *Recoverer) pass(ctx context.Context, limit time.Time) (done []Recovered, skipped []Skipped, more bool, err error) {
	names, err := r.names()
	if err != nil {
		return nil, nil, false, err
	}
	order := slices.Values(names)
	if !limit.IsZero() {
		order = func(yield func(string) bool) {
			for _, name := range slices.Backward(names) {
				if !yield(name) {
					return
				}
			}
		}
	}
	for name := range order {
		if ctx.Err() != nil {
			return done, skipped, false, ctx.Err()
		}
		if len(done) > 0 && !limit.IsZero() && !time.Now().Before(limit) {
			more = true
			break
		}
		if _, settled := r.settled[name]; settled || time.Now().Before(r.failed[name].next) {
			continue
		}
		id, unnamed := strings.CutPrefix(name, newPrefix)
		if validID(id) != nil {
			continue
		}
		rec := &recovery{RecoverConfig: r.c, fs: r.fs, id: id, dir: filepath.Join(r.c.Dir, sessionsDir, name)}
		ended, err := rec.run(ctx, unnamed)
		if ctx.Err() != nil {
			return done, skipped, false, ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) && gone(r.fs, rec.dir) {
			err = nil // its writer has renamed it, or Retain removed it
		}
		if err != nil {
			skipped = append(skipped, Skipped{name, err})
			r.fail(name, err)
			continue
		}
		delete(r.failed, name)
		if rec.settled {
			r.settled[name] = struct{}{}
		}
		if ended {
			done = append(done, rec.result)
			r.c.Log.Info("session recovered", zap.String("session", id), zap.Int("unknown", rec.result.Unknown))
		}
	}
	r.forget(names)
	r.logFailed()
	return done, skipped, more, nil
}

// names lists the directory. One that another user owns is one problem, and not
// one for each session.
func (r *Recoverer) names() ([]string, error) {
	sessions := filepath.Join(r.c.Dir, sessionsDir)
	err := disk.CheckDir(r.fs, sessions)
	var names []string
	if err == nil {
		names, err = r.fs.ReadDir(sessions)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recovering sessions: %w", err)
	}
	return names, nil
}

func (r *Recoverer) fail(name string, err error) {
	wait := min(max(2*r.failed[name].wait, recoverAgain), recoverLast)
	r.failed[name] = failure{err, wait, time.Now().Add(wait)}
}

// forget drops the state of sessions that retention has removed. names are
// sorted.
func (r *Recoverer) forget(names []string) {
	gone := func(name string) bool {
		_, there := slices.BinarySearch(names, name)
		return !there
	}
	maps.DeleteFunc(r.failed, func(name string, _ failure) bool { return gone(name) })
	if len(r.settled) > len(names) {
		maps.DeleteFunc(r.settled, func(name string, _ struct{}) bool { return gone(name) })
	}
}

// logFailed logs the causes that are new, each with one session as an example.
func (r *Recoverer) logFailed() {
	sessions := map[string][]string{}
	for name, f := range r.failed {
		text := cause(f.err)
		sessions[text] = append(sessions[text], name)
	}
	maps.DeleteFunc(r.logged, func(text string, _ struct{}) bool { return sessions[text] == nil })
	for text, names := range sessions {
		if _, known := r.logged[text]; known {
			continue
		}
		r.logged[text] = struct{}{}
		first := slices.Min(names)
		r.c.Log.Warn("session not recovered", zap.String("session", first), zap.Int("sessions", len(names)), zap.Error(r.failed[first].err))
	}
}

// cause returns the cause that sessions may share: a read-only or full file
// system, another machine.
func cause(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, errForeign):
		return errForeign.Error()
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

// Recover ends the sessions that died: it syncs and reads each, sets a bad
// tail aside, and writes one record with outcome unknown for each open call
// and a session_end. Live and ended sessions are left alone. It may be killed
// at any point and run any number of times, by several processes at once. A
// problem with one session does not stop the recovery of others.
func Recover(ctx context.Context, c RecoverConfig) (done []Recovered, skipped []Skipped, err error) {
	return NewRecoverer(c).Pass(ctx)
}

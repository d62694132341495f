package ship

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// The intervals at which a follower checks.
const (
	lookEvery   = 500 * time.Millisecond // for new records
	lookShare   = 20                     // listing takes at most this part of the time, up to lookLast
	lookLast    = 5 * time.Second
	deadAgain   = 15 * time.Second // at a dead session with nothing to ship, which another process may recover
	failedAgain = time.Minute      // at a session that could not be shipped
	listFailing = 10 * time.Second // at a directory that could not be listed
)

// The sessions that Follow ships at the same time. Those with little to ship
// cost some 100 KB each, and do not wait for the others, which cost some 3 MB.
const (
	smallTurns = 128
	largeTurns = 16
	littleSize = 32 << 10 // what a turn of a session with little reads
	turnSize   = 4 << 20  // what a turn of another reads, until others have theirs
)

// FollowAtOnce is the number of writes that Follow makes at the same time.
const FollowAtOnce = smallTurns + largeTurns

// Follow ships all sessions, those that begin later too, until ctx ends. It
// returns nil. A session for which the sink returns a *sink.StalledError is left
// alone for that time.
func Follow(ctx context.Context, cfg Config) error {
	h := &host{cfg: cfg, began: time.Now()}
	var serving sync.WaitGroup
	defer serving.Wait()
	if cfg.Listener != nil {
		serving.Go(func() { h.serve(ctx, cfg.Listener) })
	}
	return newFollower(h).run(ctx)
}

// A follower ships all sessions of a spool directory, including later ones. A
// session that is being written is shipped each time it has something new, so
// that memory does not depend on the number of sessions.
type follower struct {
	host      *host
	turnSize  int64 // of a session with much to ship
	done      chan turn
	recovered chan []spool.Recovered

	// Owned by run.
	running map[string]bool      // sessions that are in small, in large or in later
	small   int                  // running turns of sessions with little to ship
	large   int                  // running turns of others
	later   []string             // sessions with much to ship that wait for their turn
	shipped map[string]bool      // finished, see spool.Entry.Finished
	pause   map[string]time.Time // not to be shipped before
	rest    []string             // sessions that the last check did not reach
	seen    map[string]waiting   // what the last checks found
}

// waiting is what a session has to ship, as far as known.
type waiting struct {
	live  bool
	bytes int64
	since time.Time // the time of the oldest record, or when it was seen to have one; zero: it has none
}

// A turn is the result of shipping a session once.
type turn struct {
	id    string
	large bool
	more  bool      // there was more than one turn takes
	first time.Time // of its first record; zero: unknown
	err   error
}

func newFollower(h *host) *follower {
	return &follower{
		host:      h,
		turnSize:  turnSize,
		done:      make(chan turn, FollowAtOnce),
		recovered: make(chan []spool.Recovered),
		running:   map[string]bool{},
		shipped:   map[string]bool{},
		seen:      map[string]waiting{},
		pause:     map[string]time.Time{},
	}
}

// run ships until ctx ends.
func (f *follower) run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { f.recoverAlways(ctx) })
	defer beside.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			for f.small+f.large > 0 {
				f.ended(<-f.done)
			}
			return nil
		case s := <-f.done:
			f.ended(s)
			f.lookOn(ctx)
		case list := <-f.recovered:
			for _, r := range list {
				delete(f.pause, r.Session)
			}
		case <-timer.C:
			timer.Reset(f.look(ctx))
		}
	}
}

func (f *follower) ended(t turn) {
	delete(f.running, t.id)
	w := f.seen[t.id]
	switch {
	case t.err == nil && !t.more:
		w.bytes, w.since = 0, time.Time{}
	case !t.first.IsZero():
		w.since = t.first
	}
	f.seen[t.id] = w
	if t.large {
		f.large--
	} else {
		f.small--
	}
	var stalled *sink.StalledError
	switch {
	case errors.As(t.err, &stalled):
		f.pause[t.id] = stalled.Until
	case errors.Is(t.err, spool.ErrBusy):
		f.pause[t.id] = time.Now().Add(tryAgain)
	case t.err != nil:
		f.pause[t.id] = time.Now().Add(failedAgain)
	case t.more:
		f.rest = append(f.rest, t.id)
	}
}

// look starts turns for sessions that have something to ship, and returns the
// time until the next look.
func (f *follower) look(ctx context.Context) time.Duration {
	began := time.Now()
	ids, err := spool.Names(f.host.cfg.Dir)
	if err != nil {
		f.host.cfg.Log.Error("the spool cannot be listed", zap.Error(err))
		f.publish(false)
		return listFailing
	}
	f.forget(ids)
	f.rest = slices.DeleteFunc(ids, func(id string) bool { return f.shipped[id] })
	f.lookOn(ctx)
	f.publish(true)
	return min(max(lookEvery, lookShare*time.Since(began)), lookLast)
}

// lookOn starts turns until as many run as may.
func (f *follower) lookOn(ctx context.Context) {
	for len(f.later) > 0 && f.large < largeTurns && ctx.Err() == nil {
		id := f.later[0]
		f.later = f.later[1:]
		f.large++
		f.begin(ctx, id, f.turnSize)
	}
	for len(f.rest) > 0 && f.small < smallTurns && ctx.Err() == nil {
		id := f.rest[0]
		f.rest = f.rest[1:]
		if f.running[id] || time.Now().Before(f.pause[id]) {
			continue
		}
		e, there := spool.Look(f.host.cfg.Dir, id)
		if there {
			f.note(e)
		}
		switch {
		case !there:
		case e.Err != nil:
			f.host.failed(id, e.Err)
			f.pause[id] = time.Now().Add(failedAgain)
		case e.Unshipped():
			f.running[id] = true
			switch {
			case e.Waiting <= littleSize:
				f.small++
				f.begin(ctx, id, littleSize)
			case f.large < largeTurns:
				f.large++
				f.begin(ctx, id, f.turnSize)
			default:
				f.later = append(f.later, id)
			}
		case e.Finished():
			f.shipped[id] = true
			delete(f.seen, id)
		case e.State != spool.Live:
			f.pause[id] = time.Now().Add(deadAgain)
		}
	}
}

// begin starts a turn, which reads size bytes or a little more.
func (f *follower) begin(ctx context.Context, id string, size int64) {
	go func() {
		t := turn{id: id, large: size > littleSize}
		t.more, t.err = f.host.ship(ctx, id, size, func(line []byte) {
			if r, err := audit.Parse(line); err == nil {
				t.first = r.TS
			}
		})
		f.done <- t
	}()
}

// note keeps what a session has to ship.
func (f *follower) note(e spool.Entry) {
	w := f.seen[e.ID]
	w.live, w.bytes = e.State == spool.Live, e.Waiting
	switch {
	case e.Err != nil:
	case !e.Unshipped():
		w.bytes, w.since = 0, time.Time{}
	case w.since.IsZero():
		w.since = time.Now()
	}
	f.seen[e.ID] = w
}

// publish makes what the last checks found the backlog of the host.
func (f *follower) publish(listed bool) {
	b := backlog{listed: listed}
	for _, w := range f.seen {
		if w.live {
			b.live++
		}
		if w.since.IsZero() {
			continue
		}
		b.sessions++
		b.bytes += w.bytes
		if b.oldest.IsZero() || w.since.Before(b.oldest) {
			b.oldest = w.since
		}
	}
	f.host.logged.Range(func(any, any) bool { b.failing++; return true })
	f.host.mu.Lock()
	f.host.backlog = b
	f.host.mu.Unlock()
}

// forget drops the state of sessions that retention has removed.
func (f *follower) forget(ids []string) {
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	for id := range f.shipped {
		if !there[id] {
			delete(f.shipped, id)
		}
	}
	for id := range f.pause {
		if !there[id] {
			delete(f.pause, id)
		}
	}
	for id := range f.seen {
		if !there[id] {
			delete(f.seen, id)
			f.host.logged.Delete(id)
		}
	}
}

// recoverAlways ends the sessions whose proxies died, also where no other proxy
// starts.
func (f *follower) recoverAlways(ctx context.Context) {
	r := spool.NewRecoverer(spool.RecoverConfig{Dir: f.host.cfg.Dir, KeyFile: f.host.cfg.KeyFile, Log: f.host.cfg.Log})
	r.Run(ctx, func(done []spool.Recovered, _ int) {
		if len(done) == 0 {
			return
		}
		f.host.recovered.Add(int64(len(done)))
		select {
		case f.recovered <- done:
		case <-ctx.Done():
		}
	})
}

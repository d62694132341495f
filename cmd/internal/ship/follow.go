package ship

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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

// Follow ships all sessions, those that begin later too, until ctx ends. It
// returns nil.
func Follow(ctx context.Context, cfg Config) error {
	return newFollower(&host{cfg: cfg}).run(ctx)
}

// A follower ships all sessions of a spool directory, including later ones. A
// session that is being written is shipped each time it has something new, so
// that memory does not depend on the number of sessions.
type follower struct {
	host      *host
	done      chan turn
	recovered chan []spool.Recovered

	// Owned by run.
	running map[string]bool
	shipped map[string]bool      // finished, see spool.Entry.Finished
	pause   map[string]time.Time // not to be shipped before
	rest    []string             // sessions that the last check did not reach
}

// A turn is the result of shipping a session once.
type turn struct {
	id  string
	err error
}

func newFollower(h *host) *follower {
	return &follower{
		host:      h,
		done:      make(chan turn, atOnce),
		recovered: make(chan []spool.Recovered),
		running:   map[string]bool{},
		shipped:   map[string]bool{},
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
			for len(f.running) > 0 {
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

func (f *follower) ended(s turn) {
	delete(f.running, s.id)
	switch {
	case errors.Is(s.err, spool.ErrBusy):
		f.pause[s.id] = time.Now().Add(tryAgain)
	case s.err != nil:
		f.pause[s.id] = time.Now().Add(failedAgain)
	}
}

// look starts turns for sessions that have something to ship, and returns the
// time until the next look.
func (f *follower) look(ctx context.Context) time.Duration {
	began := time.Now()
	ids, err := spool.Names(f.host.cfg.Dir)
	if err != nil {
		f.host.cfg.Log.Error("the spool cannot be listed", zap.Error(err))
		return listFailing
	}
	f.forget(ids)
	f.rest = slices.DeleteFunc(ids, func(id string) bool { return f.shipped[id] })
	f.lookOn(ctx)
	return min(max(lookEvery, lookShare*time.Since(began)), lookLast)
}

// lookOn starts turns until as many run as may.
func (f *follower) lookOn(ctx context.Context) {
	for len(f.rest) > 0 && len(f.running) < atOnce && ctx.Err() == nil {
		id := f.rest[0]
		f.rest = f.rest[1:]
		if f.running[id] || time.Now().Before(f.pause[id]) {
			continue
		}
		e, there := spool.Look(f.host.cfg.Dir, id)
		switch {
		case !there:
		case e.Err != nil:
			f.host.failed(id, e.Err)
			f.pause[id] = time.Now().Add(failedAgain)
		case e.Unshipped():
			f.running[id] = true
			go func() { f.done <- turn{id, f.host.ship(ctx, id)} }()
		case e.Finished():
			f.shipped[id] = true
		case e.State != spool.Live:
			f.pause[id] = time.Now().Add(deadAgain)
		}
	}
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
}

// recoverAlways ends the sessions whose proxies died, also where no other proxy
// starts.
func (f *follower) recoverAlways(ctx context.Context) {
	r := spool.NewRecoverer(spool.RecoverConfig{Dir: f.host.cfg.Dir, Log: f.host.cfg.Log})
	r.Run(ctx, func(done []spool.Recovered, _ int) {
		if len(done) == 0 {
			return
		}
		select {
		case f.recovered <- done:
		case <-ctx.Done():
		}
	})
}

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// How often a follower looks.
const (
	shipLook     = 500 * time.Millisecond // for new records
	recoverEvery = time.Minute            // for sessions that died
	failedAgain  = time.Minute            // at a session that could not be shipped
	listFailing  = 10 * time.Second       // at a directory that could not be listed
)

// A hostFollower ships all sessions of a spool directory, those that begin
// later too. A session that is being written gets its turn each time there is
// something new, so that the number of sessions does not matter to memory.
type hostFollower struct {
	*hostShip
	done chan turn

	// Owned by run.
	running map[string]bool
	shipped map[string]bool      // over, and nothing is left
	pause   map[string]time.Time // until when not to look
}

// A turn is what came of one time that a session was shipped.
type turn struct {
	id  string
	err error
}

func newHostFollower(h *hostShip) *hostFollower {
	return &hostFollower{
		hostShip: h,
		done:     make(chan turn, shipAtOnce),
		running:  map[string]bool{},
		shipped:  map[string]bool{},
		pause:    map[string]time.Time{},
	}
}

// run ships until ctx ends.
func (f *hostFollower) run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { f.recoverAlways(ctx) })
	defer beside.Wait()
	for {
		wait := shipLook
		if err := f.look(ctx); err != nil {
			f.log.Error("the spool cannot be listed", zap.Error(err))
			wait = listFailing
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			for len(f.running) > 0 {
				f.ended(<-f.done)
			}
			return nil
		case s := <-f.done:
			f.ended(s)
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (f *hostFollower) ended(s turn) {
	delete(f.running, s.id)
	switch {
	case errors.Is(s.err, spool.ErrBusy):
		f.pause[s.id] = time.Now().Add(shipAgain)
	case s.err != nil:
		f.pause[s.id] = time.Now().Add(failedAgain)
	}
}

// look starts turns for sessions that have something to ship.
func (f *hostFollower) look(ctx context.Context) error {
	ids, err := spool.Names(f.cfg.spoolDir)
	if err != nil {
		return err
	}
	f.forget(ids)
	for _, id := range ids {
		if len(f.running) == shipAtOnce || ctx.Err() != nil {
			return nil
		}
		if f.running[id] || f.shipped[id] || time.Now().Before(f.pause[id]) {
			continue
		}
		e, there := spool.Look(f.cfg.spoolDir, id)
		switch {
		case !there:
		case e.Err != nil:
			f.failed(id, e.Err)
			f.pause[id] = time.Now().Add(failedAgain)
		case e.Unshipped():
			f.running[id] = true
			go func() { f.done <- turn{id, f.ship(ctx, id)} }()
		case e.State == spool.Ended:
			f.shipped[id] = true
		}
	}
	return nil
}

// forget drops what is known of sessions that retention has removed.
func (f *hostFollower) forget(ids []string) {
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

func (f *hostFollower) recoverAlways(ctx context.Context) {
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		f.recover(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

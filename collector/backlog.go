package collector

import (
	"context"
	"errors"
	"io"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/sink/spool"
)

const (
	backlogEvery = 5 * time.Second
	// Looking takes at most this part of the time, up to backlogLast.
	backlogShare = 20
	backlogLast  = time.Minute

	recordBytes = 1000 // about; the records of a spool are not counted
)

// watchBacklog shows what waits in a spool directory until ctx ends. It has its
// own goroutine: the one that reads waits while the store is away.
func watchBacklog(ctx context.Context, dir string, m *metrics) {
	b := backlog{dir: dir, waiting: map[string]waiting{}, finished: map[string]struct{}{}}
	for {
		began := time.Now()
		if bytes, longest, err := b.look(ctx); err == nil {
			m.spoolBytes.WithLabelValues(dir).Set(float64(bytes))
			m.waiting.set(dir, bytes/recordBytes)
			m.spoolOldest.WithLabelValues(dir).Set(longest.Seconds())
		}
		if wait.For(ctx, min(max(backlogEvery, backlogShare*time.Since(began)), backlogLast)) != nil {
			return
		}
	}
}

// A backlog is what waits in a spool directory. One goroutine owns it.
type backlog struct {
	dir      string
	waiting  map[string]waiting  // by id: sessions with unacknowledged records
	finished map[string]struct{} // by id: complete, so that they are not looked at again
}

// A waiting is since when a session waits at a position.
type waiting struct {
	at    spool.Position
	since time.Time
}

// look returns the bytes that are not acknowledged, and the longest time since
// a session with some was found, or acknowledged others.
func (b *backlog) look(ctx context.Context) (bytes int64, longest time.Duration, err error) {
	ids, err := spool.Names(b.dir)
	if err != nil {
		return 0, 0, err
	}
	now := time.Now()
	still := make(map[string]waiting, len(b.waiting))
	for _, id := range ids {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		if _, ok := b.finished[id]; ok {
			continue
		}
		e, there := spool.Look(b.dir, id)
		switch {
		case there && e.Unshipped() && b.waits(id, e.Shipped):
			w, ok := b.waiting[id]
			if !ok || w.at != e.Shipped {
				w = waiting{e.Shipped, now}
			}
			still[id] = w
			bytes += e.Waiting
			longest = max(longest, now.Sub(w.since))
		case there && e.Finished():
			b.finished[id] = struct{}{}
		}
	}
	b.waiting = still
	if len(b.finished) > 2*len(ids) {
		clear(b.finished) // retention removed many
	}
	return bytes, longest, nil
}

// waits reports whether a session has something to read after a position. Behind
// the last record there may be intents of calls that run for hours.
func (b *backlog) waits(id string, after spool.Position) bool {
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: b.dir, Session: id, From: after, Durable: true})
	if err != nil {
		return true // it cannot be read
	}
	defer r.Close()
	for {
		item, err := r.Next()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		if item.Damage != spool.Intact || item.Record() {
			return true
		}
	}
}

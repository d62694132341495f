package translog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/collector/translog/tiles"

	"github.com/transparency-dev/tessera"
	"golang.org/x/mod/sumdb/tlog"
)

// Add appends entries that the log does not have yet, and returns once all of them
// would survive a crash of this machine. On a slow machine tessera makes several
// batches of them, and a later batch may come first. After an error any of them
// may be in the log: add them again. A write that has started is waited for, even
// after ctx has ended.
func (l *Log) Add(ctx context.Context, entries [][]byte) error {
	for i, e := range entries {
		if len(e) > tiles.MaxEntry {
			return fmt.Errorf("adding to the log: entry %d has %d bytes, want at most %d", i, len(e), tiles.MaxEntry)
		}
	}
	own, waits, err := l.enqueue(ctx, entries)
	for _, wait := range waits {
		if _, e := wait(); err == nil {
			err = e
		}
	}
	if e := l.integrated(own, err != nil); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("adding to the log: %w", withCause(err))
	}
	return nil
}

// enqueue gives new entries to tessera and returns them, and what to wait for,
// which includes entries of other calls.
func (l *Log) enqueue(ctx context.Context, entries [][]byte) (own []tlog.Hash, waits []tessera.IndexFuture, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++ // integrated ends it
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if l.closed {
		return nil, nil, errors.New("the log is closed")
	}
	if l.broken != nil {
		if err := l.reopenSeen(ctx); err != nil {
			return nil, nil, err
		}
		l.broken = nil
	}
	if _, err := l.intact(); err != nil {
		return nil, nil, err
	}
	// The spans of tessera do not end the write.
	detached := context.WithoutCancel(ctx)
	for _, e := range entries {
		leaf := tlog.RecordHash(e)
		wait, ok := l.pending[leaf]
		if !ok {
			known, err := l.has(detached, leaf)
			if err != nil {
				l.broken = err
				return own, waits, err
			}
			if known {
				continue
			}
			if err := l.start(); err != nil {
				return own, waits, err
			}
			wait = l.writer.Add(detached, tessera.NewEntry(append([]byte(nil), e...)))
			l.pending[leaf] = wait
			own = append(own, leaf)
		}
		waits = append(waits, wait)
	}
	l.used = time.Now()
	return own, waits, nil
}

// integrated indexes what was added, and compares it with what own call of Add has
// added.
func (l *Log) integrated(own []tlog.Hash, failed bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if l.waiting--; l.waiting == 0 {
			l.idle.Broadcast()
		}
	}()
	l.failed = l.failed || failed
	for _, leaf := range own {
		delete(l.pending, leaf)
	}
	if len(own) == 0 || l.broken != nil {
		return l.broken
	}
	ctx := context.Background()
	if err := l.catchUp(ctx); err != nil {
		l.broken = err
		return err
	}
	for _, leaf := range own {
		if failed {
			break
		}
		switch ok, err := l.has(ctx, leaf); {
		case err != nil:
			l.broken = err
			return err
		case !ok:
			l.broken = fmt.Errorf("the entry with hash %v was accepted, but is not in the tree", leaf)
			return l.broken
		}
	}
	select {
	case l.added <- struct{}{}:
	default: // Run has not seen the last one yet
	}
	return nil
}

//go:build linux || darwin

package chdb

import (
	"context"
	"time"

	"auditproxy/internal/wait"

	"go.uber.org/zap"
)

// The waits between two attempts to end a statement.
const (
	firstKillWait = 10 * time.Millisecond
	lastKillWait  = time.Second
)

// An engine is the library opened on a directory.
type engine struct {
	cfg  Config
	lib  *library
	data string
}

// open returns a new connection; opening one takes some 80 µs.
func (e *engine) open(settings ...string) (*conn, error) { return e.lib.open(e.data, settings...) }

// The engine refuses a connection while all its memory is in use, which passes.
const (
	refusedFirst = 10 * time.Millisecond // before the next attempt
	refusedLast  = 500 * time.Millisecond
	refusedFor   = 10 * time.Second // in all
)

// openPatiently is open for a request: it repeats what the engine refuses, until ctx
// ends.
func (e *engine) openPatiently(ctx context.Context, settings ...string) (*conn, error) {
	return patiently(ctx, func() (*conn, error) { return e.open(settings...) })
}

func patiently[T any](ctx context.Context, open func() (T, error)) (T, error) {
	began := time.Now()
	for pause := refusedFirst; ; pause = min(2*pause, refusedLast) {
		c, err := open()
		if err == nil || time.Since(began) >= refusedFor || wait.For(ctx, pause) != nil {
			return c, err
		}
	}
}

// killWhenDone ends the statement with this log_comment when ctx ends before
// stop is called. A statement may not have started at the first KILL, so it
// is repeated until then. Never SYNC, which hangs.
func (e *engine) killWhenDone(ctx context.Context, id string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		for pause := firstKillWait; ; pause = min(2*pause, lastKillWait) {
			e.kill(id)
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (e *engine) kill(id string) {
	c, err := e.open()
	if err == nil {
		_, err = c.query("KILL QUERY WHERE Settings['log_comment'] = "+quote(id)+" ASYNC", "TSV")
		c.close()
	}
	if err != nil {
		e.cfg.Log.Warn("statement not killed", zap.Error(err))
	}
}

//go:build linux || darwin

package chdb

import (
	"context"
	"time"

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
		for wait := firstKillWait; ; wait = min(2*wait, lastKillWait) {
			e.kill(id)
			select {
			case <-done:
				return
			case <-time.After(wait):
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

package ship

import (
	"context"
	"errors"
	"sync"
	"time"

	"auditproxy/sink"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// How long a session waits after something on this machine went wrong, while
// another process ships it, and for its shipper at the end.
const (
	tryAgain   = 10 * time.Second
	busyAgain  = time.Second
	lastCommit = 100 * time.Millisecond // for a cursor to be kept, once the time is over
)

// A SinkCloser is a sink that must be closed.
type SinkCloser interface {
	sink.Sink
	Close()
}

// A BesideConfig names the session to ship and its sink.
type BesideConfig struct {
	Dir, Session string
	KeyFile      string                     // as that of Config
	Open         func() (SinkCloser, error) // called once, by the shipper's own goroutine, which closes the sink
	Log          *zap.Logger
}

// A Beside ships the session of this process to its sink. It reads what the
// session has written to the disk, and no call waits for it.
type Beside struct {
	cfg    BesideConfig
	over   chan struct{} // closed once nothing more is written
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// StartBeside starts a shipper. The caller must end it with Finish.
func StartBeside(cfg BesideConfig) *Beside {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Beside{cfg: cfg, over: make(chan struct{}), cancel: cancel}
	s.wait.Go(func() {
		to, err := cfg.Open()
		if err != nil {
			cfg.Log.Error("nothing is shipped to Kafka; the records stay in the spool", zap.Error(err))
			return
		}
		defer to.Close()
		s.run(ctx, to)
	})
	return s
}

// Finish ends the shipper once it has shipped the whole session, or when ctx
// ends: then the rest stays in the spool for auditproxy ship. A client of Kafka
// that does not end within shipLast after ctx ends with the process; records
// that it has sent without an acknowledgement are sent again later.
func (s *Beside) Finish(ctx context.Context) {
	close(s.over)
	defer s.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wait.Wait()
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.cancel()
	select {
	case <-done:
	case <-time.After(lastCommit):
	}
}

func (s *Beside) run(ctx context.Context, to sink.Sink) {
	for {
		pause := busyAgain
		_, err := shipSession(ctx, sessionConfig{
			dir: s.cfg.Dir, session: s.cfg.Session, keyFile: s.cfg.KeyFile, over: s.over, sink: to, log: s.cfg.Log,
		})
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case !errors.Is(err, spool.ErrBusy):
			pause = tryAgain
			s.cfg.Log.Error("shipping the session failed and is tried again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.over: // the rest is for another process
			return
		case <-time.After(pause):
		}
	}
}

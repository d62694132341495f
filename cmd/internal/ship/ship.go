// Package ship ships the records of a spool to a sink: those of one session next
// to the proxy that writes it, those of a whole host once, or as they are
// written. One process at a time ships a session, and the spool keeps its
// progress.
//
// The files, from the top: follow, serve, metrics, ship, beside, session, queue.
package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink"
	"auditproxy/sink/kafka"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// A Config selects what to ship and where to.
type Config struct {
	Dir            string // the spool
	KeyFile        string // the host's key, for the evidence of recovered sessions and of short records, see chain.Config
	Sink           sink.Sink
	Log            *zap.Logger
	Stdout, Stderr io.Writer // for the result of Once, and for its progress

	// Listener serves the metrics of Follow, which closes it; nil: no port.
	Listener net.Listener
	Kafka    func() kafka.Stats // of the sink. Required with a Listener.
}

// Once ships the present records and prints the result: those written at since
// or later, or with a zero since those not shipped before. The error is a
// cli.ExitError where the exit code is not cli.ExitUnclear.
func Once(ctx context.Context, cfg Config, since time.Time) error {
	h := &host{cfg: cfg, again: !since.IsZero()}
	h.recover(ctx)
	entries, err := spool.List(cfg.Dir)
	if err != nil {
		return fmt.Errorf("shipping: %w", err)
	}
	var work []spool.Entry
	var bytes int64
	for _, e := range entries {
		if e.Err != nil {
			h.failed(e.ID, e.Err)
			continue
		}
		if h.again && !e.Modified.Before(since) || !h.again && e.Unshipped() {
			work = append(work, e)
			bytes += e.Bytes
		}
	}
	h.progress = terminal.StartReading(cfg.Stderr, bytes)
	defer h.progress.Finish()
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for _, e := range work {
		slots <- struct{}{}
		wait.Go(func() {
			_, _ = h.ship(ctx, e.ID, 0, nil) // counted and logged
			<-slots
		})
	}
	wait.Wait()
	h.progress.Finish()
	fmt.Fprintf(cfg.Stdout, "shipped %s of %s\n", terminal.Count(int(h.records.Load()), "record"), terminal.Count(len(work), "session"))
	if n := h.busy.Load(); n > 0 {
		fmt.Fprintf(cfg.Stdout, "%s skipped: another process ships it\n", terminal.Count(int(n), "session"))
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: the rest stays in the spool")
	case h.failures.Load() > 0:
		return fmt.Errorf("%s not shipped", terminal.Count(int(h.failures.Load()), "session"))
	case h.aside.Load() > 0:
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("%s not delivered as it is; the log above names the files", terminal.Count(int(h.aside.Load()), "record"))}
	}
	return nil
}

// atOnce is how many sessions Once ships at the same time. Each costs at most
// some 3 MB.
const atOnce = 16

// A host ships the sessions of a spool directory.
type host struct {
	cfg   Config
	again bool // including records shipped before
	began time.Time

	progress *terminal.Progress

	// The result, by all that ship.
	records, bytes, aside, busy, failures atomic.Int64
	recovered                             atomic.Int64 // sessions

	logged sync.Map // by session id: why it is not shipped, as logged

	mu      sync.Mutex
	backlog backlog // as last seen; guarded by mu
}

// A backlog is what waits in a spool.
type backlog struct {
	listed   bool // the directory could be read
	live     int  // sessions whose proxy runs
	sessions int  // with something to ship
	bytes    int64
	oldest   time.Time // a record waits since then; zero: none does
	failing  int       // sessions that cannot be shipped
}

// ship ships the present records of one session, up to atMost bytes if that is
// not 0, and reports whether there were more. It calls first, if not nil, with
// the first one.
func (h *host) ship(ctx context.Context, id string, atMost int64, first func(line []byte)) (more bool, err error) {
	more, err = shipSession(ctx, sessionConfig{
		dir: h.cfg.Dir, session: id, keyFile: h.cfg.KeyFile, again: h.again, atMost: atMost, sink: h.cfg.Sink, log: h.cfg.Log,
		read:    h.progress.Add,
		first:   first,
		damaged: func() { h.aside.Add(1) },
		sent:    func(records int, bytes int64) { h.records.Add(int64(records)); h.bytes.Add(bytes) },
	})
	var stalled *sink.StalledError
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist): // retention removed it
		h.logged.Delete(id)
		return more, nil
	case errors.As(err, &stalled): // logged by the sink, once for all
	case errors.Is(err, spool.ErrBusy):
		h.busy.Add(1)
	default:
		h.failed(id, err)
	}
	return false, err
}

// failed logs why a session is not shipped, unless it has logged that before: a
// follower retries every minute.
func (h *host) failed(id string, err error) {
	h.failures.Add(1)
	if was, _ := h.logged.Swap(id, err.Error()); was == err.Error() {
		return
	}
	h.cfg.Log.Error("a session cannot be shipped", zap.String("session", id), zap.Error(err))
}

// recover ends the sessions whose proxies died, so that their last calls are
// shipped too.
func (h *host) recover(ctx context.Context) {
	if _, _, err := spool.Recover(ctx, spool.RecoverConfig{Dir: h.cfg.Dir, KeyFile: h.cfg.KeyFile, Log: h.cfg.Log}); err != nil && ctx.Err() == nil {
		h.cfg.Log.Warn("dead sessions not recovered", zap.Error(err))
	}
}

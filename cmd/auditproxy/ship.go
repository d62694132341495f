package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

const shipLong = `Ship the records of all sessions on this machine to Kafka: of those that are
over, and of those that still run and that no proxy ships itself. Sessions whose
proxy died are ended first, with --follow within seconds. A record counts as shipped once all in-sync replicas
have it; while Kafka is away this waits.

Without --follow it ends when everything that was there is shipped. Its exit code
is 0 then, 1 if a record could not be delivered as it is and was set aside, and 2
if something could not be shipped. With --follow it runs until it is stopped, as
a service of the host or beside a proxy in a pod.

With --from it ships again what Kafka has lost: every session written to at that
time or later, from its start. Whoever reads the topic ignores repeats.`

func newShipCmd(a *app) *cobra.Command {
	var follow bool
	var from string
	cmd := &cobra.Command{
		Use:     "ship",
		Short:   "ship the records on this machine to Kafka",
		Long:    shipLong,
		Example: "  auditproxy ship --kafka-brokers kafka-1:9092,kafka-2:9092\n  auditproxy ship --follow\n  auditproxy ship --from yesterday",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.ship(cmd.Context(), follow, from) },
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")
	cmd.Flags().StringVar(&from, "from", "", "ship again what was written at this `TIME` or later, such as yesterday or -2h")
	return cmd
}

func (a *app) ship(ctx context.Context, follow bool, from string) error {
	if follow && from != "" {
		return errors.New("--from ships again what is there, --follow ships what comes: want one of them")
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if cfg.consumer != "kafka" {
		return cli.ExitError{Code: cli.ExitConfig, Err: errors.New("nothing is to be shipped: there are no kafka.brokers, or spool.consumer is not kafka")}
	}
	var since time.Time
	if from != "" {
		if since, err = terminal.ParseTime(from, time.Now()); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	log := cfg.logger(a)
	producer, err := newProducer(cfg, log)
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	defer producer.Close()
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	h := &hostShip{cfg: cfg, sink: producer, log: log}
	if follow {
		return newHostFollower(h).run(ctx)
	}
	return a.shipOnce(ctx, h, since)
}

// shipOnce ships what is there and says what came of it. since is zero where
// only what was not shipped yet is asked for.
func (a *app) shipOnce(ctx context.Context, h *hostShip, since time.Time) error {
	h.recover(ctx)
	entries, err := listSessions(h.cfg.spoolDir)
	if err != nil {
		return fmt.Errorf("shipping: %w", err)
	}
	h.again = !since.IsZero()
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
	h.progress = terminal.StartReading(a.stderr, bytes)
	defer h.progress.Finish()
	slots := make(chan struct{}, shipAtOnce)
	var wait sync.WaitGroup
	for _, e := range work {
		slots <- struct{}{}
		wait.Go(func() {
			_ = h.ship(ctx, e.ID) // counted and logged
			<-slots
		})
	}
	wait.Wait()
	h.progress.Finish()
	fmt.Fprintf(a.stdout, "shipped %s of %s\n", terminal.Count(int(h.records.Load()), "record"), terminal.Count(len(work), "session"))
	if n := h.busy.Load(); n > 0 {
		fmt.Fprintf(a.stdout, "%s left to the process that ships it\n", terminal.Count(int(n), "session"))
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

// shipAtOnce is how many sessions are shipped at the same time. Each costs at
// most some 3 MB.
const shipAtOnce = 16

// A hostShip ships the sessions of a spool directory.
type hostShip struct {
	cfg   config
	sink  sink.Sink
	log   *zap.Logger
	again bool // what was shipped before too

	progress *terminal.Progress

	// What came of it, by all that ship.
	records, aside, busy, failures atomic.Int64

	logged sync.Map // by session id: why it is not shipped, as it was logged
}

// ship ships what there is of one session now.
func (h *hostShip) ship(ctx context.Context, id string) error {
	err := shipSession(ctx, shipConfig{
		dir: h.cfg.spoolDir, session: id, again: h.again, sink: h.sink, log: h.log,
		read:    h.progress.Add,
		damaged: func() { h.aside.Add(1) },
		sent:    func(records int, _ int64) { h.records.Add(int64(records)) },
	})
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist): // retention removed it
		h.logged.Delete(id)
		return nil
	case errors.Is(err, spool.ErrBusy):
		h.busy.Add(1)
	default:
		h.failed(id, err)
	}
	return err
}

// failed logs why a session is not shipped when that is new: a follower meets it
// every minute.
func (h *hostShip) failed(id string, err error) {
	h.failures.Add(1)
	if was, _ := h.logged.Swap(id, err.Error()); was == err.Error() {
		return
	}
	h.log.Error("a session cannot be shipped", zap.String("session", id), zap.Error(err))
}

// recover ends the sessions whose proxies died, so that their last calls are
// shipped too.
func (h *hostShip) recover(ctx context.Context) {
	if _, _, err := spool.Recover(ctx, spool.RecoverConfig{Dir: h.cfg.spoolDir, Log: h.log}); err != nil && ctx.Err() == nil {
		h.log.Warn("dead sessions not recovered", zap.Error(err))
	}
}

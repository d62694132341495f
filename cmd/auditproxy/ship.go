package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/ship"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/sink/kafka"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

const shipLong = `Ship the records of all sessions on this machine to Kafka: of those that are
over, and of those that still run and that no proxy ships itself. Sessions whose
proxy died are ended first, with --follow within seconds. A record counts as shipped
once all in-sync replicas have it; while Kafka is away this waits.

Without --follow it ends when everything that was there is shipped. Its exit code
is 0 then, 1 if a record could not be delivered as it is and was set aside, and 2
if something could not be shipped. With --follow it runs until it is stopped, as
a service of the host or beside a proxy in a pod, and sends the records of all
sessions together. --metrics-listen serves its metrics for Prometheus.

With --from it ships again what Kafka has lost: every session written to at that
time or later, from its start. Readers of the topic ignore duplicates.`

// linger is how long a record waits for those of other sessions, in addition to
// the time until the follower sees it.
const linger = 100 * time.Millisecond

func newShipCmd(a *app) *cobra.Command {
	var follow bool
	var from, metrics string
	cmd := &cobra.Command{
		Use:     "ship",
		Short:   "ship the records on this machine to Kafka",
		Long:    shipLong,
		Example: "  auditproxy ship --kafka-brokers kafka-1:9092,kafka-2:9092\n  auditproxy ship --follow --metrics-listen 127.0.0.1:8689\n  auditproxy ship --from yesterday",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.ship(cmd.Context(), follow, from, metrics) },
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep shipping new records")
	cmd.Flags().StringVar(&from, "from", "", "ship again what was written at this `TIME` or later, such as yesterday or -2h")
	cmd.Flags().StringVar(&metrics, "metrics-listen", "", "with --follow, `HOST:PORT` of /metrics, /healthz and /readyz; without a host on loopback; default: no port")
	return cmd
}

func (a *app) ship(ctx context.Context, follow bool, from, metrics string) error {
	switch {
	case follow && from != "":
		return errors.New("--from and --follow cannot be combined")
	case metrics != "" && !follow:
		return errors.New("--metrics-listen needs --follow")
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	switch {
	case cfg.consumer == "kafka":
	case cfg.consumerSet:
		return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("shipping is disabled: spool.consumer is %s: to ship for proxies that do not, set it for this process, as by --spool-consumer kafka", cfg.consumer)}
	default:
		return cli.ExitError{Code: cli.ExitConfig, Err: errors.New("shipping is disabled: there are no kafka.brokers: set them, as by --kafka-brokers kafka-1:9092")}
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
	sc := ship.Config{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile, Sink: producer, Log: log, Stdout: a.stdout, Stderr: a.stderr}
	if follow {
		if metrics != "" {
			if sc.Listener, err = cli.Listen(ctx, metrics, "--metrics-listen"); err != nil {
				return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("listening for metrics: %w", err)}
			}
			sc.Kafka = producer.Stats
			log.Info("serving metrics", zap.Stringer("addr", sc.Listener.Addr()))
		}
		batcher := kafka.NewBatcher(producer, kafka.BatcherConfig{AtOnce: ship.FollowAtOnce, Linger: linger})
		sc.Sink = batcher
		var running sync.WaitGroup
		running.Go(func() { batcher.Run(ctx) })
		defer running.Wait() // before the producer is closed
		return ship.Follow(ctx, sc)
	}
	if err := view.CheckSpool(cfg.spoolDir); err != nil {
		return fmt.Errorf("shipping: %w", err)
	}
	return ship.Once(ctx, sc, since)
}

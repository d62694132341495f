package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector"
	"auditproxy/collector/alert"
	"auditproxy/collector/export"
	"auditproxy/collector/proof"
	"auditproxy/collector/retention"
	"auditproxy/collector/review"
	"auditproxy/collector/store"
	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/kafka"
	"auditproxy/sink/spool"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const runLong = `Take records to ClickHouse until SIGINT or SIGTERM. What is not stored then is
read again at the next start. Records come from the brokers of kafka.brokers or,
with none, from the spools of spool.dirs; they go to clickhouse.addr or, with
none, to an engine of our own in local.dir.

With no configuration at all it reads what auditproxy has recorded on this
machine. In the spools that it reads it ends the sessions of this machine whose
proxy died, as auditproxy recover does.`

func newRunCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "load records into ClickHouse",
		Long:  runLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.configured(cmd.Context(), a.collect)
		},
	}
}

// memoryGoal is the memory from which the garbage collector works harder. Most
// of it is batches that wait for ClickHouse. Below it, a collection each time
// that the heap has doubled, which is the default, would be wasted: while records
// stream, nearly all live memory is garbage a moment later.
const (
	memoryGoal   = 224 << 20
	memoryGrowth = 400 // percent
)

// collect runs everything: the local engine, the collector, the review page and
// the metrics. The engine ends last, because inserts are under way until then.
func (a *app) collect(ctx context.Context, cfg config) error {
	if a.getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryGoal))
		if a.getenv("GOGC") == "" {
			defer debug.SetGCPercent(debug.SetGCPercent(memoryGrowth))
		}
	}
	log := cfg.logger(a)
	cfg.notRead = tellNotRead(log)
	store, err := cfg.store()
	if err != nil {
		return err
	}
	defer store.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	outputs, err := a.outputs(cfg, log)
	if err != nil {
		return err
	}
	defer outputs.close()
	alerts, err := newAlerts(cfg, outputs.alerts, store, registry, log)
	if err != nil {
		return err
	}
	defer alerts.close()
	page, err := newReviewPage(cfg, log)
	if err != nil {
		return err
	}
	defer page.close()
	erased := retention.NewErased(store.DB())
	c, err := newCollector(cfg, store, alerts, erased, registry, log)
	if err != nil {
		return err
	}
	exports, err := newExports(cfg, outputs, store, alerts, erased.Has, c.Behind, registry, log)
	if err != nil {
		return err
	}
	p := parts{
		store: store, alerts: alerts, page: page, erased: erased, collector: c, exports: exports, evidence: newEvidenceLog(cfg, store, registry, log),
		retain: cfg.retentionJob(store, registry, log), verification: newVerification(cfg, store, alerts, registry, log),
	}
	if page != nil {
		page.evidence = p.evidence
	}
	complete := newCompleteness(registry)
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	g, ctx := errgroup.WithContext(ctx)
	if cfg.local() {
		g.Go(func() error { return a.superviseEngine(engineCtx, cfg, c.EngineRestarts) })
	}
	p.waits("preparing the tables", "the tables in ClickHouse are not there yet")
	g.Go(func() error {
		defer stopEngine()
		return p.run(ctx, g, a, cfg, log)
	})
	g.Go(func() error { return serveMetrics(ctx, cfg.metricsListen, registry, p.failing, log) })
	g.Go(func() error { complete.watch(ctx, completenessEvery, store, log); return nil })
	return g.Wait()
}

// parts are the parts of a running collector that need the tables.
type parts struct {
	store        *store.Store
	alerts       *alerts
	page         *reviewPage // nil: none
	erased       *retention.Erased
	collector    *collector.Collector
	exports      *export.Engine // nil: none
	evidence     *evidenceLog
	retain       *retention.Job
	verification *proof.Job // nil: never

	starting atomic.Pointer[collector.Failure] // nil: records are collected
	dropped  atomic.Pointer[collector.Failure] // nil: all tables are there
}

// waits sets what the start waits for.
func (p *parts) waits(part, reason string) {
	p.starting.Store(&collector.Failure{Part: part, Err: errors.New(reason)})
}

// failing returns what keeps records from being stored.
func (p *parts) failing() []collector.Failure {
	if s := p.starting.Load(); s != nil {
		return []collector.Failure{*s}
	}
	failing := p.collector.Failing()
	if d := p.dropped.Load(); d != nil {
		failing = append(failing, *d)
	}
	return failing
}

// tablesEvery is the time between two looks for tables that were dropped.
const tablesEvery = 30 * time.Second

// watchTables looks for tables that were dropped or altered until ctx ends. Records are
// stored without the view, or the column, of another table, and nothing else would say so.
func (p *parts) watchTables(ctx context.Context, look func(context.Context) error, log *zap.Logger) {
	told := ""
	for wait.For(ctx, tablesEvery) == nil {
		err := look(ctx)
		switch {
		case err == nil:
			told = ""
			p.dropped.Store(nil)
		case errors.Is(err, clickhouse.ErrDropped), errors.Is(err, clickhouse.ErrRewritten):
			p.dropped.Store(&collector.Failure{Part: "tables that were dropped or altered", Err: err})
			if err.Error() != told {
				told = err.Error()
				log.Error("tables were dropped or altered", zap.Error(err))
			}
		}
	}
}

// run prepares the tables and runs the parts in g until ctx ends. It returns when
// nothing more is inserted.
func (p *parts) run(ctx context.Context, g *errgroup.Group, a *app, cfg config, log *zap.Logger) error {
	if err := prepare(ctx, p.store, cfg, log); err != nil || ctx.Err() != nil {
		return err
	}
	// Before what needs to write: on a full disk, records can still be read.
	g.Go(func() error { p.page.serveBeside(ctx, a); return nil })
	p.waits("registering this run", "ClickHouse has not accepted it yet")
	if untilDone(ctx, log, p.alerts.register) != nil || untilDone(ctx, log, p.erased.Load) != nil {
		return nil
	}
	if len(cfg.brokers) == 0 && untilDone(ctx, log, func(ctx context.Context) error { return tellReadBefore(ctx, p.store, cfg.spoolDirs, log) }) != nil {
		return nil
	}
	evaluated := make(chan struct{})
	g.Go(func() error {
		defer close(evaluated)
		return p.alerts.run(ctx)
	})
	exported := make(chan struct{})
	g.Go(func() error {
		defer close(exported)
		if p.exports == nil {
			return nil
		}
		return p.exports.Run(ctx)
	})
	g.Go(func() error { return p.retain.Run(ctx) })
	g.Go(func() error { return p.erased.Run(ctx, log) })
	g.Go(func() error { p.evidence.run(ctx); return nil })
	if p.verification != nil {
		g.Go(func() error { return p.verification.Run(ctx) })
	}
	p.starting.Store(nil)
	g.Go(func() error { p.watchTables(ctx, p.store.DB().Changed, log); return nil })
	g.Go(func() error { watchStoring(ctx, p.failing, newLastingAlert(p.alerts, log)); return nil })
	if err := p.collector.Run(ctx); err != nil || ctx.Err() == nil {
		return err
	}
	<-exported // with its last positions
	<-evaluated
	p.alerts.end(ctx)
	return nil
}

const (
	storingEvery = 10 * time.Second // between two looks at what stops records
	notStoredFor = time.Minute      // then it is an alert
)

// watchStoring raises an alert while records are not stored, and closes it, until ctx
// ends: rules see only what is stored, and on an almost full disk agents go on.
func watchStoring(ctx context.Context, failing func() []collector.Failure, lasting *lastingAlert) {
	var since time.Time
	for wait.For(ctx, storingEvery) == nil {
		var parts []string
		for _, f := range failing() {
			parts = append(parts, f.Part)
		}
		now := time.Now()
		switch {
		case len(parts) == 0:
			since = time.Time{}
		case since.IsZero():
			since = now
		}
		if since.IsZero() || now.Sub(since) >= notStoredFor {
			lasting.tell(ctx, !since.IsZero(), alert.RecordsNotStored(lasting.host, since, now, parts))
		}
	}
}

// untilDone does what comes before records are collected. It retries until it
// succeeds or ctx ends, whose error it returns.
func untilDone(ctx context.Context, log *zap.Logger, do func(context.Context) error) error {
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		log.Warn("ClickHouse fails; records wait", zap.Duration("retry_in", pause), zap.Error(err))
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// tellReadBefore warns if the store has no record, although records of spools count
// as stored: its directory was lost or renamed, or another collector has them.
func tellReadBefore(ctx context.Context, s *store.Store, dirs []string, log *zap.Logger) error {
	if empty, err := s.Empty(ctx); err != nil || !empty {
		return err
	}
	for _, dir := range dirs {
		sessions, _ := spool.List(dir) // the collector tells why it cannot be read
		read := 0
		for _, e := range sessions {
			if e.Shipped.Segment > 0 {
				read++
			}
		}
		if read > 0 {
			log.Warn("this store is empty, and records of the spool count as stored: they are in the store of another collector, or of an earlier one; "+
				"to have them here, stop all collectors of this spool, remove sessions/*/shipped in it, and start this one",
				zap.String("dir", dir), zap.Int("sessions", read))
		}
	}
	return nil
}

func newCollector(cfg config, store *store.Store, alerts *alerts, erased *retention.Erased, registry *prometheus.Registry, log *zap.Logger) (*collector.Collector, error) {
	cc := collector.Config{
		Store:       store,
		Keep:        cfg.keepEvents,
		KeepTenants: cfg.keepTenants,
		Erased:      erased.Has,
		Clock:       store.DB().Clock,
		Reached:     store.Reached,
		Lacks:       store.Lacks,
		Unfilled:    store.Unfilled,
		Spools:      cfg.spoolDirs,
		HostKey:     cfg.evidence.hostKeyFile,
		BatchRows:   cfg.batchRows,
		BatchBytes:  cfg.batchBytes,
		BatchWait:   cfg.batchWait,
		Watch:       alerts.engine.Begin,
		Visible:     alerts.engine.Visible,
		Log:         log,
		Metrics:     registry,
	}
	if cfg.local() {
		cc.Disks = append(cc.Disks, cfg.localDir)
	}
	if len(cfg.brokers) > 0 {
		var err error
		if cc.Kafka, err = cfg.kafka(); err != nil {
			return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
		}
	}
	return collector.New(cc)
}

// kafka returns how to reach the brokers. It does not connect.
func (c config) kafka() (collector.Kafka, error) {
	tls, tlsErr := cli.RenewTLS(cli.TLSOf(c.values, "kafka.tls"), "kafka.tls.", c.notRead)
	password, err := cli.RenewPassword(c.values, "kafka.sasl.password", c.notRead)
	if err := errors.Join(tlsErr, err); err != nil {
		return collector.Kafka{}, err
	}
	access := kafka.Access{
		Brokers: c.brokers,
		TLS:     tls,
		Login: kafka.Login{
			Mechanism: c.values.String("kafka.sasl.mechanism"),
			User:      c.values.String("kafka.sasl.username"),
			Password:  password,
		},
		ClientID: "auditcollector",
	}
	if err := access.Validate(); err != nil {
		return collector.Kafka{}, err
	}
	mechanism, err := access.Mechanism()
	return collector.Kafka{
		Brokers: c.brokers, Topics: c.topics(), Group: c.group, DeadTopic: c.deadTopic, Tenants: c.tenants,
		TLS: tls, SASL: mechanism, ClientID: access.ClientID,
	}, err
}

// serveMetrics serves /metrics, /healthz and /readyz until ctx ends.
func serveMetrics(ctx context.Context, listen string, registry *prometheus.Registry, failing func() []collector.Failure, log *zap.Logger) error {
	if listen == "" {
		return nil
	}
	l, err := cli.Listen(ctx, listen, "metrics.listen")
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("listening for metrics: %w", err)}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if parts := failing(); len(parts) > 0 {
			// The names only: an error may quote untrusted data.
			text := "not ready; see the log:"
			for _, f := range parts {
				text += "\n" + f.Part
			}
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	log.Info("serving metrics", zap.Stringer("addr", l.Addr()))
	// As the page: the port needs no login, and each connection costs a file and memory.
	if err := review.Serve(ctx, l, nil, mux, log); err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// completenessEvery is the time between two checks for missing records.
const completenessEvery = time.Minute

// A completeness exports how many records are missing.
type completeness struct{ missing, silent prometheus.Gauge }

func newCompleteness(r prometheus.Registerer) completeness {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "auditcollector", Name: name, Help: help})
		r.MustRegister(g)
		g.Set(math.NaN()) // not asked yet
		return g
	}
	return completeness{
		gauge("missing_records", "Records missing from sessions of the last two days."),
		gauge("silent_sessions", "Sessions of the last two days without an end and without a record for five minutes."),
	}
}

// watch queries the store for missing records until ctx ends. They show in the
// metrics, and in the log whenever they have changed.
func (c completeness) watch(ctx context.Context, every time.Duration, s *store.Store, log *zap.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var said store.Completeness
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		got, err := s.Completeness(ctx)
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("completeness not known", zap.Error(err))
			}
			c.missing.Set(math.NaN())
			c.silent.Set(math.NaN())
			continue
		}
		c.missing.Set(float64(got.Missing))
		c.silent.Set(float64(got.Silent))
		if got != said {
			said = got
			log.Warn("completeness changed; see audit.seq_gaps and audit.sessions",
				zap.Uint64("missing_records", got.Missing), zap.Uint64("silent_sessions", got.Silent))
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/collector/store"
	"auditproxy/collector/translog"
	"auditproxy/collector/translog/feed"
	"auditproxy/internal/wait"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// reopenEvery is the pause after a log could not be opened.
const reopenEvery = time.Minute

// An evidenceLog keeps the central log of a collector's evidence. Records are
// collected whether or not it can be written.
type evidenceLog struct {
	cfg    translog.Config
	stored feed.Stored
	name   string // of this collector
	log    *zap.Logger

	open   atomic.Pointer[openLog] // nil: it is not open
	failed atomic.Pointer[error]   // why it was not opened; nil: it is open, or was not tried
	found  *prometheus.CounterVec
	descs  []*prometheus.Desc
}

type openLog struct {
	*translog.Log
	feed *feed.Feed
}

// newEvidenceLog opens nothing. It returns nil if there is to be no log.
func newEvidenceLog(cfg config, s *store.Store, registry prometheus.Registerer, log *zap.Logger) *evidenceLog {
	if !cfg.evidence.enabled {
		return nil
	}
	translog.LogLibrary(log)
	l := &evidenceLog{
		cfg:    translog.Config{Dir: cfg.evidence.dir(cfg.localDir), Witnesses: cfg.evidence.witnesses, Log: log},
		stored: feed.Stored{DB: s.DB()}, name: runName(time.Now()), log: log,
		found: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: "log_contradictions_total",
			Help: "Checkpoints of sessions that contradict others, by what was found."}, []string{"what"}),
	}
	for _, d := range logMetrics {
		l.descs = append(l.descs, prometheus.NewDesc("auditcollector_"+d.name, d.help, d.labels, nil))
	}
	for _, what := range []string{"bad_signature", "forked", "rolled_back"} {
		l.found.WithLabelValues(what) // a rate does not see the first of a new series
	}
	registry.MustRegister(l.found, l)
	return l
}

// logMetrics are the metrics of a log, in the order of Collect.
var logMetrics = []struct {
	name, help string
	labels     []string
}{
	{"log_up", "Whether the central log is open and has what arrived.", nil},
	{"log_entries", "Entries of the central log.", nil},
	{"log_published_entries", "Entries that the newest checkpoint covers.", nil},
	{"log_witnessed_entries", "Entries that a checkpoint covers which a quorum of witnesses has signed.", nil},
	{"log_lag_seconds", "How long ago everything that had arrived was in the log.", nil},
	{"log_witness_failing_seconds", "How long a witness has signed nothing; 0 if the last request succeeded.", []string{"witness"}},
}

// Describe implements prometheus.Collector.
func (l *evidenceLog) Describe(to chan<- *prometheus.Desc) {
	for _, d := range l.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (l *evidenceLog) Collect(to chan<- prometheus.Metric) {
	gauge := func(i int, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(l.descs[i], prometheus.GaugeValue, v, labels...)
	}
	o := l.open.Load()
	if o == nil {
		gauge(0, 0)
		return
	}
	status, fed := o.Status(), o.feed.Status()
	up := 0.0
	if fed.Err == nil && !fed.Upto.IsZero() {
		up = 1
	}
	gauge(0, up)
	gauge(1, float64(status.Size))
	gauge(2, float64(status.Published))
	if len(status.Witnesses) > 0 {
		gauge(3, float64(status.Witnessed))
	}
	if !fed.Upto.IsZero() {
		gauge(4, time.Since(fed.Upto).Seconds())
	}
	for _, w := range status.Witnesses {
		failing := 0.0
		if !w.Failing.IsZero() {
			failing = time.Since(w.Failing).Seconds()
		}
		gauge(5, failing, w.Name)
	}
}

// run keeps the log open and fed until ctx ends. A log that cannot be opened stops
// nothing else: it is told, and tried again.
func (l *evidenceLog) run(ctx context.Context) {
	if l == nil {
		return
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { l.watch(ctx) })
	told := ""
	for ctx.Err() == nil {
		err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.failed.Store(&err)
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			l.log.Error("central log not written", zap.String("dir", l.cfg.Dir), zap.Error(err))
		}
		if wait.For(ctx, reopenEvery) != nil {
			return
		}
	}
}

// once opens the log and feeds it until ctx ends or it fails.
func (l *evidenceLog) once(ctx context.Context) error {
	log, err := translog.Open(ctx, l.cfg)
	if err != nil {
		return err
	}
	f, err := feed.New(feed.Config{Source: l.stored, Log: log, Mark: l.cfg.Dir + ".mark", Found: l.contradicted, Logger: l.log})
	if err == nil {
		l.failed.Store(nil)
		l.open.Store(&openLog{log, f})
		g, running := errgroup.WithContext(ctx)
		g.Go(func() error { return log.Run(running) })
		g.Go(func() error { return f.Run(running) })
		err = g.Wait()
		l.open.Store(nil)
	}
	if closed := log.Close(); err == nil {
		err = closed
	}
	return err
}

const (
	lookEvery = 2 * time.Second // at the state of the log
	tellEvery = time.Minute     // while it is damaged, or the database does not take it

	// patience is how long a cause may last that ends by itself: another process that
	// is about to end has the log, or the disk is full.
	patience = 2 * time.Minute
)

// watch stores whether the log is damaged, for the rule central-log-damaged.
func (l *evidenceLog) watch(ctx context.Context) {
	var since, next time.Time // of the damage; when to store again
	stored := false           // that there is none
	for wait.For(ctx, lookEvery) == nil {
		damage, known := l.damage()
		now := time.Now()
		switch {
		case !known:
			continue
		case damage == nil:
			since = time.Time{}
		case since.IsZero():
			since = now
		}
		if damage == nil && stored || now.Before(next) || damage != nil && !urgent(damage) && now.Sub(since) < patience {
			continue
		}
		state := feed.LogState{Since: since}
		if damage != nil {
			state.Damage = damage.Error()
		}
		state.Host, _ = os.Hostname()
		state.Place = state.Host + ":" + l.cfg.Dir
		err := l.stored.LogState(ctx, state, now, l.name)
		if err != nil && ctx.Err() == nil {
			l.log.Warn("state of the central log not stored", zap.Error(err))
		}
		next, stored = now.Add(tellEvery), err == nil && damage == nil
	}
}

// urgent reports whether damage is told at once.
func urgent(damage error) bool { return errors.Is(damage, translog.ErrRolledBack) }

// damage returns why the log does not get what arrives, nil if it does. known: it is
// known whether it does.
func (l *evidenceLog) damage() (damage error, known bool) {
	if err := l.failed.Load(); err != nil {
		return *err, true
	}
	o := l.open.Load()
	if o == nil {
		return nil, false
	}
	return damageOf(o.Status(), o.feed.Status())
}

func damageOf(log translog.Status, fed feed.Status) (damage error, known bool) {
	switch {
	case errors.Is(fed.Err, feed.ErrLog):
		return fed.Err, true
	case log.Err != nil:
		return fmt.Errorf("signing a checkpoint: %w", log.Err), true
	}
	// The database fails, or the first pass has not ended.
	known = fed.Err == nil && !fed.Upto.IsZero()
	for _, w := range log.Witnesses {
		if w.Refused != nil {
			return fmt.Errorf("asking witness %q: %w: restore the newest copy of the log; if there is none, treat it as an intrusion, or ask the witness's operator", w.Name, w.Refused), true
		}
		// A witness that does not answer after a restart may have refused before it.
		known = known && (!w.Succeeded.IsZero() || log.Published <= 0)
	}
	return nil, known
}

func (l *evidenceLog) contradicted(ctx context.Context, c feed.Contradiction) error {
	l.log.Error("checkpoints contradict each other", zap.String("session", c.SessionID), zap.String("what", c.What), zap.Uint64("seq", c.Seq))
	err := l.stored.Contradicted(ctx, c, time.Now(), l.name)
	if err == nil {
		l.found.WithLabelValues(c.What).Inc()
	}
	return err
}

// ServeHTTP serves the log to everyone: all of it may be published.
func (l *evidenceLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o := l.open.Load(); o != nil {
		o.Handler().ServeHTTP(w, r)
		return
	}
	http.Error(w, "the log is not open", http.StatusServiceUnavailable)
}

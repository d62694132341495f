package collector

import (
	"context"
	"math/rand/v2"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"go.uber.org/zap"
)

const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 10 * time.Second
	// After a configuration error an administrator has to act, so retries are
	// rare.
	retryConfiguration = 10 * time.Second
)

// A writer stores batches. Its methods may be called concurrently.
type writer struct {
	store     Inserter
	watch     func(arrived time.Time) (end func(stored []ingest.Row))
	deadTopic func(context.Context, []ingest.DeadLetter) error // nil: none
	health    *health
	metrics   *metrics
	log       *zap.Logger
}

func newWriter(c *Collector, deadTopic func(context.Context, []ingest.DeadLetter) error) *writer {
	return &writer{c.config.Store, c.config.Watch, deadTopic, &c.storing, c.metrics, c.log}
}

// write retries until the batch is stored or ctx ends, and reports whether it
// is stored.
func (w *writer) write(ctx context.Context, b *decoded) (stored bool) {
	at := time.Now()
	watched := w.watch(at)
	defer func() {
		if !stored {
			b.rows = nil
		}
		watched(b.rows)
	}()
	letters := b.letters
	if len(b.rows) > 0 {
		poisoned, ok := w.writeRows(ctx, b.rows, at)
		if !ok {
			return false
		}
		letters = append(letters, poisoned...)
	}
	if len(letters) > 0 {
		w.copyToDeadTopic(ctx, letters)
		ok := w.retry(ctx, "dead letters", func(ctx context.Context) error { return w.store.InsertDeadLetters(ctx, letters) })
		if !ok {
			return false
		}
		for _, l := range letters {
			w.metrics.deadLetters.WithLabelValues(l.Reason).Inc()
			w.log.Warn("dead letter", zap.String("reason", l.Reason), zap.String("topic", l.Topic),
				zap.Uint32("partition", l.Partition), zap.Uint64("offset", l.Offset))
		}
	}
	if len(b.gaps) > 0 {
		ok := w.retry(ctx, "gaps", func(ctx context.Context) error { return w.store.InsertGaps(ctx, b.gaps) })
		if !ok {
			return false
		}
		w.metrics.gaps.Add(float64(len(b.gaps)))
	}
	w.metrics.stored(b.rows)
	return true
}

// writeRows stores rows, and returns refused ones as dead letters. The halves
// of a refused batch are two inserts with their own tokens; a half that is
// stored twice collapses.
func (w *writer) writeRows(ctx context.Context, rows []ingest.Row, at time.Time) (poisoned []ingest.DeadLetter, ok bool) {
	var poison error
	ok = w.retry(ctx, "records", func(ctx context.Context) error {
		poison = nil
		err := w.insertRows(ctx, rows, at)
		if ingest.ClassOf(err) == ingest.Poison {
			// The table may have changed since its columns were looked up:
			// retry once before blaming the row.
			err = w.insertRows(ctx, rows, at)
		}
		if ingest.ClassOf(err) == ingest.Poison {
			poison = err
			return nil
		}
		return err
	})
	switch {
	case !ok || poison == nil:
		return nil, ok
	case len(rows) == 1:
		return []ingest.DeadLetter{ingest.Refused(&rows[0], poison, at)}, true
	case ctx.Err() != nil:
		return nil, false // a search can take minutes; the batch is repeated
	}
	w.metrics.bisections.Inc()
	half := len(rows) / 2
	left, ok := w.writeRows(ctx, rows[:half], at)
	if !ok {
		return nil, false
	}
	right, ok := w.writeRows(ctx, rows[half:], at)
	return append(left, right...), ok
}

func (w *writer) insertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	began := time.Now()
	err := w.store.InsertRows(ctx, rows, at)
	w.metrics.insertSeconds.Observe(time.Since(began).Seconds())
	return err
}

// retry retries until success or until ctx ends, and reports success. A
// running attempt continues when ctx ends, because its outcome would be
// unknown; the store limits its time.
func (w *writer) retry(ctx context.Context, what string, do func(context.Context) error) bool {
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		err := do(context.WithoutCancel(ctx))
		w.health.tell(err)
		if err == nil {
			return true
		}
		class := ingest.ClassOf(err)
		w.metrics.insertErrors.WithLabelValues(class.String()).Inc()
		if class == ingest.Configuration {
			pause = retryConfiguration
			w.log.Error("store refused the write; collection paused", zap.String("what", what), zap.Error(err))
		} else {
			w.log.Warn("the store failed; records wait", zap.String("what", what), zap.Duration("retry_in", pause), zap.Error(err))
		}
		if wait.For(ctx, pause/2+rand.N(pause/2)) != nil {
			return false
		}
	}
}

// copyToDeadTopic copies letters to the topic of dead letters. The table is
// authoritative, so a topic that cannot be written delays nothing.
func (w *writer) copyToDeadTopic(ctx context.Context, letters []ingest.DeadLetter) {
	if w.deadTopic == nil {
		return
	}
	if err := w.deadTopic(context.WithoutCancel(ctx), letters); err != nil {
		w.metrics.deadTopicErrors.Inc()
		w.log.Warn("dead letters not copied to their topic", zap.Int("letters", len(letters)), zap.Error(err))
	}
}

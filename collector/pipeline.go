package collector

import (
	"context"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"go.uber.org/zap"
)

const (
	inFlight = 2           // batches inserted concurrently
	sayEvery = time.Minute // an unreadable directory and a failing commit are logged again
)

// A pipeline stores chunks, then commits them at the source. It is used by
// one run of one source: a generation of the consumer group, or a spool.
type pipeline[M any] struct {
	rows   int           // in a batch at most
	bytes  int64         // memory of a batch at most
	wait   time.Duration // for a batch to fill at most
	writer *writer

	// commit commits these marks at the source. It is called for stored
	// batches in order, never after one that is not stored.
	commit func(marks []M) error

	metrics *metrics
	log     *zap.Logger
}

// A chunk is what a source read and decoded together. Its mark is the source's
// position once the chunk is stored.
type chunk[M any] struct {
	decoded
	mark M
}

// A batch is stored together.
type batch[M any] struct {
	decoded
	marks  []M
	began  time.Time
	stored chan bool // closed, or true, when all of it is stored
}

func newPipeline[M any](c *Collector, w *writer, commit func(marks []M) error) *pipeline[M] {
	return &pipeline[M]{c.config.BatchRows, c.config.BatchBytes, c.config.BatchWait, w, commit, c.metrics, c.log}
}

// run takes chunks until ctx ends. It drops those without a running insert,
// which were not acknowledged. It returns when the running attempts have
// ended.
func (p *pipeline[M]) run(ctx context.Context, in <-chan chunk[M]) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, inFlight)
	order := make(chan *batch[M], inFlight)
	wg.Go(func() { p.commitInOrder(order, slots) })
	defer wg.Wait()
	defer close(order)
	for rows := 0; ; {
		// Collect only while an insert can start: records wait in their
		// source.
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		b := p.collect(ctx, in, rows)
		if b == nil {
			return
		}
		rows = len(b.rows) + len(b.rows)/8 // the next batch will be about as long
		p.metrics.unacked.add(b.began)
		p.metrics.batchRows.Observe(float64(len(b.rows)))
		order <- b
		p.metrics.inFlight.Inc()
		wg.Go(func() {
			defer p.metrics.inFlight.Dec()
			ok := p.writer.write(ctx, &b.decoded)
			b.decoded = decoded{} // the previous batch may take long
			b.stored <- ok
		})
	}
}

// collect returns the next batch, nil when ctx has ended. The batch begins with
// room for some rows.
func (p *pipeline[M]) collect(ctx context.Context, in <-chan chunk[M], rows int) *batch[M] {
	b := &batch[M]{stored: make(chan bool, 1)}
	b.rows = make([]ingest.Row, 0, rows)
	var full <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-in:
			if b.began.IsZero() {
				b.began = time.Now()
				timer := time.NewTimer(p.wait)
				defer timer.Stop()
				full = timer.C
			}
			b.rows = append(b.rows, c.rows...)
			b.letters = append(b.letters, c.letters...)
			b.gaps = append(b.gaps, c.gaps...)
			b.bytes += c.bytes
			b.marks = append(b.marks, c.mark)
			if len(b.rows) >= p.rows || b.bytes >= p.bytes {
				return b
			}
		case <-full:
			return b
		}
	}
}

// commitInOrder commits each stored batch, up to the first that was not
// stored: a higher mark would acknowledge the lower ones too.
func (p *pipeline[M]) commitInOrder(order <-chan *batch[M], slots <-chan struct{}) {
	defer p.metrics.unacked.clear() // they are read again
	whole := true
	behind := 0 // batches since the last commit
	var told time.Time
	for b := range order {
		whole = <-b.stored && whole
		behind++
		outcome := batchAbandoned
		if whole {
			// A crash before this repeats the batch; duplicates collapse.
			if err := p.commit(b.marks); err != nil {
				outcome = batchNotCommitted
				p.metrics.commitErrors.Inc()
				if time.Since(told) >= sayEvery { // each batch may fail, for as long as a disk is read-only
					told = time.Now()
					p.log.Warn("commit failed; the batch is repeated and deduplicated", zap.Error(err))
				}
			} else {
				outcome = batchCommitted
				p.metrics.acked(b.began)
				p.metrics.unacked.drop(behind)
				behind = 0
			}
		}
		p.metrics.batches.WithLabelValues(outcome).Inc()
		<-slots
	}
}

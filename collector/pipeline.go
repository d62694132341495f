package collector

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"go.uber.org/zap"
)

const (
	inFlight   = 2 // batches inserted concurrently
	retryFirst = 100 * time.Millisecond
	retryLast  = 10 * time.Second
	// After a configuration error an administrator has to act, so retries are
	// rare.
	retryConfiguration = 10 * time.Second
)

// A chunk is the records that a source read and decoded together. Its mark is
// the source's position once the chunk is stored.
type chunk[M any] struct {
	rows    []ingest.Row
	letters []ingest.DeadLetter
	gaps    []ingest.Gap
	bytes   int64 // of memory
	mark    M
}

// add decodes m into the chunk.
func (c *chunk[M]) add(d *ingest.Decoder, m ingest.Message) {
	c.rows = append(c.rows, ingest.Row{})
	row := &c.rows[len(c.rows)-1]
	if letter := d.Decode(row, m); letter != nil {
		c.rows = c.rows[:len(c.rows)-1]
		c.letter(*letter)
		return
	}
	c.bytes += row.Size()
}

func (c *chunk[M]) letter(l ingest.DeadLetter) {
	c.letters = append(c.letters, l)
	c.bytes += int64(len(l.Raw)+len(l.Key)) + 256
}

func (c *chunk[M]) len() int { return len(c.rows) + len(c.letters) + len(c.gaps) }

// A batch is the rows of one insert.
type batch[M any] struct {
	chunk[M]
	marks  []M
	began  time.Time
	stored chan bool // closed, or true, when all of it is stored
}

// A pipeline stores chunks, then commits them at the source. It is used by
// one run of one source: a generation of the consumer group, or a spool.
type pipeline[M any] struct {
	*Collector
	// commit commits these marks at the source. It is called for stored
	// batches in order, never after one that is not stored.
	commit func(marks []M) error
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
		order <- b
		p.metrics.inFlight.Inc()
		wg.Go(func() {
			defer p.metrics.inFlight.Dec()
			ok := p.write(ctx, b)
			b.chunk = chunk[M]{} // the previous batch may take long
			b.stored <- ok
		})
	}
}

// collect returns the next batch, nil when ctx has ended. There is room for
// some rows from the beginning.
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
				timer := time.NewTimer(p.config.BatchWait)
				defer timer.Stop()
				full = timer.C
			}
			b.rows = append(b.rows, c.rows...)
			b.letters = append(b.letters, c.letters...)
			b.gaps = append(b.gaps, c.gaps...)
			b.bytes += c.bytes
			b.marks = append(b.marks, c.mark)
			if len(b.rows) >= p.config.BatchRows || b.bytes >= p.config.BatchBytes {
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
	whole := true
	for b := range order {
		whole = <-b.stored && whole
		if whole {
			// A crash before this repeats the batch; duplicates collapse.
			if err := p.commit(b.marks); err != nil {
				p.metrics.commitErrors.Inc()
				p.log.Warn("commit failed; the batch is repeated and deduplicated", zap.Error(err))
			} else {
				p.metrics.acked(b.began)
			}
		}
		<-slots
	}
}

// write retries until the batch is stored or ctx ends, and reports whether it
// is stored.
func (p *pipeline[M]) write(ctx context.Context, b *batch[M]) (stored bool) {
	at := time.Now()
	watched := p.config.Watch(at)
	defer func() {
		if !stored {
			b.rows = nil
		}
		watched(b.rows)
	}()
	letters := b.letters
	if len(b.rows) > 0 {
		poisoned, ok := p.writeRows(ctx, b.rows, at)
		if !ok {
			return false
		}
		letters = append(letters, poisoned...)
	}
	if len(letters) > 0 {
		p.tellTopic(ctx, letters)
		ok := p.insist(ctx, "dead letters", func(ctx context.Context) error { return p.config.Store.InsertDeadLetters(ctx, letters) })
		if !ok {
			return false
		}
		for _, l := range letters {
			p.metrics.deadLetters.WithLabelValues(l.Reason).Inc()
			p.log.Warn("dead letter", zap.String("reason", l.Reason), zap.String("topic", l.Topic),
				zap.Uint32("partition", l.Partition), zap.Uint64("offset", l.Offset))
		}
	}
	if len(b.gaps) > 0 {
		ok := p.insist(ctx, "gaps", func(ctx context.Context) error { return p.config.Store.InsertGaps(ctx, b.gaps) })
		if !ok {
			return false
		}
		p.metrics.gaps.Add(float64(len(b.gaps)))
	}
	p.metrics.stored(b.rows)
	return true
}

// writeRows stores rows, and returns refused ones as dead letters. The halves
// of a refused batch are two inserts with their own tokens; a half that is
// stored twice collapses.
func (p *pipeline[M]) writeRows(ctx context.Context, rows []ingest.Row, at time.Time) (poisoned []ingest.DeadLetter, ok bool) {
	var poison error
	ok = p.insist(ctx, "records", func(ctx context.Context) error {
		poison = nil
		err := p.insertRows(ctx, rows, at)
		if ingest.ClassOf(err) == ingest.Poison {
			// The table may have changed since its columns were looked up:
			// retry once before blaming the row.
			err = p.insertRows(ctx, rows, at)
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
	p.metrics.bisections.Inc()
	half := len(rows) / 2
	left, ok := p.writeRows(ctx, rows[:half], at)
	if !ok {
		return nil, false
	}
	right, ok := p.writeRows(ctx, rows[half:], at)
	return append(left, right...), ok
}

func (p *pipeline[M]) insertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	began := time.Now()
	err := p.config.Store.InsertRows(ctx, rows, at)
	p.metrics.insertSeconds.Observe(time.Since(began).Seconds())
	return err
}

// insist retries until success or until ctx ends, and reports success. A
// running attempt continues when ctx ends, because its outcome would be
// unknown; the store limits its time.
func (p *pipeline[M]) insist(ctx context.Context, what string, do func(context.Context) error) bool {
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		err := do(context.WithoutCancel(ctx))
		p.stored.tell(err)
		if err == nil {
			return true
		}
		class := ingest.ClassOf(err)
		p.metrics.insertErrors.WithLabelValues(class.String()).Inc()
		if class == ingest.Configuration {
			wait = retryConfiguration
			p.log.Error("store refused the write; collection paused", zap.String("what", what), zap.Error(err))
		} else {
			p.log.Warn("the store failed; records wait", zap.String("what", what), zap.Duration("retry_in", wait), zap.Error(err))
		}
		if sleep(ctx, wait/2+rand.N(wait/2)) != nil {
			return false
		}
	}
}

// tellTopic copies letters to the topic of dead letters. The table is
// authoritative, so a topic that cannot be written delays nothing.
func (p *pipeline[M]) tellTopic(ctx context.Context, letters []ingest.DeadLetter) {
	if p.deadTopic == nil {
		return
	}
	if err := p.deadTopic(context.WithoutCancel(ctx), letters); err != nil {
		p.metrics.deadTopicErrors.Inc()
		p.log.Warn("dead letters not copied to their topic", zap.Int("letters", len(letters)), zap.Error(err))
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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
	watch     func() (arrived time.Time, end func(stored []ingest.Row))
	visible   func(ctx context.Context, arrived time.Time) error // nil: nothing to do
	deadTopic func(context.Context, []ingest.DeadLetter) error   // nil: none
	decoder   ingest.Decoder
	clock     func(ctx context.Context) (time.Time, error) // nil: see Config.Clock
	health    *health
	metrics   *metrics
	log       *zap.Logger

	mu       sync.Mutex // guards the rest
	good     accepted
	untried  accepted // the smallest row of batches that are inserted in halves, until one is good
	tooLarge int64    // size of the smallest row for which alone the store lacked memory; 0: none
}

// An accepted is a row that the store took, with its arrival time.
type accepted struct {
	rows []ingest.Row // one; none: not yet
	at   time.Time
}

func newWriter(c *Collector, deadTopic func(context.Context, []ingest.DeadLetter) error) *writer {
	return &writer{store: c.config.Store, watch: c.config.Watch, visible: c.config.Visible, deadTopic: deadTopic, decoder: c.decoder, clock: c.config.Clock, health: &c.storing, metrics: c.metrics, log: c.log}
}

// write retries until the batch is stored or ctx ends, and reports whether it
// is stored.
func (w *writer) write(ctx context.Context, b *decoded) (stored bool) {
	at, watched := w.watch()
	defer func() {
		switch {
		case !stored: // or not known to be
			b.rows = nil
		case b.rows == nil:
			b.rows = []ingest.Row{}
		}
		watched(b.rows)
	}()
	if !w.judgeTimes(ctx, b) {
		return false
	}
	letters := b.letters
	if len(b.rows) > 0 {
		poisoned, ok := w.writeRows(ctx, b.rows, at, true)
		if ok && w.visible != nil {
			ok = w.retry(ctx, "arrivals", func(ctx context.Context) error { return w.visible(ctx, at) })
		}
		if !ok {
			return false
		}
		letters = append(letters, poisoned...)
	}
	if len(letters) > 0 {
		w.copyToDeadTopic(ctx, letters)
		if !w.writeLetters(ctx, letters) {
			return false
		}
		w.tellLetters(letters)
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

// judgeTimes decodes again, by the store's clock, what was refused for its time if this
// clock differs from that one. Each record that arrives while it is days behind would be
// a dead letter, which no alert rule sees.
func (w *writer) judgeTimes(ctx context.Context, b *decoded) (ok bool) {
	if w.clock == nil || !slices.ContainsFunc(b.letters, ingest.OfTime) {
		return true
	}
	var now time.Time
	ok = w.retry(ctx, "dead letters", func(ctx context.Context) (err error) {
		now, err = w.clock(ctx)
		return err
	})
	behind := -time.Since(now)
	if !ok || behind.Abs() < time.Minute {
		return ok
	}
	rows, left := w.decoder.Again(b.letters, now)
	b.rows, b.letters = append(b.rows, rows...), left
	w.log.Warn("the clocks of this machine and of ClickHouse differ: correct them", zap.Duration("behind", behind), zap.Int("records_taken_by_the_other", len(rows)))
	return true
}

// tellLetters counts and logs dead letters of a batch: a line for each would let one
// producer fill the log.
func (w *writer) tellLetters(letters []ingest.DeadLetter) {
	type origin struct {
		reason, topic string
		partition     uint32
	}
	type offsets struct {
		count       int
		first, last uint64
	}
	var order []origin
	found := map[origin]*offsets{}
	for _, l := range letters {
		w.metrics.deadLetters.WithLabelValues(l.Reason).Inc()
		at := origin{l.Reason, l.Topic, l.Partition}
		o := found[at]
		if o == nil {
			order, o = append(order, at), &offsets{first: l.Offset}
			found[at] = o
		}
		o.count++
		o.first, o.last = min(o.first, l.Offset), max(o.last, l.Offset)
	}
	for _, at := range order {
		o := found[at]
		w.log.Warn("dead letters", zap.String("reason", at.reason), zap.String("topic", at.topic), zap.Uint32("partition", at.partition),
			zap.Int("count", o.count), zap.Uint64("first_offset", o.first), zap.Uint64("last_offset", o.last))
	}
}

// writeRows stores rows, and returns refused ones as dead letters. The halves
// of a refused batch are two inserts with their own tokens; a half that is
// stored twice collapses. whole: rows are not such a half. A batch for which the
// store lacks memory, or time, more than once is halved too: a producer can make one that
// would stop the collector permanently, as of records of thousands of days, of which each
// is a file of several tables. So could a single row: one for which the store
// lacks memory alone, while it takes others, becomes a dead letter.
func (w *writer) writeRows(ctx context.Context, rows []ingest.Row, at time.Time, whole bool) (poisoned []ingest.DeadLetter, ok bool) {
	var poison, oversize, slow error
	var alone lack
	ok = w.retry(ctx, "records", func(attempt context.Context) error {
		poison = nil
		err := w.insertRows(attempt, rows, at)
		if ingest.ClassOf(err) == ingest.Oversize && len(rows) > 1 {
			if oversize != nil {
				return nil
			}
			oversize = err // others may have needed the memory: try once more
			return err
		}
		oversize = nil
		if isTimeout(err) && len(rows) > 1 {
			again := slow != nil || !whole // a half of what was too slow may be so too: that costs others time
			slow = err
			if again {
				return nil
			}
			return err
		}
		slow = nil
		if ingest.ClassOf(err) == ingest.Oversize && w.isTooLarge(ctx, &rows[0], &alone) {
			poison = fmt.Errorf("the store lacks memory for this record alone, and takes others: %w", err)
			return nil
		}
		if ingest.ClassOf(err) == ingest.Poison {
			// The table may have changed since its columns were looked up:
			// retry once before blaming the row.
			err = w.insertRows(attempt, rows, at)
		}
		if ingest.ClassOf(err) != ingest.Poison {
			return err
		}
		if wrong := w.blameStore(ctx, rows, at, whole); wrong != nil {
			if ingest.ClassOf(wrong) == ingest.Configuration {
				w.metrics.tableRefusals.Inc()
			}
			return wrong
		}
		poison = err
		return nil
	})
	switch {
	case !ok || poison == nil && oversize == nil && slow == nil:
		return nil, ok
	case slow != nil && ctx.Err() != nil:
		return nil, false // a store that does not answer takes no part either
	case slow != nil:
		w.log.Warn("store lacks time for a batch; it is inserted in halves", zap.Int("records", len(rows)), zap.Error(slow))
		const part = "storing records"
		w.health.tell(&slow, part, slow) // each attempt takes long, and only its end tells
		defer w.health.tell(&slow, part, nil)
		byWeek(rows)
	case oversize != nil:
		w.log.Warn("store lacks memory for a batch; it is inserted in halves", zap.Int("records", len(rows)), zap.Error(oversize))
		w.keepSmallest(rows, at)
	case len(rows) == 1:
		return []ingest.DeadLetter{ingest.Refused(&rows[0], poison, at)}, true
	case ctx.Err() != nil:
		return nil, false // a search can take minutes; the batch is repeated
	}
	w.metrics.bisections.Inc()
	half := len(rows) / 2
	left, ok := w.writeRows(ctx, rows[:half], at, false)
	if !ok {
		return nil, false
	}
	right, ok := w.writeRows(ctx, rows[half:], at, false)
	return append(left, right...), ok
}

// isTimeout reports whether the store did not answer in time.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// byWeek orders rows by the week of their time, by which and by month tables are
// partitioned, so that a half of them is of about half as many partitions. Rows of one
// week keep their order.
func byWeek(rows []ingest.Row) {
	const week = 7 * 24 * 60 * 60
	order := make([]int, len(rows)) // of the row that comes to a place
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[a].Record.TS.Unix()/week, rows[b].Record.TS.Unix()/week) })
	for i := range order { // in place: rows are large
		first, place := rows[i], i
		for order[place] != i {
			from := order[place]
			rows[place], order[place] = rows[from], place
			place = from
		}
		rows[place], order[place] = first, place
	}
}

// writeLetters stores dead letters. As in writeRows, those for which the store lacks
// memory more than once are halved: a letter is as long as its message.
func (w *writer) writeLetters(ctx context.Context, letters []ingest.DeadLetter) (ok bool) {
	var oversize error
	ok = w.retry(ctx, "dead letters", func(ctx context.Context) error {
		err := w.store.InsertDeadLetters(ctx, letters)
		switch {
		case ingest.ClassOf(err) != ingest.Oversize || len(letters) == 1:
			oversize = nil
		case oversize != nil:
			return nil
		default:
			oversize = err
		}
		return err
	})
	if !ok || oversize == nil {
		return ok
	}
	w.log.Warn("store lacks memory for dead letters; they are inserted in halves", zap.Int("letters", len(letters)), zap.Error(oversize))
	half := len(letters) / 2
	return w.writeLetters(ctx, letters[:half]) && w.writeLetters(ctx, letters[half:])
}

func (w *writer) insertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	began := time.Now()
	err := w.store.InsertRows(ctx, rows, at)
	w.metrics.insertSeconds.Observe(time.Since(began).Seconds())
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.good, w.untried = accepted{[]ingest.Row{rows[0]}, at}, accepted{}
		if w.tooLarge > 0 && slices.ContainsFunc(rows, func(r ingest.Row) bool { return r.Size() >= w.tooLarge }) {
			w.tooLarge = 0
		}
	}
	return err
}

// A lack is the attempts to store a row for which the store lacks memory.
type lack struct {
	attempts int
	since    time.Time
}

const (
	patience    = time.Minute // with a row for which the store lacks memory: others may need it now
	fewAttempts = 2           // with one half as large as another for which it lacked memory all the time, or larger
)

// isTooLarge counts an attempt to store r, for which the store lacked memory, and
// reports whether it was the last one: that goes on, and the store takes a row that it
// took before, or the smallest of the batches that were halved. Of several such rows,
// which one producer can send, only the first one is tried for long, because the others
// of its partition wait.
func (w *writer) isTooLarge(ctx context.Context, r *ingest.Row, l *lack) bool {
	if l.attempts++; l.attempts == 1 {
		l.since = time.Now()
	}
	w.mu.Lock()
	good, again := w.good, w.tooLarge > 0 && r.Size() >= w.tooLarge/2
	if len(good.rows) == 0 {
		good = w.untried
	}
	w.mu.Unlock()
	if l.attempts < fewAttempts || !again && time.Since(l.since) < patience {
		return false
	}
	if len(good.rows) == 0 || w.insertRows(context.WithoutCancel(ctx), good.rows, good.at) != nil {
		return false // it may lack memory for any
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if size := r.Size(); w.tooLarge == 0 || size < w.tooLarge {
		w.tooLarge = size
	}
	return true
}

// keepSmallest keeps the smallest of rows for isTooLarge, which otherwise knows of no row
// that the store takes. It is stored again with its half, and collapses.
func (w *writer) keepSmallest(rows []ingest.Row, at time.Time) {
	i := 0
	for j := range rows {
		if rows[j].Size() < rows[i].Size() {
			i = j
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.good.rows) == 0 && (len(w.untried.rows) == 0 || rows[i].Size() < w.untried.rows[0].Size()) {
		w.untried = accepted{[]ingest.Row{rows[i]}, at}
	}
}

// samples is how many rows of a refused batch are tried one by one.
const samples = 16

// blameStore returns an error if the store is at fault for refusing rows, and
// not their contents. Then none of them may become a dead letter: a table that
// was altered to refuse every record would empty the source into the dead
// letters, one insert for each record. The store is at fault if
//
//   - it now refuses a row that it took before, which is tried for each refused
//     batch and again before each dead letter, or
//   - it refuses most of a batch. Rows at random are tried, because one
//     producer's bad rows may be adjacent. Small batches are not tried, because
//     a single bad row could stop the collector permanently.
func (w *writer) blameStore(ctx context.Context, rows []ingest.Row, at time.Time, whole bool) error {
	if !whole && len(rows) > 1 {
		return nil
	}
	w.mu.Lock()
	good := w.good
	w.mu.Unlock()
	if len(good.rows) > 0 {
		// It is the same row, so it collapses with itself.
		switch err := w.insertRows(context.WithoutCancel(ctx), good.rows, good.at); {
		case ingest.ClassOf(err) == ingest.Poison:
			return wrongStore("it now refuses a record that it has taken before", err)
		case err != nil:
			return err
		}
	}
	if len(rows) < samples {
		return nil
	}
	refused := 0
	var last error
	for _, i := range rand.Perm(len(rows))[:samples] {
		if ctx.Err() != nil {
			return ctx.Err() // a stop does not wait for the others
		}
		err := w.insertRows(context.WithoutCancel(ctx), rows[i:i+1], at)
		switch {
		case ingest.ClassOf(err) == ingest.Poison:
			refused++
			last = err
		case err != nil:
			return err
		}
	}
	if refused > samples/2 {
		return wrongStore("it refuses most of a batch", last)
	}
	return nil
}

// wrongStore is the error of a store that refuses records for its own reasons.
func wrongStore(why string, err error) error {
	return &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("the table does not fit the records, %s; nothing becomes a dead letter: %w", why, err)}
}

// retry retries until success or until ctx ends, and reports success. A
// running attempt continues when ctx ends, because its outcome would be
// unknown; the store limits its time.
func (w *writer) retry(ctx context.Context, what string, do func(context.Context) error) bool {
	key := new(int) // of this call: another batch that is stored does not mend this one
	part := "storing " + what
	defer w.health.tell(key, part, nil)
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		err := do(context.WithoutCancel(ctx))
		w.health.tell(key, part, err)
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

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// A partitionOffset is the position of a partition: the next offset.
type partitionOffset struct {
	brokers.Partition
	next int64
	id   brokers.TopicID // of the topic that next is of

	stored string       // the last record before it, see ingest.StoredText; "": not known
	filled []ingest.Gap // what came later of gaps in the store, since the mark before
}

// A partition is read by one goroutine, which owns it.
type partition struct {
	source
	client *brokers.Client
	partitionOffset
	fetchBytes int64
	ids        *brokers.IDs
	old        bool         // the group's offset is of another topic that had its name
	hadOffset  bool         // the group had an offset of it at the start
	forgotten  int64        // the offset that it had when this process last committed one, and has no more; 0: none
	jump       string       // the reason of the gap before the group's offset; "": none
	unfilled   []ingest.Gap // gaps in the store whose records are still in the log
	reached    int64        // offset behind the last record that the store has, before the one that was set or of all if the group has none
	passed     int64        // next of the last chunk that the pipeline has
	rows       int          // of the last chunk
	key, value []byte       // of the current message
	last       int64        // offset of the current message; -1: none was read

	doubtful bool      // the log may be another one now, see isAnother
	answered time.Time // the last answer came; zero: none

	throttled time.Time // when it was logged that the brokers throttle; zero: never

	position atomic.Int64 // next of the last answer, for others to read

	// turn is held from decoding a chunk until the pipeline has it: rows need
	// several times the memory of their encoded form.
	turn *sync.Mutex
}

// run reads until ctx ends, and retries after every failure.
func (p *partition) run(ctx context.Context, out chan<- chunk[partitionOffset]) {
	defer p.works() // another member may have it now
	for ctx.Err() == nil {
		if err := p.read(ctx, out); err != nil && ctx.Err() == nil {
			p.fail(err)
			p.log.Warn("read failed", zap.String("topic", p.Topic), zap.Int("partition", p.Number), zap.Int64("offset", p.next), reasonField(err), zap.Error(err))
			wait.For(ctx, sourceRetry)
		}
	}
}

// fail reports an error of reading.
func (p *partition) fail(err error) {
	p.metrics.sourceErrors.Inc()
	p.metrics.partitionErrors.WithLabelValues(p.labels()...).Inc()
	part := fmt.Sprintf("reading topic %q, partition %d", p.Topic, p.Number)
	p.health.tell(p.Partition, part, fmt.Errorf("%s: %w", part, err))
}

// works reports success of reading.
func (p *partition) works() { p.health.tell(p.Partition, "", nil) }

// lags notes how many records are not read yet.
func (p *partition) lags(records int64) {
	records = max(records, 0)
	p.metrics.lag.WithLabelValues(p.labels()...).Set(float64(records))
	p.metrics.waiting.set(p.Partition, records)
}

// labels are those of the partition's metrics.
func (p *partition) labels() []string { return []string{p.Topic, strconv.Itoa(p.Number)} }

// read gives the next records to the pipeline, also those read before an
// error.
func (p *partition) read(ctx context.Context, out chan<- chunk[partitionOffset]) error {
	if p.next < 0 {
		c, err := p.begin(ctx)
		p.pass(ctx, c, out)
		if err != nil {
			return err
		}
	}
	if p.jump != "" {
		p.pass(ctx, p.takeOffset(), out)
	}
	if p.old || brokers.IsOther(p.id, p.ids.Is(p.Topic)) {
		c, err := p.restart(ctx)
		p.pass(ctx, c, out)
		if err != nil {
			return err
		}
	}
	if p.doubtful || !p.answered.IsZero() && time.Since(p.answered) > doubtAfter {
		c, err := p.leaveOld(ctx)
		p.pass(ctx, c, out)
		if err != nil {
			return err
		}
	}
	answer, err := p.fetchAt(ctx, p.next, p.fetchBytes)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		c, err := p.reposition(ctx)
		p.pass(ctx, c, out)
		return err
	}
	if err != nil {
		p.doubtful = true
		return err
	}
	p.answered = time.Now()
	p.turn.Lock()
	defer p.turn.Unlock()
	c, err := p.decode(ctx, answer)
	if err == nil {
		p.works()
	}
	p.pass(ctx, c, out)
	return err
}

// pass gives c to the pipeline. A chunk without records moves the committed
// offset past markers and aborted records: retention may remove these before
// the next start, and uncommitted offsets would then look like a loss.
func (p *partition) pass(ctx context.Context, c chunk[partitionOffset], out chan<- chunk[partitionOffset]) {
	if c.len() == 0 && p.next == p.passed {
		return
	}
	c.mark = p.partitionOffset
	select {
	case out <- c:
		p.passed, p.filled = p.next, nil
	case <-ctx.Done():
	}
}

// begin goes to the first offset of a partition of which the group has none, perhaps
// because the brokers forgot it: then the store tells how far it was. It is committed
// without a record too: what retention removes before the next start was not read.
func (p *partition) begin(ctx context.Context) (c chunk[partitionOffset], err error) {
	first, end, err := p.bounds(ctx)
	if err != nil {
		return c, err
	}
	switch {
	case p.forgotten > 0:
		p.next = p.forgotten
		p.gap(&c, p.next, ingest.LogIsAnother)
	case p.reached > end:
		p.next = p.reached
		p.gap(&c, p.next, ingest.LogIsAnother)
	case p.reached > 0 && p.reached < first:
		p.next = p.reached
		p.gap(&c, first-1, "removed")
	}
	p.next, p.passed = first, -1
	return c, nil
}

// takeOffset goes on at an offset before which the store may lack records. These are a
// gap. The offset is committed in any case, so that the next generation need not ask again.
func (p *partition) takeOffset() (c chunk[partitionOffset]) {
	if to := p.next; p.reached < to {
		p.next = p.reached
		p.gap(&c, to-1, p.jump)
		p.next = to
	}
	p.jump, p.passed = "", -1
	return c
}

// fetchAt fetches from an offset on. Over its quota it waits as long as the brokers
// say.
func (p *partition) fetchAt(ctx context.Context, offset, bytes int64) (brokers.Answer, error) {
	for {
		answer, throttled, err := p.client.Fetch(ctx, p.Partition, offset, bytes)
		if throttled == 0 {
			return answer, err
		}
		if now := time.Now(); now.Sub(p.throttled) > sayThrottled {
			p.throttled = now
			p.log.Warn("the brokers throttle this client: raise its quota, consumer_byte_rate", zap.String("topic", p.Topic), zap.Int("partition", p.Number), zap.Duration("for", throttled))
		}
		if err := wait.For(ctx, throttled); err != nil {
			return brokers.Answer{}, err
		}
	}
}

// decode decodes the fetched records. The chunk is valid even with an error.
func (p *partition) decode(ctx context.Context, answer brokers.Answer) (c chunk[partitionOffset], err error) {
	from := p.next
	c.rows = make([]ingest.Row, 0, p.rows)
	for _, b := range answer.Batches {
		if err = p.takeBatch(&c, b); err != nil {
			break
		}
	}
	switch {
	case p.next > from:
		err = nil // what comes after it is fetched again
		p.fetchBytes = fetchNext(p.fetchBytes, c.bytes)
	case err != nil:
		p.fetchBytes = min(2*p.fetchBytes, fetchMaxBytes)
		err = fmt.Errorf("reading a record: %w", err)
	case len(answer.Batches) > 0:
		err = p.passOver(ctx, &c, answer.Batches[len(answer.Batches)-1], answer.Stable)
	case answer.Stable > from:
		// The first batch of an answer is whole, however long it is.
		err = fmt.Errorf("the broker sends nothing from offset %d on, and has records up to %d", from, answer.Stable)
	}
	if p.rows = len(c.rows); p.rows > 0 {
		p.stored = ingest.StoredText(&c.rows[p.rows-1])
	}
	p.fill(from)
	p.position.Store(p.next)
	p.lags(answer.End - p.next)
	return c, err
}

// fill notes which gaps in the store lack less since an offset: the group's was set back.
func (p *partition) fill(from int64) {
	for i := range p.unfilled {
		g := &p.unfilled[i]
		if begin := int64(max(g.From, g.ReadTo)); from <= begin && begin < p.next {
			g.ReadTo = min(uint64(p.next), g.To+1)
			p.filled = append(p.filled, *g)
		}
	}
	p.unfilled = slices.DeleteFunc(p.unfilled, func(g ingest.Gap) bool { return g.ReadTo > g.To })
}

// fetchNext returns how much to fetch after an answer to a fetch of some bytes that
// needed memory. Nothing is lost by less: a broker sends at least one batch.
func fetchNext(bytes, memory int64) int64 {
	switch {
	case memory > answerBytes:
		bytes = bytes * answerBytes / memory
	case memory < answerBytes/4:
		bytes *= 2
	}
	return min(max(bytes, fetchMinBytes), fetchBytes)
}

// takeBatch decodes a batch into c. Offsets before it that were not in another
// batch are a gap: the log has none for them, because compaction removed them.
func (p *partition) takeBatch(c *chunk[partitionOffset], b brokers.Batch) error {
	if b.Base > p.next {
		p.gap(c, b.Base-1, "skipped")
		p.next = b.Base
	}
	for {
		rec, err := b.Records.ReadRecord()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case b.Hidden:
			p.next = max(p.next, rec.Offset+1)
			err = closeRecord(rec)
		default:
			err = p.take(c, rec)
		}
		if err != nil {
			return err
		}
	}
}

// passOver moves past a batch without a record to read, which compaction may
// leave at the end of the log.
func (p *partition) passOver(ctx context.Context, c *chunk[partitionOffset], b brokers.Batch, stable int64) error {
	end, err := p.endOf(ctx, b, stable)
	if err != nil {
		return err
	}
	if !b.Hidden {
		p.gap(c, end-1, "skipped")
	}
	p.next = end
	return nil
}

// endOf returns the offset after a batch that covers p.next, by bisection: the
// broker sends the batch for each offset that it covers. Its last offset is in
// it, but kafka-go drops that.
func (p *partition) endOf(ctx context.Context, b brokers.Batch, stable int64) (int64, error) {
	in, after := p.next, stable
	if in >= after {
		return 0, fmt.Errorf("the batch at offset %d has no record from %d on, and ends beyond the last stable offset", b.Base, p.next)
	}
	for after-in > 1 {
		middle := in + (after-in)/2
		answer, err := p.fetchAt(ctx, middle, 1)
		if err != nil {
			return 0, err
		}
		if found := answer.Batches; len(found) > 0 && found[0].Base == b.Base {
			in = middle
		} else {
			after = middle
		}
	}
	return after, nil
}

// take decodes one record into c. A compressed batch is sent whole, so
// records before the requested offset were read before.
func (p *partition) take(c *chunk[partitionOffset], rec *kafka.Record) error {
	if rec.Offset < p.next {
		return closeRecord(rec)
	}
	p.last = -1
	var errKey, errValue error
	p.key, errKey = brokers.ReadAll(p.key[:0], rec.Key)
	p.value, errValue = brokers.ReadAll(p.value[:0], rec.Value)
	if err := errors.Join(errKey, errValue); err != nil {
		return err
	}
	if rec.Offset > p.next {
		p.gap(c, rec.Offset-1, "skipped")
	}
	c.add(p.decoder, ingest.Message{
		Source: ingest.Source{Topic: p.Topic, Partition: uint32(p.Number), Offset: uint64(rec.Offset)},
		Time:   rec.Time, Key: p.key, Value: p.value,
	})
	p.last, p.next = rec.Offset, rec.Offset+1
	return nil
}

// closeRecord gives a record's memory back to the client.
func closeRecord(rec *kafka.Record) error {
	var errs []error
	for _, b := range []kafka.Bytes{rec.Key, rec.Value} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}

// gap records that the offsets from p.next to last were never received.
func (p *partition) gap(c *chunk[partitionOffset], last int64, reason string) {
	c.gaps = append(c.gaps, ingest.Gap{
		Topic: p.Topic, Partition: uint32(p.Number), From: uint64(p.next), To: uint64(last), Reason: reason, Seen: time.Now(), TopicID: uuid.UUID(p.id),
	})
	p.log.Error("records are missing", zap.String("topic", p.Topic), zap.Int("partition", p.Number),
		zap.Int64("from", p.next), zap.Int64("to", last), zap.String("reason", reason))
}

// leaveOld continues at the start of the log if it is another one, or a shorter one: that
// may be longer than the old one at the next fetch.
func (p *partition) leaveOld(ctx context.Context) (c chunk[partitionOffset], err error) {
	p.doubtful = true
	from := p.next
	c, err = p.reposition(ctx)
	if err != nil || p.next != from {
		p.doubtful = err != nil
		return c, err
	}
	another, err := p.isAnother(ctx)
	if err != nil {
		return c, fmt.Errorf("comparing the log with what was read of it: %w", err)
	}
	if another {
		if err := p.lookID(ctx); err != nil {
			return c, err
		}
		c, err = p.restart(ctx)
	}
	if err == nil {
		p.doubtful, p.answered = false, time.Now()
	}
	return c, err
}

// restart continues at the start of a topic that was made again.
func (p *partition) restart(ctx context.Context) (c chunk[partitionOffset], err error) {
	first, _, err := p.bounds(ctx)
	if err != nil {
		return c, err
	}
	p.gap(&c, p.next, ingest.LogIsAnother)
	p.next, p.last, p.unfilled = first, -1, nil
	p.id, p.old = p.ids.Is(p.Topic), false
	return c, nil
}

// lookID asks for the id of the topic, which may have been made again: readers of its
// other partitions need not look.
func (p *partition) lookID(ctx context.Context) error {
	ids, err := p.client.TopicIDs(ctx, []string{p.Topic})
	if err == nil {
		p.ids.Set(p.Topic, ids[p.Topic])
	}
	return err
}

// isAnother reports whether the topic was deleted and made again, or lost records and got
// others: then the offsets up to p.next are other records, not read yet. The log tells it
// by the record that was read last; before the first one by the one that was stored last,
// else by the group's offset, which the brokers delete with the topic. Brokers before
// Kafka 2.8 have no ids of topics, and of others they are looked at now and then.
func (p *partition) isAnother(ctx context.Context) (bool, error) {
	stored, known := ingest.ParseStored(p.stored)
	at := p.last
	switch {
	case p.next <= 0 || at < 0 && !p.hadOffset:
		return false, nil
	case at < 0 && known:
		at = int64(stored.Offset)
	}
	if at >= 0 {
		answer, err := p.fetchAt(ctx, at, 1)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			return false, nil // retention removed it
		}
		if err != nil {
			return false, err
		}
		key, value, found, err := answer.Record(at)
		switch {
		case err != nil:
			return false, err
		case found && p.last >= 0:
			return !bytes.Equal(key, p.key) || !bytes.Equal(value, p.value), nil
		case found:
			r, err := audit.Parse(value)
			return err != nil || r.SessionID != stored.Session || r.Seq != stored.Seq || !r.TS.Equal(stored.TS), nil
		case p.last >= 0:
			return false, nil // compaction removed it
		}
	}
	committed, err := p.client.Committed(ctx, p.Partition)
	now, ok := committed[p.Partition]
	return ok && now.Next < 0, err
}

// reposition continues at the start of the log when the offset to read is not
// in it: retention removed it, or the topic was recreated or truncated.
func (p *partition) reposition(ctx context.Context) (c chunk[partitionOffset], err error) {
	first, end, err := p.bounds(ctx)
	switch {
	case err != nil:
		return c, err
	case p.next < first:
		p.gap(&c, first-1, "removed")
	case p.next > end:
		if err := p.lookID(ctx); err != nil {
			return c, err
		}
		p.id = p.ids.Is(p.Topic)
		p.unfilled = nil // all lower offsets may be other records now
		c.gaps = append(c.gaps, ingest.Gap{Topic: p.Topic, Partition: uint32(p.Number), From: uint64(end), To: uint64(p.next - 1), Reason: ingest.LogIsShorter, Seen: time.Now(), TopicID: uuid.UUID(p.id)})
		p.log.Error("partition truncated; rereading from its start", zap.String("topic", p.Topic), zap.Int("partition", p.Number),
			zap.Int64("end", end), zap.Int64("read", p.next))
	default:
		return c, nil // the offset exists again
	}
	p.next = first
	return c, nil
}

// bounds returns the first offset of the partition and the one after the last.
func (p *partition) bounds(ctx context.Context) (first, end int64, err error) {
	known, err := p.client.Bounds(ctx, p.Partition)
	if err != nil {
		return 0, 0, err
	}
	if log, ok := known[p.Partition]; ok {
		return log.First, log.End, log.Err
	}
	return 0, 0, kafka.UnknownTopicOrPartition
}

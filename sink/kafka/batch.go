package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"auditproxy/sink"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
)

const (
	requestBytes = 1 << 20     // after which a request takes no further partition
	maxProbes    = 16          // writes that try partitions which failed
	probeAgain   = time.Second // after another session tries the partition
	lookAgain    = time.Minute // some partitions may have been added
	abandoned    = time.Minute // a partition that failed, and that no session tries
)

// unknown is the number of the lane of records whose partition is not known
// yet.
const unknown = -1

// A BatcherConfig configures a Batcher.
type BatcherConfig struct {
	// AtOnce is the number of writes made at the same time. When all of them
	// wait, no more records can come, and what is there is sent at once.
	// Required.
	AtOnce int
	Linger time.Duration // how long a record may wait for others
	Look   time.Duration // after that the partitions are looked up again; 0: a minute
}

var _ sink.Sink = (*Batcher)(nil)

// A Batcher is a sink.Sink that fills requests across sessions: a request takes
// the waiting records of all partitions of one leader. A partition has one batch
// on its way at a time, so that each session stays in order.
//
// It does not retry. When a batch of a partition fails, its writes end with a
// sink.StalledError, and until it works again the partition takes one write at a
// time, in a request of its own: an outage of some partitions holds up nothing
// else, and keeps nothing in memory.
type Batcher struct {
	p       *Producer
	config  BatcherConfig
	in      chan *write
	results chan result
	over    chan struct{} // closed when Run has ended

	// Owned by Run.
	layout    layout
	asked     time.Time // the leaders were looked up last
	stale     bool      // a partition failed since then
	looking   bool      // they are being looked up
	lanes     map[int]*lane
	waiting   int // writes that have not ended
	requests  sync.WaitGroup
	unsettled int // requests whose result is to come
}

// A result is that of a request, or of looking up the leaders.
type result struct {
	sent    map[int]int // records by partition; nil: leaders were looked up
	errs    map[int]error
	err     error // of the request as a whole
	leaders []string
}

// NewBatcher returns a batcher that writes with p.
func NewBatcher(p *Producer, c BatcherConfig) *Batcher {
	if c.Look == 0 {
		c.Look = lookAgain
	}
	return &Batcher{
		p: p, config: c,
		in: make(chan *write), results: make(chan result), over: make(chan struct{}),
		lanes: map[int]*lane{},
	}
}

// Write implements sink.Sink while Run runs. It ends with Run's context.
func (b *Batcher) Write(ctx context.Context, session string, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	w := &write{session: session, key: []byte(session), lines: lines, since: time.Now(), done: make(chan error, 1)}
	select {
	case b.in <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.over:
		return errOver
	}
	return <-w.done // not ctx: a request may be reading the lines
}

var errOver = errors.New("writing to Kafka has ended")

// Run sends what is written until ctx ends. It is called once.
func (b *Batcher) Run(ctx context.Context) {
	defer close(b.over)
	defer b.requests.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case w := <-b.in:
			b.take(w)
		case r := <-b.results:
			b.receive(ctx, r)
		case <-timer.C:
		case <-ctx.Done():
			b.end(ctx)
			return
		}
		if ctx.Err() == nil {
			timer.Reset(b.send(ctx))
		}
	}
}

// end waits for the requests on their way, and ends all writes.
func (b *Batcher) end(ctx context.Context) {
	for b.unsettled > 0 {
		b.receive(ctx, <-b.results)
	}
	for _, l := range b.lanes {
		b.stop(l, ctx.Err())
	}
}

// take queues a write, unless its partition is stalled.
func (b *Batcher) take(w *write) {
	l := b.lane(w.session)
	if now := time.Now(); l.failures > 0 {
		again := now.Add(probeAgain)
		if l.retry.After(now) {
			again = l.retry
		}
		if l.retry.After(now) || len(l.queue) > 0 || b.probes() >= maxProbes {
			w.done <- &sink.StalledError{Until: again}
			return
		}
	}
	b.waiting++
	l.add(w)
}

// lane returns the lane of a session.
func (b *Batcher) lane(session string) *lane {
	partition := unknown
	if b.layout.leaders != nil {
		partition = b.layout.partition(session)
	}
	l := b.lanes[partition]
	if l == nil {
		l = newLane(partition)
		b.lanes[partition] = l
	}
	return l
}

// probes counts the writes that try a partition which failed.
func (b *Batcher) probes() (n int) {
	for _, l := range b.lanes {
		if l.failures > 0 {
			n += len(l.queue)
		}
	}
	return n
}

// send sends what is due, and returns the time until it must be called again.
func (b *Batcher) send(ctx context.Context) time.Duration {
	now, next := time.Now(), time.Hour
	full := b.waiting >= b.config.AtOnce
	due := map[string][]*lane{} // leaders that have a batch that is due
	free := map[string][]*lane{}
	for _, partition := range slices.Sorted(maps.Keys(b.lanes)) {
		l := b.lanes[partition]
		if l.failures > 0 && len(l.queue) == 0 {
			// Its sessions are in other partitions since the topic was made again, or
			// retention removed them. It would count as stalled for ever.
			if left := l.retry.Add(abandoned).Sub(now); left > 0 {
				next = min(next, left)
			} else if delete(b.lanes, partition); !b.failing() {
				b.p.works()
			}
			continue
		}
		if !l.idle() {
			continue
		}
		if b.layout.leaders != nil && now.Sub(b.asked) > b.config.Look {
			b.look(ctx)
		}
		if partition == unknown || l.failures > 0 && b.stale {
			b.look(ctx)
			continue
		}
		leader := ""
		if partition < len(b.layout.leaders) {
			leader = b.layout.leaders[partition]
		}
		switch left := l.due(b.config.Linger).Sub(now); {
		case leader == "":
			b.fail(l, leaderNotAvailable)
		case l.failures > 0:
			// Its answer may take as long as a request may: no other waits for it.
			b.request(ctx, leader, []*lane{l})
		case left <= 0 || full:
			due[leader] = append(due[leader], l)
		default:
			next = min(next, left)
			free[leader] = append(free[leader], l)
		}
	}
	for leader, lanes := range due {
		b.request(ctx, leader, append(lanes, free[leader]...))
	}
	return next
}

// request sends the next batches of lanes to their leader.
func (b *Batcher) request(ctx context.Context, leader string, lanes []*lane) {
	for len(lanes) > 0 {
		var batches []produce.RequestPartition
		sent, size, now := map[int]int{}, 0, time.Now()
		for len(lanes) > 0 && size < requestBytes {
			l := lanes[0]
			lanes = lanes[1:]
			list, bytes := l.batch()
			records := make([]protocol.Record, len(list))
			for i, x := range list {
				records[i] = b.p.record(now, x.key, x.text)
			}
			batches = append(batches, recordsFor(l.partition, records))
			l.inFlight = len(list)
			sent[l.partition] = len(list)
			size += bytes
		}
		b.begin(func() result {
			ctx, cancel := context.WithTimeout(ctx, attempt)
			defer cancel()
			errs, err := b.p.request(ctx, leader, batches)
			return result{sent: sent, errs: errs, err: err}
		}, func() { b.p.look(ctx) })
	}
}

// look looks up the leaders, once at a time.
func (b *Batcher) look(ctx context.Context) {
	if b.looking {
		return
	}
	b.looking, b.asked = true, time.Now()
	b.begin(func() result {
		ctx, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		t, err := b.p.client.describe(ctx, b.p.topic)
		return result{leaders: t.leaders, err: err}
	}, nil)
}

// begin runs f in a goroutine and hands on its result. It calls after, if not
// nil, once that has succeeded.
func (b *Batcher) begin(f func() result, after func()) {
	b.unsettled++
	b.requests.Go(func() {
		r := f()
		b.results <- r
		if r.err == nil && after != nil {
			after()
		}
	})
}

// receive settles a request, unless all that failed is that ctx has ended.
func (b *Batcher) receive(ctx context.Context, r result) {
	b.unsettled--
	if r.err == nil || ctx.Err() == nil {
		b.settle(r)
	}
}

func (b *Batcher) settle(r result) {
	if r.sent == nil {
		b.found(r)
		return
	}
	for partition, n := range r.sent {
		l, err := b.lanes[partition], r.err
		if err == nil {
			err = r.errs[partition]
		}
		l.inFlight = 0
		before := len(l.queue)
		switch {
		case err == nil:
			l.stored(n)
			l.limit, l.failures = min(2*l.limit, batchRecords), 0
		case refused(err) && n > 1:
			l.limit = n / 2
		case refused(err):
			b.p.count("refused")
			w := l.queue[0]
			l.drop(&sink.RefusedError{Index: w.next, Err: err})
			l.failures = 0
		default:
			b.fail(l, err)
			continue
		}
		b.waiting -= before - len(l.queue)
	}
	if !b.failing() {
		b.p.works()
	}
}

// failing reports whether a partition does not work.
func (b *Batcher) failing() bool {
	for _, l := range b.lanes {
		if l.failures > 0 {
			return true
		}
	}
	return false
}

// found takes the leaders that were looked up.
func (b *Batcher) found(r result) {
	b.looking = false
	if r.err != nil {
		for _, l := range b.lanes {
			if l.inFlight == 0 && (l.partition == unknown || l.failures > 0) && len(l.queue) > 0 {
				b.fail(l, r.err)
			}
		}
		return
	}
	b.layout.set(r.leaders, time.Now())
	b.stale = false
	if l := b.lanes[unknown]; l != nil {
		delete(b.lanes, unknown)
		for _, w := range l.queue {
			b.lane(w.session).add(w)
		}
	}
	for partition, l := range b.lanes {
		if partition >= len(r.leaders) && len(l.queue) == 0 {
			delete(b.lanes, partition) // the topic was made again, with fewer
		}
	}
}

// fail ends the writes of a lane: their sessions come again once it may work.
func (b *Batcher) fail(l *lane, err error) {
	b.p.fails(err)
	b.stale = true
	l.retry = time.Now().Add(backoff(l.failures))
	l.failures++
	b.stop(l, &sink.StalledError{Until: l.retry, Err: err})
}

// stop ends the writes of a lane with an error.
func (b *Batcher) stop(l *lane, err error) {
	b.waiting -= len(l.queue)
	l.dropAll(err)
}

package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	fetchAPI "github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer is a client with idempotence, or with transactions.
type producer struct {
	t     *testing.T
	topic string
	*kgo.Client
}

func newProducer(t *testing.T, topic, transactionalID string) producer {
	t.Helper()
	options := []kgo.Opt{
		kgo.SeedBrokers(cluster.Broker(t).Addr), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
	}
	if transactionalID != "" {
		options = append(options, kgo.TransactionalID(transactionalID))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return producer{t, topic, client}
}

func (p producer) begin() {
	p.t.Helper()
	if err := p.BeginTransaction(); err != nil {
		p.t.Fatal(err)
	}
}

func (p producer) end(commit kgo.TransactionEndTry) {
	p.t.Helper()
	if err := p.EndTransaction(p.t.Context(), commit); err != nil {
		p.t.Fatal(err)
	}
}

// send writes records as one batch, or as several if they are large.
func (p producer) send(records ...*kgo.Record) {
	p.t.Helper()
	if err := p.ProduceSync(p.t.Context(), records...).FirstErr(); err != nil {
		p.t.Fatal(err)
	}
}

// calls are records with these numbers.
func calls(numbers ...int) []*kgo.Record {
	list := make([]*kgo.Record, len(numbers))
	for i, no := range numbers {
		list[i] = &kgo.Record{Key: []byte(testSession), Value: line(no)}
	}
	return list
}

// bulky are n records of some 60 KB.
func bulky(n int) []*kgo.Record {
	list := make([]*kgo.Record, n)
	for i := range list {
		value := line(1, func(r *audit.Record) { r.Args = audit.JSON(`{"text":"` + strings.Repeat("x", 60_000) + `"}`) })
		list[i] = &kgo.Record{Key: []byte(testSession), Value: value}
	}
	return list
}

// A countingTransport counts the fetches.
type countingTransport struct {
	kafka.Transport
	fetches atomic.Int64
	broken  atomic.Bool // fetches fail
	away    atomic.Bool // everything fails
	over    atomic.Bool // the next fetch is over a quota
}

func (c *countingTransport) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	if _, ok := req.(*fetchAPI.Request); ok {
		c.fetches.Add(1)
		if c.broken.Load() {
			return nil, errors.New("the broker fails")
		}
		if c.over.CompareAndSwap(true, false) {
			return &fetchAPI.Response{ThrottleTimeMs: 10}, nil
		}
	}
	if c.away.Load() {
		return nil, errors.New("the broker is away")
	}
	return c.Transport.RoundTrip(ctx, addr, req)
}

// A reading is the result of reading a partition.
type reading struct {
	Numbers []int // of the calls
	Gaps    []string
	Next    int64
}

// A partitionReader reads partition 0 of a topic, fetch by fetch.
type partitionReader struct {
	*partition
	transport *countingTransport
	out       chan chunk[partitionOffset]
	reading
	letters   []ingest.DeadLetter
	committed int64 // the last mark that the pipeline got
}

func newPartitionReader(t *testing.T, topic string, from int64) *partitionReader {
	t.Helper()
	transport := &countingTransport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := newTestPartition(newTestCollector(t, newFakeStore()), topic, from)
	p.client = &brokers.Client{Kafka: &kafka.Client{Addr: kafka.TCP(cluster.Broker(t).Addr), Timeout: time.Minute, Transport: transport}, Group: topic}
	return &partitionReader{partition: p, transport: transport, out: make(chan chunk[partitionOffset], 2)}
}

// fetch reads once.
func (r *partitionReader) fetchOnce(t *testing.T) {
	t.Helper()
	if err := r.fetchSome(t); err != nil {
		t.Fatal(err)
	}
}

// fetchSome reads once, or fails.
func (r *partitionReader) fetchSome(t *testing.T) error {
	err := r.read(t.Context(), r.out)
	for len(r.out) > 0 {
		c := <-r.out
		for i := range c.rows {
			r.Numbers = append(r.Numbers, int(c.rows[i].Record.CallNo))
		}
		for _, g := range c.gaps {
			r.Gaps = append(r.Gaps, fmt.Sprintf("%d-%d %s", g.From, g.To, g.Reason))
		}
		r.letters = append(r.letters, c.letters...)
		r.committed = c.mark.next
	}
	r.Next = r.next
	return err
}

// upTo reads until the next offset is end, with a limited number of fetches.
func (r *partitionReader) upTo(t *testing.T, end, fetches int64) {
	t.Helper()
	for r.next != end {
		r.fetchOnce(t)
		if n := r.transport.fetches.Load(); n > fetches {
			t.Fatalf("%d fetches, and read up to offset %d only, want %d", n, r.next, end)
		}
	}
}

func (r *partitionReader) want(t *testing.T, want reading) {
	t.Helper()
	if diff := cmp.Diff(want, r.reading); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if r.committed != want.Next {
		t.Errorf("offset %d would be committed, want %d: after retention the difference would look like a loss", r.committed, want.Next)
	}
}

// TestTransactions checks that only records of committed transactions are stored,
// that markers are not gaps, and that all offsets are committed.
func TestTransactions(t *testing.T) {
	topic, store := newTopic(t, 1), newFakeStore()
	plain, a, b := newProducer(t, topic, ""), newProducer(t, topic, topic+"-a"), newProducer(t, topic, topic+"-b")
	plain.send(calls(1)...)
	a.begin()
	b.begin()
	a.send(calls(2, 3)...) // stays
	b.send(calls(901)...)
	a.send(calls(4)...)
	plain.send(calls(5)...)
	b.send(calls(902, 903)...)
	b.end(kgo.TryAbort)
	a.end(kgo.TryCommit)
	b.begin()
	b.send(calls(6)...) // the producer whose last one was aborted
	b.end(kgo.TryCommit)
	a.begin()
	a.send(bulky(20)...) // several fetches
	plain.send(calls(7)...)
	a.end(kgo.TryAbort)

	const end = 34
	awaitStable(t, topic, end)
	r := newPartitionReader(t, topic, 0)
	r.upTo(t, end, 20)
	r.want(t, reading{Numbers: []int{1, 2, 3, 4, 5, 6, 7}, Next: end})
	// From the middle of each transaction, also from the markers.
	for from := range int64(end) {
		r := newPartitionReader(t, topic, from)
		r.upTo(t, end, 20)
		if i := slices.IndexFunc(r.Numbers, func(no int) bool { return no > 7 }); i >= 0 || len(r.Gaps) > 0 || r.committed != end {
			t.Errorf("from offset %d: calls %v, gaps %v, committed %d", from, r.Numbers, r.Gaps, r.committed)
		}
	}

	m := join(t, store, topic, topic)
	eventually(t, "what was committed is stored", store.has(7, 0))
	eventually(t, "the last marker is committed", func() bool { return committedOffset(t, m, topic) == end })
	m.leave(t)
	if n, l := store.stored(); n != 7 || l != 0 || len(store.gaps) > 0 {
		t.Errorf("%d records, %d dead letters, gaps %v, want 7 records", n, l, store.gaps)
	}
}

// TestTrailingMarker checks that a marker at the end of the log is skipped with the
// fetch that returns it, so that the next fetch waits for records.
func TestTrailingMarker(t *testing.T) {
	topic := newTopic(t, 1)
	a := newProducer(t, topic, topic)
	for i := range 3 {
		a.begin()
		a.send(calls(i + 1)...)
		a.end(kgo.TransactionEndTry(i != 2))
	}
	awaitStable(t, topic, 6)
	r := newPartitionReader(t, topic, 0)
	r.upTo(t, 6, 1)
	r.want(t, reading{Numbers: []int{1, 2}, Next: 6})
}

// TestOpenTransaction checks that records after the start of an open transaction
// wait for its end, and keep their order.
func TestOpenTransaction(t *testing.T) {
	topic := newTopic(t, 1)
	plain, a := newProducer(t, topic, ""), newProducer(t, topic, topic)
	plain.send(calls(1)...)
	a.begin()
	a.send(calls(2)...)
	plain.send(calls(3)...)
	r := newPartitionReader(t, topic, 0)
	r.fetchOnce(t)
	r.fetchOnce(t) // waits, and gets nothing
	r.want(t, reading{Numbers: []int{1}, Next: 1})
	a.end(kgo.TryCommit)
	awaitStable(t, topic, 4)
	r.upTo(t, 4, 4)
	r.want(t, reading{Numbers: []int{1, 2, 3}, Next: 4})
}

// TestCompacted checks that a record which compaction removed unread is a gap. A
// batch that it emptied is skipped, also at the end of a segment.
func TestCompacted(t *testing.T) {
	topic := cluster.NewTopic(t, kafkatest.Topic{Config: map[string]string{
		"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.0001", "min.compaction.lag.ms": "0",
	}})
	keyed := func(records []*kgo.Record, prefix string) []*kgo.Record {
		for i, r := range records {
			r.Key = fmt.Appendf(nil, "%s %d", prefix, i)
		}
		return records
	}
	emptied := keyed(calls(1, 2, 3, 4, 5), "same")
	a, b := newProducer(t, topic, ""), newProducer(t, topic, "")
	b.send(keyed(bulky(13), "one")...) // offsets 0 to 12, fill the first segment
	a.send(emptied...)                 // 13 to 17: the last of its producer, so that its batch stays
	b.send(keyed(bulky(13), "two")...) // 18 to 30
	b.send(keyed(calls(1, 2, 3, 4, 5), "same")...)
	b.send(keyed(bulky(13), "three")...) // the active segment is not compacted
	const end = 13 + 5 + 13 + 5 + 13
	eventually(t, "the topic is compacted", func() bool {
		r := newPartitionReader(t, topic, 13)
		r.fetchOnce(t)
		return len(r.Gaps) > 0
	})
	r := newPartitionReader(t, topic, 13)
	r.upTo(t, end, 40)
	if diff := cmp.Diff([]string{"13-17 skipped"}, r.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}

// TestThrottled reads on after the brokers throttled it, which is no failure.
func TestThrottled(t *testing.T) {
	topic := newTopic(t, 1)
	produce(t, topic, records(1, 3)...)
	r := newPartitionReader(t, topic, 0)
	r.transport.over.Store(true)
	r.upTo(t, 3, 4)
	r.want(t, reading{Numbers: []int{1, 2, 3}, Next: 3})
}

// TestTopicMadeAgain checks that all records are read of a topic that was deleted and
// made again, also if it has more of them already than were read of the old one.
func TestTopicMadeAgain(t *testing.T) {
	const another = "100-100 log is another"
	for _, tt := range []struct {
		name string
		read int64 // records of the old topic, before the others
		from int64 // offset at which the reader begins
		make bool  // the topic again
		do   func(t *testing.T, r *partitionReader)
		want []string // gaps
	}{
		{"the broker has no such topic meanwhile", 100, 0, true, func(t *testing.T, r *partitionReader) {
			eventually(t, "the topic is gone", func() bool { return r.read(t.Context(), r.out) != nil })
		}, []string{another}},
		{"the store takes nothing meanwhile", 100, 0, true, func(_ *testing.T, r *partitionReader) {
			r.answered = time.Now().Add(-time.Minute)
		}, []string{another}},
		{"nothing was read since the start", 100, 100, true, func(_ *testing.T, r *partitionReader) {
			r.doubtful, r.hadOffset = true, true
		}, []string{another}},
		{"the topic is the old one", 100, 0, false, func(_ *testing.T, r *partitionReader) { r.doubtful = true }, nil},
		{"nothing was read, and the group had no offset", 100, 100, false, func(_ *testing.T, r *partitionReader) { r.doubtful = true }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic, broker := newTopic(t, 1), cluster.Broker(t)
			produce(t, topic, records(1, int(tt.read))...)
			r := newPartitionReader(t, topic, tt.from)
			r.upTo(t, tt.read, 20)
			want := reading{Gaps: tt.want, Next: tt.read + 300}
			for no := tt.from + 1; no <= tt.read+300; no++ {
				want.Numbers = append(want.Numbers, int(no))
			}
			if tt.make {
				if err := broker.DeleteTopic(t.Context(), topic); err != nil {
					t.Fatal(err)
				}
			}
			tt.do(t, r)
			if tt.make {
				if err := broker.CreateTopic(t.Context(), kafkatest.Topic{Name: topic, Partitions: 1}); err != nil {
					t.Fatal(err)
				}
				want.Next = 300
			}
			produce(t, topic, records(int(tt.read)+1, 300)...)
			eventually(t, "all is read", func() bool {
				r.fetchSome(t)
				return r.next == want.Next
			})
			r.want(t, want)
		})
	}
}

// TestLagOfFailingPartition checks that the lag of a partition that cannot be read
// grows, and that an unknown lag has no value.
func TestLagOfFailingPartition(t *testing.T) {
	topic := newTopic(t, 1)
	plain := newProducer(t, topic, "")
	plain.send(calls(1, 2)...)
	r := newPartitionReader(t, topic, -1)
	c := consumer{source: r.source, client: r.client}
	r.upTo(t, 2, 1)
	lag := func() float64 {
		c.updateLag(t.Context(), []*partition{r.partition})
		return counted(t, r.metrics.lag)
	}
	if got := lag(); got != 0 {
		t.Errorf("lag %v with all read", got)
	}
	r.transport.broken.Store(true)
	plain.send(calls(3, 4, 5)...)
	if err := r.read(t.Context(), r.out); err == nil {
		t.Fatal("it reads from a broker that fails")
	}
	if got := lag(); got != 3 {
		t.Errorf("lag %v while it cannot be read, want 3", got)
	}
	if got := r.metrics.waiting.total(); got != 3 {
		t.Errorf("%d records wait, want 3", got)
	}
	r.transport.away.Store(true)
	c.updateLag(t.Context(), []*partition{r.partition})
	if n := len(gathered(t, r.metrics.lag)); n != 0 {
		t.Errorf("%d lags although none is known", n)
	}
	if got := r.metrics.waiting.total(); got != 0 {
		t.Errorf("%d records wait although none is known", got)
	}
	age := r.metrics.unread.age()
	if age == 0 {
		t.Error("the oldest record has no age while the broker is away")
	}
	eventually(t, "it grows older", func() bool { return r.metrics.unread.age() > age })
	r.metrics.unread.ack(r.Partition, 5)
	if age := r.metrics.unread.age(); age != 0 {
		t.Errorf("with all acknowledged the oldest record is %v old", age)
	}
}

// awaitStable waits until partition 0 can be read up to an offset: brokers write
// markers after they have answered.
func awaitStable(t *testing.T, topic string, end int64) {
	t.Helper()
	r := newPartitionReader(t, topic, 0)
	eventually(t, "the markers are written", func() bool {
		resp, err := r.fetchAt(t.Context(), r.next, 1)
		return err == nil && resp.Stable == end
	})
}

// committedOffset returns the offset that a member's group has committed for
// partition 0 of the topic.
func committedOffset(t *testing.T, m *member, topic string) int64 {
	t.Helper()
	r := newPartitionReader(t, topic, 0)
	resp, err := r.client.Kafka.OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: m.config.Kafka.Group, Topics: map[string][]int{topic: {0}}})
	if err != nil || len(resp.Topics[topic]) != 1 {
		return -1
	}
	return resp.Topics[topic][0].CommittedOffset
}

// newTestPartition returns partition 0 of a topic, for one reader.
func newTestPartition(c *Collector, topic string, from int64) *partition {
	return &partition{source: c.source(), ids: new(brokers.IDs), partitionOffset: partitionOffset{Partition: brokers.Partition{Topic: topic}, next: from}, passed: from, last: -1, fetchBytes: fetchBytes, turn: new(sync.Mutex)}
}

// TestInflatedBatch has a producer send batches of a few KB that would fill the memory
// when they are decompressed, and many in one answer. Each is a dead letter and a gap,
// and what is before and after them is read.
func TestInflatedBatch(t *testing.T) {
	const size = 50 << 20
	for _, codec := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"gzip", kgo.GzipCompression()}, {"zstd", kgo.ZstdCompression()}, {"lz4", kgo.Lz4Compression()}} {
		if testing.Short() && codec.name != "lz4" {
			continue
		}
		t.Run(codec.name, func(t *testing.T) {
			topic := newTopic(t, 1)
			client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Broker(t).Addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.ProducerBatchCompression(codec.codec), kgo.ProducerBatchMaxBytes(3*size), kgo.BrokerMaxWriteBytes(4*size))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			p := producer{t, topic, client}
			zeros := func() *kgo.Record { return &kgo.Record{Key: []byte(testSession), Value: make([]byte, size)} }
			p.send(calls(1)...)
			for range 5 {
				p.send(zeros())
			}
			p.send(append(calls(2), zeros(), zeros())...)
			if codec.name == "lz4" { // as auditproxy does: however repetitive records are
				p.send(bulky(15)...)
			}
			p.send(calls(3)...)
			r := newPartitionReader(t, topic, 0)
			want := reading{[]int{1, 3}, []string{"7-8 skipped"}, 10}
			if codec.name == "lz4" {
				want.Numbers, want.Next = append(slices.Repeat([]int{1}, 16), 3), 25
			}
			r.upTo(t, want.Next, 100)
			r.want(t, want)
			if len(r.letters) != 6 || !strings.Contains(string(r.letters[0].Raw), "when it is decompressed") || r.letters[5].Offset != 6 {
				t.Errorf("%d dead letters %.1000v, want one for each batch, with the reason", len(r.letters), r.letters)
			}
		})
	}
}

// TestDenseAnswers reads long and repetitive records, of which an answer of the usual
// size is a hundred times its memory. Only the first is; then less is fetched at a time,
// and as much as before once records are usual again.
func TestDenseAnswers(t *testing.T) {
	topic := newTopic(t, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Broker(t).Addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := producer{t, topic, client}
	const batches, records = 110, 8
	for range batches {
		p.send(bulky(records)...)
	}
	r := newPartitionReader(t, topic, 0)
	var sizes []int64
	for r.next < batches*records {
		if err := r.read(t.Context(), r.out); err != nil {
			t.Fatal(err)
		}
		c := <-r.out
		sizes = append(sizes, c.bytes)
	}
	if sizes[0] < 2*answerBytes || slices.Max(sizes[1:]) > 2*answerBytes {
		t.Errorf("answers need %d bytes of memory, want only the first to need more than %d", sizes, 2*answerBytes)
	}
	for range 10 {
		p.send(calls(1)...)
		r.fetchOnce(t)
	}
	if r.partition.fetchBytes != fetchBytes {
		t.Errorf("%d bytes are fetched after short records, want %d", r.partition.fetchBytes, fetchBytes)
	}
}

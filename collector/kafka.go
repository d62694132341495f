package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"go.uber.org/zap"
)

// Kafka configures reading from Kafka. The zero value is none.
type Kafka struct {
	Brokers   []string // host:port
	Topics    []string
	Group     string
	DeadTopic string            // of dead letters; "" for the table alone
	Tenants   map[string]string // topic: whose records it may hold

	TLS      *tls.Config    // nil: plain text
	SASL     sasl.Mechanism // nil: no login
	ClientID string         // the client id in brokers' logs
}

// dialer is for the consumer group, transport for everything else. With TLS
// neither sends anything in clear.
func (k Kafka) dialer(dial dialFunc) *kafka.Dialer {
	return &kafka.Dialer{ClientID: k.ClientID, Timeout: dialTimeout, DialFunc: dial, TLS: k.TLS.Clone(), SASLMechanism: k.SASL}
}

func (k Kafka) transport() *kafka.Transport {
	topics := slices.Clone(k.Topics)
	if k.DeadTopic != "" {
		topics = append(topics, k.DeadTopic)
	}
	return &kafka.Transport{
		ClientID: k.ClientID, DialTimeout: dialTimeout, TLS: k.TLS.Clone(), SASL: k.SASL,
		MetadataTopics: topics,
		MetadataTTL:    time.Second, // age after which leaders are looked up again
	}
}

const (
	// A broker sends at least one batch, of a thousand records. One answer
	// for each partition is in memory while the store is down.
	fetchBytes    = 256 << 10
	fetchMaxBytes = 64 << 20 // for one batch of a producer that is larger than fetchBytes
	fetchWait     = 500 * time.Millisecond
	sourceRetry   = time.Second
	topicsAgain   = 5 * time.Second // as kafka-go looks for new partitions

	dialTimeout = 10 * time.Second

	sessionTimeout = 30 * time.Second
	// A leaving member may need as long as its last inserts.
	rebalanceTimeout = 60 * time.Second
	leaveTimeout     = 5 * time.Second
)

// A place is the position of a partition: the next offset.
type place struct {
	topic     string
	partition int
	next      int64
}

// runKafka consumes the topics that exist, as a new member of the group whenever
// these change.
func (c *Collector) runKafka(ctx context.Context) error {
	k := c.config.Kafka
	transport := k.transport()
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(k.Brokers...), Timeout: dialTimeout + fetchWait, Transport: transport}
	if k.DeadTopic != "" {
		w := deadLetterWriter(k, transport)
		defer w.Close()
		c.deadTopic = func(ctx context.Context, letters []ingest.DeadLetter) error { return writeLetters(ctx, w, letters) }
	}
	for ctx.Err() == nil {
		topics, err := c.existingTopics(ctx, client)
		if err != nil {
			topics = k.Topics // joining the group reports it
		}
		if len(topics) == 0 {
			sleep(ctx, sourceRetry)
			continue
		}
		if err := c.runGroup(ctx, client, topics); err != nil {
			return err
		}
	}
	return nil
}

// runGroup joins the group and consumes, one generation after another, until ctx
// ends or other topics exist than these. In a group with a missing topic
// kafka-go ends each generation at once, and no other topic is read.
func (c *Collector) runGroup(ctx context.Context, client *kafka.Client, topics []string) error {
	k := c.config.Kafka
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer func() { end(); watching.Wait() }()
	watching.Go(func() {
		defer end()
		c.watchTopics(ctx, client, topics)
	})
	connected, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                    k.Group,
		Brokers:               k.Brokers,
		Topics:                topics,
		Dialer:                k.dialer(dialUntil(connected)),
		StartOffset:           kafka.FirstOffset, // the other choice loses records written before the group existed
		SessionTimeout:        sessionTimeout,
		RebalanceTimeout:      rebalanceTimeout,
		WatchPartitionChanges: true,
	})
	if err != nil {
		return fmt.Errorf("joining consumer group %q: %w", k.Group, err)
	}
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		group.Close() // ends the generation, and waits for its goroutines
	})
	memberID := c.consumeGenerations(ctx, client, group, topics)
	// Only now: the last inserts were committed over a connection of the group.
	cut()
	<-closed
	c.leave(ctx, client, memberID)
	return nil
}

// consumeGenerations consumes until ctx ends and running inserts are
// committed. It returns the last member ID, "" if it never joined the group.
func (c *Collector) consumeGenerations(ctx context.Context, client *kafka.Client, group *kafka.ConsumerGroup, topics []string) (memberID string) {
	var consuming sync.WaitGroup
	defer consuming.Wait()
	unsure := true // the first assignment may have been made before a topic was
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return memberID
		case err != nil:
			err = fmt.Errorf("joining consumer group %q: %w", c.config.Kafka.Group, err)
			c.source.tell(err)
			c.metrics.sourceErrors.Inc()
			c.log.Warn("no partitions yet", because(err), zap.Error(err))
			sleep(ctx, sourceRetry)
			continue
		}
		memberID = gen.MemberID
		c.metrics.generations.Inc()
		c.source.tell(nil)
		// kafka-go watches for more partitions than its watcher first saw, not than
		// the group's leader assigned: of a topic that was made between the two
		// nothing would be read until the next rebalance. Joining once more assigns it.
		again := unsure && lacks(gen, topics)
		unsure = false
		consuming.Add(1)
		// One function: the first that returns ends the generation for all.
		gen.Start(func(ctx context.Context) {
			defer consuming.Done()
			if !again {
				c.consume(ctx, client, gen)
			}
		})
	}
}

// lacks reports whether a generation has no partition of some topic for this
// member. Others may have them.
func lacks(gen *kafka.Generation, topics []string) bool {
	return slices.ContainsFunc(topics, func(topic string) bool { return len(gen.Assignments[topic]) == 0 })
}

// leave removes a member from the group, so that the others need not wait
// until its session ends. Usually the group has removed it already. A member
// that stops before its first assignment has no ID to leave by, and is
// removed after sessionTimeout.
func (c *Collector) leave(ctx context.Context, client *kafka.Client, memberID string) {
	if memberID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, err := client.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: c.config.Kafka.Group, Members: []kafka.LeaveGroupRequestMember{{ID: memberID}}})
	if err != nil {
		c.log.Warn("leaving the consumer group failed; rebalance delayed", zap.Duration("for", sessionTimeout), because(err), zap.Error(err))
	}
}

// consume reads the partitions of one generation until it ends. Then it waits
// for the inserts under way, and commits them with the generation that they
// were read in; the brokers accept that until all members have left.
func (c *Collector) consume(ctx context.Context, client *kafka.Client, gen *kafka.Generation) {
	p := &pipeline[place]{c, func(marks []place) error {
		offsets := map[string]map[int]int64{}
		for _, m := range marks { // ascending in each partition
			if offsets[m.topic] == nil {
				offsets[m.topic] = map[int]int64{}
			}
			offsets[m.topic][m.partition] = m.next
		}
		return gen.CommitOffsets(offsets)
	}}
	var wg sync.WaitGroup
	var turn sync.Mutex
	chunks := make(chan chunk[place])
	for topic, assignments := range gen.Assignments {
		for _, a := range assignments {
			r := &partition{Collector: c, client: client, place: place{topic, a.ID, a.Offset}, fetchBytes: fetchBytes, turn: &turn}
			wg.Go(func() { r.run(ctx, chunks) })
		}
	}
	c.log.Info("partitions assigned", zap.Int32("generation", gen.ID), zap.Any("partitions", assigned(gen)))
	p.run(ctx, chunks) // until ctx ends, also without a partition
	wg.Wait()
	c.metrics.lag.Reset()
}

// assigned lists the partitions of a generation.
func assigned(gen *kafka.Generation) map[string][]int {
	list := map[string][]int{}
	for topic, assignments := range gen.Assignments {
		for _, a := range assignments {
			list[topic] = append(list[topic], a.ID)
		}
	}
	return list
}

// A partition is read by one goroutine, which owns it.
type partition struct {
	*Collector
	client *kafka.Client
	place
	fetchBytes int64
	rows       int    // of the last chunk
	key, value []byte // of the current message

	// turn is held from decoding a chunk until the pipeline has it: rows need
	// several times the memory of their encoded form.
	turn *sync.Mutex
}

// run reads until ctx ends, and retries after every failure.
func (p *partition) run(ctx context.Context, out chan<- chunk[place]) {
	for ctx.Err() == nil {
		if err := p.read(ctx, out); err != nil && ctx.Err() == nil {
			p.metrics.sourceErrors.Inc()
			p.source.tell(fmt.Errorf("reading topic %q, partition %d: %w", p.topic, p.partition, err))
			p.log.Warn("read failed", zap.String("topic", p.topic), zap.Int("partition", p.partition), zap.Int64("offset", p.next), because(err), zap.Error(err))
			sleep(ctx, sourceRetry)
		}
	}
}

// read gives the next records to the pipeline, also those read before an
// error.
func (p *partition) read(ctx context.Context, out chan<- chunk[place]) error {
	resp, err := p.fetch(ctx)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		c, err := p.reposition(ctx)
		p.pass(ctx, c, out)
		return err
	}
	if err != nil {
		return err
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	c, err := p.decode(resp)
	p.pass(ctx, c, out)
	return err
}

// pass gives c to the pipeline.
func (p *partition) pass(ctx context.Context, c chunk[place], out chan<- chunk[place]) {
	if c.len() == 0 {
		return
	}
	c.mark = p.place
	select {
	case out <- c:
	case <-ctx.Done():
	}
}

// fetch requests the next records.
func (p *partition) fetch(ctx context.Context) (*kafka.FetchResponse, error) {
	if p.next < 0 { // nothing committed yet: start at the first offset
		first, _, err := p.bounds(ctx)
		if err != nil {
			return nil, err
		}
		p.next = first
	}
	resp, err := p.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: p.topic, Partition: p.partition, Offset: p.next,
		MinBytes: 1, MaxBytes: p.fetchBytes, MaxWait: fetchWait,
	})
	if err == nil {
		err = resp.Error
	}
	if err == nil {
		p.source.tell(nil)
	}
	return resp, err
}

// decode decodes the fetched records. The chunk is valid even with an error.
func (p *partition) decode(resp *kafka.FetchResponse) (c chunk[place], err error) {
	from := p.next
	c.rows = make([]ingest.Row, 0, p.rows)
	for {
		rec, err := resp.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.take(&c, rec)
		}
		if err != nil {
			// The last batch of an answer may be cut; earlier ones are whole.
			if p.next == from {
				p.fetchBytes = min(2*p.fetchBytes, fetchMaxBytes)
				return c, fmt.Errorf("reading a record: %w", err)
			}
			break
		}
	}
	p.rows = len(c.rows)
	p.metrics.lag.WithLabelValues(p.topic, strconv.Itoa(p.partition)).Set(float64(max(resp.HighWatermark-p.next, 0)))
	return c, nil
}

// take decodes one record into c. A compressed batch is sent whole, so
// records before the requested offset were read before.
func (p *partition) take(c *chunk[place], rec *kafka.Record) error {
	if rec.Offset < p.next {
		return errors.Join(closeBytes(rec.Key), closeBytes(rec.Value))
	}
	var errKey, errValue error
	p.key, errKey = readAll(p.key[:0], rec.Key)
	p.value, errValue = readAll(p.value[:0], rec.Value)
	if err := errors.Join(errKey, errValue); err != nil {
		return err
	}
	if rec.Offset > p.next {
		p.gap(c, rec.Offset-1, "skipped")
	}
	c.add(&p.decoder, ingest.Message{
		Source: ingest.Source{Topic: p.topic, Partition: uint32(p.partition), Offset: uint64(rec.Offset)},
		Time:   rec.Time, Key: p.key, Value: p.value,
	})
	p.next = rec.Offset + 1
	return nil
}

// readAll appends b to dst and gives its memory back to the client.
func readAll(dst []byte, b kafka.Bytes) ([]byte, error) {
	if b == nil {
		return dst, nil
	}
	n := b.Len()
	dst = slices.Grow(dst, n)[:len(dst)+n]
	_, err := io.ReadFull(b, dst[len(dst)-n:])
	return dst, errors.Join(err, b.Close())
}

func closeBytes(b kafka.Bytes) error {
	if b == nil {
		return nil
	}
	return b.Close()
}

// gap records that the offsets from p.next to last were never received.
func (p *partition) gap(c *chunk[place], last int64, reason string) {
	c.gaps = append(c.gaps, ingest.Gap{
		Topic: p.topic, Partition: uint32(p.partition), From: uint64(p.next), To: uint64(last), Reason: reason, Seen: time.Now(),
	})
	p.log.Error("records are missing", zap.String("topic", p.topic), zap.Int("partition", p.partition),
		zap.Int64("from", p.next), zap.Int64("to", last), zap.String("reason", reason))
}

// reposition continues at the start of the log when the offset to read is not
// in it: retention removed it, or the topic was recreated or truncated.
func (p *partition) reposition(ctx context.Context) (c chunk[place], err error) {
	first, end, err := p.bounds(ctx)
	switch {
	case err != nil:
		return c, err
	case p.next < first:
		p.gap(&c, first-1, "removed")
	case p.next > end:
		// All lower offsets may be other records now.
		c.gaps = append(c.gaps, ingest.Gap{Topic: p.topic, Partition: uint32(p.partition), From: uint64(end), To: uint64(p.next - 1), Reason: "log is shorter", Seen: time.Now()})
		p.log.Error("partition truncated; rereading from its start", zap.String("topic", p.topic), zap.Int("partition", p.partition),
			zap.Int64("end", end), zap.Int64("read", p.next))
	default:
		return c, nil // the offset exists again
	}
	p.next = first
	return c, nil
}

// bounds returns the first offset of the partition and the one after the last.
func (p *partition) bounds(ctx context.Context) (first, end int64, err error) {
	resp, err := p.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{p.topic: {kafka.FirstOffsetOf(p.partition), kafka.LastOffsetOf(p.partition)}},
	})
	if err != nil {
		return 0, 0, err
	}
	for _, o := range resp.Topics[p.topic] {
		if o.Partition == p.partition {
			return o.FirstOffset, o.LastOffset, o.Error
		}
	}
	return 0, 0, kafka.UnknownTopicOrPartition
}

func deadLetterWriter(k Kafka, transport *kafka.Transport) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(k.Brokers...),
		Topic:        k.DeadTopic,
		Transport:    transport,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 10 * time.Millisecond,
		MaxAttempts:  2,
		WriteTimeout: 5 * time.Second,
	}
}

func writeLetters(ctx context.Context, w *kafka.Writer, letters []ingest.DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	messages := make([]kafka.Message, len(letters))
	for i, l := range letters {
		messages[i] = kafka.Message{Key: []byte(l.Key), Value: l.Raw, Headers: []kafka.Header{
			{Key: "reason", Value: []byte(l.Reason)},
			{Key: "error", Value: []byte(l.Error)},
			{Key: "source", Value: fmt.Appendf(nil, "%s/%d/%d", l.Topic, l.Partition, l.Offset)},
		}}
	}
	if err := w.WriteMessages(ctx, messages...); err != nil {
		return fmt.Errorf("writing to topic %q: %w", w.Topic, err)
	}
	return nil
}

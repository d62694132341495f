package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/export/receiver"
	shipper "auditproxy/sink/kafka"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"
)

// A Kafka is a topic. An event is a message with its key, whose headers are those
// of a CloudEvent in binary mode (https://github.com/cloudevents/spec, Kafka
// protocol binding 1.0.2). A message that is there twice has the same key and the
// same ce_id.
type Kafka struct {
	shipper.Access
	Topic string // It is not created. Required.
	Type  string // ce_type. Zero: mcp.audit.event
}

const (
	kafkaSource = "/auditproxy/auditcollector" // ce_source

	// A broker takes batches of 1 MiB unless it was configured otherwise, and
	// counts headers too.
	kafkaBytes  = 768 << 10
	kafkaEvents = 2000

	kafkaAttempt    = 15 * time.Second
	kafkaDial       = 5 * time.Second
	kafkaAtOnce     = 8               // requests, each for one partition
	metadataRefresh = 5 * time.Second // and after an error
)

// NewKafka returns a Writer that writes to a topic until all in-sync replicas have
// the events. It connects with the first Send.
func NewKafka(c Config, k Kafka) (*Writer, error) {
	problems := c.problems()
	if k.Topic == "" {
		problems = append(problems, errors.New("no topic"))
	}
	if err := errors.Join(append(problems, k.Validate())...); err != nil {
		return nil, fmt.Errorf("configuring a stream to Kafka: %w", err)
	}
	mechanism, err := k.Mechanism()
	if err != nil {
		return nil, fmt.Errorf("configuring a stream to Kafka: %w", err)
	}
	if k.Type == "" {
		k.Type = "mcp.audit.event"
	}
	transport := &kafka.Transport{
		ClientID: k.ClientID, DialTimeout: kafkaDial, Dial: brokers.DialSecure(new(net.Dialer).DialContext, k.TLS), SASL: mechanism,
		MetadataTopics: []string{k.Topic}, MetadataTTL: metadataRefresh,
	}
	return newWriter(c, &topic{
		config: k, transport: transport,
		client: &kafka.Client{Addr: kafka.TCP(k.Brokers...), Transport: transport, Timeout: kafkaAttempt},
	}), nil
}

// topic is the target of a Kafka.
type topic struct {
	config    Kafka
	transport *kafka.Transport
	client    *kafka.Client
}

func (t *topic) limit() (bytes, events int) { return kafkaBytes, kafkaEvents }

func (t *topic) close() error {
	t.transport.CloseIdleConnections()
	return nil
}

// write writes the events of each partition one request after the other, so that
// each key stays in order.
func (t *topic) write(ctx context.Context, b *batch) error {
	ctx, cancel := context.WithTimeout(ctx, 4*kafkaAttempt)
	defer cancel()
	partitions, err := t.partitions(ctx)
	if err != nil {
		return t.explain(err)
	}
	lists := map[int][]int{} // events by partition
	hash := kafka.Hash{}
	for i, e := range b.events {
		p := hash.Balance(kafka.Message{Key: []byte(e.key)}, partitions...)
		lists[p] = append(lists[p], i)
	}
	var g errgroup.Group
	g.SetLimit(kafkaAtOnce)
	for partition, list := range lists {
		g.Go(func() error { return t.produce(ctx, partition, b, list) })
	}
	return t.explain(g.Wait())
}

// partitions returns the numbers of the topic's partitions.
func (t *topic) partitions(ctx context.Context) ([]int, error) {
	m, err := t.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{t.config.Topic}})
	if err != nil {
		return nil, err
	}
	for _, found := range m.Topics {
		if found.Name != t.config.Topic {
			continue
		}
		if found.Error != nil {
			return nil, found.Error
		}
		list := make([]int, len(found.Partitions))
		for i := range list {
			list[i] = i // Kafka numbers them so
		}
		if len(list) > 0 {
			return list, nil
		}
	}
	return nil, kafka.UnknownTopicOrPartition
}

func (t *topic) record(now time.Time, e place, body []byte) kafka.Record {
	return kafka.Record{Time: now, Key: kafka.NewBytes([]byte(e.key)), Value: kafka.NewBytes(body), Headers: []kafka.Header{
		{Key: "ce_specversion", Value: []byte("1.0")},
		{Key: "ce_id", Value: []byte(e.id)},
		{Key: "ce_source", Value: []byte(kafkaSource)},
		{Key: "ce_type", Value: []byte(t.config.Type)},
		{Key: "content-type", Value: []byte("application/json")},
	}}
}

// produce writes events of one partition. Where the broker takes only smaller
// batches than these it writes smaller ones.
func (t *topic) produce(ctx context.Context, partition int, b *batch, events []int) error {
	for size := len(events); len(events) > 0; {
		n := min(size, len(events))
		records, now := make([]kafka.Record, n), time.Now()
		for i, event := range events[:n] {
			records[i] = t.record(now, b.events[event], b.body(event))
		}
		r, err := t.client.Produce(ctx, &kafka.ProduceRequest{
			Topic: t.config.Topic, Partition: partition, RequiredAcks: kafka.RequireAll, Compression: kafka.Lz4,
			Records: kafka.NewRecordReader(records...),
		})
		if err == nil {
			err = r.Error
		}
		switch {
		case err == nil:
			events = events[n:]
		case kafkaRefuses(err) && n > 1:
			size = n / 2
		default:
			return err
		}
	}
	return nil
}

// kafkaRefuses reports whether err is about the events themselves.
func kafkaRefuses(err error) bool {
	return errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge) || errors.Is(err, kafka.InvalidRecord)
}

// explain adds the cause, which is the remedy too.
func (t *topic) explain(err error) error {
	if err == nil {
		return nil
	}
	if kafkaRefuses(err) {
		return fmt.Errorf("%w: writing to topic %q: %w", receiver.ErrRefused, t.config.Topic, err)
	}
	known := err
	var told kafka.Error
	if errors.As(err, &told) {
		known = errors.Join(shipper.ErrorOf(int16(told)), err)
	}
	return fmt.Errorf("writing to topic %q: %s: %w", t.config.Topic, shipper.Explain(known), err)
}

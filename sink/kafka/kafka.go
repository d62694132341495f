// Package kafka writes records to a Kafka topic and does not rest until all
// in-sync replicas have them.
//
// A record is a message: the key is its session's id, the value the bytes of
// its line, the headers those of a CloudEvent in binary mode
// (https://github.com/cloudevents/spec, Kafka protocol binding 1.0.2). All of a
// session goes to one partition, in order. A record may stand there twice,
// because a produce request whose answer is lost is made again; both are the
// same bytes.
//
// It calls kafka-go's Client and not its Writer, which merges what several
// sessions write: of two batches of one session the second could then be
// acknowledged and the first not, and the session would be out of order.
package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"auditproxy/sink"

	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// What a message says of itself.
const (
	EventType   = "mcp.audit.v1"     // ce_type
	SpecVersion = "1.0"              // ce_specversion
	ContentType = "application/json" // content-type
)

// Times.
const (
	attempt    = 10 * time.Second       // one request, connecting included
	retryFirst = 100 * time.Millisecond // between two attempts, doubled
	retryLast  = 10 * time.Second
	sayEvery   = time.Minute // what is wrong is said again while it lasts
)

// A Config says where records go.
type Config struct {
	Access
	Topic  string      // Required.
	Source string      // ce_source, a URI reference (RFC 3986) of who writes. Required.
	Log    *zap.Logger // nil: none
}

// A Producer is a sink.Sink. Its methods may be called concurrently.
type Producer struct {
	topic  string
	source []byte
	log    *zap.Logger
	client *kafkago.Client
	close  func()

	mu         sync.Mutex // guards the rest
	partitions []int      // nil: not known
	looked     bool       // the topic's settings were looked at, or are being
	health     health
}

var _ sink.Sink = (*Producer)(nil)

// New returns a producer. It connects with the first Write.
func New(c Config) (*Producer, error) {
	var problems []error
	if c.Topic == "" {
		problems = append(problems, errors.New("no topic"))
	}
	if c.Source == "" {
		problems = append(problems, errors.New("no source"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	transport, err := c.Transport(ctx, c.Topic)
	if err = errors.Join(append(problems, err)...); err != nil {
		cancel()
		return nil, fmt.Errorf("making a Kafka producer: %w", err)
	}
	p := &Producer{
		topic:  c.Topic,
		source: []byte(c.Source),
		log:    c.Log,
		client: &kafkago.Client{Addr: c.Addr(), Transport: transport},
		close: func() {
			transport.CloseIdleConnections()
			cancel()
		},
	}
	if p.log == nil {
		p.log = zap.NewNop()
	}
	p.log = p.log.With(zap.String("topic", c.Topic), zap.String("brokers", strings.Join(c.Brokers, ",")))
	return p, nil
}

// Close ends the connections. No Write may run.
func (p *Producer) Close() { p.close() }

// Write is that of sink.Sink. A batch that Kafka refuses for what is in it is
// written in smaller parts, until one record alone is refused.
func (p *Producer) Write(ctx context.Context, session string, lines [][]byte) error {
	done, size, failures := 0, len(lines), 0
	for done < len(lines) {
		n := min(size, len(lines)-done)
		err := p.produce(ctx, session, lines[done:done+n])
		switch {
		case err == nil:
			p.works()
			done, size, failures = done+n, 2*size, 0
			p.look(ctx)
		case ctx.Err() != nil:
			return ctx.Err()
		case refused(err) && n > 1:
			size = n / 2
		case refused(err):
			return &sink.RefusedError{Index: done, Err: err}
		default:
			p.fails(err)
			p.forgetPartitions()
			if err := sleep(ctx, backoff(failures)); err != nil {
				return err
			}
			failures++
		}
	}
	return nil
}

// refused reports whether err is about the records themselves.
func refused(err error) bool {
	return errors.Is(err, kafkago.MessageSizeTooLarge) || errors.Is(err, kafkago.RecordListTooLarge) ||
		errors.Is(err, kafkago.InvalidRecord)
}

// produce makes one request: lines are one batch of one partition, so all of
// them are kept, or none.
func (p *Producer) produce(ctx context.Context, session string, lines [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	partitions, err := p.findPartitions(ctx)
	if err != nil {
		return err
	}
	key := []byte(session)
	records := make([]kafkago.Record, len(lines))
	for i, line := range lines {
		records[i] = kafkago.Record{
			Time:    time.Now(),
			Key:     kafkago.NewBytes(key),
			Value:   kafkago.NewBytes(line),
			Headers: p.headers(line),
		}
	}
	res, err := p.client.Produce(ctx, &kafkago.ProduceRequest{
		Topic:        p.topic,
		Partition:    new(kafkago.Hash).Balance(kafkago.Message{Key: key}, partitions...),
		RequiredAcks: kafkago.RequireAll,
		Records:      kafkago.NewRecordReader(records...),
		Compression:  kafkago.Lz4,
	})
	if err != nil {
		return err
	}
	return res.Error
}

func (p *Producer) headers(line []byte) []kafkago.Header {
	return []kafkago.Header{
		{Key: "ce_specversion", Value: []byte(SpecVersion)},
		{Key: "ce_id", Value: recordID(line)},
		{Key: "ce_source", Value: p.source},
		{Key: "ce_type", Value: []byte(EventType)},
		{Key: "content-type", Value: []byte(ContentType)},
	}
}

// findPartitions returns the topic's partitions, 0 and up. A session stays in
// the one that it began in until something fails, also when some are added.
func (p *Producer) findPartitions(ctx context.Context) ([]int, error) {
	p.mu.Lock()
	known := p.partitions
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	topic, err := p.metadata(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topic.Partitions {
		known = append(known, i)
	}
	if known == nil {
		return nil, kafkago.UnknownTopicOrPartition
	}
	p.mu.Lock()
	p.partitions = known
	p.mu.Unlock()
	return known, nil
}

func (p *Producer) forgetPartitions() {
	p.mu.Lock()
	p.partitions = nil
	p.mu.Unlock()
}

func (p *Producer) metadata(ctx context.Context) (kafkago.Topic, error) {
	res, err := p.client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{p.topic}})
	if err != nil {
		return kafkago.Topic{}, err
	}
	if len(res.Topics) != 1 {
		return kafkago.Topic{}, kafkago.UnknownTopicOrPartition
	}
	return res.Topics[0], res.Topics[0].Error
}

// backoff returns a random time, so that all the hosts of a cluster that was
// away do not come back together.
func backoff(failures int) time.Duration {
	d := retryLast
	if failures < 16 {
		d = min(retryFirst<<failures, retryLast)
	}
	return d/2 + rand.N(d/2)
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

// recordID returns the record_id of a line, nil where there is none. Nothing
// that a client controls stands before it, see audit.AppendRecord.
func recordID(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"record_id":"`))
	id, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return nil
	}
	return id
}

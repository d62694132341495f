// Package kafka writes records to a Kafka topic, and retries until all
// in-sync replicas have them.
//
// A record is a message: the key is its session's id, the value the bytes of
// its line, the headers those of a CloudEvent in binary mode
// (https://github.com/cloudevents/spec, Kafka protocol binding 1.0.2). All
// records of a session go to one partition, in order. A record may be there
// twice, with the same bytes, because a produce request whose answer is lost
// is repeated.
//
// It uses kafka-go's protocol packages over its own connections. The whole of
// kafka-go takes 4 ms to initialise, once for every wrapped server. With its
// Writer, the second batch of a session could be acknowledged and the first not.
//
// The files, from the top: batch, lane, kafka, health, topic, producer, layout,
// client, access, code.
package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/sink"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
	"go.uber.org/zap"
)

// The constant headers of a message.
const (
	eventType   = "mcp.audit.v1"     // ce_type
	specVersion = "1.0"              // ce_specversion
	contentType = "application/json" // content-type
)

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
	if err := errors.Join(append(problems, c.Validate())...); err != nil {
		return nil, fmt.Errorf("making a Kafka producer: %w", err)
	}
	mechanism, err := c.Mechanism()
	if err != nil {
		return nil, fmt.Errorf("making a Kafka producer: %w", err)
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return &Producer{
		topic:  c.Topic,
		source: []byte(c.Source),
		log:    c.Log.With(zap.String("topic", c.Topic), zap.String("brokers", strings.Join(c.Brokers, ","))),
		every:  cmp.Or(c.Inspect, inspectEvery),
		errors: map[string]int64{},
		client: client{access: c.Access, mechanism: mechanism, idle: map[string][]idleConn{}},
	}, nil
}

// Close closes the connections. No Write may be running.
func (p *Producer) Close() { p.client.close() }

// Write implements sink.Sink. A batch that Kafka refuses for its contents is
// written in smaller parts, until a single record is refused.
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
			p.count("refused")
			return &sink.RefusedError{Index: done, Err: err}
		default:
			p.fails(err)
			p.forgetLeaders()
			if err := wait.For(ctx, backoff(failures)); err != nil {
				return err
			}
			failures++
		}
	}
	return nil
}

// refused reports whether err is about the records themselves.
func refused(err error) bool {
	return errors.Is(err, messageTooLarge) || errors.Is(err, recordListTooLarge) || errors.Is(err, invalidRecord)
}

// produce writes lines of one session: one batch of one partition, stored as a
// whole or not at all.
func (p *Producer) produce(ctx context.Context, session string, lines [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	partition, leader, err := p.place(ctx, session)
	if err != nil {
		return err
	}
	now, key := time.Now(), []byte(session)
	records := make([]protocol.Record, len(lines))
	for i, line := range lines {
		records[i] = p.record(now, key, line)
	}
	results, err := p.request(ctx, leader, []produce.RequestPartition{recordsFor(partition, records)})
	if err != nil {
		return err
	}
	return results[partition]
}

// record makes the message of a line.
func (p *Producer) record(now time.Time, key, line []byte) protocol.Record {
	return protocol.Record{Time: now, Key: protocol.NewBytes(key), Value: protocol.NewBytes(line), Headers: p.headers(line)}
}

// recordsFor makes the batch of one partition.
func recordsFor(partition int, records []protocol.Record) produce.RequestPartition {
	return produce.RequestPartition{
		Partition: int32(partition),
		RecordSet: protocol.RecordSet{
			Attributes: protocol.Attributes(compress.Lz4),
			Records:    protocol.NewRecordReader(records...),
		},
	}
}

// request makes one request, with a batch for each of some partitions of one
// leader. It returns each partition's error, nil where the batch is stored. ctx
// must have a deadline.
func (p *Producer) request(ctx context.Context, leader string, batches []produce.RequestPartition) (map[int]error, error) {
	p.mu.Lock()
	p.requests++
	p.mu.Unlock()
	res, err := p.client.roundTrip(ctx, leader, &produce.Request{
		Acks:    allInSync,
		Timeout: int32((attempt / 2).Milliseconds()), // so that the broker times out first, and reports it
		Topics:  []produce.RequestTopic{{Topic: p.topic, Partitions: batches}},
	})
	if err != nil {
		return nil, err
	}
	results := make(map[int]error, len(batches))
	answer := res.(*produce.Response)
	for _, topic := range answer.Topics {
		for _, kept := range topic.Partitions {
			results[int(kept.Partition)] = errorOf(kept.ErrorCode, kept.ErrorMessage)
		}
	}
	for _, b := range batches {
		if _, answered := results[int(b.Partition)]; !answered {
			return nil, errors.New("an answer to another request")
		}
	}
	return results, nil
}

// allInSync is the acks of a request that is answered once all in-sync
// replicas have the records.
const allInSync = -1

func (p *Producer) headers(line []byte) []protocol.Header {
	return []protocol.Header{
		{Key: "ce_specversion", Value: []byte(specVersion)},
		{Key: "ce_id", Value: recordID(line)},
		{Key: "ce_source", Value: p.source},
		{Key: "ce_type", Value: []byte(eventType)},
		{Key: "content-type", Value: []byte(contentType)},
	}
}

// place returns the partition of a session and its leader. The leaders are looked up
// again only after a failure.
func (p *Producer) place(ctx context.Context, session string) (partition int, leader string, err error) {
	p.mu.Lock()
	known := p.layout.leaders != nil
	p.mu.Unlock()
	var t topic
	if !known {
		if t, err = p.client.describe(ctx, p.topic); err != nil {
			return 0, "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !known {
		p.layout.set(t.leaders, time.Now())
	}
	partition = p.layout.partition(session)
	if p.layout.leaders == nil || p.layout.leaders[partition] == "" { // forgotten meanwhile, or none now
		return 0, "", leaderNotAvailable
	}
	return partition, p.layout.leaders[partition], nil
}

// forgetLeaders has the leaders looked up again.
func (p *Producer) forgetLeaders() {
	p.mu.Lock()
	p.layout.leaders = nil
	p.mu.Unlock()
}

// backoff returns a random time, so that the hosts do not all reconnect
// together after an outage of the cluster.
func backoff(failures int) time.Duration {
	d := retryLast
	if failures < 16 {
		d = min(retryFirst<<failures, retryLast)
	}
	return d/2 + rand.N(d/2)
}

// recordID returns the record_id of a line, nil if there is none. Nothing
// that a client controls precedes it, see audit.AppendRecord.
func recordID(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"record_id":"`))
	id, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return nil
	}
	return id
}

package brokers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	fetchAPI "github.com/segmentio/kafka-go/protocol/fetch"
)

// An Answer is what a partition has from an offset on.
type Answer struct {
	Batches []Batch
	Stable  int64 // the offset after the last record that no open transaction holds back
	End     int64 // the offset after the last record
}

// Fetch fetches from an offset on, up to the last stable offset: records of
// open transactions wait in Kafka. It is kafka.Client.Fetch with what that
// omits: the list of aborted transactions. Brokers answer a client that is over
// its quota with nothing, and how long it is to wait: then throttled is that time.
func (c *Client) Fetch(ctx context.Context, p Partition, offset, bytes int64) (answer Answer, throttled time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Kafka.Timeout)
	defer cancel()
	m, err := c.Kafka.Transport.RoundTrip(ctx, c.Kafka.Addr, &fetchAPI.Request{
		ReplicaID: -1, MaxWaitTime: int32(FetchWait.Milliseconds()), MinBytes: 1, MaxBytes: int32(bytes),
		IsolationLevel: int8(kafka.ReadCommitted),
		SessionID:      -1, SessionEpoch: -1, // none
		Topics: []fetchAPI.RequestTopic{{Topic: p.Topic, Partitions: []fetchAPI.RequestPartition{{
			Partition: int32(p.Number), CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1, PartitionMaxBytes: int32(bytes),
		}}}},
	})
	if err != nil {
		return Answer{}, 0, fmt.Errorf("fetching: %w", err)
	}
	resp := m.(*fetchAPI.Response)
	switch {
	case resp.ErrorCode != 0:
		return Answer{}, 0, kafka.Error(resp.ErrorCode)
	case len(resp.Topics) == 0 && resp.ThrottleTimeMs > 0:
		return Answer{}, time.Duration(resp.ThrottleTimeMs) * time.Millisecond, nil
	case len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1:
		return Answer{}, 0, fmt.Errorf("fetching: %w", protocol.ErrNoPartition)
	}
	part := &resp.Topics[0].Partitions[0]
	if part.ErrorCode != 0 {
		return Answer{}, 0, kafka.Error(part.ErrorCode)
	}
	return Answer{batchesOf(part), part.LastStableOffset, part.HighWatermark}, 0, nil
}

// A Batch is a batch of the log. It covers the offsets from Base on, with
// or without a record for each.
type Batch struct {
	Base    int64
	Hidden  bool // markers of transactions, or records of an aborted one
	Records protocol.RecordReader
}

// batchesOf returns the batches of an answer. The broker sends aborted
// transactions too, and lists the first offset of each that reaches into the
// answer: from there to its marker, batches of its producer are hidden.
func batchesOf(resp *fetchAPI.ResponsePartition) []Batch {
	stream, ok := resp.RecordSet.Records.(*protocol.RecordStream)
	if !ok {
		return nil
	}
	aborted := slices.SortedFunc(slices.Values(resp.AbortedTransactions), func(a, b fetchAPI.ResponseTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	aborting := map[int64]bool{} // by producer
	until := func(offset int64) {
		for len(aborted) > 0 && aborted[0].FirstOffset <= offset {
			aborting[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
	}
	var list []Batch
	for _, r := range stream.Records {
		switch b := r.(type) {
		case *protocol.ControlBatch:
			// First the list: the answer may begin with the marker, and the
			// producer's next transaction follows it.
			until(b.BaseOffset)
			delete(aborting, b.ProducerID)
			list = append(list, Batch{b.BaseOffset, true, b})
		case *protocol.RecordBatch:
			until(b.BaseOffset)
			list = append(list, Batch{b.BaseOffset, b.Attributes.Transactional() && aborting[b.ProducerID], b})
		default: // of a format without transactions, in which the first record has the first offset
			list = append(list, Batch{-1, false, b})
		}
	}
	return list
}

// Record returns the key and the value of the record at an offset, if there is one.
func (a Answer) Record(at int64) (key, value []byte, found bool, err error) {
	for _, b := range a.Batches {
		for {
			rec, err := b.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, nil, false, err
			}
			key, errKey := ReadAll(nil, rec.Key)
			value, errValue := ReadAll(nil, rec.Value)
			if err := errors.Join(errKey, errValue); err != nil || rec.Offset == at {
				return key, value, err == nil, err
			}
		}
	}
	return nil, nil, false, nil
}

// ReadAll appends b to dst and gives its memory back to the client.
func ReadAll(dst []byte, b kafka.Bytes) ([]byte, error) {
	if b == nil {
		return dst, nil
	}
	n := b.Len()
	dst = slices.Grow(dst, n)[:len(dst)+n]
	_, err := io.ReadFull(b, dst[len(dst)-n:])
	return dst, errors.Join(err, b.Close())
}

package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	fetchAPI "github.com/segmentio/kafka-go/protocol/fetch"
)

// A partitionOffset is the position of a partition: the next offset.
type partitionOffset struct {
	topic     string
	partition int
	next      int64
}

// id is the partition as a key. Any goroutine may ask: it does not read next, which
// a copy of o would.
func (o *partitionOffset) id() partitionOffset { return partitionOffset{o.topic, o.partition, 0} }

// fetchFrom fetches from an offset on, up to the last stable offset: records of
// open transactions wait in Kafka. It is kafka.Client.Fetch with what that
// omits: the list of aborted transactions. Brokers answer a client that is over
// its quota with nothing, and how long it is to wait: then throttled is that time.
func fetchFrom(ctx context.Context, client *kafka.Client, at partitionOffset, bytes int64) (part *fetchAPI.ResponsePartition, throttled time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	m, err := client.Transport.RoundTrip(ctx, client.Addr, &fetchAPI.Request{
		ReplicaID: -1, MaxWaitTime: int32(fetchWait.Milliseconds()), MinBytes: 1, MaxBytes: int32(bytes),
		IsolationLevel: int8(kafka.ReadCommitted),
		SessionID:      -1, SessionEpoch: -1, // none
		Topics: []fetchAPI.RequestTopic{{Topic: at.topic, Partitions: []fetchAPI.RequestPartition{{
			Partition: int32(at.partition), CurrentLeaderEpoch: -1, FetchOffset: at.next, LogStartOffset: -1, PartitionMaxBytes: int32(bytes),
		}}}},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("fetching: %w", err)
	}
	resp := m.(*fetchAPI.Response)
	switch {
	case resp.ErrorCode != 0:
		return nil, 0, kafka.Error(resp.ErrorCode)
	case len(resp.Topics) == 0 && resp.ThrottleTimeMs > 0:
		return nil, time.Duration(resp.ThrottleTimeMs) * time.Millisecond, nil
	case len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1:
		return nil, 0, fmt.Errorf("fetching: %w", protocol.ErrNoPartition)
	}
	part = &resp.Topics[0].Partitions[0]
	if part.ErrorCode != 0 {
		return nil, 0, kafka.Error(part.ErrorCode)
	}
	return part, 0, nil
}

// A logBatch is a batch of the log. It covers the offsets from base on, with
// or without a record for each.
type logBatch struct {
	base    int64
	hidden  bool // markers of transactions, or records of an aborted one
	records protocol.RecordReader
}

// batchesOf returns the batches of an answer. The broker sends aborted
// transactions too, and lists the first offset of each that reaches into the
// answer: from there to its marker, batches of its producer are hidden.
func batchesOf(resp *fetchAPI.ResponsePartition) []logBatch {
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
	var list []logBatch
	for _, r := range stream.Records {
		switch b := r.(type) {
		case *protocol.ControlBatch:
			// First the list: the answer may begin with the marker, and the
			// producer's next transaction follows it.
			until(b.BaseOffset)
			delete(aborting, b.ProducerID)
			list = append(list, logBatch{b.BaseOffset, true, b})
		case *protocol.RecordBatch:
			until(b.BaseOffset)
			list = append(list, logBatch{b.BaseOffset, b.Attributes.Transactional() && aborting[b.ProducerID], b})
		default: // of a format without transactions, in which the first record has the first offset
			list = append(list, logBatch{-1, false, b})
		}
	}
	return list
}

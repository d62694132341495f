package collector

import (
	"context"
	"time"

	"auditproxy/internal/wait"

	"github.com/segmentio/kafka-go"
)

// lagEvery is the interval at which the ends of partitions are read.
const lagEvery = 5 * time.Second

// watchLag keeps the lag of partitions current until ctx ends, also of a
// partition that cannot be read or waits for the store: its reader may last have
// seen a lag of 0.
func (c *consumer) watchLag(ctx context.Context, readers []*partition) {
	for {
		c.updateLag(ctx, readers)
		if wait.For(ctx, lagEvery) != nil {
			return
		}
	}
}

// updateLag compares the partitions' ends with what is read. A lag that is not
// known has no value.
func (c *consumer) updateLag(ctx context.Context, readers []*partition) {
	req := kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
	for _, r := range readers {
		req.Topics[r.topic] = append(req.Topics[r.topic], kafka.FirstOffsetOf(r.partition), kafka.LastOffsetOf(r.partition))
	}
	resp, err := c.client.ListOffsets(ctx, &req)
	if ctx.Err() != nil {
		return
	}
	known := map[partitionOffset]kafka.PartitionOffsets{}
	if err == nil {
		for topic, list := range resp.Topics {
			for _, o := range list {
				known[partitionOffset{topic, o.Partition, 0}] = o
			}
		}
	}
	for _, r := range readers {
		o, ok := known[r.id()]
		if !ok || o.Error != nil {
			c.metrics.lag.DeleteLabelValues(r.labels()...)
			c.metrics.waiting.forget(r.id())
			continue
		}
		// Nothing is committed before the first record is read.
		read := max(r.position.Load(), o.FirstOffset)
		r.lags(o.LastOffset - read)
		c.metrics.unread.see(r.id(), o.FirstOffset, o.LastOffset)
	}
}

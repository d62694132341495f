package collector

import (
	"context"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/internal/wait"
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
	var ours []brokers.Partition
	for _, r := range readers {
		ours = append(ours, r.Partition)
	}
	known, _ := c.client.Bounds(ctx, ours...)
	if ctx.Err() != nil {
		return
	}
	for _, r := range readers {
		log, ok := known[r.Partition]
		if !ok || log.Err != nil {
			c.metrics.lag.DeleteLabelValues(r.labels()...)
			c.metrics.waiting.forget(r.Partition)
			continue
		}
		// Nothing is committed before the first record is read.
		read := max(r.position.Load(), log.First)
		r.lags(log.End - read)
		c.metrics.unread.see(r.Partition, log.First, log.End)
	}
}

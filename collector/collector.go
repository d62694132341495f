// Package collector stores records from Kafka or spools, and acknowledges them
// once they are stored.
//
// A source (a partition of Kafka, or a session of a spool) is read by one
// goroutine. A decoder checks each message, because any producer may have
// written it. A message that is not a valid record becomes a dead letter with
// its reason; offsets that the source skips become a gap.
//
// A pipeline collects what sources read into batches, and stores at most two
// concurrently. It retries until the store has a batch, or until the collector
// stops. It finds rows that the store refuses for their contents by halving the
// batch, and stores them as dead letters. Only then, and in order, it commits
// the batch's offsets or cursors.
//
// So a crash at any point repeats records and loses none; the store keeps one
// of identical records. Memory is bounded while the store is down: records
// wait in Kafka or in the spool.
//
// The files, from the top: collector, kafka, deadtopic, spool, backlog, lag, topics,
// partition, pipeline, write, config, connect, decoded, metrics, unread,
// waiting, disk.
package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// New checks c and returns a collector. It does not connect.
func New(c Config) (*Collector, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Store == nil {
		problem("there is no store")
	}
	if c.Keep <= 0 {
		problem("there is no time to keep records for")
	}
	if len(c.Kafka.Brokers) == 0 && len(c.Spools) == 0 {
		problem("there are neither brokers nor spools")
	}
	if len(c.Kafka.Brokers) > 0 && (c.Kafka.Group == "" || len(c.Kafka.Topics) == 0) {
		problem("there is no consumer group or no topic")
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring the collector: %w", err)
	}
	c.BatchRows = cmp.Or(c.BatchRows, 50_000)
	c.BatchBytes = cmp.Or(c.BatchBytes, 64_000_000)
	c.BatchWait = cmp.Or(c.BatchWait, time.Second)
	if c.Watch == nil {
		c.Watch = func() (time.Time, func([]ingest.Row)) { return time.Now(), func([]ingest.Row) {} }
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	collector := &Collector{
		config:  c,
		log:     c.Log,
		decoder: ingest.Decoder{Keep: c.Keep, KeepTenants: c.KeepTenants, Tenants: c.Kafka.Tenants, Erased: c.Erased},
		metrics: newMetrics(c.Metrics),
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(newDisks(slices.Concat(c.Spools, c.Disks)), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "auditcollector", Name: "failing_parts", Help: "Parts that stop records; /readyz names them.",
		}, func() float64 { return float64(len(collector.Failing())) }))
	}
	collector.reading.tell(wholeSource, "reading", errors.New("nothing read yet"))
	return collector, nil
}

// Run stores records until ctx ends. It then waits for running inserts and
// commits their records.
func (c *Collector) Run(ctx context.Context) error {
	if len(c.config.Kafka.Brokers) > 0 {
		return c.runKafka(ctx)
	}
	return newSpoolSource(c).run(ctx)
}

// Failing returns the parts that stop records, none if all flow. One that
// fails is in it until it works again, however well the others do.
func (c *Collector) Failing() []Failure {
	return slices.Concat(c.topics.failures(), c.reading.failures(), c.storing.failures())
}

// behindAt is how many records wait in the sources of a collector that is behind: what
// it stores in about a second.
const behindAt = 20_000

// Behind reports whether many records wait to be stored, as after an outage. What can
// wait should leave the processor to the collector then.
func (c *Collector) Behind() bool { return c.metrics.waiting.total() >= behindAt }

// EngineRestarts counts a restart of the local engine that the collector writes
// to.
func (c *Collector) EngineRestarts() { c.metrics.engineRestarts.Inc() }

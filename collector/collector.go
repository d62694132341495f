// Package collector stores records from Kafka or spools, and acknowledges them
// once they are stored.
//
// A source (a partition of Kafka, or a session of a spool) is read by one
// goroutine. A decoder checks each message, because any producer may have
// written it. A message that is not a valid record becomes a dead letter with
// its reason; offsets that the source skips become a gap.
//
// A pipeline collects what sources read into batches, and stores at most two
// at once. It retries until the store has a batch, or until the collector
// stops. Rows that the store refuses for their contents, it finds by halving
// the batch, and stores them as dead letters. Only then, and in order, it
// commits the batch's offsets or cursors.
//
// So a crash at any point repeats records and loses none; the store keeps one
// of identical records. Memory is bounded while the store is down: records
// wait in Kafka or in the spool.
package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// An Inserter keeps rows, dead letters and gaps. Each method returns nil only
// when all its arguments would survive a crash. After an error, see
// ingest.ClassOf, any part may have been stored, so the caller repeats the call
// and the Inserter ignores duplicates. The methods may be called concurrently;
// they neither keep nor change their arguments.
type Inserter interface {
	// InsertRows stores the rows of one arrival time, all or none.
	InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error
	InsertDeadLetters(ctx context.Context, letters []ingest.DeadLetter) error
	InsertGaps(ctx context.Context, gaps []ingest.Gap) error
}

// A Config configures a Collector.
type Config struct {
	Store  Inserter      // Required.
	Keep   time.Duration // how long the store keeps records; older ones are dead letters. Required.
	Kafka  Kafka         // without brokers Spools are read
	Spools []string      // spool directories

	BatchRows  int           // records in one insert; zero: 50 000
	BatchBytes int64         // memory of one batch; zero: 32 MB
	BatchWait  time.Duration // longest wait for a batch to fill; zero: 1 s

	// Watch is called before records with an arrival time are stored. The
	// function it returns is called with them once they are stored, before
	// they are acknowledged, or with nil if they are not. Neither may block.
	// nil: no callback.
	Watch func(arrived time.Time) (end func(stored []ingest.Row))

	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// A Collector stores records.
type Collector struct {
	config  Config
	log     *zap.Logger
	decoder ingest.Decoder
	metrics *metrics

	reading health // the last error of reading a source
	topics  health // the topics that do not exist
	storing health // the last error of the store
}

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
	if c.BatchRows == 0 {
		c.BatchRows = 50_000
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 32_000_000
	}
	if c.BatchWait == 0 {
		c.BatchWait = time.Second
	}
	if c.Watch == nil {
		c.Watch = func(time.Time) func([]ingest.Row) { return func([]ingest.Row) {} }
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return &Collector{
		config:  c,
		log:     c.Log,
		decoder: ingest.Decoder{Keep: c.Keep, Tenants: c.Kafka.Tenants},
		metrics: newMetrics(c.Metrics),
		reading: health{err: errors.New("nothing read yet")},
	}, nil
}

// Run stores records until ctx ends. It then waits for running inserts and
// commits their records.
func (c *Collector) Run(ctx context.Context) error {
	if len(c.config.Kafka.Brokers) > 0 {
		return c.runKafka(ctx)
	}
	return newSpools(c).run(ctx)
}

// A source is what all readers of a source need.
type source struct {
	decoder *ingest.Decoder
	health  *health
	metrics *metrics
	log     *zap.Logger
}

func (c *Collector) source() source {
	return source{&c.decoder, &c.reading, c.metrics, c.log}
}

// Ready returns the error that stops records, nil if they flow.
func (c *Collector) Ready() error {
	return errors.Join(c.reading.last(), c.topics.last(), c.storing.last())
}

// A health holds the last error of a dependency.
type health struct {
	mu  sync.Mutex
	err error // guarded by mu
}

func (h *health) tell(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *health) last() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

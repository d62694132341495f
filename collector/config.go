package collector

import (
	"context"
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

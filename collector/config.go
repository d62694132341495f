package collector

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
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
	Store  Inserter // Required.
	Kafka  Kafka    // without brokers Spools are read
	Spools []string // spool directories

	// HostKey is the file of the key that signs the end of sessions of Spools whose
	// proxies died. "" for the key that is in each of Spools.
	HostKey string

	Keep        time.Duration            // how long the store keeps records; older ones are dead letters. Required.
	KeepTenants map[string]time.Duration // of tenants whose time is not Keep

	// Erased reports whether a session was erased: its records are refused. nil:
	// none was.
	Erased func(session string) bool

	// Clock returns the store's time. A record is refused for its time only if it is wrong
	// by both clocks: this one may be. nil: by this one.
	Clock func(ctx context.Context) (time.Time, error)

	// Reached returns, for each place, the offset behind the last one before it of which
	// the store has a record, a dead letter or a gap; 0 if there is none. Before a place
	// beyond all offsets it does not know records that came again. nil: what another program
	// made the group pass is not reported.
	Reached func(ctx context.Context, places []ingest.Source) ([]uint64, error)

	// Lacks reports of each place whether the store lacks the record, although neither
	// retention nor an erasure removed it and it is no dead letter: the store is an older
	// one. nil: that is not reported.
	Lacks func(ctx context.Context, list []ingest.Stored) ([]bool, error)

	// Unfilled returns the gaps in topics whose records may still be in Kafka, but for what
	// came later. nil: that they were read is not reported.
	Unfilled func(ctx context.Context, topics []string) ([]ingest.Gap, error)

	BatchRows  int           // records in one insert; zero: 50 000
	BatchBytes int64         // memory of one batch; zero: 64 MB
	BatchWait  time.Duration // longest wait for a batch to fill; zero: 1 s

	// Watch is called before records are stored, and returns their arrival time.
	// The function it returns is called with them once they are stored, before
	// they are acknowledged, or with nil if they are not, or that is not known.
	// Neither may block. nil: they arrive now.
	Watch func() (arrived time.Time, end func(stored []ingest.Row))

	// Visible is called once records that arrived at a time are stored, until it
	// returns nil. Before that they are not acknowledged. nil: no callback.
	Visible func(ctx context.Context, arrived time.Time) error

	Disks []string // directories on the disks whose free space is exported, besides Spools

	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// A Collector stores records.
type Collector struct {
	config  Config
	log     *zap.Logger
	decoder ingest.Decoder
	metrics *metrics

	reading health // of sources
	topics  health // the topics that do not exist
	storing health // of batches on their way to the store
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

// A Failure is a part of a collector that does not work.
type Failure struct {
	Part string // as it reads in "x fails"; nothing in it comes from input
	Err  error
}

// A health holds the last error of each part that fails, because one part that
// works proves nothing about another.
type health struct {
	mu    sync.Mutex
	parts map[any]Failure // by the part's key; guarded by mu
}

// tell sets the error of the part with a key, and nil clears it.
func (h *health) tell(key any, part string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.parts, key)
		return
	}
	if h.parts == nil {
		h.parts = map[any]Failure{}
	}
	h.parts[key] = Failure{part, err}
}

// errorsOf joins the errors of parts, nil without any.
func errorsOf(parts []Failure) error {
	var errs []error
	for _, f := range parts {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// wholeSource is the key of what concerns all of a source: its group, or all
// topics.
const wholeSource = ""

// failures returns the parts that fail, in the order of their names. Several batches
// that are not stored are one part.
func (h *health) failures() []Failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.SortedFunc(maps.Values(h.parts), func(a, b Failure) int { return cmp.Compare(a.Part, b.Part) })
	return slices.CompactFunc(all, func(a, b Failure) bool { return a.Part == b.Part })
}

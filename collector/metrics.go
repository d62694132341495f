package collector

import (
	"slices"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are exported to Prometheus. No label value comes from input.
type metrics struct {
	records, bytes, commitErrors, bisections         prometheus.Counter
	generations, gaps, deadTopicErrors, sourceErrors prometheus.Counter
	recovered, engineRestarts, tableRefusals         prometheus.Counter

	deadLetters  *prometheus.CounterVec // by reason
	insertErrors *prometheus.CounterVec // by class

	insertSeconds, ackSeconds prometheus.Histogram

	inFlight prometheus.Gauge
	lag      *prometheus.GaugeVec // by topic and partition

	partitionErrors *prometheus.CounterVec // by topic and partition
	topicRisks      *prometheus.GaugeVec   // by topic and setting
	batches         *prometheus.CounterVec // by outcome
	batchRows       prometheus.Histogram
	unacked         unacked
	unread          unread
	waiting         backlogs
	spoolBytes      *prometheus.GaugeVec // by spool directory
	spoolOldest     *prometheus.GaugeVec // by spool directory

	unrecovered *prometheus.GaugeVec // by spool directory
}

// What becomes of a batch.
const (
	batchCommitted    = "committed"
	batchNotCommitted = "not_committed" // stored, but the commit failed
	batchAbandoned    = "abandoned"     // the collector stopped or lost the partitions before it was stored
)

// unacked has the times since which batches are not acknowledged, oldest
// first. The times are the collector's own: those of records come from input.
type unacked struct {
	mu    sync.Mutex
	began []time.Time // guarded by mu
}

func (u *unacked) add(began time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.began = append(u.began, began)
}

// drop removes the n oldest.
func (u *unacked) drop(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.began = slices.Delete(u.began, 0, n)
}

func (u *unacked) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.began = nil
}

// age returns the age of the oldest.
func (u *unacked) age() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.began) == 0 {
		return 0
	}
	return time.Since(u.began[0])
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "auditcollector", Name: name, Help: help})
	}
	buckets := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}
	m := &metrics{
		records:         counter("records_total", "Records stored; a copy counts too."),
		bytes:           counter("bytes_total", "Bytes of the records stored."),
		commitErrors:    counter("commit_errors_total", "Commits that failed; their batches are repeated."),
		bisections:      counter("bisections_total", "Batches and parts of them that were halved to find a row the store refuses."),
		generations:     counter("generations_total", "Consumer group generations joined."),
		gaps:            counter("gaps_total", "Ranges of offsets never received."),
		deadTopicErrors: counter("dead_letter_topic_errors_total", "Dead letters not copied to their topic."),
		sourceErrors:    counter("source_errors_total", "Reads of Kafka or of a spool that failed."),
		recovered:       counter("sessions_recovered_total", "Sessions of dead proxies that were ended."),
		engineRestarts:  counter("engine_restarts_total", "Starts of the local engine after the first."),
		tableRefusals:   counter("table_refusals_total", "Batches that the store refused for its own reasons: nothing became a dead letter, and they are repeated."),
		unrecovered: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "auditcollector", Name: "unrecovered_sessions",
			Help: "Sessions of dead proxies that could not be ended; the log has the cause."}, []string{"dir"}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: "dead_letters_total",
			Help: "Messages that are not records, and rows that the store refuses."}, []string{"reason"}),
		insertErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: "insert_errors_total",
			Help: "Inserts that failed."}, []string{"class"}),
		insertSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "auditcollector", Name: "insert_seconds",
			Help: "Time of one insert of records.", Buckets: buckets}),
		ackSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "auditcollector", Name: "acknowledge_seconds",
			Help: "From a batch's first record to its commit.", Buckets: buckets}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "auditcollector", Name: "batches_in_flight",
			Help: "Batches on their way to the store."}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "auditcollector", Name: "kafka_lag",
			Help: "Records in the partition that are not read yet."}, []string{"topic", "partition"}),
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: name, Help: help}, labels)
	}
	m.batches = vector("batches_total", "Batches, by what became of them.", "outcome")
	for _, outcome := range []string{batchCommitted, batchNotCommitted, batchAbandoned} {
		m.batches.WithLabelValues(outcome)
	}
	m.partitionErrors = vector("kafka_errors_total", "Reads of the partition that failed.", "topic", "partition")
	m.topicRisks = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "auditcollector", Name: "kafka_topic_risk",
		Help: "1 for each setting of a topic by which Kafka may lose its records; the log has the reason."}, []string{"topic", "setting"})
	m.batchRows = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "auditcollector", Name: "batch_rows",
		Help: "Records in one batch.", Buckets: []float64{0, 1, 10, 100, 1000, 10_000, 50_000}})
	// A counter that begins with its first event hides that event: rates need a value before it.
	for _, reason := range ingest.Reasons() {
		m.deadLetters.WithLabelValues(reason)
	}
	for _, class := range []ingest.Class{ingest.Retry, ingest.Configuration, ingest.Poison, ingest.Oversize} {
		m.insertErrors.WithLabelValues(class.String())
	}
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "auditcollector", Name: "oldest_unacknowledged_seconds",
		Help: "Time since the collector first saw the oldest record that is not acknowledged, in Kafka or in a batch; 0 if there is none."},
		func() float64 { return max(m.unacked.age(), m.unread.age()).Seconds() })
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "auditcollector", Name: name, Help: help}, []string{"dir"})
	}
	m.spoolBytes = gauge("spool_unread_bytes", "Bytes of the spool that are not acknowledged.")
	m.spoolOldest = gauge("spool_unread_seconds", "Time since the last acknowledgement of the session that waits longest; 0 if none waits.")
	if r != nil {
		r.MustRegister(m.batches, m.partitionErrors, m.topicRisks, m.batchRows, oldest, m.spoolBytes, m.spoolOldest)
		r.MustRegister(m.records, m.bytes, m.commitErrors, m.bisections, m.generations, m.gaps, m.deadTopicErrors, m.recovered, m.engineRestarts, m.tableRefusals, m.unrecovered,
			m.sourceErrors, m.deadLetters, m.insertErrors, m.insertSeconds, m.ackSeconds, m.inFlight, m.lag)
	}
	return m
}

func (m *metrics) stored(rows []ingest.Row) {
	var bytes int
	for i := range rows {
		bytes += len(rows[i].Raw)
	}
	m.records.Add(float64(len(rows)))
	m.bytes.Add(float64(bytes))
}

func (m *metrics) acked(began time.Time) {
	m.ackSeconds.Observe(time.Since(began).Seconds())
}

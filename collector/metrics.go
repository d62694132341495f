package collector

import (
	"time"

	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are exported to Prometheus. No label value comes from input.
type metrics struct {
	records, bytes, commits, commitErrors, bisections prometheus.Counter
	generations, gaps, deadTopicErrors, sourceErrors  prometheus.Counter
	recovered                                         prometheus.Counter

	deadLetters  *prometheus.CounterVec // by reason
	insertErrors *prometheus.CounterVec // by class

	insertSeconds, ackSeconds prometheus.Histogram

	inFlight prometheus.Gauge
	lag      *prometheus.GaugeVec // by topic and partition

	unrecovered *prometheus.GaugeVec // by spool directory
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "auditcollector", Name: name, Help: help})
	}
	buckets := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}
	m := &metrics{
		records:         counter("records_total", "Records stored; a copy counts too."),
		bytes:           counter("bytes_total", "Bytes of the records stored."),
		commits:         counter("batches_total", "Batches stored and committed."),
		commitErrors:    counter("commit_errors_total", "Commits that failed; their batches are repeated."),
		bisections:      counter("bisections_total", "Batches and parts of them that were halved to find a row the store refuses."),
		generations:     counter("generations_total", "Consumer group generations joined."),
		gaps:            counter("gaps_total", "Ranges of offsets never received."),
		deadTopicErrors: counter("dead_letter_topic_errors_total", "Dead letters not copied to their topic."),
		sourceErrors:    counter("source_errors_total", "Reads of Kafka or of a spool that failed."),
		recovered:       counter("sessions_recovered_total", "Sessions of dead proxies that were ended."),
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
	if r != nil {
		r.MustRegister(m.records, m.bytes, m.commits, m.commitErrors, m.bisections, m.generations, m.gaps, m.deadTopicErrors, m.recovered, m.unrecovered,
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
	m.commits.Inc()
	m.ackSeconds.Observe(time.Since(began).Seconds())
}

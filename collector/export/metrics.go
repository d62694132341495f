package export

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are exported to Prometheus. Names of receivers are the administrator's; no
// label value comes from input.
type metrics struct {
	sent, refused, failures *prometheus.CounterVec // by receiver
}

func newMetrics() metrics {
	vector := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: name, Help: help}, []string{"receiver"})
	}
	return metrics{
		sent:     vector("export_sent_total", "Records that a receiver took, repeated ones too."),
		refused:  vector("export_refused_total", "Records that a receiver refused, and that others were sent without."),
		failures: vector("export_failures_total", "Attempts to send to a receiver that failed, so that its records wait."),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.sent, m.refused, m.failures}
}

// of has the metrics of a receiver begin at 0.
func (m metrics) of(receiver string) {
	for _, v := range []*prometheus.CounterVec{m.sent, m.refused, m.failures} {
		v.WithLabelValues(receiver)
	}
}

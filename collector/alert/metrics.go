package alert

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are exported to Prometheus. Names of rules are the administrator's; no
// label value comes from input.
type metrics struct {
	ruleFailures *prometheus.CounterVec // by rule
	sweeps       *prometheus.CounterVec // by outcome
}

func newMetrics() metrics {
	vector := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "auditcollector", Name: name, Help: help}, []string{label})
	}
	m := metrics{
		ruleFailures: vector("rule_failures_total", "Runs of a scheduled alert rule that failed.", "rule"),
		sweeps:       vector("sweeps_total", "Searches for stored records that no rule has seen, by outcome.", "outcome"),
	}
	for _, outcome := range []string{"done", "failed"} {
		m.sweeps.WithLabelValues(outcome)
	}
	return m
}

func (m metrics) tellSweep(err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	m.sweeps.WithLabelValues(outcome).Inc()
}

// A lag is what an engine has not evaluated.
type lag struct {
	failingRules, failingSweeps int
	oldest                      time.Duration            // since the oldest stored record arrived that not all rules may have seen
	overdue                     map[string]time.Duration // since a scheduled rule should have run; negative before
}

// A state exports the lag at the time of the question: an engine that hangs would
// not move a gauge.
type state struct {
	lag                                            func() lag
	failingRules, failingSweeps, ruleLag, alertLag *prometheus.Desc
}

func newState(of func() lag) state {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("auditcollector_"+name, help, labels, nil)
	}
	return state{
		lag:           of,
		failingRules:  describe("failing_rules", "Scheduled alert rules that did not run when they were last due."),
		failingSweeps: describe("failing_sweeps", "Searches for stored records that no rule has seen, which failed since the last that did not."),
		ruleLag:       describe("rule_lag_seconds", "Time since the scheduled alert rule should have run; 0 if it is not due.", "rule"),
		alertLag:      describe("alert_lag_seconds", "Time since the oldest stored record arrived that not all rules may have seen; 0 if there is none."),
	}
}

func (s state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.failingRules, s.failingSweeps, s.ruleLag, s.alertLag} {
		to <- d
	}
}

func (s state) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, max(v, 0), labels...)
	}
	l := s.lag()
	gauge(s.failingRules, float64(l.failingRules))
	gauge(s.failingSweeps, float64(l.failingSweeps))
	gauge(s.alertLag, l.oldest.Seconds())
	for rule, late := range l.overdue {
		gauge(s.ruleLag, late.Seconds(), rule)
	}
}

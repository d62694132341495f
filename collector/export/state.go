package export

import "github.com/prometheus/client_golang/prometheus"

// A state exports how far the receivers are at the time of the question.
type state struct{ e *Engine }

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("auditcollector_"+name, help, []string{"receiver"}, nil)
}

var (
	descSending = describe("export_sending", "1 if this collector sends to the receiver, 0 if another one does or none.")
	descUp      = describe("export_up", "1 if the receiver takes records, 0 if the last attempt failed. Only of a collector that sends to it.")
	descLag     = describe("export_lag_seconds", "Time since the first record arrived that the receiver may not have yet; 0 if there is none. Only of a collector that sends to it.")
	descWaiting = describe("export_lag_records", "Records that wait for the receiver, when they were counted last. Only of a collector that sends to it.")
	descExpired = describe("export_behind_retention", "1 if the receiver was found, within a day, to have been away for longer than retention.events, so that records may be gone.")
)

func (s state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSending, descUp, descLag, descWaiting, descExpired} {
		to <- d
	}
}

func (s state) Collect(to chan<- prometheus.Metric) {
	h := s.e.now()
	for _, d := range s.e.deliveries {
		gauge := func(desc *prometheus.Desc, v float64) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, d.name)
		}
		position, behind := d.behind(h)
		d.mu.Lock()
		sending, failing, waiting, expired := d.sending, !d.mark.Failing.IsZero(), d.waiting, s.e.c.Now().Sub(d.expiredAt) < expiredFor
		d.mu.Unlock()
		gauge(descSending, truth(sending))
		if !sending {
			continue
		}
		gauge(descUp, truth(!failing))
		lag := 0.0
		if behind {
			lag = max(s.e.c.Now().Sub(position.Arrived).Seconds(), 0)
		}
		gauge(descLag, lag)
		gauge(descWaiting, float64(waiting))
		gauge(descExpired, truth(expired))
	}
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

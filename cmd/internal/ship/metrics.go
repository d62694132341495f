package ship

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"auditproxy/sink/kafka"
)

// metrics returns the metrics of the host in the text format of Prometheus.
func (h *host) metrics(now time.Time) string {
	h.mu.Lock()
	b := h.backlog
	h.mu.Unlock()
	k := h.cfg.Kafka()
	age := 0.0
	if !b.oldest.IsZero() {
		age = max(0, now.Sub(b.oldest).Seconds())
	}
	stalled := 0.0
	if k.Stalled != "" {
		stalled = max(0, now.Sub(k.Since).Seconds())
	}
	var w strings.Builder
	metric(&w, "records_total", "counter", "Records that Kafka acknowledged.", float64(h.records.Load()))
	metric(&w, "bytes_total", "counter", "Bytes of records that Kafka acknowledged.", float64(h.bytes.Load()))
	metric(&w, "produce_requests_total", "counter", "Produce requests.", float64(k.Requests))
	head(&w, "errors_total", "counter", "Failed batches of partitions, by the class of the error.")
	for _, class := range kafka.ErrorClasses() {
		fmt.Fprintf(&w, "%serrors_total{class=%q} %d\n", prefix, class, k.Errors[class])
	}
	metric(&w, "set_aside_total", "counter", "Records and damaged places that were not delivered as they are.", float64(h.aside.Load()))
	metric(&w, "recovered_sessions_total", "counter", "Sessions that this process ended after their proxy died.", float64(h.recovered.Load()))
	metric(&w, "live_sessions", "gauge", "Sessions whose proxy runs.", float64(b.live))
	metric(&w, "failing_sessions", "gauge", "Sessions that cannot be read.", float64(b.failing))
	metric(&w, "unshipped_sessions", "gauge", "Sessions with something to ship.", float64(b.sessions))
	metric(&w, "unshipped_bytes", "gauge", "Bytes in the spool behind the cursors of these sessions.", float64(b.bytes))
	metric(&w, "oldest_unshipped_seconds", "gauge", "Age of the oldest record that is not acknowledged.", age)
	metric(&w, "stalled_seconds", "gauge", "Time since Kafka takes no records of some session, 0 if it takes all.", stalled)
	// As programs with Prometheus' library have it, which rules.yaml relies on.
	fmt.Fprintf(&w, "# HELP process_start_time_seconds Start time of the process.\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", h.began.Unix())
	return w.String()
}

const prefix = "auditproxy_ship_"

func head(w *strings.Builder, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n", prefix, name, help, kind)
}

func metric(w *strings.Builder, name, kind, help string, value float64) {
	head(w, name, kind, help)
	fmt.Fprintf(w, "%s%s %s\n", prefix, name, strconv.FormatFloat(value, 'f', -1, 64))
}

// notReady names the parts that do not work.
func (h *host) notReady() (parts []string) {
	h.mu.Lock()
	b := h.backlog
	h.mu.Unlock()
	if !b.listed {
		parts = append(parts, "spool")
	}
	if b.failing > 0 {
		parts = append(parts, "sessions")
	}
	if h.cfg.Kafka().Stalled != "" {
		parts = append(parts, "kafka")
	}
	return parts
}

package collector

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/prometheus/client_golang/prometheus"
)

// TestNumberOfSeriesIsBounded sends records with a thousand names: clients and
// servers choose no label, so that the number of time series stays the same.
func TestNumberOfSeriesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, store := prometheus.NewRegistry(), newFakeStore()
		c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, Spools: []string{"/"}, Metrics: registry})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		in, ended := make(chan chunk[int]), make(chan struct{})
		go func() {
			defer close(ended)
			newPipeline(c, newWriter(c, nil), func([]int) error { return nil }).run(ctx, in)
		}()
		const n = 1000
		for i := range n {
			name := fmt.Sprintf("name %d", i)
			good := line(i+1, func(r *audit.Record) { r.Tool, r.Tenant, r.ClientID, r.Method = name, name, name, name })
			var ch chunk[int]
			ch.add(&c.decoder, ingest.Message{Source: ingest.Source{Topic: "t", Offset: uint64(2 * i)}, Key: []byte(testSession), Value: good})
			ch.add(&c.decoder, ingest.Message{Source: ingest.Source{Topic: "t", Offset: uint64(2*i + 1)}, Key: []byte(name), Value: good})
			in <- ch
		}
		<-time.After(time.Minute)
		cancel()
		<-ended
		if r, l := store.stored(); r != n || l != n {
			t.Fatalf("%d records and %d dead letters stored, want %d of each", r, l, n)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		series := 0
		for _, f := range families {
			series += len(f.GetMetric())
			for _, m := range f.GetMetric() {
				if v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum(); math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
					t.Errorf("%s is %v", f.GetName(), v)
				}
				for _, l := range m.GetLabel() {
					if strings.Contains(l.GetValue(), "name") {
						t.Errorf("%s has the label %s, which comes from input", f.GetName(), l)
					}
				}
			}
		}
		if series == 0 || series > 60 {
			t.Errorf("%d time series", series)
		}
	})
}

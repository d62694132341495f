package collector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/ingest"

	"github.com/google/go-cmp/cmp"
)

// arrivals is a store that tells when rows arrive.
type arrivals struct {
	Inserter
	tell func(at time.Time)
}

func (a arrivals) InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	a.tell(at)
	return a.Inserter.InsertRows(ctx, rows, at)
}

// TestWatch checks when Watch and its result are called: before the first attempt
// to store, and after the last one, before the source is committed.
func TestWatch(t *testing.T) {
	arrived := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		store fault
		want  []string
	}{
		{"stored", none, []string{"begin", "visible", "visible", "stored 1", "commit 1"}},
		{"stored, but nobody said so", ackDropped, []string{"begin", "stored 0"}},
		{"not stored", lost, []string{"begin", "stored 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				note := func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprintf(format, args...))
				}
				store := newFakeStore()
				store.always = tt.store
				b := start(t, 1, store)
				b.writer.store = arrivals{store, func(at time.Time) {
					if !at.Equal(arrived) {
						t.Errorf("records are stored with arrival %s, want %s", at, arrived)
					}
				}}
				b.writer.watch = func() (time.Time, func([]ingest.Row)) {
					note("begin")
					return arrived, func(rows []ingest.Row) {
						note("stored %d", len(rows))
						if len(b.marks()) > 0 {
							t.Error("the source was told before")
						}
					}
				}
				seen := 0
				b.writer.visible = func(_ context.Context, at time.Time) error {
					note("visible")
					if !at.Equal(arrived) || len(b.marks()) > 0 {
						t.Errorf("%s is visible, or the source was told before", at)
					}
					if seen++; seen == 1 {
						return errStore // as long as this fails, nothing is acknowledged
					}
					return nil
				}
				b.send(1, "a")
				<-time.After(time.Minute)
				for _, mark := range b.marks() {
					note("commit %d", mark)
				}
				b.end()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
			})
		})
	}
}

package collector

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/ingest"

	"github.com/google/go-cmp/cmp"
)

// TestWatch checks when Watch and its result are called: before the first attempt
// to store, and after the last one, before the source is committed.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		store fault
		want  []string
	}{
		{"stored", none, []string{"begin", "stored 1", "commit 1"}},
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
				b.writer.watch = func(arrived time.Time) func([]ingest.Row) {
					if !arrived.Equal(time.Now()) {
						t.Errorf("records arrive at %s, now is %s", arrived, time.Now())
					}
					note("begin")
					return func(rows []ingest.Row) {
						note("stored %d", len(rows))
						if len(b.marks()) > 0 {
							t.Error("the source was told before")
						}
					}
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

package alert_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"

	"github.com/google/go-cmp/cmp"
)

// TestHandOver stores records without an engine, as the replay of dead letters
// does: while a collector runs, while none does, while a store fails, and with a
// clock that differs from the collector's.
func TestHandOver(t *testing.T) {
	stored, failed := func() error { return nil }, func() error { return errStore }
	for _, tt := range []struct {
		name    string
		running bool
		ahead   time.Duration // of the collector's clock
		end     func() error  // after the record is stored
		within  time.Duration
	}{
		{"a collector runs", true, 0, stored, time.Minute},
		{"a collector starts", false, 0, stored, time.Second},
		{"the answer is lost", true, 0, failed, 4 * time.Minute},
		{"the collector's clock is ahead", true, 10 * time.Minute, stored, time.Minute},
		{"the collector's clock is behind", true, -10 * time.Minute, stored, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				begin := func() func() {
					return start(t, engine(t, s, "a", func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(tt.ahead) } }))
				}
				stop := func() {}
				if tt.running {
					stop = begin()
					wait(t, time.Hour)
				}
				now := time.Now()
				err := alert.HandOver(t.Context(), s, "replay", time.Now, func(time.Time) error {
					wait(t, 30*time.Second) // in which a collector looks
					s.mu.Lock()
					defer s.mu.Unlock()
					s.arrived[now] = append(s.arrived[now], call(1, "x", "{}"))
					return tt.end()
				})
				if !errors.Is(err, tt.end()) {
					t.Errorf("HandOver = %v, want %v", err, tt.end())
				}
				if !tt.running {
					stop = begin()
				}
				wait(t, tt.within)
				if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" {
					t.Errorf("alerts (-want +got):\n%s", diff)
				}
				wait(t, 10*time.Minute)
				marks, err := s.Marks(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range marks {
					if m.Kind == alert.MarkRun && m.Name != "a" && !m.Closed {
						t.Errorf("mark %q is open for ever", m.Name)
					}
				}
				stop()
			})
		})
	}
	// Without a guard nothing is stored.
	s := newFakeStore()
	s.failing(func(string) fault { return lost })
	err := alert.HandOver(t.Context(), s, "replay", time.Now, func(time.Time) error {
		t.Error("stored without a guard")
		return nil
	})
	if !errors.Is(err, errStore) {
		t.Errorf("HandOver = %v, want %v", err, errStore)
	}
}

package alert_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
)

// TestArrivalAfterOthers starts a run whose clock is behind those of others: what
// arrives there is after the marks that readers may have passed, or is reported late.
func TestArrivalAfterOthers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		behind time.Duration
		closed bool // the other run has ended
		late   bool
	}{
		{"clocks agree", 0, false, false},
		{"a little behind", time.Minute, false, false},
		{"behind a run that ended", time.Minute, true, false},
		{"a day behind", 24 * time.Hour, false, true},
		{"a day behind a run that ended", 24 * time.Hour, true, true},
		{"ahead", -time.Hour, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				other := engine(t, s, "other")
				stop := start(t, other)
				wait(t, time.Minute)
				if tt.closed {
					stop()
					if err := other.End(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				passed := s.mark("run other").Upto
				e := engine(t, s, "a", func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(-tt.behind) } })
				arrived, end := e.Begin()
				if err := e.Visible(t.Context(), arrived); err != nil {
					t.Fatal(err)
				}
				end([]ingest.Row{})
				if got := len(s.late) > 0; got != tt.late {
					t.Errorf("reported late: %v, want %v", got, tt.late)
				}
				if after := arrived.Truncate(time.Millisecond).After(passed); after == tt.late {
					t.Errorf("arrival %v, with others at %v", arrived, passed)
				}
				if wrong := e.Config.Now().Sub(arrived); wrong < -2*time.Minute-time.Second {
					t.Errorf("arrival is %v ahead of the clock", -wrong)
				}
				if !tt.closed {
					stop()
				}
			})
		})
	}
}

// TestOneReportForAWrongClock sets a clock back that was two days ahead: what arrives until
// then is reported once, as a period that has all of it and is after this run's mark, so
// that readers wait for what is stored next.
func TestOneReportForAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		var ahead atomic.Int64
		ahead.Store(int64(48 * time.Hour))
		clock := func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } }
		e := engine(t, s, "a", clock)
		stop := start(t, e)
		wait(t, 5*time.Minute)
		ahead.Store(0)
		reports := 0
		for n := range 3000 {
			slow, endSlow := e.Begin()
			wait(t, 10*time.Millisecond)
			arrived, end := e.Begin()
			for _, at := range []time.Time{arrived, slow} { // the later insert ends first
				if err := e.Visible(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				if !s.reported(at) {
					t.Fatalf("insert %d: its arrival %v is in none of %v", n, at, s.late)
				}
				s.mu.Lock()
				if reports < len(s.late) {
					reports = len(s.late)
					if m := s.marks["run a"]; !m.Upto.Before(s.late[reports-1][0]) {
						t.Errorf("the period begins at %v, and the mark is %v", s.late[reports-1][0], m.Upto)
					}
				}
				s.mu.Unlock()
			}
			end([]ingest.Row{})
			endSlow([]ingest.Row{})
			wait(t, time.Second)
		}
		if reports > 1 {
			t.Errorf("%d reports, want one", reports)
		}
		stop()
		e = engine(t, s, "b", clock)
		stop = start(t, e)
		for range 100 {
			arrived, end := e.Begin()
			if err := e.Visible(t.Context(), arrived); err != nil || !s.reported(arrived) {
				t.Fatalf("Visible = %v of the next run, with arrival %v; reported: %v", err, arrived, s.late)
			}
			end([]ingest.Row{})
			wait(t, time.Second)
		}
		if len(s.late) != 1 {
			t.Errorf("%d reports with those of the next run, want no more", len(s.late))
		}
		arrived, end := e.Begin()
		wait(t, 2*time.Minute) // with the mark where it is
		if err := e.Visible(t.Context(), arrived); err != nil || len(s.late) != 1 {
			t.Errorf("Visible = %v with a mark that is kept, reports %v", err, s.late)
		}
		end([]ingest.Row{})
		stop()
		arrived, end = e.Begin()
		wait(t, 2*time.Minute)
		if err := e.Visible(t.Context(), arrived); err != nil || len(s.late) != 2 {
			t.Errorf("Visible = %v with a mark that is old, reports %v, want one more", err, s.late)
		}
		end([]ingest.Row{})
	})
}

// reported reports whether an arrival is in a period that was reported as late.
func (s *fakeStore) reported(arrived time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrived = arrived.Truncate(time.Millisecond)
	return slices.ContainsFunc(s.late, func(p [2]time.Time) bool { return !arrived.Before(p[0]) && !arrived.After(p[1]) })
}

// TestOthersGetAhead has another run start while one runs whose clock is behind.
func TestOthersGetAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		e := engine(t, s, "a", func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(-time.Minute) } })
		stop := start(t, e)
		pending, end := e.Begin()
		stopOther := start(t, engine(t, s, "other"))
		wait(t, 13*time.Second) // at 10 s the other writes its mark, before or after this one looks
		if err := e.Visible(t.Context(), pending); err != nil || len(s.late) != 1 {
			t.Errorf("a record that arrived before the others' marks: %v, late %v", err, s.late)
		}
		end([]ingest.Row{})
		passed := s.mark("run other").Upto
		wait(t, 6*time.Second)
		arrived, end := e.Begin()
		end([]ingest.Row{})
		if !arrived.After(passed) {
			t.Errorf("arrival %v, another run was at %v long before", arrived, passed)
		}
		stopOther()
		stop()
	})
}

// TestVisibleLate stops a run between the arrival and the end of an insert, so that
// its mark is old: others may have closed it.
func TestVisibleLate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stopped time.Duration
		late    bool
	}{
		{"shortly", 50 * time.Second, false},
		{"long", 2 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				e := engine(t, s, "a")
				arrived, end := e.Begin()
				wait(t, tt.stopped)
				s.failing(func(what string) fault {
					if what == "late" {
						return lost
					}
					return none
				})
				if err := e.Visible(t.Context(), arrived); (err != nil) != tt.late {
					t.Errorf("Visible = %v while nothing can be stored, want an error: %v", err, tt.late)
				}
				s.failing(func(string) fault { return none })
				if err := e.Visible(t.Context(), arrived); err != nil || (len(s.late) == 1) != tt.late {
					t.Errorf("Visible = %v, late %v", err, s.late)
				}
				end([]ingest.Row{})
			})
		})
	}
}

// TestUnclearEnd ends a run while it is not known whether a batch is stored: its
// mark stays open before it, for the next run's sweep and for those who wait.
func TestUnclearEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		e := engine(t, s, "a")
		stop := start(t, e)
		arrived, end := e.Begin()
		wait(t, time.Minute)
		stop()
		end(nil)
		if err := e.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := s.mark("run a"); m.Closed || !m.Upto.Before(arrived) {
			t.Errorf("mark %+v, want an open one before %v", m, arrived)
		}
		stop = start(t, engine(t, s, "b"))
		wait(t, 4*time.Minute)
		if m := s.mark("run a"); !m.Closed || !m.Upto.Before(m.At) {
			t.Errorf("mark %+v, want one that another run closed", m)
		}
		stop()
		next := engine(t, s, "c")
		stop = start(t, next)
		stop()
		if err := next.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := s.mark("run c"); !m.Closed || m.Upto.Before(m.At) {
			t.Errorf("mark %+v, want one that says that nothing is left", m)
		}
	})
}

// TestHandOverLate stores records with a clock that is behind, and slowly.
func TestHandOverLate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		behind time.Duration
		takes  time.Duration
		late   bool
	}{
		{"at once", 0, 0, false},
		{"a little behind", time.Minute, 0, false},
		{"a day behind", 24 * time.Hour, 0, true},
		{"slowly", 0, 2 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				stop := start(t, engine(t, s, "other"))
				wait(t, time.Minute)
				passed := s.mark("run other").Upto
				var at time.Time
				clock := func() time.Time { return time.Now().Add(-tt.behind) }
				err := alert.HandOver(t.Context(), s, "replay", clock, func(arrived time.Time) error {
					at = arrived
					wait(t, tt.takes)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := len(s.late) == 1; got != tt.late {
					t.Errorf("late %v, want %v", s.late, tt.late)
				}
				if !tt.late && !at.After(passed) {
					t.Errorf("arrival %v, with another run at %v", at, passed)
				}
				stop()
			})
		})
	}
}

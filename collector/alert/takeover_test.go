package alert_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"

	"github.com/google/go-cmp/cmp"
)

// sweeps returns a fault that counts the sweeps.
func sweeps(n *atomic.Int64) func(string) fault {
	return func(what string) fault {
		if what == "arrived" {
			n.Add(1)
		}
		return none
	}
}

// TestLagOfStart starts a collector beside one that has evaluated everything. Its
// sweep, which reads what the other run may have left, takes long.
func TestLagOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		e := engine(t, s, "first")
		stopFirst := start(t, e)
		for no := range uint64(100) {
			s.collect(e, no)
			wait(t, time.Second)
		}
		wait(t, 17*time.Second)
		s.failing(func(what string) fault {
			if what == "arrived" {
				return hang
			}
			return none
		})
		registry, measured := measure()
		stop := start(t, engine(t, s, "second", measured))
		synctest.Wait()
		lag := func() float64 { return gathered(t, registry, "auditcollector_alert_lag_seconds")[""] }
		if got := lag(); got <= 0 || got > 6.1 {
			t.Errorf("lag %v, want the time since the other run's mark, which is at most 6 s old", got)
		}
		wait(t, time.Minute)
		if got := lag(); got < 60 {
			t.Errorf("lag %v a minute later: the other run may have ended", got)
		}
		if age := time.Since(s.mark("run second").At); age > 10*time.Second {
			t.Errorf("the mark is %v old: others take this run for dead while it sweeps", age)
		}
		stop()
		stopFirst()
	})
}

// TestDead has a run that ends without evaluating what it stored, and is known
// to have ended, while another one runs. The clock may have been set back since.
func TestDead(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) { testDead(t, ahead) })
	}
}

func testDead(t *testing.T, ahead time.Duration) {
	s := newFakeStore()
	var ended atomic.Bool
	var swept atomic.Int64
	s.failing(sweeps(&swept))
	other := engine(t, s, "other", func(c *alert.Config) {
		c.Dead = func(name string) bool { return ended.Load() && name == "dead" }
	})
	stop := start(t, other)
	wait(t, time.Minute)
	dead := engine(t, s, "dead", func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(ahead) } })
	s.collect(dead, 1)
	wait(t, time.Minute)
	if swept.Load() != 0 {
		t.Errorf("%d sweeps while all run", swept.Load())
	}
	ended.Store(true)
	wait(t, 6*time.Second)
	if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" || !s.mark("run dead").Closed {
		t.Errorf("mark %+v, alerts (-want +got):\n%s", s.mark("run dead"), diff)
	}
	slices := swept.Load()
	wait(t, 10*time.Minute)
	if again := swept.Load() - slices; again != 0 {
		t.Errorf("the mark is closed, and %d slices were read again", again)
	}
	stop()
}

// TestSweepGoesOn has a store that cannot read all that a dead run left at once: the
// sweep goes on where it failed, with shorter slices, and evaluates all of it.
func TestSweepGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		other := engine(t, s, "other", func(c *alert.Config) { c.Dead = func(name string) bool { return name == "dead" } })
		dead := engine(t, s, "dead")
		var want []uint64
		for no := range uint64(60) {
			s.collect(dead, no)
			want = append(want, no)
			wait(t, 30*time.Second)
		}
		const most = 10 * time.Second // that the store can read at once, if it has records
		var ranges [][2]time.Time
		s.reading = func(after, upto time.Time, rows int) error {
			ranges = append(ranges, [2]time.Time{after, upto})
			if rows > 0 && upto.Sub(after) > most && time.Since(upto) > 0 {
				return errStore
			}
			return nil
		}
		stop := start(t, other)
		wait(t, time.Hour)
		if diff := cmp.Diff(want, s.calls()); diff != "" || !s.mark("run dead").Closed {
			t.Errorf("mark %+v, alerts (-want +got):\n%s", s.mark("run dead"), diff)
		}
		for i, r := range ranges[1:] {
			if r[0].Before(ranges[i][0]) {
				t.Errorf("after %v, %v is read: the sweep began again", ranges[i], r)
				break
			}
		}
		stop()
	})
}

// TestSweptSoon: what a run that died while it was busy left is read soon, and little
// of what it had evaluated. An idle run writes its mark less often.
func TestSweptSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const soon = 2 * time.Second
		s := newFakeStore()
		var dead atomic.Bool
		var swept, from time.Time
		s.reading = func(after, _ time.Time, _ int) error {
			if dead.Load() && swept.IsZero() {
				swept, from = time.Now(), after
			}
			return nil
		}
		stop := start(t, engine(t, s, "other", func(c *alert.Config) { c.Dead = func(name string) bool { return dead.Load() && name == "busy" } }))
		busy := engine(t, s, "busy")
		stopBusy := start(t, busy)
		for i := range 59 {
			s.collect(busy, uint64(i))
			wait(t, 100*time.Millisecond)
		}
		stopBusy()
		died := time.Now()
		dead.Store(true)
		wait(t, time.Minute)
		if d := swept.Sub(died); d < 0 || d > soon {
			t.Errorf("what it left is read after %v", d)
		}
		if d := died.Sub(from); d > soon+time.Second {
			t.Errorf("the last %v before its end are read again", d)
		}
		var writes atomic.Int64
		s.failing(func(what string) fault {
			if what == "set marks" {
				writes.Add(1)
			}
			return none
		})
		wait(t, time.Minute)
		if n := writes.Load(); n < 8 || n > 12 { // of the run, and of its question
			t.Errorf("an idle run wrote marks %d times in a minute", n)
		}
		stop()
	})
}

// TestDeadComesBack has a run that counted as dead while a sweep failed, lives again,
// stores a record with a clock that is behind, and dies: the sweep that goes on reads
// that record too.
func TestDeadComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const behind = 90 * time.Second
		s := newFakeStore()
		var dead, works atomic.Bool
		dead.Store(true)
		s.reading = func(_, upto time.Time, _ int) error {
			if upto.After(time.Now()) && !works.Load() {
				return errStore
			}
			return nil
		}
		other := engine(t, s, "other", func(c *alert.Config) { c.Dead = func(name string) bool { return dead.Load() && name == "stalled" } })
		stalled := engine(t, s, "stalled", func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(-behind) } })
		s.collect(stalled, 1)
		wait(t, 10*time.Minute)
		stop := start(t, other)
		wait(t, 5*time.Minute) // all is read, but for what may still come
		dead.Store(false)
		m := s.mark("run stalled")
		m.Upto, m.At = time.Now().Add(-behind-time.Second), time.Now()
		if err := s.SetMarks(t.Context(), []alert.Mark{m}); err != nil {
			t.Fatal(err)
		}
		wait(t, time.Minute)
		s.collect(stalled, 2)
		dead.Store(true)
		works.Store(true)
		wait(t, time.Minute)
		if diff := cmp.Diff([]uint64{1, 2}, s.calls()); diff != "" || !s.mark("run stalled").Closed {
			t.Errorf("mark %+v, alerts (-want +got):\n%s", s.mark("run stalled"), diff)
		}
		stop()
	})
}

// TestFirstLookFails has a store that does not answer a collector that starts: it
// evaluates what the last run left as soon as it can, not when the mark is old.
func TestFirstLookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.collect(engine(t, s, "dead"), 1)
		e := engine(t, s, "a")
		began := time.Now()
		s.failing(func(what string) fault {
			if what == "marks" && time.Since(began) < time.Second {
				return lost
			}
			return none
		})
		stop := start(t, e)
		wait(t, 21*time.Second)
		if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" {
			t.Errorf("alerts (-want +got):\n%s", diff)
		}
		stop()
	})
}

// TestClockSetBack has the clock set back after a mark was written. The run then
// stores a record and dies before it evaluates that.
func TestClockSetBack(t *testing.T) {
	for _, by := range []time.Duration{time.Millisecond, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			back := time.Duration(0)
			clock := func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(-back) } }
			dead := engine(t, s, "dead", clock)
			back = by
			s.collect(dead, 1)
			stop := start(t, engine(t, s, "next", clock))
			synctest.Wait()
			if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" {
				t.Errorf("the clock was set back by %v: alerts (-want +got):\n%s", by, diff)
			}
			stop()
		})
	}
}

// TestClockWasAhead has a run's clock set back by far, as after a start with a wrong one:
// what arrives then has the right time, is reported as late, is evaluated if the run dies
// at once, and scheduled rules look for it, also those of a run that starts later.
func TestClockWasAhead(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Minute, 3 * time.Hour, 2 * 365 * 24 * time.Hour} {
		for _, restart := range []string{"", "at once", "after a mark"} { // without an end, as by a kill
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				var ahead atomic.Int64
				ahead.Store(int64(by))
				clock := func(c *alert.Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } }
				registry, measured := measure()
				e := engine(t, s, "a", clock, measured)
				stop := start(t, e)
				s.collect(e, 1)
				wait(t, 5*time.Minute+500*time.Millisecond) // between ticks
				ahead.Store(0)
				s.mu.Lock()
				before := len(s.asked)
				s.mu.Unlock()
				at := time.Now()
				arrived, end := e.Begin()
				if err := e.Visible(t.Context(), arrived); err != nil {
					t.Fatal(err)
				}
				end([]ingest.Row{})
				if off := arrived.Sub(at).Abs(); off > time.Second {
					t.Errorf("%v ahead: a record arrives at a time that is %v off", by, off)
				}
				s.mu.Lock()
				if len(s.late) != 1 {
					t.Errorf("%v ahead: late %v, want what readers have passed", by, s.late)
				}
				s.mu.Unlock()
				if restart == "after a mark" {
					wait(t, 10*time.Second)
				}
				if restart != "" {
					stop()
					e = engine(t, s, "b", clock)
					stop = start(t, e)
				}
				wait(t, 8*time.Minute) // a killed run's mark holds rules back for three
				s.mu.Lock()
				asked := s.asked[before:]
				s.mu.Unlock()
				if len(asked) < 4 || asked[0].After(at) || time.Since(asked[len(asked)-1]) > 5*time.Minute {
					t.Errorf("%v ahead, restarted %q: the questions were since %v, want one from before %v, then only what is new", by, restart, asked, at)
				}
				if restart == "" {
					for rule, lag := range gathered(t, registry, "auditcollector_rule_lag_seconds") {
						if lag > 60 {
							t.Errorf("%v ahead: rule %s is late by %v s", by, rule, lag)
						}
					}
					if m := s.mark("run a"); time.Since(m.Upto).Abs() > 20*time.Second {
						t.Errorf("%v ahead: mark %+v, want one of now", by, m)
					}
				}
				stop()
			})
		}
	}
}

// TestEnd stops engines: with all evaluated, with batches in the queue, and with
// some that cannot be evaluated or are not in the queue, which was full. Only the
// last two leave something to a sweep.
func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		queued int
		fault  fault // of storing alerts
		closed bool
	}{
		{"all is evaluated", 0, none, true},
		{"batches are queued", 2, none, true},
		{"the store fails", 2, lost, false},
		{"the queue is full", 5, none, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				e := engine(t, s, "a")
				stop := start(t, e)
				s.collect(e, 1)
				wait(t, time.Minute)
				stop()
				want := []uint64{1}
				for i := range tt.queued {
					s.collect(e, uint64(i+2))
					want = append(want, uint64(i+2))
				}
				s.failing(func(what string) fault {
					if what == "alerts" {
						return tt.fault
					}
					return none
				})
				if err := e.End(t.Context()); (err == nil) != (tt.fault == none) {
					t.Errorf("End = %v", err)
				}
				if got := s.mark("run a").Closed; got != tt.closed {
					t.Errorf("the mark is closed: %v, want %v", got, tt.closed)
				}
				var swept atomic.Int64
				s.failing(sweeps(&swept))
				stop = start(t, engine(t, s, "b"))
				wait(t, 10*time.Minute)
				if diff := cmp.Diff(want, s.calls()); diff != "" || (swept.Load() == 0) != tt.closed {
					t.Errorf("%d sweeps, alerts (-want +got):\n%s", swept.Load(), diff)
				}
				stop()
			})
		})
	}
}

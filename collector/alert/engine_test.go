package alert_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fault says how a call of the fake store fails.
type fault int

const (
	none       fault = iota
	lost             // an error, nothing stored
	ackDropped       // an error, all stored
	hang             // no answer until the context ends
)

var errStore = errors.New("the store failed")

// A fakeStore is the part of ClickHouse that alerts need.
type fakeStore struct {
	mu      sync.Mutex // guards all below
	arrived map[time.Time][]ingest.Row
	alerts  map[string]alert.Alert
	lasting map[string]alert.Alert // conditions that have not ended
	inserts int                    // of single findings that are new
	most    int                    // alerts in one insert
	marks   map[string]alert.Mark
	late    [][2]time.Time   // periods of arrivals that are reported late
	asked   []time.Time      // since when
	asking  func(sql string) // is called while a question is asked; nil: that takes no time
	answer  []map[string]any
	fault   func(what string) fault
	err     error                                       // of what is lost; fault may set it
	reading func(after, upto time.Time, rows int) error // of each range of arrivals; nil: none fails
}

func newFakeStore() *fakeStore {
	return &fakeStore{arrived: map[time.Time][]ingest.Row{}, alerts: map[string]alert.Alert{}, lasting: map[string]alert.Alert{}, marks: map[string]alert.Mark{}, fault: func(string) fault { return none }}
}

// failing makes later calls fail as fault returns.
func (s *fakeStore) failing(fault func(what string) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// try fails as the test wants before or after do.
func (s *fakeStore) try(ctx context.Context, what string, do func()) error {
	s.mu.Lock()
	s.err = errStore
	f, err := s.fault(what), s.err
	s.mu.Unlock()
	switch f {
	case lost:
		return err
	case hang:
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	if f == ackDropped {
		return errStore
	}
	return nil
}

func (s *fakeStore) InsertAlerts(ctx context.Context, alerts []alert.Alert) (fresh []alert.Alert, err error) {
	err = s.try(ctx, "alerts", func() {
		s.most = max(s.most, len(alerts))
		for _, a := range alerts {
			if a.Ended() {
				a.ID = a.Lasting + " ended"
				if _, known := s.lasting[a.Lasting]; !known {
					continue
				}
				delete(s.lasting, a.Lasting)
			} else if a.Lasting != "" {
				s.lasting[a.Lasting] = a
			}
			if _, known := s.alerts[a.ID]; !known {
				s.alerts[a.ID] = a
				fresh = append(fresh, a)
				if a.Lasting == "" {
					s.inserts++
				}
			}
		}
	})
	return fresh, err
}

func (s *fakeStore) Arrived(ctx context.Context, after, upto time.Time, do func([]ingest.Row) error) error {
	var rows []ingest.Row
	var failed error
	if err := s.try(ctx, "arrived", func() {
		for at, list := range s.arrived {
			if at.After(after) && !at.After(upto) {
				rows = append(rows, list...)
			}
		}
		if s.reading != nil {
			failed = s.reading(after, upto, len(rows))
		}
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	if len(rows) == 0 {
		return nil
	}
	return do(rows)
}

func (s *fakeStore) Ask(ctx context.Context, q alert.Question, since time.Time, do func(map[string]any) error) error {
	if s.asking != nil {
		s.asking(q.SQL)
	}
	var answer []map[string]any
	if err := s.try(ctx, "ask", func() {
		s.asked = append(s.asked, since)
		answer = s.answer
	}); err != nil {
		return err
	}
	for _, row := range answer {
		if err := do(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeStore) Marks(ctx context.Context) (list []alert.Mark, err error) {
	err = s.try(ctx, "marks", func() { list = slices.Collect(maps.Values(s.marks)) })
	return list, err
}

func (s *fakeStore) SetMarks(ctx context.Context, marks []alert.Mark) error {
	return s.try(ctx, "set marks", func() {
		for _, m := range marks {
			if !m.At.Before(s.marks[m.Kind+" "+m.Name].At) {
				s.marks[m.Kind+" "+m.Name] = m
			}
		}
	})
}

func (s *fakeStore) LatestMark(ctx context.Context) (latest time.Time, err error) {
	err = s.try(ctx, "marks", func() {
		for _, m := range s.marks {
			if m.Kind == alert.MarkRun && m.Upto.After(latest) {
				latest = m.Upto
			}
		}
	})
	return latest, err
}

func (s *fakeStore) InsertLate(ctx context.Context, _ string, from, upto, _ time.Time) error {
	return s.try(ctx, "late", func() { s.late = append(s.late, [2]time.Time{from, upto}) })
}

func (s *fakeStore) Remember(ctx context.Context, _ string, _, _ time.Time) error {
	return s.try(ctx, "remember", func() {})
}

func (s *fakeStore) calls() (list []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.alerts {
		if a.Lasting == "" {
			list = append(list, a.CallNo)
		}
	}
	slices.Sort(list)
	return list
}

func (s *fakeStore) mark(name string) alert.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[name]
}

// engine returns one with a rule that finds every call of tool "x".
func engine(t *testing.T, s *fakeStore, name string, change ...func(*alert.Config)) *alert.Engine {
	t.Helper()
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: x, title: T, severity: info, reason: R, operations: [x]}
  - {name: q, title: T, severity: info, reason: R, query: SELECT, every: 1m}
`)}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	c := alert.Config{Rules: rules, Keeper: s, Records: s, Asker: s, Name: name}
	for _, f := range change {
		f(&c)
	}
	e, err := alert.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// start runs e until the function that it returns is called.
func start(t *testing.T, e *alert.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// collect stores a call of tool "x" as the collector does.
func (s *fakeStore) collect(e *alert.Engine, no uint64) {
	arrived, end := e.Begin()
	row := call(no, "x", "{}")
	s.mu.Lock()
	s.arrived[arrived] = append(s.arrived[arrived], row)
	s.mu.Unlock()
	end([]ingest.Row{row})
}

// measure returns a registry, and the change of a configuration that makes an
// engine export to it.
func measure() (*prometheus.Registry, func(*alert.Config)) {
	registry := prometheus.NewRegistry()
	return registry, func(c *alert.Config) { c.Metrics = registry }
}

// gathered returns the values of a counter or a gauge by their only label.
func gathered(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			values[label] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s is not exported", name)
	}
	return values
}

// wait lets the bubble's time pass.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal("the test is over")
	case <-time.After(d):
	}
	synctest.Wait() // for what others do at that time
}

func TestIncompleteConfig(t *testing.T) {
	s := &fakeStore{}
	whole := alert.Config{Rules: &alert.Rules{}, Keeper: s, Records: s, Asker: s, Name: "x"}
	for _, tt := range []struct {
		want   string
		change func(c *alert.Config)
	}{
		{"there are no rules", func(c *alert.Config) { c.Rules = nil }},
		{"there is no store", func(c *alert.Config) { c.Keeper = nil }},
		{"there is no store", func(c *alert.Config) { c.Records = nil }},
		{"there is no store", func(c *alert.Config) { c.Asker = nil }},
		{"this run has no name", func(c *alert.Config) { c.Name = "" }},
	} {
		c := whole
		tt.change(&c)
		if _, err := alert.New(c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New: %v, want %q", err, tt.want)
		}
	}
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		var told []uint64
		e := engine(t, s, "a", func(c *alert.Config) {
			c.Stored = func(alerts []alert.Alert) {
				for _, a := range alerts {
					told = append(told, a.CallNo)
				}
			}
		})
		stop := start(t, e)
		s.collect(e, 1)
		synctest.Wait()
		if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" {
			t.Errorf("alerts at once (-want +got):\n%s", diff)
		}
		wait(t, 5*time.Minute)
		if m := s.mark("run a"); time.Since(m.Upto) > 2*time.Minute {
			t.Errorf("the mark stays %v behind although all is evaluated", time.Since(m.Upto))
		}
		stop()
		if diff := cmp.Diff([]uint64{1}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// TestMarkFails has the store take no marks for hours, twice: the log says so once each
// time, and at most once a minute where the error's words change.
func TestMarkFails(t *testing.T) {
	const hours = 3
	for words, most := range map[string]int{"the same": 2, "another part": 2 * (hours*60 + 1)} {
		t.Run(words, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				core, logs := observer.New(zap.WarnLevel)
				stop := start(t, engine(t, s, "a", func(c *alert.Config) { c.Log = zap.New(core) }))
				for range 2 {
					parts := 0
					s.failing(func(what string) fault {
						if what != "set marks" {
							return none
						}
						if words == "another part" {
							parts++
							s.err = fmt.Errorf("writing part %d: %w", parts, errStore)
						}
						return lost
					})
					wait(t, hours*time.Hour)
					s.failing(func(string) fault { return none })
					wait(t, 10*time.Minute)
				}
				stop()
				if n := logs.FilterMessage("the mark of what is evaluated was not written").Len(); n < 2 || n > most {
					t.Errorf("said %d times, want at least 2 and at most %d", n, most)
				}
			})
		})
	}
}

// TestFullQueue passes more than the queue holds before evaluation starts, and then
// while the store hangs.
func TestFullQueue(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			e := engine(t, s, "a")
			stop := func() {}
			if hangs {
				s.failing(func(what string) fault {
					if what == "alerts" {
						return hang
					}
					return none
				})
				stop = start(t, e)
			}
			var want []uint64
			for no := range uint64(50) {
				s.collect(e, no) // would be a deadlock if it waited
				want = append(want, no)
				wait(t, time.Second)
			}
			synctest.Wait()
			if upto, first := s.mark("run a").Upto, time.Now().Add(-50*time.Second); upto.After(first) {
				t.Errorf("the mark is at %s, after the first record that is not evaluated, %s", upto, first)
			}
			stop()
			s.failing(func(string) fault { return none })
			if hangs {
				e = engine(t, s, "b") // after a restart
			}
			stop = start(t, e)
			wait(t, time.Minute)
			if diff := cmp.Diff(want, s.calls()); diff != "" {
				t.Errorf("hangs %v: alerts (-want +got):\n%s", hangs, diff)
			}
			stop()
		})
	}
}

// TestCrash stores a record whose evaluation never happens: here the collector
// starts again, there another one is running.
func TestCrash(t *testing.T) {
	for _, restarts := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			other := engine(t, s, "other")
			stop := start(t, other)
			synctest.Wait()
			dead := engine(t, s, "dead")
			s.collect(dead, 1)
			synctest.Wait()
			if got := s.calls(); len(got) != 0 {
				t.Fatalf("alerts before anybody could know: %v", got)
			}
			if restarts {
				stop()
				stop = start(t, engine(t, s, "again"))
				synctest.Wait()
			} else {
				wait(t, 4*time.Minute)
			}
			if diff := cmp.Diff([]uint64{1}, s.calls()); diff != "" {
				t.Errorf("restarts %v: alerts (-want +got):\n%s", restarts, diff)
			}
			wait(t, 5*time.Minute)
			if !s.mark("run dead").Closed {
				t.Error("the dead run's mark is open for ever")
			}
			stop()
		})
	}
}

// TestFaults fails every kind of call, not stored and stored, and looks for
// every alert once.
func TestFaults(t *testing.T) {
	for _, what := range []string{"alerts", "arrived", "marks", "set marks", "ask"} {
		for _, f := range []fault{lost, ackDropped} {
			t.Run(fmt.Sprint(what, f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					e := engine(t, s, "a")
					s.collect(engine(t, s, "dead"), 0)
					left := 3
					s.failing(func(asked string) fault {
						if asked != what || left == 0 {
							return none
						}
						left--
						return f
					})
					stop := start(t, e)
					want := []uint64{0}
					for no := range uint64(10) {
						s.collect(e, no+1)
						want = append(want, no+1)
						wait(t, time.Second)
					}
					wait(t, 10*time.Minute)
					if diff := cmp.Diff(want, s.calls()); diff != "" || s.inserts != len(want) {
						t.Errorf("%d alerts were stored (-want +got):\n%s", s.inserts, diff)
					}
					if left != 0 {
						t.Errorf("only %d calls failed", 3-left)
					}
					stop()
				})
			})
		}
	}
}

// TestMarkWaits begins to store records that are stored much later.
func TestMarkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		e := engine(t, s, "a")
		stop := start(t, e)
		began, stored := e.Begin()
		_, failed := e.Begin()
		wait(t, 10*time.Minute)
		if upto := s.mark("run a").Upto; !upto.Before(began) {
			t.Errorf("the mark is at %s, but records of %s are still being stored", upto, began)
		}
		failed(nil)
		stored([]ingest.Row{call(1, "x", "{}")})
		wait(t, time.Minute)
		if upto := s.mark("run a").Upto; !upto.After(began) {
			t.Errorf("the mark stays at %s", upto)
		}
		stop()
	})
}

// TestManyAlerts stores batches in which each record raises an alert, the last of them
// while the queue is full. Their alerts are never in memory all at once.
func TestManyAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches, n, most = 3, 4500, 1000
		s := newFakeStore()
		e := engine(t, s, "a")
		for batch := range batches {
			arrived, end := e.Begin()
			rows := make([]ingest.Row, n)
			for i := range rows {
				rows[i] = call(uint64(batch*n+i+1), "x", "{}")
			}
			s.arrived[arrived] = rows
			end(rows)
		}
		stop := start(t, e)
		wait(t, 10*time.Minute)
		stop()
		if len(s.alerts) != batches*n || s.most > most {
			t.Errorf("%d alerts, at most %d in one insert, want %d and %d", len(s.alerts), s.most, batches*n, most)
		}
	})
}

// TestOneAsks has three runs, the last of which begins later. One of them asks a
// question each minute. When two have ended, the one that is left does.
func TestOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		count := func(d time.Duration) int {
			s.mu.Lock()
			before := len(s.asked)
			s.mu.Unlock()
			wait(t, d)
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.asked) - before
		}
		stopFirst := start(t, engine(t, s, "first"))
		stopSecond := start(t, engine(t, s, "second"))
		wait(t, 20*time.Second)
		stopThird := start(t, engine(t, s, "third"))
		wait(t, 5*time.Minute)
		if n := count(20 * time.Minute); n < 18 || n > 21 {
			t.Errorf("three runs asked %d times in 20 minutes", n)
		}
		stopThird()
		stopFirst()
		if n := count(10 * time.Minute); n < 9 || n > 11 {
			t.Errorf("the run that was left asked %d times in 10 minutes", n)
		}
		stopSecond()
	})
}

// TestSlowQuestions has questions that take long. What was asked counts, also if the
// collector ends before it has asked all of them, and two collectors ask different
// ones as a rule.
func TestSlowQuestions(t *testing.T) {
	var file strings.Builder
	file.WriteString("rules:\n")
	const n = 6
	for i := range n {
		fmt.Fprintf(&file, "  - {name: q%d, title: T, severity: info, reason: R, query: SELECT %[1]d, every: 1m}\n", i)
	}
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(file.String())}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	slow := func(c *alert.Config) { c.Rules = rules }
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		var mu sync.Mutex
		now, total, overlaps := map[string]int{}, map[string]int{}, 0 // by question; guarded by mu
		s.asking = func(sql string) {
			mu.Lock()
			if total[sql]++; now[sql] > 0 {
				overlaps++
			}
			now[sql]++
			mu.Unlock()
			<-time.After(20 * time.Second)
			mu.Lock()
			now[sql]--
			mu.Unlock()
		}
		stop := start(t, engine(t, s, "first", slow))
		wait(t, 70*time.Second)
		stop()
		marks := 0
		for i := range n {
			if !s.mark(fmt.Sprintf("rule q%d", i)).At.IsZero() {
				marks++
			}
		}
		if marks < 3 {
			t.Errorf("of three questions that were asked, %d have marks", marks)
		}
		clear(total)
		overlaps = 0
		stopFirst := start(t, engine(t, s, "second", slow))
		stopSecond := start(t, engine(t, s, "third", slow))
		wait(t, 30*time.Minute)
		stopFirst()
		stopSecond()
		asked := 0
		for sql, times := range total {
			if asked += times; times < 20 {
				t.Errorf("%s was asked %d times in 30 minutes", sql, times)
			}
		}
		// In the same order, more than half would be asked by both.
		if len(total) != n || overlaps*100 > asked*45 {
			t.Errorf("%d questions were asked, %d of %d times while the other asked the same", len(total), overlaps, asked)
		}
	})
}

// TestSchedule asks a question again and again, from where the last answer
// ended, also after an answer that failed and after a restart.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newFakeStore()
		s.answer = []map[string]any{{"key": "k", "ts": noon, "tenant": "acme", "call_no": uint64(7), "errors": uint64(3)}}
		stop := start(t, engine(t, s, "a"))
		wait(t, 150*time.Second)
		s.failing(func(what string) fault {
			if what == "ask" {
				return ackDropped
			}
			return none
		})
		wait(t, 2*time.Minute)
		s.failing(func(string) fault { return none })
		wait(t, time.Minute)
		stop()
		stop = start(t, engine(t, s, "b"))
		wait(t, 2*time.Minute)
		stop()
		if s.asked[0].After(began.Add(-time.Minute)) {
			t.Errorf("the first question looks back to %s, and misses what another run, whose clock is behind, stores at %s", s.asked[0], began)
		}
		for i, since := range s.asked[1:] {
			if since.Before(s.asked[i]) {
				t.Errorf("question %d looks further back than the one before: %s, %s", i+1, since, s.asked[i])
			}
		}
		if n := len(s.asked); n < 6 || n > 10 {
			t.Errorf("asked %d times in seven minutes", n)
		}
		if s.asked[3] != s.asked[4] {
			t.Errorf("after a failure the question moved from %s to %s", s.asked[3], s.asked[4])
		}
		if diff := cmp.Diff([]uint64{7}, s.calls()); diff != "" || s.inserts != 1 {
			t.Errorf("%d alerts (-want +got):\n%s", s.inserts, diff)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.alerts {
			if a.Lasting == "" && (a.Details != `{"errors":3}` || a.Tenant != "acme" || !a.TS.Equal(noon)) {
				t.Errorf("alert %+v", a)
			}
		}
	})
}

// TestQuestionsHaveTheirConditions: what a rule leaves out is in the SQL, or it would
// count what its author excluded.
func TestQuestionsHaveTheirConditions(t *testing.T) {
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: t, title: T, severity: info, reason: R, operations: [x, "o'y"], threshold: {count: 2, within: 1m, by: [user], where: "tier = 'a' OR tier = 'b'"}, every: 1m}
  - {name: f, title: T, severity: info, reason: R, kinds: [call], first_seen: {by: [tool], learn: 1d, where: "tier = 'c'"}, every: 1m}
`)}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		var mu sync.Mutex
		asked := ""
		s.asking = func(sql string) {
			mu.Lock()
			defer mu.Unlock()
			asked += sql
		}
		stop := start(t, engine(t, s, "a", func(c *alert.Config) { c.Rules = rules }))
		wait(t, 3*time.Minute)
		stop()
		for _, want := range []string{`AND operation IN ('x', 'o\'y') AND (tier = 'a' OR tier = 'b')`, `AND (tier = 'c')`} {
			if !strings.Contains(asked, want) {
				t.Errorf("no question has %q:\n%s", want, asked)
			}
		}
	})
}

// TestRuleCannotRun has a rule whose question fails: once, which is no alert,
// then for long, also over a restart, which is one alert until it runs again.
func TestRuleCannotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		registry, measured := measure()
		e := engine(t, s, "a", measured)
		stop := start(t, e)
		wait(t, 150*time.Second)
		if lag := gathered(t, registry, "auditcollector_rule_lag_seconds"); lag["q"] > 2 {
			t.Errorf("lag %v of a rule that runs", lag)
		}
		fail := func(times int) {
			s.failing(func(what string) fault {
				if what == "ask" && times != 0 {
					times--
					return lost
				}
				return none
			})
		}
		want := func(what string, failing int, alerts ...string) {
			t.Helper()
			var got []string
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, a := range s.alerts {
				if a.Rule != "rule-cannot-run" || a.Severity != alert.Critical {
					t.Errorf("%s: alert %+v", what, a)
				}
				got = append(got, a.Details)
			}
			slices.Sort(got)
			if diff := cmp.Diff(alerts, got); diff != "" {
				t.Errorf("%s: alerts (-want +got):\n%s", what, diff)
			}
			if got := gathered(t, registry, "auditcollector_failing_rules")[""]; got != float64(failing) {
				t.Errorf("%s: %v rules fail, want %d", what, got, failing)
			}
		}
		fail(1)
		wait(t, 3*time.Minute)
		want("one failure", 0)
		fail(-1)
		wait(t, 10*time.Minute)
		said := `{"error":"the store failed","rule":"q"}`
		want("for long", 1, said)
		lag, failures := gathered(t, registry, "auditcollector_rule_lag_seconds"), gathered(t, registry, "auditcollector_rule_failures_total")
		if lag["q"] < 8*60 || lag["q"] > 10*60 || failures["q"] < 8 {
			t.Errorf("after ten minutes of failures: lag %v, failures %v", lag, failures)
		}
		stop()
		registry, measured = measure()
		e = engine(t, s, "b", measured)
		stop = start(t, e)
		wait(t, 10*time.Minute)
		want("after a restart", 1, said)
		fail(0)
		wait(t, 10*time.Minute)
		want("it runs again", 0, said, `{"rule":"q"}`)
		fail(-1)
		wait(t, 10*time.Minute)
		want("it fails again", 1, said, said, `{"rule":"q"}`)
		stop()
	})
}

// TestSweepCannotRun has searches for what a dead run left fail: once, which is no
// alert, then for long, which is one in an hour until they work again. The lag
// grows meanwhile.
func TestSweepCannotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		at := time.Now()
		s.arrived[at] = []ingest.Row{call(1, "x", "{}")}
		s.marks["run dead"] = alert.Mark{Name: "dead", Kind: alert.MarkRun, Upto: at.Add(-time.Second), At: at}
		failing := true
		s.failing(func(what string) fault {
			if what == "arrived" && failing {
				return lost
			}
			return none
		})
		registry, measured := measure()
		e := engine(t, s, "a", measured)
		stop := start(t, e)
		told := func() (list []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, a := range s.alerts {
				if a.Rule == "sweep-cannot-run" {
					list = append(list, fmt.Sprint(a.Severity, " ", a.Details))
				}
			}
			slices.Sort(list)
			return list
		}
		state := func(what string, lag, sweeps float64, alerts ...string) {
			t.Helper()
			gotLag, gotSweeps := gathered(t, registry, "auditcollector_alert_lag_seconds")[""], gathered(t, registry, "auditcollector_failing_sweeps")[""]
			if gotLag != lag || gotSweeps != sweeps {
				t.Errorf("%s: lag %v, %v sweeps failed, want %v and %v", what, gotLag, gotSweeps, lag, sweeps)
			}
			if diff := cmp.Diff(alerts, told()); diff != "" {
				t.Errorf("%s: alerts (-want +got):\n%s", what, diff)
			}
		}
		failed := `critical {"error":"evaluating what arrived after ` + at.Add(-time.Second).Format(time.RFC3339) + `: the store failed"}`
		wait(t, 10*time.Second)
		state("one failure", 11, 1)
		wait(t, 30*time.Minute)
		state("for long", 11+30*60, 91, failed)
		s.mu.Lock()
		failing = false
		s.mu.Unlock()
		wait(t, time.Minute)
		state("it works again", 0, 0, failed, "critical {}")
		if got := s.calls(); len(got) != 1 {
			t.Errorf("alerts of calls %v, want the one that was left", got)
		}
		sweeps := gathered(t, registry, "auditcollector_sweeps_total")
		if sweeps["failed"] != 91 || sweeps["done"] == 0 {
			t.Errorf("sweeps %v", sweeps)
		}
		stop()
	})
}

// TestLag checks that the lag counts what is stored and not evaluated, and not
// what cannot be stored.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		registry, measured := measure()
		e := engine(t, s, "a", measured)
		stop := start(t, e)
		wait(t, time.Minute)
		_, end := e.Begin()
		wait(t, time.Hour)
		lag := func() float64 { return gathered(t, registry, "auditcollector_alert_lag_seconds")[""] }
		if got := lag(); got != 0 {
			t.Errorf("lag %v while nothing is stored", got)
		}
		end(nil)
		s.failing(func(what string) fault {
			if what == "alerts" {
				return lost
			}
			return none
		})
		s.collect(e, 1)
		wait(t, time.Hour)
		if got := lag(); got != 3600 {
			t.Errorf("lag %v an hour after a record that is not evaluated", got)
		}
		s.failing(func(string) fault { return none })
		wait(t, time.Minute)
		if got := lag(); got != 0 {
			t.Errorf("lag %v with all evaluated", got)
		}
		stop()
	})
}

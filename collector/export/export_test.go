package export_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

// bubble runs a test with its own time.
func bubble(name string, t *testing.T, do func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, do) })
}

func TestSends(t *testing.T) {
	bubble("in order, from now on, each once", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		s.arrive("before", 1)
		wait(t, time.Minute)
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		var want []string
		for n := range uint64(20) {
			s.arrive("s", n)
			want = append(want, ids("s", n)...)
			wait(t, 700*time.Millisecond)
		}
		wait(t, 2*time.Second)
		if diff := cmp.Diff(want, r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		s.mu.Lock()
		reads := s.reads
		s.mu.Unlock()
		wait(t, time.Hour)
		if s.mu.Lock(); s.reads != reads {
			t.Errorf("%d reads of an hour without records", s.reads-reads)
		}
		s.mu.Unlock()
		stop()
		if m := s.mark("r"); m.Owner != "" || m.Sent != 20 || time.Since(m.Position.Arrived) > time.Minute {
			t.Errorf("last mark %+v", m)
		}
		s.arrive("s", 20)
		stop = begin(t, s, "b", map[string]*fakeReceiver{"r": r})
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 20), r.take()); diff != "" {
			t.Errorf("after a restart (-want +got)\n%s", diff)
		}
		stop()
	})
	bubble("from a time on", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		s.arrive("s", 1)
		wait(t, time.Hour)
		s.arrive("s", 2)
		wait(t, time.Hour)
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r}, func(c *export.Config) { c.Receivers[0].Since = time.Now().Add(-90 * time.Minute) })
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 2), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
	})
	bubble("what its filter matches, and no erased session", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r}, func(c *export.Config) {
			c.Receivers[0].Match = func(row *ingest.Row) bool { return row.Record.Seq%2 == 0 }
			c.Erased = func(session string) bool { return session == "erased" }
		})
		wait(t, 5*time.Second)
		s.arrive("erased", numbers(0, 10)...)
		s.arrive("s", numbers(0, 5)...)
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 0, 2, 4), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
	})
	bubble("not what another collector may still be storing", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.mu.Lock()
		s.hold = time.Now()
		s.mu.Unlock()
		wait(t, time.Second)
		s.arrive("s", 2)
		wait(t, time.Minute)
		if got := r.take(); len(got) > 0 {
			t.Errorf("got %q before it is settled", got)
		}
		s.mu.Lock()
		s.arriveAt(s.hold.Add(time.Millisecond), "s", 1)
		s.hold = time.Time{}
		s.mu.Unlock()
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 1, 2), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
	})
}

// TestGivesWay has many records wait to be stored: two receivers together take a
// small part of the time, and all of it afterwards.
func TestGivesWay(t *testing.T) {
	bubble("to storing", t, func(t *testing.T) {
		const records, sendFor, during = 50_000, 10 * time.Millisecond, 5 * time.Minute
		s := newFakeStore()
		s.arrive("s", numbers(0, records)...)
		var behind atomic.Bool
		behind.Store(true)
		var busy atomic.Int64
		to := map[string]*fakeReceiver{}
		for _, name := range []string{"a", "b"} {
			to[name] = &fakeReceiver{answer: func(context.Context, []receiver.Record) (bool, error) {
				wait(t, sendFor)
				busy.Add(int64(sendFor))
				return true, nil
			}}
		}
		stop := begin(t, s, "a", to, func(c *export.Config) {
			c.Behind = behind.Load
			for i := range c.Receivers {
				c.Receivers[i].Since = time.Now()
			}
		})
		wait(t, during)
		if share := float64(busy.Load()) / float64(during); share == 0 || share > 1./80 {
			t.Errorf("they take %.3f of the time", share)
		}
		for name, r := range to {
			if len(r.take()) == 0 {
				t.Errorf("%s gets nothing", name)
			}
		}
		behind.Store(false)
		wait(t, 10*time.Second)
		if got := s.mark("a").Sent + s.mark("b").Sent; got != 2*records {
			t.Errorf("%d records sent, want %d", got, 2*records)
		}
		stop()
	})
}

// TestFailures has one receiver fail while another works, in both ways.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(ctx context.Context, records []receiver.Record) (bool, error)
		twice  bool // it may get records twice
	}{
		{"nothing is taken", func(context.Context, []receiver.Record) (bool, error) { return false, errAway }, false},
		{"all is taken, and reported failed", func(context.Context, []receiver.Record) (bool, error) { return true, errAway }, true},
		{"no answer", func(ctx context.Context, _ []receiver.Record) (bool, error) { <-ctx.Done(); return false, ctx.Err() }, false},
	} {
		bubble(tt.name, t, func(t *testing.T) {
			s, works, fails := newFakeStore(), &fakeReceiver{}, &fakeReceiver{}
			registry := prometheus.NewRegistry()
			var raised []alert.Alert
			stop := begin(t, s, "a", map[string]*fakeReceiver{"works": works, "fails": fails}, func(c *export.Config) {
				c.Metrics = registry
				c.Raise = func(_ context.Context, a alert.Alert) error { raised = append(raised, a); return nil }
			})
			wait(t, 5*time.Second)
			raised = nil // it closes what an earlier run has raised
			fails.answers(tt.answer)
			s.arrive("s", numbers(0, 2500)...)
			wait(t, 3*time.Second)
			if diff := cmp.Diff(ids("s", numbers(0, 2500)...), works.take()); diff != "" {
				t.Errorf("the other receiver (-want +got)\n%s", diff)
			}
			wait(t, time.Hour)
			if n := fails.attempts(); n < 15 || n > 70 {
				t.Errorf("%d attempts in an hour", n)
			}
			m := s.mark("fails")
			if m.Error == "" || time.Since(m.Failing) < 50*time.Minute || m.Sent > 0 {
				t.Errorf("mark %+v", m)
			}
			for name, want := range map[string][2]float64{"up": {0, 1}, "sending": {1, 1}, "lag_records": {2500, 0}} {
				got := gathered(t, registry, "auditcollector_export_"+name)
				if got["fails"] != want[0] || got["works"] != want[1] {
					t.Errorf("%s = %v, want %v", name, got, want)
				}
			}
			if lag := gathered(t, registry, "auditcollector_export_lag_seconds"); lag["fails"] < 3600 || lag["fails"] > 3610 || lag["works"] != 0 {
				t.Errorf("lag %v", lag)
			}
			if len(raised) != 1 || raised[0].Extent == 0 || raised[0].Rule != "export-cannot-run" {
				t.Errorf("raised %+v", raised)
			}
			fails.answers(nil)
			got := fails.take()
			wait(t, 2*time.Minute)
			got = append(got, fails.take()...)
			if !tt.twice && len(got) != 2500 {
				t.Errorf("%d records, want each once", len(got))
			}
			slices.Sort(got)
			if got := slices.Compact(got); len(got) != 2500 {
				t.Errorf("%d of 2500 records", len(got))
			}
			if len(raised) != 2 || !raised[1].Ended() || raised[1].Lasting != raised[0].Lasting {
				t.Errorf("raised %+v", raised)
			}
			if m := s.mark("fails"); m.Error != "" || !m.Failing.IsZero() {
				t.Errorf("mark %+v", m)
			}
			stop()
			if n := len(s.listRefused()); n > 0 {
				t.Errorf("%d records are stored as refused", n)
			}
		})
	}
}

// TestHeldBack stores records that a collector, which was killed or whose insert takes
// long, holds back: the metrics tell that receivers lack them.
func TestHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, registry := newFakeStore(), &fakeReceiver{}, prometheus.NewRegistry()
		ahead := time.Now().Add(72 * time.Hour) // a clock that was set back
		s.marks["of-a-clock"] = export.Mark{Receiver: "of-a-clock", Position: source.Upto(ahead), At: time.Now()}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r, "of-a-clock": {}}, func(c *export.Config) { c.Metrics = registry })
		defer stop()
		want := func(what string, seconds, records float64) {
			t.Helper()
			for _, name := range []string{"r", "of-a-clock"} {
				lag, waiting := gathered(t, registry, "auditcollector_export_lag_seconds")[name], gathered(t, registry, "auditcollector_export_lag_records")[name]
				if lag < seconds-1 || lag > seconds+1 || waiting != records {
					t.Errorf("%s: %s has a lag of %v s and %v records, want %v and %v", what, name, lag, waiting, seconds, records)
				}
			}
		}
		wait(t, 5*time.Second)
		s.mu.Lock()
		s.hold = time.Now()
		s.mu.Unlock()
		wait(t, time.Minute)
		want("nothing is held back", 0, 0)
		s.arrive("s", numbers(0, 3)...)
		wait(t, 2*time.Minute)
		want("records are", 180, 3) // the first may have arrived when the hold began
		s.mu.Lock()
		s.hold = time.Time{}
		s.mu.Unlock()
		wait(t, 10*time.Second)
		want("no more", 0, 0)
		if diff := cmp.Diff(ids("s", numbers(0, 3)...), r.take()); diff != "" {
			t.Errorf("the receiver (-want +got)\n%s", diff)
		}
	})
}

func gathered(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				values[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s is not exported", name)
	}
	return values
}

// TestStoreFails has each step fail at some time, before and after it is done.
func TestStoreFails(t *testing.T) {
	for _, what := range []string{"settled", "news", "read", "count", "marks", "set marks", "late", "late sent", "refused", "asked", "find"} {
		for _, after := range []bool{false, true} {
			bubble(fmt.Sprintf("%s, done: %v", what, after), t, func(t *testing.T) {
				s, r := newFakeStore(), &fakeReceiver{}
				r.answers(func(_ context.Context, list []receiver.Record) (bool, error) {
					if slices.ContainsFunc(list, func(r receiver.Record) bool { return r.Record.Seq == 7 }) {
						return false, receiver.ErrRefused
					}
					return true, nil
				})
				n := uint(0)
				fault := func(step string) error {
					if step == what {
						// Without a period: two parts of the engine take a step in turns,
						// and each is to succeed at times.
						if n++; bits.OnesCount(n)%2 == 1 {
							return errStore
						}
					}
					return nil
				}
				if after {
					s.lost = fault
				} else {
					s.fails = fault
				}
				stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
				wait(t, time.Minute)
				s.arrive("s", numbers(0, 20)...)
				wait(t, time.Minute)
				s.mu.Lock()
				s.arriveAt(time.Now().Add(-30*time.Second), "late", 1)
				s.late = append(s.late, late("1", time.Now().Add(-30*time.Second)))
				s.mu.Unlock()
				wait(t, 2*time.Minute)
				got := r.take()
				slices.Sort(got)
				want := append(slices.DeleteFunc(ids("s", numbers(0, 20)...), func(id string) bool { return id == "s 7" }), "late 1")
				slices.Sort(want)
				if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if refused := s.listRefused(); len(refused) != 1 || refused["r s 7"] == "" {
					t.Errorf("refused %v", refused)
				}
				// Someone asks to send that one again.
				r.answers(nil)
				s.mu.Lock()
				asked := s.refused["r s 7"]
				asked.AskedAt = time.Now()
				s.refused["r s 7"] = asked
				s.mu.Unlock()
				wait(t, 2*time.Minute)
				stop()
				if diff := cmp.Diff(ids("s", 7), slices.Compact(r.take())); diff != "" || len(s.listRefused()) > 0 {
					t.Errorf("sent again, refused %v (-want +got)\n%s", s.listRefused(), diff)
				}
			})
		}
	}
}

// refusing refuses what has one of some numbers.
func refusing(refused func(seq uint64) bool) func(context.Context, []receiver.Record) (bool, error) {
	return func(_ context.Context, list []receiver.Record) (bool, error) {
		for i := range list {
			if refused(list[i].Record.Seq) {
				return false, fmt.Errorf("%w: number %d\x1b is odd", receiver.ErrRefused, list[i].Record.Seq)
			}
		}
		return true, nil
	}
}

// TestRefused has receivers refuse some records, and all.
func TestRefused(t *testing.T) {
	bubble("single records", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		r.answers(refusing(func(seq uint64) bool { return seq == 3 || seq == 700 }))
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 1000)...)
		wait(t, 3*time.Second)
		want := slices.DeleteFunc(numbers(0, 1000), func(n uint64) bool { return n == 3 || n == 700 })
		if diff := cmp.Diff(ids("s", want...), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{
			"r s 3": `the receiver does not take it: number 3\x1b is odd`, "r s 700": `the receiver does not take it: number 700\x1b is odd`,
		}, s.listRefused()); diff != "" {
			t.Errorf("refused (-want +got)\n%s", diff)
		}
		// Someone asks to send them again: one is taken now, one is not stored any more.
		ask := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for k, r := range s.refused {
				if r.SentAt.IsZero() {
					r.AskedAt = time.Now()
					s.refused[k] = r
				}
			}
		}
		position := s.mark("r").Position
		ask()
		wait(t, 3*time.Second)
		if got := r.take(); len(got) > 0 || len(s.listRefused()) != 2 {
			t.Errorf("sent again and refused again: got %q, refused %v", got, s.listRefused())
		}
		r.answers(nil)
		s.mu.Lock()
		s.rows = slices.DeleteFunc(s.rows, func(r receiver.Record) bool { return r.Record.Seq == 3 })
		s.mu.Unlock()
		ask()
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 700), r.take()); diff != "" {
			t.Errorf("sent again (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"r s 3": "the record is no longer stored"}, s.listRefused()); diff != "" {
			t.Errorf("refused (-want +got)\n%s", diff)
		}
		if now := s.mark("r").Position; now.Arrived.Before(position.Arrived) {
			t.Errorf("the mark moved from %v to %v", position, now)
		}
		stop()
	})
	bubble("a record, by a receiver that fails now and then", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		n := 0
		r.answers(func(ctx context.Context, list []receiver.Record) (bool, error) {
			if n++; n%4 == 0 {
				return false, errAway
			}
			return refusing(func(seq uint64) bool { return seq%300 == 133 })(ctx, list)
		})
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 900)...)
		wait(t, 2*time.Minute)
		got := r.take()
		slices.Sort(got)
		if got := slices.Compact(got); len(got) != 897 || len(s.listRefused()) != 3 {
			t.Errorf("%d records came, %d are refused", len(got), len(s.listRefused()))
		}
		stop()
	})
	bubble("many, of a receiver that works", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		r.answers(refusing(func(seq uint64) bool { return seq >= 10 && seq < 500 }))
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 1000)...)
		wait(t, 3*time.Second)
		got := r.take()
		slices.Sort(got)
		if got := slices.Compact(got); len(got) != 510 || len(s.listRefused()) != 490 {
			t.Errorf("%d records came, %d are refused", len(got), len(s.listRefused()))
		}
		stop()
	})
	for _, tt := range []struct {
		name  string
		taken int // records before
		want  string
	}{
		{"all, from the start", 0, "it refuses every record"},
		{"all, later", 20, "it now refuses a record that it took before"},
	} {
		bubble(tt.name, t, func(t *testing.T) {
			s, r := newFakeStore(), &fakeReceiver{}
			stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
			wait(t, 5*time.Second)
			s.arrive("s", numbers(0, uint64(tt.taken))...)
			wait(t, 3*time.Second)
			r.take()
			r.answers(refusing(func(uint64) bool { return true }))
			s.arrive("t", numbers(0, 1000)...)
			wait(t, time.Hour)
			if n := len(s.listRefused()); n > 0 {
				t.Errorf("%d records are left out", n)
			}
			if m := s.mark("r"); len(m.Error) < len(tt.want) || m.Error[:len(tt.want)] != tt.want {
				t.Errorf("error %q", m.Error)
			}
			if n := r.attempts(); n > 70*70 {
				t.Errorf("%d attempts in an hour", n)
			}
			r.answers(nil)
			r.take()
			wait(t, 2*time.Minute)
			got := r.take()
			slices.Sort(got)
			got = slices.DeleteFunc(slices.Compact(got), func(id string) bool { return id[0] == 's' })
			if len(got) != 1000 {
				t.Errorf("%d of 1000 records once it works", len(got))
			}
			stop()
		})
	}
	bubble("large batches", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		r.answers(func(_ context.Context, list []receiver.Record) (bool, error) {
			if len(list) > 100 {
				return false, receiver.ErrRefused
			}
			return true, nil
		})
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 5000)...)
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", numbers(0, 5000)...), r.take()); diff != "" || len(s.listRefused()) > 0 {
			t.Errorf("refused %v (-want +got)\n%s", s.listRefused(), diff)
		}
		if n := r.attempts(); n > 120 {
			t.Errorf("%d sends: it does not learn what is too large", n)
		}
		stop()
	})
	bubble("damaged rows", t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		s.broken[4] = true
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 8)...)
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 0, 1, 2, 3, 5, 6, 7), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"r s 4": "damaged"}, s.listRefused()); diff != "" {
			t.Errorf("refused (-want +got)\n%s", diff)
		}
		// Someone asks to send it again: it is refused again, and holds nothing up.
		s.mu.Lock()
		asked := s.refused["r s 4"]
		asked.AskedAt = time.Now()
		s.refused["r s 4"] = asked
		s.mu.Unlock()
		s.arrive("s", 8)
		wait(t, time.Minute)
		if diff := cmp.Diff(ids("s", 8), r.take()); diff != "" {
			t.Errorf("after it was asked for (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"r s 4": "the stored record is damaged: its columns differ"}, s.listRefused()); diff != "" {
			t.Errorf("refused again (-want +got)\n%s", diff)
		}
		stop()
	})
}

// late is a report of records that arrived at a time.
func late(id string, at time.Time) export.Late { return export.Late{ID: id, From: at, Upto: at} }

// TestLate has records become visible behind the position.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, time.Hour)
		s.mu.Lock()
		at := time.Now().Add(-10 * time.Minute)
		s.arriveAt(at, "s", 1, 2)
		s.arriveAt(at.Add(time.Millisecond), "s", 3) // of another insert, which is not reported
		s.arriveAt(at.Add(-2*time.Hour), "s", 4)
		s.late = []export.Late{late("1", at.Add(time.Microsecond)), late("2", at.Add(-2*time.Hour))}
		s.mu.Unlock()
		wait(t, 3*time.Second)
		if diff := cmp.Diff(ids("s", 1, 2), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		wait(t, time.Minute)
		stop()
		stop = begin(t, s, "b", map[string]*fakeReceiver{"r": r, "new": r})
		wait(t, time.Minute)
		if got := r.take(); len(got) > 0 {
			t.Errorf("sent again: %q", got)
		}
		stop()
	})
}

// TestLatePeriod has records arrive in periods that are reported as a whole, and far behind
// the position: each is sent once, although periods overlap, when all that arrived before
// it can be read, also after a restart and by a receiver that was absent.
func TestLatePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, time.Minute)
		stop()
		s.mu.Lock()
		m := s.marks["r"]
		m.Position.Arrived = time.Now().Add(48 * time.Hour)
		s.marks["r"] = m
		s.mu.Unlock()
		stop = begin(t, s, "b", map[string]*fakeReceiver{"r": r})
		wait(t, time.Minute)
		began := time.Now()
		for n := range uint64(100) {
			s.mu.Lock()
			if n%30 == 0 {
				s.late = append(s.late, export.Late{ID: fmt.Sprint(n), From: time.Now(), Upto: began.Add(2 * time.Minute)})
			}
			s.arriveAt(time.Now(), "s", n)
			s.mu.Unlock()
			wait(t, time.Second)
			switch n {
			case 50:
				r.answers(func(context.Context, []receiver.Record) (bool, error) { return false, errors.New("away") })
			case 60:
				r.answers(nil)
			case 80:
				stop()
				stop = begin(t, s, "c", map[string]*fakeReceiver{"r": r})
			}
		}
		wait(t, 10*time.Minute)
		got := r.take()
		if diff := cmp.Diff(ids("s", numbers(0, 100)...), slices.Compact(slices.Clone(got))); diff != "" || len(got) > 102 {
			t.Errorf("%d were sent (-want +got)\n%s", len(got), diff)
		}
		if left, err := s.Late(t.Context(), "r"); len(left) > 0 || err != nil {
			t.Errorf("of periods that are over, there is left: %v, %v", left, err)
		}
		stop()
	})
}

// TestLongPeriod: a receiver that fails in a period of many records gets the first ones
// once.
func TestLongPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, time.Hour)
		const queries, each = 2, 50_000
		from := time.Now().Add(-30 * time.Minute)
		s.mu.Lock()
		for i := range uint64(20) {
			const some = queries * each / 20
			s.arriveAt(from.Add(time.Duration(i)*time.Second), "s", numbers(i*some, (i+1)*some)...)
		}
		s.late = []export.Late{{ID: "1", From: from, Upto: from.Add(time.Minute)}}
		s.mu.Unlock()
		sent, failed := map[uint64]int{}, false
		r.answers(func(_ context.Context, records []receiver.Record) (bool, error) {
			if !failed && len(sent) > each+each/2 {
				failed = true
				return false, errAway
			}
			for i := range records {
				sent[records[i].Record.Seq]++
			}
			return true, nil
		})
		wait(t, 10*time.Minute)
		again := 0
		for _, times := range sent {
			again += times - 1
		}
		if !failed || len(sent) != queries*each || again > each {
			t.Errorf("failed: %t; of %d records %d were sent, %d of them again, want at most those of a query", failed, queries*each, len(sent), again)
		}
		stop()
	})
}

// TestLateOfClockAhead has records arrive after the clock was set back that was ahead when
// the receiver was first served: they are for it.
func TestLateOfClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r})
		wait(t, time.Minute)
		stop()
		s.mu.Lock()
		m := s.marks["r"]
		m.Since = time.Now().Add(3 * time.Hour)
		m.Position.Arrived = m.Since
		s.marks["r"] = m
		at := time.Now().Add(-time.Second)
		s.arriveAt(at, "s", 1, 2)
		s.late = []export.Late{late("1", at)}
		s.mu.Unlock()
		stop = begin(t, s, "b", map[string]*fakeReceiver{"r": r})
		wait(t, 2*time.Minute)
		if diff := cmp.Diff(ids("s", 1, 2), r.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
	})
}

// TestLease runs two collectors: one sends, and the other when the first ends, dies or
// hangs.
func TestLease(t *testing.T) {
	for _, tt := range []struct {
		name   string
		within time.Duration
		dead   bool // the other knows
		hang   bool
	}{
		{"it ends", 8 * time.Second, false, false},
		{"it dies", 45 * time.Second, false, true},
		{"it dies, which is known", 10 * time.Second, true, true},
	} {
		bubble(tt.name, t, func(t *testing.T) {
			s, one, two := newFakeStore(), &fakeReceiver{}, &fakeReceiver{}
			hangs := false
			stopOne := begin(t, s, "one", map[string]*fakeReceiver{"r": one}, func(c *export.Config) { c.Store = &hanging{s, &hangs} })
			wait(t, 3*time.Second)
			stopTwo := begin(t, s, "two", map[string]*fakeReceiver{"r": two}, func(c *export.Config) {
				c.Dead = func(name string) bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return tt.dead && hangs && name == "one"
				}
			})
			wait(t, time.Hour)
			s.arrive("s", 1)
			wait(t, time.Minute)
			if a, b := one.take(), two.take(); len(a) != 1 || len(b) != 0 {
				t.Errorf("the first got %q, the second %q", a, b)
			}
			if tt.hang {
				s.mu.Lock()
				hangs = true
				s.mu.Unlock()
			} else {
				stopOne()
			}
			s.arrive("s", 2)
			wait(t, tt.within)
			if diff := cmp.Diff(ids("s", 2), two.take()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if tt.hang { // and wakes
				s.mu.Lock()
				hangs = false
				s.mu.Unlock()
				s.arrive("s", 3)
				wait(t, time.Minute)
				s.arrive("s", 4)
				wait(t, time.Minute)
				one.take()
				if diff := cmp.Diff(ids("s", 3, 4), two.take()); diff != "" {
					t.Errorf("after the first woke (-want +got)\n%s", diff)
				}
				if m := s.mark("r"); m.Owner != "two" {
					t.Errorf("owner %q", m.Owner)
				}
				s.arrive("s", 5)
				wait(t, time.Minute)
				if got := one.take(); len(got) > 0 {
					t.Errorf("the first still sends %q", got)
				}
				stopOne()
			}
			stopTwo()
		})
	}
}

// TestOwnerAhead has a mark whose owner is gone and had a clock that was a year ahead.
// A collector takes it once it no longer changes, and keeps it while it sends nothing.
func TestOwnerAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one, two := newFakeStore(), &fakeReceiver{}, &fakeReceiver{}
		s.marks["r"] = export.Mark{Receiver: "r", Position: source.Upto(time.Now()), Owner: "gone", At: time.Now().Add(365 * 24 * time.Hour)}
		stopOne := begin(t, s, "one", map[string]*fakeReceiver{"r": one})
		wait(t, 20*time.Second)
		s.arrive("s", 1)
		wait(t, 5*time.Second)
		if got := one.take(); len(got) > 0 {
			t.Errorf("it sends %q before the mark was unchanged for long", got)
		}
		wait(t, 20*time.Second)
		if diff := cmp.Diff(ids("s", 1), one.take()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stopTwo := begin(t, s, "two", map[string]*fakeReceiver{"r": two})
		wait(t, 10*time.Minute)
		s.arrive("s", 2)
		wait(t, time.Minute)
		if a, b := one.take(), two.take(); len(a) != 1 || len(b) != 0 {
			t.Errorf("the first got %q, the second %q", a, b)
		}
		stopOne()
		stopTwo()
	})
}

// TestMarkTaken has another collector take the mark in the middle of a pass: the
// first one stops after the request that runs.
func TestMarkTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		stop := begin(t, s, "one", map[string]*fakeReceiver{"r": r})
		wait(t, 5*time.Second)
		s.arrive("s", numbers(0, 20_000)...) // fast, so that a pass has many requests
		wait(t, time.Minute)
		r.answers(func(context.Context, []receiver.Record) (bool, error) {
			<-time.After(10 * time.Second)
			return true, nil
		})
		s.arrive("s", numbers(20_000, 40_000)...)
		wait(t, 25*time.Second)
		m := s.mark("r")
		m.Owner, m.At = "two", time.Now().Add(time.Millisecond) // the first one may renew the mark at this moment, and of equal ones the last counts
		if err := s.SetMarks(t.Context(), []export.Mark{m}); err != nil {
			t.Fatal(err)
		}
		wait(t, 15*time.Second) // the marks of others are read, and the request ends
		before := r.attempts()
		wait(t, 14*time.Second) // less than a mark without an owner
		if n := r.attempts(); before == 0 || n != before {
			t.Errorf("%d requests before another collector had the mark, and %d more", before, n-before)
		}
		stop()
	})
}

// A hanging store belongs to a process that is stopped.
type hanging struct {
	*fakeStore
	hangs *bool
}

func (s *hanging) Settled(ctx context.Context, now time.Time) (time.Time, error) {
	for {
		s.mu.Lock()
		hangs := *s.hangs
		s.mu.Unlock()
		if !hangs {
			return s.fakeStore.Settled(ctx, now)
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// TestExpired has a receiver that was away for longer than records are kept.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newFakeStore(), &fakeReceiver{}
		s.marks["r"] = export.Mark{Receiver: "r", Position: source.Upto(time.Now()), At: time.Now()}
		wait(t, 400*24*time.Hour)
		registry := prometheus.NewRegistry()
		r.answers(func(context.Context, []receiver.Record) (bool, error) { return false, errAway })
		s.arrive("s", 0)
		stop := begin(t, s, "a", map[string]*fakeReceiver{"r": r}, func(c *export.Config) { c.Keep, c.Metrics = 300*24*time.Hour, registry })
		wait(t, 7*time.Second)
		if got := gathered(t, registry, "auditcollector_export_behind_retention")["r"]; got != 1 {
			t.Errorf("behind_retention = %v", got)
		}
		r.answers(nil)
		wait(t, 25*time.Hour)
		if got := gathered(t, registry, "auditcollector_export_behind_retention")["r"]; got != 0 {
			t.Errorf("behind_retention = %v a day after", got)
		}
		stop()
	})
}

func TestConfig(t *testing.T) {
	_, err := export.New(export.Config{Receivers: []export.Receiver{{Name: "a"}}})
	want := "configuring exports: there is no store\nthis run has no name\nreceiver \"a\" has no name, goes nowhere or is there twice"
	if err == nil || err.Error() != want {
		t.Errorf("New = %v, want %s", err, want)
	}
}

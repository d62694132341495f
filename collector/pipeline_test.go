package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A bench is a pipeline with one source, whose marks are numbers.
type bench struct {
	*Collector
	writer *writer
	store  *fakeStore
	in     chan chunk[int]
	done   chan struct{}
	stop   context.CancelFunc

	mu        sync.Mutex
	committed []int
	commitErr error
}

// Ready returns the errors of the parts that fail, nil if records flow.
func (c *Collector) Ready() error { return errorsOf(c.Failing()) }

// start runs a pipeline inside a synctest bubble.
func start(t *testing.T, rows int, store *fakeStore) *bench {
	t.Helper()
	return startLogging(t, rows, store, nil)
}

func startLogging(t *testing.T, rows int, store *fakeStore, log *zap.Logger) *bench {
	t.Helper()
	c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, Spools: []string{"/"}, BatchRows: rows, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{Collector: c, writer: newWriter(c, nil), store: store, in: make(chan chunk[int]), done: make(chan struct{}), stop: cancel}
	p := newPipeline(c, b.writer, func(marks []int) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.commitErr != nil {
			return b.commitErr
		}
		b.committed = append(b.committed, marks...)
		return nil
	})
	go func() {
		defer close(b.done)
		p.run(ctx, b.in)
	}()
	return b
}

// send gives the pipeline a chunk of one record; tool is its tool.
func (b *bench) send(mark int, tool string, change ...func(*audit.Record)) {
	var c chunk[int]
	value := line(mark, append(change, func(r *audit.Record) {
		if r.Tool = tool; tool == hugeTool {
			r.Args = audit.JSON(`{"text":"` + strings.Repeat("x", 1000+mark) + `"}`)
		}
	})...)
	c.add(&b.decoder, ingest.Message{Source: ingest.Source{Topic: "t", Offset: uint64(mark)}, Key: []byte(testSession), Value: value})
	c.mark = mark
	b.in <- c
}

func (b *bench) marks() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.committed)
}

func (b *bench) end() {
	b.stop()
	<-b.done
}

func (b *bench) want(t *testing.T, committed []int, records, letters int) {
	t.Helper()
	if got := b.marks(); !slices.Equal(got, committed) {
		t.Errorf("committed %v, want %v", got, committed)
	}
	if r, l := b.store.stored(); r != records || l != letters {
		t.Errorf("%d records and %d dead letters stored, want %d and %d", r, l, records, letters)
	}
}

// TestCommitFollowsInsert has the store fail in several ways first: the source
// is committed only after the store has the rows.
func TestCommitFollowsInsert(t *testing.T) {
	for name, f := range map[string]fault{
		"it waits for a store that fails":                lost,
		"it waits for a store that drops its answer":     ackDropped,
		"it waits for a store that hangs":                hang,
		"it waits for a store that wants to be mended":   refused,
		"it does not wait for a store that does its job": none,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.always = f
				b := start(t, 1, store)
				b.send(1, "a")
				<-time.After(time.Minute)
				if got := b.marks(); f != none && len(got) > 0 {
					t.Errorf("committed %v although the store failed", got)
				}
				store.mu.Lock()
				store.always = none
				store.mu.Unlock()
				<-time.After(time.Minute)
				b.want(t, []int{1}, 1, 0)
				b.end()
			})
		})
	}
}

// TestClocksDiffer has a clock that is two days behind the store's, which does not tell
// it at first: only what is wrong by both clocks becomes a dead letter.
func TestClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		core, logs := observer.New(zap.WarnLevel)
		b := startLogging(t, 5, newFakeStore(), zap.New(core))
		answers := []error{errStore, nil}
		b.writer.clock = func(context.Context) (time.Time, error) {
			err := answers[0]
			answers = answers[1:]
			return time.Now().Add(2 * day), err
		}
		for i, ahead := range []time.Duration{0, 2 * day, 4 * day, -399 * day, -401 * day} {
			b.send(i+1, "a", func(r *audit.Record) { r.TS = time.Now().Add(ahead) })
		}
		<-time.After(time.Minute)
		b.want(t, []int{1, 2, 3, 4, 5}, 3, 2)
		if n := logs.FilterMessage("the clocks of this machine and of ClickHouse differ: correct them").Len(); n != 1 {
			t.Errorf("%d lines about the clocks, want 1", n)
		}
		b.end()
	})
}

// TestLostAnswerIsRepeated checks that an insert whose answer is lost is repeated,
// and stays one record.
func TestLostAnswerIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.faults = []fault{ackDropped, ackDropped}
		b := start(t, 1, store)
		b.send(1, "a")
		<-time.After(time.Minute)
		b.want(t, []int{1}, 1, 0)
		for _, times := range store.rows {
			if times != 3 {
				t.Errorf("inserted %d times, want 3", times)
			}
		}
		b.end()
	})
}

// TestOrder checks that a batch stored early waits for the one before it, and that
// later chunks wait in their source.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.faults = []fault{hang}
		b := start(t, 1, store)
		b.send(1, "a")
		synctest.Wait() // the first insert has used up the fault
		b.send(2, "b")
		third := make(chan struct{})
		go func() {
			defer close(third)
			b.send(3, "c")
		}()
		<-time.After(10 * time.Second)
		if got := b.marks(); len(got) > 0 {
			t.Errorf("committed %v while the first batch hangs", got)
		}
		select {
		case <-third:
			t.Error("what cannot be sent yet takes memory")
		default:
		}
		<-time.After(time.Minute)
		b.want(t, []int{1, 2, 3}, 3, 0)
		b.end()
	})
}

// TestRevoke ends a generation: running inserts finish and are committed; a batch
// that fails is not committed, nor is any after it.
func TestRevoke(t *testing.T) {
	t.Run("it commits what was stored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, 1, newFakeStore())
			b.send(1, "a")
			b.end()
			b.want(t, []int{1}, 1, 0)
		})
	})
	t.Run("it waits for what is under way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore()
			store.always = slow
			b := start(t, 1, store)
			b.send(1, "a")
			synctest.Wait()
			b.end()
			b.want(t, []int{1}, 1, 0)
		})
	})
	t.Run("it forgets what was not sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, 10, newFakeStore())
			b.send(1, "a")
			b.end()
			b.want(t, nil, 0, 0)
		})
	})
	t.Run("it never commits past a hole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore()
			store.faults = []fault{hang}
			b := start(t, 1, store)
			b.send(1, "a")
			synctest.Wait()
			b.send(2, "b")
			synctest.Wait()
			b.end()
			b.want(t, nil, 1, 0)
		})
	})
}

func TestBatchWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1000, newFakeStore())
		for i := range 10 {
			b.send(i+1, "a")
			<-time.After(90 * time.Millisecond)
		}
		b.want(t, nil, 0, 0)
		<-time.After(time.Second)
		b.want(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10, 0)
		if b.store.inserts != 1 {
			t.Errorf("%d inserts, want 1", b.store.inserts)
		}
		b.end()
	})
}

// TestRefusedRows checks that before the commit the rows that the store refuses
// are found and the others stored.
func TestRefusedRows(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rows   int
		poison []int
		faults []fault
	}{
		{"it finds one of many", 300, []int{217}, nil},
		{"it finds the first and the last", 64, []int{1, 64}, nil},
		{"it finds all", 9, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, nil},
		{"it finds one through other errors", 50, []int{7}, []fault{none, none, lost, none, ackDropped, none, none, lost}},
		{"it finds none", 100, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.faults = tt.faults
				b := start(t, tt.rows, store)
				for i := 1; i <= tt.rows; i++ {
					tool := "good"
					if slices.Contains(tt.poison, i) {
						tool = poisonTool
					}
					b.send(i, tool)
				}
				<-time.After(time.Minute)
				if got := len(b.marks()); got != tt.rows {
					t.Errorf("%d chunks committed, want %d", got, tt.rows)
				}
				if r, l := store.stored(); r != tt.rows-len(tt.poison) || l != len(tt.poison) {
					t.Errorf("%d records and %d dead letters, want %d and %d", r, l, tt.rows-len(tt.poison), len(tt.poison))
				}
				for _, i := range tt.poison {
					l, ok := store.letters[letterID{ingest.Source{Topic: "t", Offset: uint64(i)}, testSession}]
					if !ok || l.Reason != "insert" || l.Key != testSession || len(l.Raw) == 0 {
						t.Errorf("row %d became %+v", i, l)
					}
				}
				b.end()
			})
		})
	}
}

// TestOversizeBatch checks that a batch for which the store never has memory is
// stored in parts, and one for which it lacks memory once as a whole.
func TestOversizeBatch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		faults  []fault
		always  fault
		poison  int // number of the row that is refused; 0: none
		inserts int // that succeed; 0: not counted
	}{
		{"lacks memory once", []fault{small}, none, 0, 1},
		{"lacks memory for a whole batch", nil, small, 0, 16},
		{"lacks memory, then is away", []fault{small, lost, small, lost, small, small}, small, 0, 16},
		{"lacks memory and refuses a row", nil, small, 77, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rows = 160
				store := newFakeStore()
				store.faults, store.always = tt.faults, tt.always
				b := start(t, rows, store)
				for i := 1; i <= rows; i++ {
					tool := goodTool
					if i == tt.poison {
						tool = poisonTool
					}
					b.send(i, tool)
				}
				<-time.After(10 * time.Minute)
				letters := min(tt.poison, 1)
				if r, l := store.stored(); len(b.marks()) != rows || r != rows-letters || l != letters {
					t.Errorf("%d committed, %d records, %d dead letters, want %d, %d and %d", len(b.marks()), r, l, rows, rows-letters, letters)
				}
				if tt.inserts > 0 && store.inserts != tt.inserts {
					t.Errorf("%d inserts, want %d", store.inserts, tt.inserts)
				}
				b.end()
			})
		})
	}
}

// TestManyWeeks has a producer send records of many weeks: each is a file of several
// tables, and the store does not take all of them in its time. They are stored in parts
// of fewer weeks, in about as many inserts as that takes. A store that did not answer for
// long takes what waited in few inserts.
func TestManyWeeks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		faults  []fault
		always  fault
		inserts int           // that succeed, at most
		within  time.Duration // the last one
	}{
		{"little time", nil, slowWeeks, 40, 6 * time.Minute},
		{"no answer for long", slices.Repeat([]fault{slowWeeks}, 30), none, 20, 6 * time.Minute},
		{"no answer once", []fault{slowWeeks}, none, 1, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rows, weeks = 500, 50
				store := newFakeStore()
				store.faults, store.always = tt.faults, tt.always
				b := start(t, rows, store)
				now := time.Now()
				for i := 1; i <= rows; i++ {
					ts := now.Add(-time.Duration(i*7%weeks) * 7 * 24 * time.Hour)
					b.send(i, goodTool, func(r *audit.Record) { r.TS = ts })
				}
				var took time.Duration
				for began := time.Now(); time.Since(began) < time.Hour; <-time.After(time.Second) {
					after := time.Since(began)
					if took == 0 && len(b.marks()) == rows {
						took = after
					}
					failing := slices.ContainsFunc(b.Failing(), func(f Failure) bool { return f.Part == "storing records" })
					if len(tt.faults) > 1 && after > 30*time.Second && after < 4*time.Minute && !failing {
						t.Fatalf("after %v without an answer it counts as working", after)
					}
				}
				if r, l := store.stored(); len(b.marks()) != rows || r != rows || l != 0 || store.inserts > tt.inserts {
					t.Errorf("%d committed, %d records, %d dead letters, %d inserts, want %d, %[5]d, none and at most %d", len(b.marks()), r, l, store.inserts, rows, tt.inserts)
				}
				if took > tt.within {
					t.Errorf("all are stored after %v, want %v: other records wait for that", took, tt.within)
				}
				b.end()
			})
		})
	}
}

// TestRowTooLarge has rows for which the store lacks memory alone, while it takes others:
// they become dead letters, the first one after a minute and the others soon, and hold
// up nothing, also where one is the first row of all. Where it lacks memory for all rows,
// none does.
func TestRowTooLarge(t *testing.T) {
	send := func(b *bench, from, to int, huge ...int) {
		for i := from; i <= to; i++ {
			tool := goodTool
			if slices.Contains(huge, i) {
				tool = hugeTool
			}
			b.send(i, tool)
		}
	}
	for _, tt := range []struct {
		batch int
		huge  []int
	}{{1, []int{7, 20, 21, 33}}, {40, []int{7, 20, 21, 33}}, {40, []int{1, 2, 21, 22}}} {
		synctest.Test(t, func(t *testing.T) {
			batch, store := tt.batch, newFakeStore()
			b := start(t, batch, store)
			go send(b, 1, 40, tt.huge...)
			<-time.After(50 * time.Second)
			if _, l := store.stored(); l > 0 {
				t.Errorf("in batches of %d: %d dead letters within a minute: others may have had the memory", batch, l)
			}
			<-time.After(2 * time.Minute)
			if r, l := store.stored(); len(b.marks()) != 40 || r != 36 || l != 4 || store.reasons()["insert"] != 4 {
				t.Errorf("in batches of %d: %d committed, %d records, %d dead letters, want 40, 36 and 4", batch, len(b.marks()), r, l)
			}
			b.end()
		})
	}
	for _, taken := range []int{0, 3} { // before
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore()
			b := start(t, 1, store)
			send(b, 1, taken)
			<-time.After(time.Minute)
			store.mu.Lock()
			store.always = full
			store.mu.Unlock()
			go send(b, taken+1, 6)
			<-time.After(time.Hour)
			b.want(t, []int{1, 2, 3}[:taken], taken, 0)
			store.mu.Lock()
			store.always = none
			store.mu.Unlock()
			<-time.After(time.Minute)
			b.want(t, []int{1, 2, 3, 4, 5, 6}, 6, 0)
			b.end()
		})
	}
}

// TestOversizeLetters checks the same of dead letters.
func TestOversizeLetters(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults []fault
		always fault
	}{
		{"lacks memory once", []fault{small}, none},
		{"lacks memory for all of them", nil, small},
		{"lacks memory, then is away", []fault{small, lost, small, lost, small, small}, small},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const letters = 160
				store := newFakeStore()
				store.faults, store.always = tt.faults, tt.always
				b := start(t, letters, store)
				for i := 1; i <= letters; i++ {
					var c chunk[int]
					c.add(&b.decoder, ingest.Message{Source: ingest.Source{Topic: "t", Offset: uint64(i)}, Value: []byte("no record")})
					c.mark = i
					b.in <- c
				}
				<-time.After(10 * time.Minute)
				if r, l := store.stored(); len(b.marks()) != letters || r != 0 || l != letters {
					t.Errorf("%d committed, %d records, %d dead letters, want %d dead letters", len(b.marks()), r, l, letters)
				}
				b.end()
			})
		})
	}
}

// TestWrongTable checks that a store which refuses good records stops the
// collector until it takes them, with few inserts and without dead letters.
func TestWrongTable(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, rows int    // records that the store takes first, and then refuses
		good         int    // of rows, that it takes
		why          string // in the error
	}{
		{"it stops at one record", 1, 1, 0, "has taken before"},
		{"it stops at a batch", 1, 1000, 0, "has taken before"},
		{"it stops at the first batch", 0, 1000, 0, "most of a batch"},
		{"it stops at a batch of which most is refused", 0, 1000, 50, "most of a batch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				b := start(t, max(tt.rows, 1), store)
				b.reading.tell(wholeSource, "", nil)
				for i := range tt.before {
					b.send(i+1, "first")
				}
				<-time.After(time.Minute)
				store.mu.Lock()
				store.always, store.takes, store.tries = wrongTable, goodTool, 0
				store.mu.Unlock()
				for i := range tt.rows {
					tool := "fine"
					if i < tt.good {
						tool = goodTool
					}
					b.send(tt.before+i+1, tool)
				}
				<-time.After(time.Minute)
				if got := len(b.marks()); got != tt.before {
					t.Errorf("%d chunks committed while the table is wrong, want %d", got, tt.before)
				}
				if _, letters := store.stored(); letters > 0 {
					t.Errorf("%d dead letters", letters)
				}
				if err := b.Ready(); err == nil || !strings.Contains(err.Error(), tt.why) {
					t.Errorf("Ready = %v, want %q in it", err, tt.why)
				}
				if got := counted(t, b.metrics.tableRefusals); got == 0 {
					t.Error("no refusal counted")
				}
				// Ten attempts in the minute at most, each with its samples.
				if store.tries > 10*(samples+3) {
					t.Errorf("%d inserts while the table is wrong", store.tries)
				}
				store.mu.Lock()
				store.always = none
				store.mu.Unlock()
				<-time.After(time.Minute)
				if got := len(b.marks()); got != tt.before+tt.rows {
					t.Errorf("%d chunks committed after all, want %d", got, tt.before+tt.rows)
				}
				if r, l := store.stored(); r != tt.before+tt.rows || l > 0 {
					t.Errorf("%d records, %d dead letters", r, l)
				}
				if err := b.Ready(); err != nil {
					t.Errorf("Ready = %v", err)
				}
				b.end()
			})
		})
	}
}

// TestDeadLetterFirst checks that a dead letter that cannot be stored delays the
// commit as a record does.
func TestDeadLetterFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.always = lost
		b := start(t, 1000, store)
		var c chunk[int]
		c.add(&b.decoder, ingest.Message{Source: ingest.Source{Topic: "t"}, Key: []byte("k"), Value: []byte("not JSON")})
		c.mark = 1
		b.in <- c
		<-time.After(time.Minute)
		b.want(t, nil, 0, 0)
		store.mu.Lock()
		store.always = none
		store.mu.Unlock()
		<-time.After(time.Minute)
		b.want(t, []int{1}, 0, 1)
		b.end()
	})
}

// TestDeadLettersInTheLog checks that a producer of no records does not fill the
// log: a batch is one line for each reason and partition.
func TestDeadLettersInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		b := start(t, 1000, newFakeStore())
		b.writer.log = zap.New(core)
		var c chunk[int]
		for i := range 500 {
			value := []byte("not JSON")
			if i%5 == 4 {
				value = nil
			}
			c.add(&b.decoder, ingest.Message{Source: ingest.Source{Topic: "t", Partition: uint32(i % 2), Offset: uint64(i)}, Key: []byte("k"), Value: value})
		}
		c.mark = 1
		b.in <- c
		<-time.After(time.Minute)
		b.want(t, []int{1}, 0, 500)
		b.end()
		var got []string
		for _, e := range logs.FilterMessage("dead letters").All() {
			m := e.ContextMap()
			got = append(got, fmt.Sprint(m["reason"], " ", m["topic"], " ", m["partition"], " ", m["count"], " ", m["first_offset"], " ", m["last_offset"]))
		}
		want := []string{"not_json t 0 200 0 498", "not_json t 1 200 1 497", "tombstone t 0 50 4 494", "tombstone t 1 50 9 499"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestCommitsInTheLog: a source that takes no commits, as a spool that became read-only,
// does not fill the log.
func TestCommitsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		b := startLogging(t, 1, newFakeStore(), zap.New(core))
		b.commitErr = errors.New("read-only")
		for mark := 1; mark <= 150; mark++ {
			b.send(mark, "t")
			<-time.After(time.Second)
		}
		b.end()
		if n := logs.FilterMessageSnippet("commit failed").Len(); n != 3 {
			t.Errorf("%d lines in 150 s, want one each minute", n)
		}
	})
}

// TestDeadTopic checks that a topic of dead letters that cannot be written delays
// nothing, because the table is authoritative.
func TestDeadTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, newFakeStore())
		var told int
		b.writer.deadTopic = func(_ context.Context, letters []ingest.DeadLetter) error {
			told += len(letters)
			return errStore
		}
		b.send(1, poisonTool)
		<-time.After(time.Minute)
		b.want(t, []int{1}, 0, 1)
		b.end()
		if told != 1 {
			t.Errorf("the topic was told of %d letters, want 1", told)
		}
	})
}

// TestStopInSearch checks that a stop does not wait for the search for refused
// rows.
func TestStopInSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.always = slow
		b := start(t, 100, store)
		for i := range 100 {
			b.send(i+1, []string{"good", poisonTool}[i/99])
		}
		<-time.After(time.Second)
		b.end()
		b.want(t, nil, 0, 0)
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.always = lost
		b := start(t, 1, store)
		b.reading.tell(wholeSource, "", nil)
		b.send(1, "a")
		<-time.After(time.Second)
		if b.Ready() == nil {
			t.Error("ready while the store fails")
		}
		store.mu.Lock()
		store.always = none
		store.mu.Unlock()
		<-time.After(time.Minute)
		if err := b.Ready(); err != nil {
			t.Errorf("Ready = %v", err)
		}
		b.end()
	})
}

// TestReadyNamesTheWorst checks that Failing names a failing part while others
// work.
func TestReadyNamesTheWorst(t *testing.T) {
	c := newTestCollector(t, newFakeStore())
	one, two := newTestPartition(c, "t", 0), newTestPartition(c, "t", 0)
	two.Number = 1
	names := func() (list []string) {
		for _, f := range c.Failing() {
			list = append(list, f.Part)
		}
		return list
	}
	if diff := cmp.Diff([]string{"reading"}, names()); diff != "" {
		t.Errorf("before anything was read (-want +got):\n%s", diff)
	}
	c.reading.tell(wholeSource, "", nil)
	one.fail(errStore)
	two.fail(errStore)
	two.works()
	if diff := cmp.Diff([]string{`reading topic "t", partition 0`}, names()); diff != "" {
		t.Errorf("one partition works (-want +got):\n%s", diff)
	}
	first, second := new(int), new(int)
	c.storing.tell(first, "storing records", errStore)
	c.storing.tell(second, "storing records", errStore)
	one.works()
	if diff := cmp.Diff([]string{"storing records"}, names()); diff != "" {
		t.Errorf("two batches are not stored (-want +got):\n%s", diff)
	}
	c.storing.tell(second, "storing records", nil)
	if diff := cmp.Diff([]string{"storing records"}, names()); diff != "" {
		t.Errorf("one batch is stored (-want +got):\n%s", diff)
	}
	c.storing.tell(first, "", nil)
	if err := c.Ready(); err != nil {
		t.Errorf("Ready = %v", err)
	}
}

// TestOldestMovesInOutage checks that the age of the oldest batch grows while the
// store is down, at each attempt, and ends with the commit.
func TestOldestMovesInOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.always = lost
		b := start(t, 1, store)
		b.send(1, "a")
		b.send(2, "b")
		<-time.After(time.Hour)
		if age := b.metrics.unacked.age(); age < time.Hour || age > time.Hour+time.Second {
			t.Errorf("after an hour the oldest record is %v old", age)
		}
		store.mu.Lock()
		store.always = none
		store.mu.Unlock()
		<-time.After(time.Minute)
		if age := b.metrics.unacked.age(); age != 0 {
			t.Errorf("with nothing left the oldest record is %v old", age)
		}
		b.commitErr = errStore
		b.send(3, "c")
		<-time.After(time.Minute)
		if age := b.metrics.unacked.age(); age < 50*time.Second {
			t.Errorf("a minute after a commit failed the oldest record is %v old", age)
		}
		b.end()
		for outcome, want := range map[string]float64{batchCommitted: 2, batchNotCommitted: 1, batchAbandoned: 0} {
			if got := counted(t, b.metrics.batches.WithLabelValues(outcome)); got != want {
				t.Errorf("%v batches %s, want %v", got, outcome, want)
			}
		}
	})
}

// counted returns the value of a counter or a gauge.
func counted(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	values := gathered(t, c)
	if len(values) != 1 {
		t.Fatalf("gathered %v, want one value", values)
	}
	return values[0]
}

// gathered returns the values of counters or gauges.
func gathered(t *testing.T, c prometheus.Collector) (values []float64) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values = append(values, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	return values
}

// TestBackPressure checks that a source's use of memory is bounded while the store
// is down.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.always = lost
		b := start(t, 10, store)
		taken := make(chan int, 1000)
		go func() {
			for i := range 1000 {
				var c chunk[int]
				c.add(&b.decoder, ingest.Message{Source: ingest.Source{Offset: uint64(i)}, Key: []byte(testSession), Value: line(i + 1)})
				select {
				case b.in <- c:
					taken <- i
				case <-b.done:
					return
				}
			}
		}()
		<-time.After(time.Hour)
		if got, most := len(taken), (inFlight+1)*10; got > most {
			t.Errorf("%d records in memory, want at most %d", got, most)
		}
		b.end()
	})
}

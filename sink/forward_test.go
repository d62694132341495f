package sink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"

	"github.com/google/go-cmp/cmp"
)

// line returns a record's line, with padding in its arguments.
func line(seq uint64, padding int) string {
	l := audit.AppendRecord(nil, &audit.Record{
		Kind: audit.KindCall, RecordID: fmt.Sprintf("id-%d", seq), SessionID: "s", Seq: seq, CallNo: seq + 1,
		TS: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Method: "tools/call", Tool: "pipe_pane", Outcome: audit.OutcomeOK,
		Args: audit.JSON(`{"output_path":"` + strings.Repeat("x", padding) + `"}`),
	})
	return string(l[:len(l)-1])
}

func lines(n int) []string {
	var all []string
	for i := range n {
		all = append(all, line(uint64(i), 10))
	}
	return all
}

// A fakeQueue has its lines in memory.
type fakeQueue struct {
	sync.Mutex
	lines     []string
	next      int
	acked     int // lines before it
	committed int
	commits   int
	aside     []string
	err       error // returned by Next at the end instead of io.EOF
}

func (q *fakeQueue) Next() ([]byte, error) {
	q.Lock()
	defer q.Unlock()
	if q.next == len(q.lines) {
		if q.err != nil {
			return nil, q.err
		}
		return nil, io.EOF
	}
	q.next++
	return []byte(q.lines[q.next-1]), nil
}

func (q *fakeQueue) Ack() {
	q.Lock()
	defer q.Unlock()
	q.acked = q.next
}

func (q *fakeQueue) Commit() error {
	q.Lock()
	defer q.Unlock()
	q.committed, q.commits = q.acked, q.commits+1
	return nil
}

func (q *fakeQueue) SetAside(line []byte) (string, error) {
	q.Lock()
	defer q.Unlock()
	q.aside = append(q.aside, string(line))
	return "aside", nil
}

func (q *fakeQueue) add(line string) {
	q.Lock()
	defer q.Unlock()
	q.lines = append(q.lines, line)
}

// A fakeSink keeps lines in memory, and fails both ways.
type fakeSink struct {
	sync.Mutex
	kept     []string
	batches  []int
	limit    int // bytes of the longest line that it accepts, 0 for any
	writes   int
	failAt   int  // number of the write that fails, 0 for none
	keepHalf bool // a failed write keeps half of the lines
}

var errFault = errors.New("fault")

func (s *fakeSink) Write(ctx context.Context, session string, lines [][]byte) error {
	s.Lock()
	defer s.Unlock()
	s.writes++
	if s.writes == s.failAt {
		if s.keepHalf {
			s.keep(lines[:len(lines)/2])
		}
		return errFault
	}
	for i, l := range lines {
		if s.limit > 0 && len(l) > s.limit {
			s.keep(lines[:i])
			return &sink.RefusedError{Index: i, Err: errFault}
		}
	}
	s.batches = append(s.batches, len(lines))
	s.keep(lines)
	return ctx.Err()
}

func (s *fakeSink) keep(lines [][]byte) {
	for _, l := range lines {
		s.kept = append(s.kept, string(l))
	}
}

func config(q sink.Queue, s sink.Sink) sink.ForwardConfig {
	return sink.ForwardConfig{Session: "s", Queue: q, Sink: s}
}

// TestForwardOnFaults fails each write in turn, keeping none or half of its
// lines. Every committed line must have been kept. After a restart from the
// last commit all lines are there, in order, and duplicates are identical.
func TestForwardOnFaults(t *testing.T) {
	all := lines(2500)
	for failAt := 1; failAt <= 3; failAt++ {
		for _, keepHalf := range []bool{false, true} {
			q, s := &fakeQueue{lines: all}, &fakeSink{failAt: failAt, keepHalf: keepHalf}
			if err := sink.Forward(t.Context(), config(q, s)); !errors.Is(err, errFault) {
				t.Fatalf("write %d: Forward: %v, want the sink's error", failAt, err)
			}
			for _, l := range all[:q.committed] {
				if !slices.Contains(s.kept, l) {
					t.Fatalf("write %d: %d lines were committed, but the sink has not %.80q", failAt, q.committed, l)
				}
			}
			q.next = q.committed // as the next process finds it
			if err := sink.Forward(t.Context(), config(q, s)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all, firsts(s.kept)); diff != "" {
				t.Errorf("write %d, half kept %v (-want +got):\n%.500s", failAt, keepHalf, diff)
			}
			if q.committed != len(all) {
				t.Errorf("write %d: %d lines are committed, want %d", failAt, q.committed, len(all))
			}
		}
	}
}

// firsts removes repeats.
func firsts(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// TestForwardCommitsAfterAnError checks that records delivered before the
// queue fails are not delivered again.
func TestForwardCommitsAfterAnError(t *testing.T) {
	q, s := &fakeQueue{lines: lines(1000), err: errFault}, &fakeSink{}
	if err := sink.Forward(t.Context(), config(q, s)); !errors.Is(err, errFault) {
		t.Fatalf("Forward: %v, want the queue's error", err)
	}
	if q.committed != 1000 {
		t.Errorf("%d lines are committed, want 1000", q.committed)
	}
}

// TestForwardLimitsBatches checks the records and bytes of a batch.
func TestForwardLimitsBatches(t *testing.T) {
	var long []string
	for i := range 10 {
		long = append(long, line(uint64(i), 200<<10))
	}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []int
	}{
		{"by number", lines(2001), []int{1000, 1000, 1}},
		{"by bytes", long, []int{3, 3, 3, 1}},
	} {
		s := &fakeSink{}
		if err := sink.Forward(t.Context(), config(&fakeQueue{lines: tt.lines}, s)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, s.batches); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestForwardReplacesRefused checks that a refused record delays nothing: a
// short one with its user, operation and time replaces it, and the record
// itself is set aside.
func TestForwardReplacesRefused(t *testing.T) {
	all := lines(5)
	all[2] = line(2, 5000)
	all[4] = strings.Repeat("no record ", 500)
	q, s := &fakeQueue{lines: slices.Clone(all)}, &fakeSink{limit: 2000}
	if err := sink.Forward(t.Context(), config(q, s)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{all[2], all[4]}, q.aside); diff != "" {
		t.Errorf("set aside (-want +got):\n%.500s", diff)
	}
	if len(s.kept) != 4 || s.kept[0] != all[0] || s.kept[1] != all[1] || s.kept[3] != all[3] {
		t.Fatalf("the sink has %.200q", s.kept)
	}
	short := s.kept[2]
	if !audit.Check([]byte(short)) {
		t.Errorf("the checksum of %q fails", short)
	}
	got, err := audit.Parse([]byte(short))
	if err != nil {
		t.Fatal(err)
	}
	want, err := audit.Parse([]byte(all[2]))
	if err != nil {
		t.Fatal(err)
	}
	want.Args, want.Anomalies = "", []string{"undeliverable"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what stands for the record (-want +got):\n%s", diff)
	}
	if q.committed != 5 {
		t.Errorf("%d lines are committed, want 5", q.committed)
	}
}

// TestForwardWaitsForASinkThatTakesNothing checks that a limit which refuses
// everything is not taken for the fault of every record.
func TestForwardWaitsForASinkThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lines(3)
		q, s := &fakeQueue{lines: slices.Clone(all)}, &fakeSink{limit: 10}
		done := make(chan error, 1)
		go func() { done <- sink.Forward(t.Context(), config(q, s)) }()
		<-time.After(time.Hour)
		synctest.Wait()
		q.Lock()
		s.Lock()
		if len(q.aside) > 0 || q.commits > 0 || len(s.kept) > 0 {
			t.Errorf("%d lines set aside, %d commits, %d kept, want none", len(q.aside), q.commits, len(s.kept))
		}
		s.limit = 0
		s.Unlock()
		q.Unlock()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, s.kept); diff != "" || len(q.aside) > 0 {
			t.Errorf("kept (-want +got):\n%s\nset aside: %q", diff, q.aside)
		}
	})
}

// TestForwardFollows checks that a session that is being written is followed
// until it is over, to its last line, and that its cursor is synced at most
// once a second.
func TestForwardFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := &fakeQueue{}, &fakeSink{}
		over, done := make(chan struct{}), make(chan error, 1)
		c := config(q, s)
		c.Done = over
		go func() { done <- sink.Forward(t.Context(), c) }()
		all := lines(1000)
		for _, l := range all[:999] {
			<-time.After(10 * time.Millisecond)
			q.add(l)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		q.Lock()
		if q.committed != 999 || q.commits > 13 {
			t.Errorf("after 12 s %d lines are committed in %d commits, want 999 in at most 13", q.committed, q.commits)
		}
		q.Unlock()
		q.add(all[999])
		close(over)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, s.kept); diff != "" || q.committed != 1000 {
			t.Errorf("%d committed; kept (-want +got):\n%.500s", q.committed, diff)
		}
	})
}

// An endingQueue gets its last line, and its session ends, just after Next
// returned io.EOF.
type endingQueue struct {
	*fakeQueue
	last string
	over chan struct{}
}

func (q *endingQueue) Next() ([]byte, error) {
	line, err := q.fakeQueue.Next()
	if err == io.EOF && q.last != "" {
		q.add(q.last)
		q.last = ""
		close(q.over)
	}
	return line, err
}

// TestForwardReadsWhatTheEndLeaves: a line that is written between the last
// read of the queue and the session's end is delivered.
func TestForwardReadsWhatTheEndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lines(3)
		q, s := &endingQueue{&fakeQueue{lines: all[:2]}, all[2], make(chan struct{})}, &fakeSink{}
		c := config(q.fakeQueue, s)
		c.Queue, c.Done = q, q.over
		if err := sink.Forward(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, s.kept); diff != "" || q.committed != 3 {
			t.Errorf("%d committed; kept (-want +got):\n%.500s", q.committed, diff)
		}
	})
}

// TestForwardEndsWithItsContext checks that delivered records are committed
// when the context ends.
func TestForwardEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := &fakeQueue{lines: lines(3)}, &fakeSink{}
		ctx, cancel := context.WithCancel(t.Context())
		c := config(q, s)
		c.Done = make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- sink.Forward(ctx, c) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Forward: %v, want %v", err, context.Canceled)
		}
		if q.committed != 3 {
			t.Errorf("%d lines are committed, want 3", q.committed)
		}
	})
}

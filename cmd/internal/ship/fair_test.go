package ship

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"
	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

var cluster kafkatest.Shared

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// A writer writes the records of a session.
type writer struct {
	t       *testing.T
	session *spool.Session
	record  audit.Record
	lines   []string
}

func newWriter(t *testing.T, dir string) *writer {
	t.Helper()
	now := time.Now()
	w := &writer{t: t, record: audit.Record{Kind: audit.KindSessionStart, SessionID: audit.NewID(now), TS: now, Duration: -1}}
	var err error
	w.session, err = spool.Create(spool.Config{Dir: dir}, w.record.SessionID)
	must(t, err)
	t.Cleanup(func() { w.session.Close() })
	w.write(audit.KindSessionStart, 0)
	return w
}

// write writes a record with that many bytes of arguments.
func (w *writer) write(kind audit.Kind, size int) {
	w.t.Helper()
	w.record.Kind, w.record.RecordID = kind, audit.NewID(time.Now())
	if kind == audit.KindCall {
		w.record.CallNo++
		w.record.Method, w.record.Tool, w.record.Outcome = "tools/call", "send_keys", audit.OutcomeOK
		w.record.Args = audit.JSON(`{"x":"` + strings.Repeat("x", size) + `"}`)
	}
	line := audit.AppendRecord(nil, &w.record)
	w.record.Seq++
	w.record.Args = ""
	pos, err := w.session.Append(line, true)
	must(w.t, err)
	w.session.Wait(pos, 0)
	w.lines = append(w.lines, string(line[:len(line)-1]))
}

func (w *writer) end() {
	w.t.Helper()
	w.write(audit.KindSessionEnd, 0)
	must(w.t, w.session.Close())
}

// follow runs a follower until the test ends, or the function that it returns
// is called.
func follow(t *testing.T, f *follower) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// A sinkFunc is a sink.
type sinkFunc func(ctx context.Context, session string, lines [][]byte) error

func (f sinkFunc) Write(ctx context.Context, session string, lines [][]byte) error {
	return f(ctx, session, lines)
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not in time", what)
		}
	}
}

// TestFollowerIsFair has more sessions with much to ship than are shipped at
// once, and a sink that takes nothing of them until it has the record of a
// session with little.
func TestFollowerIsFair(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	for range largeTurns + 3 {
		w := newWriter(t, dir)
		for range 3 {
			w.write(audit.KindCall, 30<<10)
		}
		w.end()
	}
	little := newWriter(t, dir)
	little.end()
	arrived := make(chan struct{})
	got := &collected{lines: map[string][]string{}, more: make(chan struct{}, 1)}
	h := &host{cfg: Config{Dir: dir, Log: zap.NewNop(), Sink: sinkFunc(func(ctx context.Context, session string, lines [][]byte) error {
		if session == little.record.SessionID {
			close(arrived)
		}
		select {
		case <-arrived:
			return got.Write(ctx, session, lines)
		case <-ctx.Done():
			return ctx.Err()
		}
	})}}
	follow(t, newFollower(h))
	await(t, "all sessions are delivered", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		all := len(got.lines) == largeTurns+4
		for _, lines := range got.lines {
			all = all && (len(lines) == 5 || len(lines) == 2)
		}
		return all
	})
}

// TestFollowerTakesTurns has more sessions than are shipped at once, each with
// more than one turn takes, and a sink that takes nothing more of a session until
// it has something of all.
func TestFollowerTakesTurns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	const sessions, calls, atOnce = largeTurns + 1, 6, 2
	want := map[string][]string{}
	for range sessions {
		w := newWriter(t, dir)
		for range calls {
			w.write(audit.KindCall, 30<<10)
		}
		w.end()
		want[w.record.SessionID] = w.lines
	}
	got := &collected{lines: map[string][]string{}, more: make(chan struct{}, 1)}
	everyone, seen := make(chan struct{}), map[string]bool{}
	h := &host{cfg: Config{Dir: dir, Log: zap.NewNop(), Sink: sinkFunc(func(ctx context.Context, session string, lines [][]byte) error {
		got.mu.Lock()
		again := seen[session]
		if seen[session] = true; len(seen) == sessions && !again {
			close(everyone)
		}
		got.mu.Unlock()
		if again {
			select {
			case <-everyone:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return got.Write(ctx, session, lines)
	})}}
	f := newFollower(h)
	f.turnSize = atOnce * 30 << 10
	follow(t, f)
	await(t, "all sessions are delivered", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return cmp.Equal(want, got.lines)
	})
}

// TestFollowerBoundsFiles has many sessions wait for a sink that does not
// answer: only some of them have open files.
func TestFollowerBoundsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	for range 2 * smallTurns {
		newWriter(t, dir).end()
	}
	files := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil && runtime.GOOS != "linux" {
			t.Skip("no list of open files: ", err)
		} else if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := files()
	var mu sync.Mutex
	waiting := 0
	h := &host{cfg: Config{Dir: dir, Log: zap.NewNop(), Sink: sinkFunc(func(ctx context.Context, session string, lines [][]byte) error {
		mu.Lock()
		waiting++
		mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	})}}
	stop := follow(t, newFollower(h))
	await(t, "the writes wait", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return waiting == smallTurns
	})
	if n := files() - before; n > 3*smallTurns+20 {
		t.Errorf("%d files are open for %d sessions", n, smallTurns)
	}
	stop()
	if waiting != smallTurns {
		t.Errorf("%d sessions were shipped at once, want %d", waiting, smallTurns)
	}
	if n := files() - before; n > 20 {
		t.Errorf("%d files are open after the end", n)
	}
}

// TestFollowerLeavesStalledSessions checks that a session for which the sink is
// stalled is left alone until then, without a line in the log, and is delivered
// afterwards.
func TestFollowerLeavesStalledSessions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	w := newWriter(t, dir)
	w.end()
	var mu sync.Mutex
	var until time.Time
	var early int
	got := &collected{lines: map[string][]string{}, more: make(chan struct{}, 1)}
	h := &host{cfg: Config{Dir: dir, Log: zap.NewNop(), Sink: sinkFunc(func(ctx context.Context, session string, lines [][]byte) error {
		mu.Lock()
		defer mu.Unlock()
		if until.IsZero() {
			until = time.Now().Add(2 * lookEvery)
			return &sink.StalledError{Until: until}
		}
		if time.Now().Before(until) {
			early++
		}
		return got.Write(ctx, session, lines)
	})}}
	stop := follow(t, newFollower(h))
	<-got.more
	stop()
	if early > 0 || h.failures.Load() > 0 {
		t.Errorf("%d early attempts and %d failures, want none", early, h.failures.Load())
	}
	if diff := cmp.Diff(w.lines, got.lines[w.record.SessionID]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFollowBrokerKilled follows sessions that are written, begin and end, while
// the broker is killed and started again: the topic has what the spool has, each
// session in order.
func TestFollowBrokerKilled(t *testing.T) {
	const sessions, records, partitions = 60, 24, 8
	topic := cluster.NewTopic(t, kafkatest.Topic{Partitions: partitions})
	broker := cluster.Broker(t)
	p, err := kafka.New(kafka.Config{Access: kafka.Access{Brokers: []string{broker.Addr}}, Topic: topic, Source: "/test"})
	must(t, err)
	defer p.Close()
	b := kafka.NewBatcher(p, kafka.BatcherConfig{AtOnce: FollowAtOnce, Linger: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { b.Run(ctx) })

	dir := filepath.Join(t.TempDir(), "spool")
	h := &host{cfg: Config{Dir: dir, Sink: b, Log: zap.NewNop(), Stdout: io.Discard, Stderr: io.Discard}}
	stop := follow(t, newFollower(h))
	var writers []*writer
	for range sessions {
		writers = append(writers, newWriter(t, dir))
		for range records / 2 {
			writers[len(writers)-1].write(audit.KindCall, 20)
		}
	}
	await(t, "some records are shipped", func() bool { return h.records.Load() > sessions })
	broker.Kill()
	for i, w := range writers {
		for n := range records / 2 {
			if w.write(audit.KindCall, 20); n == i%(records/2) && i%2 == 0 {
				break // sessions of different lengths
			}
		}
		if i%3 == 0 {
			w.end()
		}
	}
	must(t, broker.Start())
	for i, w := range writers {
		if i%3 != 0 {
			w.end()
		}
	}
	await(t, "all is shipped", func() bool {
		list, err := spool.List(dir)
		must(t, err)
		return !slices.ContainsFunc(list, func(e spool.Entry) bool { return !e.Finished() })
	})
	stop()
	messages, err := broker.Messages(t.Context(), topic)
	must(t, err)
	want, got, seen := map[string][]string{}, map[string][]string{}, map[string]bool{}
	for _, w := range writers {
		want[w.record.SessionID] = w.lines
	}
	for _, m := range messages {
		if id := fmt.Sprint(string(m.Key), string(m.Value)); !seen[id] { // the first of repeats
			seen[id] = true
			got[string(m.Key)] = append(got[string(m.Key)], string(m.Value))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the topic is not the spool (-spool +topic):\n%.2000s", diff)
	}
}

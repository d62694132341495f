package ship

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// A collected is a sink that keeps its records.
type collected struct {
	mu    sync.Mutex
	lines map[string][]string // by session; guarded by mu
	more  chan struct{}       // has a value after a write
}

func (c *collected) Write(_ context.Context, session string, lines [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lines {
		c.lines[session] = append(c.lines[session], string(l))
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
	return nil
}

func (c *collected) Close() error { return nil }

// records are the delivered records of one session.
func (c *collected) records(t *testing.T, session string) (list []audit.Record) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines[session] {
		r, err := audit.Parse([]byte(l))
		must(t, err)
		list = append(list, r)
	}
	return list
}

// begun leaves a session with its first record, which it returns, as a proxy that died does.
func begun(t *testing.T, dir string) audit.Record {
	t.Helper()
	now := time.Now()
	r := audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(now), SessionID: audit.NewID(now), TS: now, Duration: -1}
	s, err := spool.Create(spool.Config{Dir: dir}, r.SessionID)
	must(t, err)
	_, err = s.Append(audit.AppendRecord(nil, &r), true)
	must(t, err)
	must(t, s.Close())
	return r
}

// TestFollowerDeadSessions leaves sessions as killed proxies do: while a call
// is open, and after the last line is written and before it is published. A
// follower delivers both to their ends, without another proxy.
func TestFollowerDeadSessions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	// dead makes a session whose last lines were written and not published.
	dead := func(last func(r *audit.Record) []byte) string {
		r := begun(t, dir)
		f, err := os.OpenFile(filepath.Join(dir, "sessions", r.SessionID, "00000001.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		r.RecordID = audit.NewID(r.TS)
		_, err = f.Write(last(&r))
		must(t, err)
		must(t, f.Close())
		return r.SessionID
	}
	calling := dead(func(r *audit.Record) []byte {
		r.CallNo, r.Method, r.Tool = 1, "tools/call", "pipe_pane"
		return audit.AppendIntent(nil, r)
	})
	ended := dead(func(r *audit.Record) []byte {
		r.Kind, r.Seq = audit.KindSessionEnd, 1
		return audit.AppendRecord(nil, r)
	})

	got := &collected{lines: map[string][]string{}, more: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	h := &host{cfg: Config{Dir: dir, Sink: got, Log: zap.NewNop()}}
	done := make(chan error, 1)
	go func() { done <- newFollower(h).run(ctx) }()
	over := func(r audit.Record) bool { return r.Kind == audit.KindSessionEnd }
	for !slices.ContainsFunc(got.records(t, calling), over) || !slices.ContainsFunc(got.records(t, ended), over) {
		select {
		case <-got.more:
		case <-ctx.Done():
			t.Fatalf("delivered %v", got.lines)
		}
	}
	cancel()
	must(t, <-done)
	if list := got.records(t, calling); len(list) != 3 || list[1].Outcome != audit.OutcomeUnknown || list[1].Tool != "pipe_pane" || !list[2].Recovered {
		t.Errorf("of the session with an open call: %+v", list)
	}
	if list := got.records(t, ended); len(list) != 2 || list[1].Recovered {
		t.Errorf("of the session that ended: %+v", list)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

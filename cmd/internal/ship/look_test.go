package ship

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// TestQueueIsBounded reads until a turn's bytes are read, in one file or several.
func TestQueueIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		left  int64
		ends  []spool.Position
		wants []bool // whether the turn is over
	}{
		{"no bound", 0, []spool.Position{{Segment: 1, Offset: 1 << 40}}, []bool{false}},
		{"one file", 10, []spool.Position{{Segment: 1, Offset: 4}, {Segment: 1, Offset: 9}, {Segment: 1, Offset: 10}}, []bool{false, false, true}},
		{"two files", 10, []spool.Position{{Segment: 1, Offset: 8}, {Segment: 2, Offset: 1}, {Segment: 2, Offset: 3}}, []bool{false, false, true}},
	} {
		var read int64
		q := queue{left: tt.left, end: spool.Position{Segment: 1}, read: func(n int64) { read += n }}
		for i, end := range tt.ends {
			q.advance(end)
			if q.full != tt.wants[i] {
				t.Errorf("%s: after %v the turn is over: %t", tt.name, end, q.full)
			}
		}
		if last := tt.ends[len(tt.ends)-1]; last.Segment == 1 && read != last.Offset || last.Segment == 2 && read != 11 {
			t.Errorf("%s: %d bytes were read", tt.name, read)
		}
		if !q.full {
			continue
		}
		if _, err := q.Next(); err != io.EOF {
			t.Errorf("%s: Next = %v at the end of the turn, want EOF", tt.name, err)
		}
	}
}

// holding is a sink that takes nothing until its context ends.
type holding struct{}

func (holding) Write(ctx context.Context, _ string, _ [][]byte) error {
	<-ctx.Done()
	return ctx.Err()
}

func (holding) Close() error { return nil }

// TestFollowerKnows checks what a follower knows of its sessions: one that is being
// shipped is not shipped beside that, and what is over, gone or not readable is not in
// the backlog.
func TestFollowerKnows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	r := begun(t, dir)
	now := r.TS
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{cfg: Config{Dir: dir, Sink: holding{}, Log: zap.NewNop()}}
	f := newFollower(h)
	for range 2 {
		if next := f.look(ctx); next < lookEvery || next > lookLast {
			t.Errorf("the next look is in %s", next)
		}
		if f.small != 1 || len(f.running) != 1 || !h.backlog.listed || h.backlog.sessions != 1 || h.backlog.bytes == 0 {
			t.Errorf("%d turns, %d running sessions, backlog %+v, want one", f.small, len(f.running), h.backlog)
		}
	}
	cancel()
	<-f.done
	f.ended(turn{id: r.SessionID, err: errors.New("unreadable")})
	if f.publish(true); f.small != 0 || len(f.running) != 0 || f.pause[r.SessionID].IsZero() || h.backlog.sessions != 1 {
		t.Errorf("after a turn that failed: %d turns, paused %v, backlog %+v", f.small, f.pause, h.backlog)
	}
	f.small++
	f.ended(turn{id: r.SessionID})
	if f.publish(true); h.backlog.sessions != 0 || h.backlog.bytes != 0 {
		t.Errorf("after all was shipped: backlog %+v", h.backlog)
	}

	for _, id := range []string{"a", "b"} {
		f.shipped[id], f.pause[id], f.seen[id] = true, now, waiting{live: true, bytes: 1, since: now}
		h.failed(id, errors.New("unreadable"))
	}
	if f.publish(true); h.backlog.sessions != 2 || h.backlog.failing != 2 || !h.backlog.oldest.Equal(now) {
		t.Errorf("two that cannot be shipped: backlog %+v", h.backlog)
	}
	f.forget([]string{"a"})
	if _, paused := f.pause["b"]; !f.shipped["a"] || f.shipped["b"] || paused || len(f.seen) != 1 {
		t.Errorf("after one is gone: %v, %v, %v", f.shipped, f.pause, f.seen)
	}
	if f.publish(true); h.backlog.sessions != 1 || h.backlog.failing != 1 {
		t.Errorf("after one is gone: backlog %+v", h.backlog)
	}

	must(t, os.RemoveAll(filepath.Join(dir, "sessions")))
	must(t, os.WriteFile(filepath.Join(dir, "sessions"), nil, 0o600))
	if next := f.look(ctx); next != listFailing || h.backlog.listed {
		t.Errorf("of a directory that cannot be listed: the next look is in %s, backlog %+v", next, h.backlog)
	}
}

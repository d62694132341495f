package mcpproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/disk"
)

// order notes what happens to a call, in order.
type order struct {
	lines
	t      *testing.T
	client *os.File // its end
	events []string
}

func (o *order) note(format string, args ...any) {
	o.look()
	o.events = append(o.events, fmt.Sprintf(format, args...))
}

// look notes the client's new bytes since the last look.
func (o *order) look() {
	raw, err := o.client.SyscallConn()
	if err != nil {
		o.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n := 0
	raw.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), buf) // it does not block
		return true
	})
	if n > 0 {
		o.events = append(o.events, "client")
	}
}

func (o *order) Append(p []byte, final bool) (int64, error) {
	o.note("append, final is %t", final)
	return o.lines.Append(p, final)
}

func (o *order) Wait(pos int64, limit time.Duration) bool {
	if pos != int64(o.b.Len()) {
		o.t.Errorf("a wait for position %d, want %d", pos, o.b.Len())
	}
	o.note("wait, limit %v", limit)
	return true
}

func (o *order) Write(b []byte) (int, error) {
	o.note("server")
	return len(b), nil
}

// Which side waits for which sync, and in which order, in each mode of
// durability.
func TestRecordingComesFirst(t *testing.T) {
	const intent, final = "append, final is false", "append, final is true"
	for _, tt := range []struct {
		name                  string
		waitIntent, waitFinal bool
		limit                 time.Duration
		want                  []string
	}{
		{"nothing waits", false, false, 20 * time.Millisecond, []string{intent, "server", "client", final}},
		{"a call waits", true, false, 20 * time.Millisecond, []string{intent, "wait, limit 20ms", "server", "client", final}},
		{"a call waits without a bound", true, false, 0, []string{intent, "wait, limit 0s", "server", "client", final}},
		{"an answer waits too", true, true, 0, []string{intent, "wait, limit 0s", "server", final, "wait, limit 0s", "client"}},
		{"an answer's wait has no bound", true, true, 20 * time.Millisecond, []string{intent, "wait, limit 20ms", "server", final, "wait, limit 0s", "client"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			defer out.Close()
			c, _ := testSession(t)
			o := &order{t: t, client: client}
			cfg := &c.s.cfg
			cfg.Journal, cfg.WaitIntent, cfg.WaitFinal, cfg.SyncWait = o, tt.waitIntent, tt.waitFinal, tt.limit
			c.server, c.out = o, newOutput(out)
			q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
			c.forward(q.Scan(copy(q.Space(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`+"\n")), q.Ready())
			v := serverSide{s: c.s, out: c.out}
			v.answered([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
			o.look()
			if !slices.Equal(o.events, tt.want) {
				t.Errorf("events are %q, want %q", o.events, tt.want)
			}
		})
	}
}

// An approved call waits for the sync of its approval as others do for that of
// their intent.
func TestApprovalIsSyncedBeforeItsCall(t *testing.T) {
	client, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	defer out.Close()
	c, _ := testSession(t)
	o := &order{t: t, client: client}
	cfg := &c.s.cfg
	cfg.Journal, cfg.WaitIntent, cfg.SyncWait = o, true, 20*time.Millisecond
	p, err := policy.Load([]byte(`{"version":"1","default":"allow","tools":{"t":{"action":"require_approval"}}}`), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGate(Gate{Risk: c.gate.Risk, Policy: p, Mode: policy.Enforce, Counters: &policy.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	c.s.gate.Store(g)
	c.server, c.out = o, newOutput(out)
	server := &input{to: struct {
		io.Writer
		io.Closer
	}{o, nil}}
	c.approvals = newApprovals(c.s, c.out, Approval{Channels: []string{ChannelClient}})
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	c.forward(q.Scan(copy(q.Space(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`+"\n")), q.Ready())
	o.events = append(o.events, "answer")
	w := c.approvals.waiting[0]
	w.approved = &audit.Approval{Outcome: "approved"}
	c.approvals.forward(w, server)
	want := []string{"append, final is false", "wait, limit 20ms", "answer", "append, final is false", "wait, limit 20ms", "server"}
	if !slices.Equal(o.events, want) {
		t.Errorf("events are %q, want %q", o.events, want)
	}
}

// hanging is the real file system, whose files no sync returns of once hang is
// set, until release.
type hanging struct {
	disk.FS
	hang    atomic.Bool
	release chan struct{}
}

type hangingFile struct {
	disk.File
	fs *hanging
}

func (h *hanging) OpenFile(name string, flag int, perm os.FileMode) (disk.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return hangingFile{f, h}, nil
}

func (f hangingFile) Sync() error {
	if f.fs.hang.Load() {
		<-f.fs.release
	}
	return nil
}

// arrivals is a server's input that notes when something came.
type arrivals struct {
	since time.Time
	at    []time.Duration
}

func (a *arrivals) Write(b []byte) (int, error) {
	a.at = append(a.at, time.Since(a.since))
	return len(b), nil
}

// While a sync hangs, from the client's bytes to the server's: a call needs
// SyncWait and its record is not durable, and everything else needs no time.
// Here time passes only when all goroutines are blocked.
func TestSlowSyncDelaysACallBySyncWait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{FS: disk.Host(), release: make(chan struct{})}
		journal, err := spool.Create(spool.Config{Dir: dir, FS: h}, audit.NewID(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- journal.Run(ctx) }()
		synctest.Wait()
		h.hang.Store(true)

		c, _ := testSession(t)
		cfg := &c.s.cfg
		cfg.Journal, cfg.WaitIntent, cfg.SyncWait = journal, true, 20*time.Millisecond
		q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
		server := &arrivals{}
		c.server = server
		for i, tt := range []struct {
			line string
			want time.Duration
		}{
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, 20 * time.Millisecond},
			{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, 0},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 0},
			{`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"u"}}`, 20 * time.Millisecond},
		} {
			server.since = time.Now()
			c.forward(q.Scan(copy(q.Space(), tt.line+"\n")), q.Ready())
			if len(server.at) != i+1 || server.at[i] != tt.want {
				t.Errorf("%s reaches the server after %v, want %v", tt.line, server.at[i:], tt.want)
			}
		}
		for open := c.s.open.oldest; open != nil; open = open.newer {
			if open.class == recorded && !open.rec.NotDurable {
				t.Errorf("call %s is durable, and its sync hangs", open.rec.RequestID)
			}
		}
		close(h.release)
		c.s.end(audit.ErrNoResponse)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Refusals that cannot be sent in the middle of a server's line wait for its
// end: at most maxReplies of them, then nothing more is read from the client.
func TestRefusalsThatWaitAreBounded(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out") // whose writes do not block
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	synctest.Test(t, func(t *testing.T) {
		c, _ := testSession(t)
		c.s.cfg.DenyAmbiguous = true
		c.server, c.out = io.Discard, newOutput(out)
		q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
		c.out.write([]byte(`{"jsonrpc":"2.0",`))

		id := strings.Repeat("i", 2000)
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"a","name":"b"}}`+"\n", id)
		const n = 2000 // more than fit
		var passed atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				c.forward(q.Scan(copy(q.Space(), line)), q.Ready())
				passed.Add(1)
			}
		}()
		synctest.Wait()
		c.out.mu.Lock()
		waiting := len(c.out.replies)
		c.out.mu.Unlock()
		if one := len(c.refusal); waiting <= maxReplies || waiting > maxReplies+one {
			t.Errorf("%d bytes of refusals wait, want %d and at most one refusal of %d more", waiting, maxReplies, one)
		}
		if got := passed.Load(); got == n || int(got) != waiting/len(c.refusal)-1 {
			t.Errorf("%d lines of the client are done, and %d refusals wait", got, waiting/len(c.refusal))
		}

		c.out.write([]byte("\"method\":\"notifications/x\"}\n"))
		<-done
		got, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := bytes.Cut(got, []byte("\n"))
		if want := `{"jsonrpc":"2.0","method":"notifications/x"}`; string(first) != want {
			t.Errorf("the client's first line is %q, want the server's, %q", first, want)
		}
		if got := bytes.Count(rest, []byte("auditproxy refused")); got != n || bytes.Count(rest, []byte("\n")) != n {
			t.Errorf("%d refusals, want %d, a line each", got, n)
		}
		c.s.end(audit.ErrNoResponse)
	})
}

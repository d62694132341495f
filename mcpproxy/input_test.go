package mcpproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// writes is a server that reads everything.
type writes struct{ bytes.Buffer }

func (*writes) Close() error { return nil }

// TestBetweenLines: an approved frame does not get into a line of the client's.
func TestBetweenLines(t *testing.T) {
	server := &writes{}
	in := &input{to: server}
	yes := func() bool { return true }
	for _, step := range []struct {
		client string
		tried  bool
	}{{"", true}, {"part of ", false}, {"a line", false}, {"\n", true}, {"two\nlines", false}, {"\n", true}} {
		if _, err := in.Write([]byte(step.client)); err != nil {
			t.Fatal(err)
		}
		if tried, _, err := in.between([]byte("approved\n"), yes); tried != step.tried || err != nil {
			t.Errorf("after %q: tried %v, %v, want %v", step.client, tried, err, step.tried)
		}
	}
	if got, want := server.String(), "approved\npart of a line\napproved\ntwo\nlines\napproved\n"; got != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
	if tried, _, err := in.between([]byte("no\n"), func() bool { return false }); !tried || err != nil || bytes.Contains(server.Bytes(), []byte("no")) {
		t.Errorf("what must not be forwarded: tried %v, %v", tried, err)
	}
}

// TestEndComesAfterTheFrame ends a client's stream while the server has read only one
// byte of an approved frame: it gets all of it.
func TestEndComesAfterTheFrame(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := &input{to: w}
	frame := append(bytes.Repeat([]byte("a"), 16<<20), '\n')
	forwarded, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := in.between(frame, func() bool { return true })
		forwarded <- err
	}()
	got := make([]byte, 1, len(frame))
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	go func() { closed <- in.Close() }()
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, frame) {
		t.Errorf("the server got %d bytes of %d, error %v", len(got), len(frame), err)
	}
	if err := errors.Join(<-forwarded, <-closed); err != nil {
		t.Error(err)
	}
}

// A person has two minutes to answer if the configuration does not say how long.
func TestTimeToAnswer(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: time.Second} {
		if got := newApprovals(nil, nil, Approval{Timeout: set}).cfg.Timeout; got != want {
			t.Errorf("with a timeout of %v: %v, want %v", set, got, want)
		}
	}
}

// A call is answered with a question only if its repetition can be known, and the
// server still gets all of it then.
func TestAskedByResult(t *testing.T) {
	c, _ := testSession(t)
	c.approvals = newApprovals(c.s, nil, Approval{Channels: []string{ChannelClient}})
	const meta = `{"` + metaProtocolVersion + `":"2026-07-28","` + metaClientCapabilities + `":{"elicitation":{}}}`
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, `,"m%d":0`, i)
	}
	for _, tt := range []struct {
		name, id, more string
		want           bool
	}{
		{"plain", "1", "", true},
		{"what the server asked for", "1", `,"inputResponses":{"a":1},"requestState":"s"`, true},
		{"more than is kept", "1", `,"inputResponses":{"a":1},"requestState":"` + strings.Repeat("s", 64<<10) + `"`, false},
		{"a member twice", "1", `,"name":"other"`, false},
		{"more members than are read", "1", many.String(), false},
		{"an id that is no JSON", "NaN", "", false},
	} {
		m := wire.Message{ID: []byte(tt.id), Method: []byte(`"tools/call"`), Meta: []byte(meta), Params: []byte(`{"name":"t","_meta":` + meta + tt.more + `}`)}
		if got := c.byResult(&wire.Frame{Messages: []wire.Message{m}}); (got != nil) != tt.want {
			t.Errorf("%s: asked by result %v, want %v", tt.name, got != nil, tt.want)
		}
	}
}

// Only whole lines wait, of which nothing has been forwarded or refused: the rest of
// any other would reach the server alone.
func TestWhichFramesWait(t *testing.T) {
	c, _ := testSession(t)
	c.approvals = newApprovals(c.s, nil, Approval{})
	whole := wire.Frame{Complete: true, Bytes: []byte("{}\n")}
	for _, tt := range []struct {
		name    string
		change  func(*wire.Frame, *item)
		midLine bool
		want    bool
	}{
		{"a line", func(*wire.Frame, *item) {}, false, true},
		{"behind a part of its line", func(*wire.Frame, *item) {}, true, false},
		{"inside a value", func(f *wire.Frame, _ *item) { f.Inside = true }, false, false},
		{"the start of a line", func(f *wire.Frame, _ *item) { f.Complete = false }, false, false},
		{"no bytes", func(f *wire.Frame, _ *item) { f.Bytes = nil }, false, false},
		{"no LF", func(f *wire.Frame, _ *item) { f.Bytes = f.Bytes[:2] }, false, false},
		{"refused", func(_ *wire.Frame, it *item) { it.refused = audit.ErrPolicyDenied }, false, false},
		{"the begin of a call", func(_ *wire.Frame, it *item) { it.begun = true }, false, false},
		{"a value that goes on", func(_ *wire.Frame, it *item) { it.open = true }, false, false},
		{"the call of an opaque line", func(_ *wire.Frame, it *item) { it.line = 1 }, false, false},
		{"the end of a call", func(_ *wire.Frame, it *item) { it.earlier.callNo = 1 }, false, false},
	} {
		f, items := whole, []item{{}}
		tt.change(&f, &items[0])
		if got := c.canWait(&f, tt.midLine, items); got != tt.want {
			t.Errorf("%s: can wait: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestTakenFrameIsNotForwarded: between an approval and its frame's turn a cancel,
// or the end, may have taken the frame.
func TestTakenFrameIsNotForwarded(t *testing.T) {
	server := &writes{}
	a := newApprovals(&session{cfg: Config{Log: zap.NewNop()}}, nil, Approval{})
	w := &waiting{bytes: []byte("call\n"), approved: &audit.Approval{Outcome: "approved"}}
	a.waiting = []*waiting{w}
	if !a.take(w) || a.take(w) {
		t.Fatal("a frame has two owners, or none")
	}
	a.forward(w, &input{to: server})
	if server.Len() > 0 {
		t.Errorf("the server got %q", server.String())
	}
}

// TestApprovalIsNotKept: a frame that was approved and has not had its turn by the end of
// its time is refused, like one that nobody approved.
func TestApprovalIsNotKept(t *testing.T) {
	c, j := testSession(t)
	a := newApprovals(c.s, nil, Approval{})
	w := &waiting{bytes: []byte("call\n"), items: []item{{call: c.s.take()}}, approved: &audit.Approval{Outcome: "approved"}, until: time.Now().Add(time.Hour)}
	c.s.hold(&w.items[0])
	c.s.lines = c.s.lines[:0]
	a.waiting = []*waiting{w}
	if a.look(w); !a.any() {
		t.Error("it does not wait until its time is over")
	}
	w.until = time.Now()
	server := &writes{}
	a.look(w)
	a.forward(w, &input{to: server})
	if list := j.records(t); a.any() || len(list) != 1 || list[0].ErrorType != audit.ErrApprovalTimeout || server.Len() > 0 {
		t.Errorf("it waits: %v, the server got %q, records %+v", a.any(), server.String(), list)
	}
}

// TestServerStopsReading closes the server's input between the frames of one read, or in
// the middle of one: the records tell what it has from what it cannot have.
func TestServerStopsReading(t *testing.T) {
	g := Gate{Mode: policy.Enforce, Counters: &policy.Memory{}}
	var err error
	if g.Risk, err = risk.New(risk.Config{}); err != nil {
		t.Fatal(err)
	}
	if g.Policy, err = policy.Load([]byte(`{"version":"1","default":"deny","tools":{"safe":{}}}`), "p.json"); err != nil {
		t.Fatal(err)
	}
	frame := func(id int, tool string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`+"\n", id, tool)
	}
	const all = 5
	apart := [all]string{"safe", "evil", "safe", "evil", "safe"} // each frame is a write of its own
	together := [all]string{"safe", "safe", "safe", "safe", "safe"}
	for _, tt := range []struct {
		name  string
		tools [all]string
		reads int // bytes
		want  [all]bool
	}{
		{"before the first frame", apart, 0, [all]bool{}},
		{"between two frames", apart, len(frame(1, "safe")), [all]bool{0: true}},
		{"in the middle of a frame", apart, len(frame(1, "safe")) + 5, [all]bool{0: true, 2: true}},
		{"before the only write", together, 0, [all]bool{}},
		{"between two frames of a write", together, 2 * len(frame(1, "safe")), [all]bool{0: true, 1: true}},
		{"in the middle of a write", together, 2*len(frame(1, "safe")) + 5, [all]bool{0: true, 1: true, 2: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, j := testSession(t)
			live, err := newGate(g)
			if err != nil {
				t.Fatal(err)
			}
			c.s.gate.Store(live)
			out, err := os.CreateTemp(t.TempDir(), "out")
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			server, in := io.Pipe()
			c.server, c.out = in, newOutput(out)
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				io.CopyN(io.Discard, server, int64(tt.reads))
				server.Close()
			}()
			var read string
			for i, tool := range tt.tools {
				read += frame(i+1, tool)
			}
			q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
			if c.forward(q.Scan(copy(q.Space(), read)), q.Ready()) {
				t.Error("the server takes more input, want none")
			}
			<-closed
			c.s.end(audit.ErrServerExited)
			var got [all]bool
			for _, r := range j.records(t) {
				if r.Kind == audit.KindCall {
					got[r.CallNo-1] = r.Forwarded
				}
			}
			if got != tt.want {
				t.Errorf("forwarded %v, want %v", got, tt.want)
			}
		})
	}
}

package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An execution is one call that a server ran: a method, and the tool, prompt or
// resource.
type execution struct {
	method, target string
	args           string // of a tool as on the wire, "" for none
}

// anyArgs are arguments that were not reported, as the message is oversize, or
// not noted.
const anyArgs = "*"

// arguments makes arguments comparable.
func arguments(raw []byte) string {
	if s := fold(string(bytes.TrimSpace(raw))); s != "null" {
		return s
	}
	return ""
}

// fold makes names comparable: readers differ in how many U+FFFD they put for
// bytes that are not UTF-8.
func fold(s string) string {
	var b strings.Builder
	var last rune
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r != '\uFFFD' || last != r {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// A passage is a stream on its way through a Requests.
type passage struct {
	stream []byte
	limit  int64
	sizes  []int // of the first reads
}

// A ledger holds the reports of a passage.
type ledger struct {
	calls    map[execution]map[int64]bool // by offset
	ids      map[string]bool              // keys of the ids of requests
	variants bool                         // some member was in another case
	passed   []byte
}

// run forwards p. pass gets the ready bytes, after the reports of them.
func (p *passage) run(pass func(l *ledger, ready []byte)) *ledger {
	l := &ledger{calls: map[execution]map[int64]bool{}, ids: map[string]bool{}}
	q := NewRequests(Config{Hash: sha256.New})
	q.limit = p.limit
	step := func(frames []Frame) {
		for _, f := range frames {
			for _, m := range f.Messages {
				l.add(&m)
			}
		}
		l.passed = append(l.passed, q.Ready()...)
		pass(l, q.Ready())
	}
	sizes := p.sizes
	for rest := p.stream; len(rest) > 0; {
		n := min(len(rest), int(p.limit)) // no read is larger, as with Limit itself
		if len(sizes) > 0 {
			n, sizes = min(n, sizes[0]), sizes[1:]
		}
		n = copy(q.Space(), rest[:n])
		step(q.Scan(n))
		for q.More() {
			step(q.Scan(0))
		}
		rest = rest[n:]
	}
	q.Space()
	step(q.End())
	return l
}

func (l *ledger) add(m *Message) {
	if m.State == Opaque {
		return
	}
	args := anyArgs
	if m.Raw != nil {
		args = arguments(m.Arguments)
	}
	l.tell(m.Off, m.Method, m.Name, args)
	l.tell(m.Off, m.Method, m.URI, args)
	for _, c := range m.Candidates {
		if c.Differs && m.Raw != nil {
			l.tell(m.Off, c.Method, c.Name, arguments(c.Arguments))
		} else {
			l.tell(m.Off, c.Method, c.Name, args)
		}
	}
	for match := ExactID; match <= IntID; match++ {
		if key := AppendIDKey(nil, m.ID, match, false); len(key) > 0 {
			l.ids[string(key)] = true
		}
	}
	l.variants = l.variants || m.Anomalies&CaseVariantMember != 0
}

func (l *ledger) tell(off int64, method, target []byte, args string) {
	m, name := fold(text(method)), fold(text(target))
	for _, e := range [...]execution{{m, name, ""}, {m, "", ""}, {m, name, "with " + args}} {
		if l.calls[e] == nil {
			l.calls[e] = map[int64]bool{}
		}
		l.calls[e][off] = true
	}
}

// check checks that each execution has a reported call of its own.
func (l *ledger) check(t testing.TB, server string, list []execution) {
	t.Helper()
	n := map[execution]int{}
	for _, e := range list {
		exact, any := execution{e.method, e.target, "with " + e.args}, execution{e.method, e.target, "with " + anyArgs}
		if e.method == methodCall && e.args != anyArgs && l.calls[exact] == nil && l.calls[any] == nil {
			t.Errorf("%s executed %q, whose arguments were not told of %q", server, e, l.passed)
		}
		e.args = ""
		if n[e]++; n[e] > len(l.calls[e]) {
			t.Errorf("%s executed %q, which was not told of %q", server, e, l.passed)
		}
	}
}

// checkWords checks that some reading of a reported tool call has every name
// and value of the arguments that it was executed with.
func (l *ledger) checkWords(t testing.TB, server, tool string, args []byte) {
	t.Helper()
	for e := range l.calls {
		if have, ok := strings.CutPrefix(e.args, "with "); ok && e.method == methodCall && e.target == fold(tool) &&
			(have == anyArgs || hasWords([]byte(have), args)) {
			return
		}
	}
	t.Errorf("%s executed %q with %s, which was not told", server, tool, args)
}

// checkIDs checks that each id is that of a reported request.
func (l *ledger) checkIDs(t testing.TB, server string, ids [][]byte) {
	t.Helper()
	for _, id := range ids {
		found := false
		for match := ExactID; match <= IntID; match++ {
			key := AppendIDKey(nil, id, match, true)
			found = found || len(key) > 0 && l.ids[string(key)]
		}
		if !found {
			t.Errorf("%s answered id %s, which no request has in %q", server, id, l.passed)
		}
	}
}

// notes are a server's executions and its output.
type notes struct {
	mu   sync.Mutex // guards all: servers use several goroutines
	list []execution
	ids  [][]byte
	out  bytes.Buffer
}

func (n *notes) add(method, target string, args, id []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, execution{fold(method), fold(target), arguments(args)})
	if id != nil {
		n.ids = append(n.ids, id)
	}
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out.Write(b)
}

func (n *notes) Close() error { return nil }

// answered are the ids of the answers that the server wrote.
func (n *notes) answered() (ids [][]byte) {
	for line := range bytes.Lines(n.out.Bytes()) {
		var all []json.RawMessage
		if json.Unmarshal(line, &all) != nil {
			all = []json.RawMessage{line}
		}
		for _, one := range all {
			if id := Member(one, "id"); Member(one, "method") == nil && id != nil && string(id) != "null" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// throughGoSDK forwards p to a server of the official Go SDK. After each part
// it waits until the server is idle.
func throughGoSDK(t *testing.T, p *passage) (l *ledger, executed int) {
	n := &notes{}
	synctest.Test(t, func(bubble *testing.T) {
		s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, &mcp.ServerOptions{
			Logger: slog.New(slog.DiscardHandler), HasTools: true, HasPrompts: true, HasResources: true})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				name, args := target(r)
				n.add(method, name, args, nil)
				return next(ctx, method, r)
			}
		})
		r, w := io.Pipe()
		session, err := s.Connect(bubble.Context(), &mcp.IOTransport{Reader: r, Writer: n}, nil)
		if err != nil {
			bubble.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			session.Wait()
			r.Close() // as at the end of a process
		}()
		l = p.run(func(l *ledger, ready []byte) {
			w.Write(ready) // fails when the server is gone
			synctest.Wait()
			l.check(t, "go-sdk", n.list)
		})
		w.Close()
		<-ended
	})
	l.check(t, "go-sdk", n.list)
	l.checkIDs(t, "go-sdk", n.answered())
	return l, len(n.list)
}

func target(r mcp.Request) (name string, args []byte) {
	switch p := r.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		return p.Name, p.Arguments
	case *mcp.GetPromptParams:
		return p.Name, nil
	case *mcp.ReadResourceParams:
		return p.URI, nil
	}
	return "", nil
}

// mcpGo is a server of mark3labs/mcp-go, for one stream after the other: it
// reads lines, and stays. It executes one call at a time, so that when it has
// executed lastTool, it has executed all before it.
type mcpGo struct {
	in   *bufio.Writer
	done chan struct{}
	notes
}

const (
	lastTool = "the last tool of a stream"
	lastCall = `{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"` + lastTool + `","arguments":{},"_meta":` + stateless + `}}` + "\n"
)

func startMCPGo(t testing.TB) *mcpGo {
	m := &mcpGo{done: make(chan struct{})}
	hooks := &server.Hooks{}
	hooks.AddBeforeCallTool(func(_ context.Context, id any, r *mcpgo.CallToolRequest) {
		if r.Params.Name == lastTool {
			m.done <- struct{}{}
			return
		}
		raw, err := json.Marshal(id)
		if err != nil {
			t.Errorf("encoding id: %v", err)
		}
		m.add(r.Method, r.Params.Name, r.Params.RawArguments, raw)
	})
	stdio := server.NewStdioServer(server.NewMCPServer("peer", "1", server.WithHooks(hooks), server.WithToolCapabilities(false)))
	server.WithWorkerPoolSize(1)(stdio)
	stdio.SetErrorLogger(log.New(io.Discard, "", 0))
	r, w := io.Pipe()
	m.in = bufio.NewWriter(w)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stdio.Listen(context.Background(), r, io.Discard)
	}()
	t.Cleanup(func() {
		w.Close()
		<-ended
	})
	return m
}

// check forwards a stream to m, of which l has the reports.
func (m *mcpGo) check(t *testing.T, stream []byte, l *ledger) (executed int) {
	m.in.Write(stream)
	m.in.WriteString("\n" + lastCall)
	m.in.Flush()
	<-m.done
	m.mu.Lock()
	defer m.mu.Unlock()
	l.check(t, "mcp-go", m.list)
	if !l.variants { // else it may answer the id in another case
		l.checkIDs(t, "mcp-go", m.ids)
	}
	executed = len(m.list)
	m.list, m.ids = nil, nil
	return executed
}

// TestServersExecuteWhatIsTold forwards hostile streams to real servers: every
// call they execute was reported before they could.
func TestServersExecuteWhatIsTold(t *testing.T) {
	rounds := 5000
	switch {
	case os.Getenv("SOAK") != "":
		rounds = 300_000
	case testing.Short():
		rounds = 500
	}
	m := startMCPGo(t)
	var executed [2]int
	for i := range rounds {
		h := newHostile(1, uint64(i))
		p := &passage{stream: append([]byte(h.opening()), h.stream()...), limit: Limit}
		for range h.IntN(4) {
			p.sizes = append(p.sizes, 1+h.IntN(len(p.stream)+1))
		}
		if h.once(4) {
			p.limit = int64(64 + h.IntN(600))
		}
		l, n := throughGoSDK(t, p)
		executed[0] += n
		executed[1] += m.check(t, p.stream, l)
		if t.Failed() {
			t.Fatalf("stream %d: %q, in reads of %d, with a limit of %d", i, p.stream, p.sizes, p.limit)
		}
	}
	// A stream without executions tests nothing.
	if executed[0] < rounds || executed[1] < rounds/2 {
		t.Errorf("of %d streams go-sdk executed %d requests and mcp-go %d calls", rounds, executed[0], executed[1])
	}
	t.Logf("%d streams, go-sdk executed %d requests and mcp-go %d calls", rounds, executed[0], executed[1])
}

func FuzzServersExecuteWhatIsTold(f *testing.F) {
	for i := range 50 {
		h := newHostile(2, uint64(i))
		f.Add(append([]byte(h.opening()), h.stream()...), uint16(h.IntN(500)), uint16(600))
	}
	m := startMCPGo(f)
	f.Fuzz(func(t *testing.T, stream []byte, read, limit uint16) {
		l, _ := throughGoSDK(t, &passage{stream, 64 + int64(limit), []int{1 + int(read)}})
		m.check(t, stream, l)
	})
}

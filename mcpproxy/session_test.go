package mcpproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/policy/policytest"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// lines is a journal in memory.
type lines struct {
	mu     sync.Mutex
	b      bytes.Buffer
	broken bool
	pauses bool // it takes nothing before Last
	most   int  // bytes that one Append accepts; 0: any number
}

func (l *lines) fail(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

func (l *lines) Append(p []byte, final bool) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken || l.pauses || l.most > 0 && len(p) > l.most {
		return 0, errors.New("broken")
	}
	l.b.Write(p)
	return int64(l.b.Len()), nil
}

func (l *lines) Wait(int64, time.Duration) bool { return true }

func (l *lines) Last() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pauses = false
}

func (l *lines) records(t *testing.T) (list []audit.Record) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.b.Bytes()) {
		kind, r, err := audit.ParseLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if kind == audit.LineRecord {
			list = append(list, r)
		}
	}
	return list
}

func testSession(t *testing.T) (*clientSide, *lines) {
	t.Helper()
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	j := &lines{}
	return testClient(t, Config{Journal: j, Redactor: red, Log: zap.NewNop()}), j
}

// testClient is the client's side of a proxy that relays nothing.
func testClient(t testing.TB, c Config) *clientSide {
	t.Helper()
	g, err := startingGate(c.Gate)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(c, g)
	return newClientSide(s, nil, nil, nil)
}

// ask records a call as if it had come from the client.
func (c *clientSide) ask(t *testing.T, id, tool string) {
	t.Helper()
	raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q}}`, id, tool)
	m := wire.Message{Raw: []byte(raw), ID: []byte(id), Method: []byte(`"tools/call"`), Name: fmt.Appendf(nil, "%q", tool)}
	intend(t, c, &m)
}

// intend records a message as if it had come from the client.
func intend(t *testing.T, c *clientSide, m *wire.Message) {
	t.Helper()
	c.items = c.items[:0]
	c.read(0, m, 0, time.Now(), "")
	if _, err := c.s.intend(c.items, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func (c *clientSide) cancel(t *testing.T, id string) {
	t.Helper()
	if _, err := c.s.intend([]item{{cancel: []byte(id)}}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func answer(id string) []wire.Answer {
	return []wire.Answer{{ID: []byte(id), HasResult: true, Bytes: 10}}
}

// watchedServer is a server's input that checks the journal before any byte
// reaches it.
type watchedServer struct {
	t       *testing.T
	journal *lines
	input   bytes.Buffer
}

func (w *watchedServer) Write(b []byte) (int, error) {
	w.input.Write(b)
	calls := bytes.Count(w.input.Bytes(), []byte(`"tools/call"`))
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	if intents := bytes.Count(w.journal.b.Bytes(), []byte(`"line":"intent"`)); intents < calls {
		w.t.Errorf("%d calls have reached the server, %d are in the journal", calls, intents)
	}
	return len(b), nil
}

func (w *watchedServer) Close() error { return nil }

// No call reaches the server before its intent is in the journal, for any cut
// of its bytes.
func TestRecordedBeforeForwarded(t *testing.T) {
	const input = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
{"jsonrpc":"2.0","id":2,"method":"ping"}
[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}},{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"c"}}]
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"d"}} {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"e"}}
{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no line feed after it"}}`
	for _, size := range []int{1, 2, 7, 64, len(input)} {
		t.Run(fmt.Sprintf("reads of %d bytes", size), func(t *testing.T) {
			in, client, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			c, j := testSession(t)
			p := &Proxy{cfg: c.s.cfg, s: c.s, out: c.out}
			p.cfg.In = in
			p.requests = wire.NewRequests(wire.Config{Hash: p.s.wireHash})
			server := &watchedServer{t: t, journal: j}
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.fromClient(server)
			}()
			for b := range slices.Chunk([]byte(input), size) {
				if _, err := client.Write(b); err != nil {
					t.Error(err)
				}
			}
			client.Close()
			<-done
			if got := server.input.String(); got != input {
				t.Errorf("the server got %q, want what the client sent", got)
			}
		})
	}
}

// A call without an answer is seen after a minute, a cancelled one ends after a
// minute, and a later answer is an anomaly that names the call.
func TestUnansweredCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := testSession(t)
		c.ask(t, "1", "slow")
		c.ask(t, "2", "cancelled")
		<-time.After(30 * time.Second)
		c.cancel(t, "2")
		<-time.After(31 * time.Second)
		synctest.Wait()
		if got := kinds(j.records(t)); got != "[open open]" {
			t.Fatalf("after a minute: %s, want an interim record for each", got)
		}
		<-time.After(10 * time.Second)
		c.cancel(t, "2") // again
		<-time.After(50 * time.Second)
		synctest.Wait()
		records := j.records(t)
		if got := kinds(records); got != "[open open call]" || records[2].ErrorType != audit.ErrCancelled || records[2].Tool != "cancelled" {
			t.Fatalf("a minute after the cancel: %+v", records)
		}
		c.s.finish(slices.Concat(answer("2"), answer("1"), answer("2")), false)
		c.s.end(audit.ErrNoResponse)
		records = j.records(t)
		if got := kinds(records); got != "[open open call anomaly call anomaly session_end]" {
			t.Fatalf("in the end: %s", got)
		}
		if late := records[3]; late.CallNo != 2 || late.Anomalies[0] != "late_answer" {
			t.Errorf("late answer = %+v, want one that names call 2", late)
		}
		if again := records[5]; again.CallNo != 0 || again.Anomalies[0] != "unasked_answer" {
			t.Errorf("second answer = %+v, want one that names no call", again)
		}
		if slow := records[4]; slow.Outcome != audit.OutcomeOK || slow.Duration != 121*time.Second {
			t.Errorf("slow call = %+v, want ok after 121 s", slow)
		}
		dense(t, records)
	})
}

// An answer that most clients cannot read ends its call after a minute, if no
// other has come.
func TestLooseAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := testSession(t)
		c.ask(t, "1", "slow")
		loose := answer("1")
		loose[0].Loose = true
		c.s.finish(loose, false)
		if got := kinds(j.records(t)); got != "[anomaly]" {
			t.Fatalf("at once: %s, want a record that names the call", got)
		}
		<-time.After(61 * time.Second)
		synctest.Wait()
		records := j.records(t)
		if got := kinds(records); got != "[anomaly call]" || records[1].Outcome != audit.OutcomeOK || records[1].Duration != 0 || records[1].ResultBytes != 10 {
			t.Fatalf("after a minute: %+v, want ok after 0 s", records)
		}
		c.s.finish(answer("1"), false)
		if records = j.records(t); kinds(records) != "[anomaly call anomaly]" || records[2].CallNo != 1 || records[2].Anomalies[0] != "late_answer" {
			t.Fatalf("after a second answer: %+v, want an anomaly that names call 1", records)
		}
		c.s.end(audit.ErrNoResponse)
	})
}

// A second answer is attributed by the id that go-sdk writes for 1.5, also after
// calls whose ids every server writes alike.
func TestSecondAnswerByAnotherSpelling(t *testing.T) {
	c, j := testSession(t)
	for _, id := range []string{"1.5", `"exact"`} {
		c.ask(t, id, "t")
		c.s.finish(answer(id), false)
	}
	c.s.finish(answer("1"), false)
	records := j.records(t)
	if last := records[len(records)-1]; last.CallNo != 1 || !slices.Equal(last.Anomalies, []string{"late_answer"}) {
		t.Errorf("the last of %s is of call %d, %q, want a late_answer to call 1", kinds(records), last.CallNo, last.Anomalies)
	}
}

// A segment can begin before anything is known of the client and the server.
func TestHeadOfANewSession(t *testing.T) {
	c, _ := testSession(t)
	head := c.s.appendHead([]byte("before\n"))
	rest, ok := bytes.CutPrefix(head, []byte("before\n"))
	if !ok || bytes.Count(rest, []byte("\n")) != 1 {
		t.Fatalf("head %q, want one line after what was there", head)
	}
	if kind, _, err := audit.ParseLine(bytes.TrimSuffix(rest, []byte("\n"))); err != nil || kind != audit.LineContext {
		t.Errorf("the head is a line of kind %q, %v, want %q", kind, err, audit.LineContext)
	}
}

// What initialize has told is in a line before the next calls, once: recovery fills in
// their records from it.
func TestContextBeforeCalls(t *testing.T) {
	for _, info := range []string{`"serverInfo":{"name":"tmux"}`, `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tmux"}}`} {
		c, j := testSession(t)
		c.s.base.SessionID, c.s.base.Host = "s", "h"
		intend(t, c, &wire.Message{ID: []byte("1"), Method: []byte(`"initialize"`), Params: []byte(`{"clientInfo":{"name":"agent"}}`)})
		a := answer("1")
		a[0].Raw = []byte(`{"jsonrpc":"2.0","id":1,"result":{` + info + `}}`)
		c.s.finish(a, false)
		c.ask(t, "2", "t")
		intend(t, c, &wire.Message{ID: []byte("4"), Method: []byte(`"tools/list"`)})
		a = answer("4")
		a[0].Raw = []byte(`{"jsonrpc":"2.0","id":4,"result":{"tools":[]}}`)
		c.s.finish(a, false)
		c.ask(t, "3", "t")
		c.s.finish(answer("3"), false)
		var got []string
		for line := range bytes.Lines(j.b.Bytes()) {
			kind, r, err := audit.ParseLine(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			if kind != audit.LineIntent {
				kind = strings.Join([]string{kind, r.SessionID, r.Host, r.Server.Name, r.Client.Name}, " ")
			}
			got = append(got, kind)
		}
		want := []string{audit.LineContext + " s h tmux agent", audit.LineIntent, audit.LineIntent, audit.LineRecord + " s h tmux agent"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the lines are %q, want %q", info, got, want)
		}
	}
}

// brokenServer takes some bytes of the first write and no more.
type brokenServer int

func (b brokenServer) Write(p []byte) (int, error) { return min(int(b), len(p)), io.ErrClosedPipe }

// A call of which the server may have got a part counts as forwarded.
func TestForwardedInPart(t *testing.T) {
	for taken, want := range map[brokenServer]bool{0: false, 1: true, 1000: true} {
		c, j := testSession(t)
		c.server = taken
		q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
		defer q.Close()
		if c.forward(q.Scan(copy(q.Space(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`+"\n")), q.Ready()) {
			t.Error("the server takes more")
		}
		c.s.end(audit.ErrServerExited)
		if records := j.records(t); len(records) == 0 || records[0].Forwarded != want {
			t.Errorf("after %d bytes: %+v, want forwarded %v", taken, records, want)
		}
	}
}

// A response of the client is no call, whatever its id; without approvals the proxy
// has asked nothing.
func TestResponseOfTheClient(t *testing.T) {
	c, j := testSession(t)
	for _, id := range []string{"1", `"auditproxy-1"`} {
		intend(t, c, &wire.Message{ID: []byte(id), HasResult: true})
	}
	if records := j.records(t); len(records) > 0 {
		t.Errorf("records %s, want none", kinds(records))
	}
}

// The ids of a bounded number of answered calls are kept. An answer to one that is
// forgotten is one to nothing.
func TestAnsweredIsBounded(t *testing.T) {
	c, j := testSession(t)
	for i := range maxAnswered + 1 {
		id := fmt.Sprint(i)
		c.ask(t, id, "t")
		c.s.finish(answer(id), false)
	}
	if n := cap(c.s.answered.ids); n > 2*maxAnswered {
		t.Errorf("%d ids are kept, want at most %d", n, maxAnswered)
	}
	before := len(j.records(t))
	for _, id := range []string{"0", "1", fmt.Sprint(maxAnswered), "1"} {
		c.s.finish(answer(id), false)
	}
	var got []string
	for _, r := range j.records(t)[before:] {
		got = append(got, fmt.Sprint(r.CallNo, r.Anomalies))
	}
	want := []string{"0 [unasked_answer]", "2 [late_answer]", fmt.Sprint(maxAnswered+1, " [late_answer]"), "0 [unasked_answer]"}
	if !slices.Equal(got, want) {
		t.Errorf("second answers = %q, want %q", got, want)
	}
}

// Answers to calls that a gap counts are no anomalies.
func TestAnswersInGap(t *testing.T) {
	c, j := testSession(t)
	c.s.cfg.OnAuditFailure = Allow
	c.s.missed(time.Now(), false)
	for range 2 {
		c.s.finish(answer("1"), false)
	}
	if got := kinds(j.records(t)); got != "[anomaly]" {
		t.Errorf("records = %s, want one of the second answer", got)
	}
}

func kinds(records []audit.Record) string {
	var list []audit.Kind
	for _, r := range records {
		list = append(list, r.Kind)
	}
	return fmt.Sprint(list)
}

func dense(t *testing.T, records []audit.Record) {
	t.Helper()
	for i, r := range records {
		if r.Seq != uint64(i) {
			t.Errorf("record %d has seq %d", i, r.Seq)
		}
	}
}

// More than maxOpen calls are not held open: the oldest ends.
func TestEviction(t *testing.T) {
	if testing.Short() {
		t.Skip("65 538 calls of one goroutine")
	}
	synctest.Test(t, func(t *testing.T) {
		c, j := testSession(t)
		for i := range maxOpen + 2 {
			c.ask(t, fmt.Sprint(i), "t")
		}
		records := j.records(t)
		if len(records) != 2 || records[0].CallNo != 1 || records[0].ErrorType != audit.ErrNoResponse ||
			len(records[0].Anomalies) != 1 || records[0].Anomalies[0] != "evicted" {
			t.Fatalf("records = %+v, want calls 1 and 2, evicted", records)
		}
		c.s.end(audit.ErrNoResponse)
		if n := len(j.records(t)); n != maxOpen+3 {
			t.Errorf("%d records in the end, want one for each call and the end", n)
		}
		if c.s.open.n != 0 || len(c.s.open.chains) != 0 {
			t.Errorf("%d calls and %d ids are left", c.s.open.n, len(c.s.open.chains))
		}
	})
}

// The table answers as a plain list would.
func FuzzCalls(f *testing.F) {
	f.Add(uint64(1), 100)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		rng := rand.New(rand.NewPCG(seed, 0))
		ids := []string{"1", "1.0", "1.5", `"1"`, "9007199254740993", "9007199254740992", "1e30", "true", "null", `"x"`, `[1]`, "-0", "0"}
		table := newCalls()
		var list []*call
		var names [][2]string // id and alias
		match := func(answer string) int {
			for which := range 2 {
				for m := wire.ExactID; m <= wire.IntID; m++ {
					want := wire.AppendIDKey(nil, []byte(answer), m, true)
					for i, ids := range names {
						if key := wire.AppendIDKey(nil, []byte(ids[which]), m, false); len(key) > 0 && bytes.Equal(key, want) {
							return i
						}
					}
				}
			}
			return -1
		}
		for range min(max(n, 0), 300) {
			id := ids[rng.IntN(len(ids))]
			if rng.IntN(2) == 0 {
				c := &call{}
				table.add(c, []byte(id))
				var alias string
				if rng.IntN(3) == 0 {
					alias = ids[rng.IntN(len(ids))]
					table.alias(c, []byte(alias))
				}
				list, names = append(list, c), append(names, [2]string{id, alias})
				continue
			}
			got, want := table.find([]byte(id)), match(id)
			if rng.IntN(8) == 0 && len(list) > 0 {
				want = rng.IntN(len(list)) // one in the middle ends
				got = list[want]
			}
			if want < 0 {
				if got != nil {
					t.Fatalf("find %s found a call, want none of %v", id, names)
				}
				continue
			}
			if got != list[want] {
				t.Fatalf("find %s did not find number %d of %v", id, want, names)
			}
			table.remove(got)
			list, names = append(list[:want], list[want+1:]...), append(names[:want], names[want+1:]...)
		}
		if table.n != len(list) || table.inexact < 0 {
			t.Fatalf("table holds %d calls, want %d", table.n, len(list))
		}
		for _, c := range list {
			table.remove(c)
		}
		if len(table.chains) != 0 || table.oldest != nil {
			t.Fatalf("%d ids are left in an empty table", len(table.chains))
		}
	})
}

// A call from its message to its record, without the wire and the spool.
func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct{ name, args, policy string }{
		{"plain", `{"keys":"ls -la","pane_id":"%1"}`, ""},
		{"pipe", `{"keys":"make -C ~/src/project test 2>&1 | tail -40","pane_id":"%3","enter":true}`, ""},
		{"policy", `{"keys":"make -C ~/src/project test 2>&1 | tail -40","pane_id":"%3","enter":true}`, policytest.ManyRules("")},
	} {
		b.Run(bb.name, func(b *testing.B) { benchmarkCall(b, bb.args, bb.policy) })
	}
}

func benchmarkCall(b *testing.B, args, rules string) {
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		b.Fatal(err)
	}
	j := &lines{}
	config := Config{Journal: j, Redactor: red, Log: zap.NewNop()}
	if rules != "" {
		p, err := policy.Load([]byte(rules), "p.json")
		if err != nil {
			b.Fatal(err)
		}
		a, err := risk.New(risk.Config{})
		if err != nil {
			b.Fatal(err)
		}
		config.Gate = Gate{Risk: a, Policy: p, Mode: policy.Enforce, Counters: new(policy.Memory)}
	}
	c := testClient(b, config)
	s := c.s
	raw := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"send_keys","arguments":` + args + "}}\n")
	got := answer("17")
	c.server = io.Discard
	q := wire.NewRequests(wire.Config{Hash: s.wireHash})
	b.ReportAllocs()
	for b.Loop() {
		n := copy(q.Space(), raw)
		c.forward(q.Scan(n), q.Ready())
		s.finish(got, false)
		j.b.Reset()
	}
}

// reuse plays a client's bytes, n in each read, to a server that answers
// nothing, and returns the tools of the calls with the anomaly id_reused.
func reuse(t *testing.T, stream string, n int) (reused []string) {
	t.Helper()
	c, j := testSession(t)
	c.server = io.Discard
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	for b := range slices.Chunk([]byte(stream), n) {
		if !c.forward(q.Scan(copy(q.Space(), b)), q.Ready()) {
			t.Fatal("the server takes no input")
		}
	}
	q.Space()
	c.forward(q.End(), q.Ready())
	c.s.end(audit.ErrNoResponse)
	for _, r := range j.records(t) {
		if slices.Contains(r.Anomalies, "id_reused") {
			reused = append(reused, r.Tool)
		}
	}
	return reused
}

// A call whose answer could be confused with that of an open call is flagged,
// for any cut of its bytes into reads. Some servers read numbers as float64 or
// int64, some read the id from a variant of its name.
func TestReusedID(t *testing.T) {
	call := func(tool, id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0",%s,"method":"tools/call","params":{"name":%q}}`, id, tool)
	}
	long := strings.Repeat("0", 100)
	for _, tt := range []struct {
		first, second string
		want          bool
	}{
		{`"id":7`, `"id":7`, true},
		{`"id":7`, `"id":8`, false},
		{`"id":7`, `"id":"7"`, false},
		{`"id":7`, `"id":7.0`, true},
		{`"id":7e0`, `"id":70e-1`, true},
		{`"id":7.` + long, `"id":7`, true},
		{`"id":1`, `"id":1.5`, true},
		{`"id":1.5`, `"id":1`, true},
		{`"id":1.5`, `"id":1.7`, true},
		{`"id":9007199254740992`, `"id":9007199254740993`, true},
		{`"id":9007199254740993`, `"id":9007199254740992`, true},
		{`"id":"a\u0062"`, `"id":"ab"`, true},
		{`"id":1,"Id":2`, `"id":2`, true},
		{`"id":2`, `"id":1,"Id":2`, true},
		{`"id":1,"Id":2`, `"id":3,"ID":2`, true},
		{`"id":1,"Id":2`, `"id":3,"ID":4`, false},
		{`"Id":2`, `"id":2`, true},
	} {
		var want []string
		if tt.want {
			want = []string{"second"}
		}
		first, second := call("first", tt.first), call("second", tt.second)
		for _, stream := range []string{first + "\n" + second + "\n", "[" + first + "," + second + "]\n", first + " " + second} {
			for n := range len(stream) {
				if testing.Short() && n > 0 && n < len(stream)-1 {
					continue // one goroutine, and the scanner's tests cut everywhere
				}
				if got := reuse(t, stream, n+1); !slices.Equal(got, want) {
					t.Fatalf("%s in reads of %d bytes: reused in %q, want %q", stream, n+1, got, want)
				}
			}
		}
	}
}

// A cancel is for a call before it, not for one after it, in one read as in two.
func TestCancelInOneRead(t *testing.T) {
	c, j := testSession(t)
	c.server = io.Discard
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	c.forward(q.Scan(copy(q.Space(), cancel+"\n"+call+"\n")), q.Ready())
	c.s.finish(answer("1"), false)
	c.forward(q.Scan(copy(q.Space(), call+"\n"+cancel+"\n")), q.Ready())
	c.s.finish(answer("1"), false)
	if r := j.records(t); len(r) != 2 || r[0].CancelRequested || !r[1].CancelRequested {
		t.Errorf("records %+v, want the second one cancelled", r)
	}
}

// A call that could not be recorded leaves no open call that an answer could
// find.
func TestUnrecordedReadLeavesNoCalls(t *testing.T) {
	c, j := testSession(t)
	c.server = io.Discard
	c.out = newOutput(nil)
	c.out.writeFail = true
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	j.fail(true)
	line := `{"jsonrpc":"2.0","id":1,"Id":2,"method":"tools/call","params":{"name":"t"}}`
	list := `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	c.forward(q.Scan(copy(q.Space(), line+"\n["+line+","+list+"]\n")), q.Ready())
	if c.s.open.n != 0 || len(c.s.open.chains) != 0 || c.s.open.inexact != 0 || c.s.wanted.Load() != 0 {
		t.Errorf("%d calls, %d ids and %d wanted answers are left", c.s.open.n, len(c.s.open.chains), c.s.wanted.Load())
	}
	c.forward(q.Scan(copy(q.Space(), list+"\n")), q.Ready()) // it passes, behind a gap that cannot be written
	if c.s.open.n != 1 || c.s.wanted.Load() != 1 {
		t.Errorf("%d requests are open, %d answers wanted, want that of the listing", c.s.open.n, c.s.wanted.Load())
	}
}

// Without a journal calls can pass, and nothing is kept of them.
func TestNoJournal(t *testing.T) {
	red, _ := gateOf(t, "", policy.Enforce)
	c := testClient(t, Config{Redactor: red, Log: zap.NewNop(), OnAuditFailure: Allow})
	var server bytes.Buffer
	c.server = &server
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	c.forward(q.Scan(copy(q.Space(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`+"\n")), q.Ready())
	c.s.finish(answer("1"), true)
	c.s.finish(answer("1"), true)
	c.s.end(audit.ErrNoResponse)
	if server.Len() == 0 || len(c.s.backlog) > 0 || c.s.gap.count != 1 {
		t.Errorf("the server got %q; %d bytes kept, %d calls missed, want the call, 0 and 1", server.String(), len(c.s.backlog), c.s.gap.count)
	}
}

// After session_end no call passes, also none that a person approves then, and no line
// is written. A call that waited has its record before.
func TestNothingPassesAfterTheEnd(t *testing.T) {
	c, j := testSession(t)
	var server bytes.Buffer
	c.server, c.out = &server, newOutput(nil)
	c.out.writeFail = true
	c.ask(t, "1", "t")
	w := &waiting{}
	c.items = c.items[:0]
	c.read(0, &wire.Message{Raw: []byte(`{}`), ID: []byte("2"), Method: []byte(`"tools/call"`), Name: []byte(`"asked"`)}, 0, time.Now(), "")
	c.items[0].waits = w
	if _, err := c.s.intend(c.items, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.items = slices.Clone(c.items)
	c.s.end(audit.ErrNoResponse)
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	c.forward(q.Scan(copy(q.Space(), `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}`+"\n")), q.Ready())
	c.s.finish(answer("1"), false)
	if _, ok := c.s.admit(w, audit.Approval{Outcome: "approved"}, time.Now()); ok {
		t.Error("a call is admitted after the end")
	}
	c.s.concludeAsked(w, time.Now())
	c.s.turnDown(w, audit.Approval{Outcome: "rejected"}, audit.ErrApprovalDenied, time.Now())
	records := j.records(t)
	if got := kinds(records); server.Len() > 0 || got != "[call call session_end]" {
		t.Fatalf("the server got %q; records %s, want none after the end", server.String(), got)
	}
	for _, r := range records {
		if a, _ := audit.ParseApproval(r.Approval); r.Tool == "asked" && (r.ErrorType != audit.ErrCancelled || a.Outcome != "cancelled") {
			t.Errorf("the call that waited: %+v, want it cancelled", r)
		}
	}
}

// With any number of open calls at the end, no write is larger than a segment
// of the journal, and the backlog is written in pieces as well.
func TestManyRecordsInPieces(t *testing.T) {
	c, j := testSession(t)
	j.most = maxAppend + audit.MaxRecord
	const n = 20000
	for i := range n {
		c.ask(t, fmt.Sprint(i), "a tool with a name that is long enough to make the records of many calls long")
	}
	j.fail(true)
	for i := range n / 2 {
		c.s.finish(answer(fmt.Sprint(i)), false)
	}
	j.fail(false)
	c.s.end(audit.ErrNoResponse)
	records := j.records(t)
	if len(records) != n+1 || j.b.Len() < 2*maxAppend {
		t.Errorf("%d records, want one for each of %d calls and the end", len(records), n)
	}
	dense(t, records)
}

// TestPingDoesNotEndACall sends requests that are not recorded with the id of an
// open call, before it or after it: their answers do not end the call, and it
// has an anomaly.
func TestPingDoesNotEndACall(t *testing.T) {
	const call, read = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"pipe_pane"}}`, `{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"u"}}`
	const failed = `{"jsonrpc":"2.0","id":5,"result":{"content":[],"isError":true}}`
	other := func(method string) string { return `{"jsonrpc":"2.0","id":5,"method":"` + method + `"}` }
	answer := func(result string) string { return `{"jsonrpc":"2.0","id":5,` + result + `}` }
	two := func(id string) string { return strings.Replace(call, `"id":5`, `"id":5,"Id":`+id, 1) }
	const sixth = `{"jsonrpc":"2.0","id":6,"method":"ping"}`
	empty := answer(`"result":{}`)
	for _, tt := range []struct {
		name     string
		requests []string
		answers  []string
		want     string
	}{
		{"no answer to the call", []string{call, other("ping")}, []string{empty}, "NoResponse id_reused"},
		{"the ping first", []string{other("ping"), call}, []string{empty}, "NoResponse id_reused"},
		{"the answer to the ping first", []string{call, other("ping")}, []string{empty, failed}, "ToolError id_reused"},
		{"the answer to the call first", []string{call, other("ping")}, []string{failed, empty}, "ToolError id_reused"},
		{"two pings", []string{other("ping"), call, other("ping")}, []string{empty, empty, failed}, "ToolError id_reused"},
		{"an id in another form", []string{call, `{"jsonrpc":"2.0","id":5.0,"method":"ping"}`}, []string{empty}, "NoResponse id_reused"},
		{"a method that the server does not know", []string{call, other("x/list")}, []string{answer(`"error":{"code":-32601,"message":"m"}`), failed}, "ToolError id_reused"},
		{"a list of tools", []string{read, other("tools/list")}, []string{answer(`"result":{"tools":[]}`)}, "NoResponse id_reused"},
		{"a resource", []string{read, other("ping")}, []string{answer(`"result":{"contents":[]}`), empty}, "ok id_reused"},
		{"a batch", []string{"[" + call + "," + other("logging/setLevel") + "]"}, []string{empty}, "NoResponse id_reused"},
		{"a ping that was answered", []string{other("ping"), "answers", call}, []string{empty, empty}, "ok"},
		{"a notification with an id", []string{call, other("notifications/x")}, []string{answer(`"error":{"code":-32602,"message":"m"}`), failed}, "ToolError id_reused"},
		{"a notification with an id first", []string{other("notifications/x"), call}, []string{answer(`"error":{"code":-32600,"message":"m"}`), failed}, "ToolError id_reused"},
		{"a cancel with an id", []string{call, `{"jsonrpc":"2.0","id":5,"method":"notifications/cancelled","params":{"requestId":6}}`}, []string{answer(`"error":{"code":-32600,"message":"m"}`), failed}, "ToolError id_reused"},
		{"a notification with an id that is null", []string{call, `{"jsonrpc":"2.0","id":null,"method":"notifications/x"}`}, []string{`{"jsonrpc":"2.0","id":null,"error":{}}`, failed}, "ToolError"},
		{"a ping with a result", []string{call, `{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}`}, []string{empty, failed}, "ToolError id_reused"},
		{"a ping with an error", []string{call, `{"jsonrpc":"2.0","id":5,"method":"ping","error":{}}`}, []string{empty, failed}, "ToolError id_reused"},
		{"a response of the client", []string{call, `{"jsonrpc":"2.0","id":5,"result":{}}`}, []string{empty}, "ok"},
		{"a failed call without content", []string{call, other("ping")}, []string{answer(`"result":{"isError":true}`), empty}, "ToolError id_reused"},
		{"a task", []string{call, other("ping")}, []string{answer(`"result":{"task":{"taskId":"t"}}`), failed}, "ok id_reused"},
		{"a request for input", []string{call, other("ping")}, []string{answer(`"result":{"resultType":"input_required"}`), failed}, "ok id_reused"},
		{"content", []string{call, other("ping")}, []string{answer(`"result":{"content":[]}`), failed}, "ok id_reused"},
		{"structured content", []string{call, other("ping")}, []string{answer(`"result":{"structuredContent":{}}`), failed}, "ok id_reused"},
		{"a result of another method", []string{call, other("ping")}, []string{answer(`"result":{"x":1}`), failed}, "ToolError id_reused"},
		{"a resource before an error", []string{read, other("ping")}, []string{answer(`"result":{"contents":[]}`), failed}, "ok id_reused"},
		{"no resource", []string{read, other("ping")}, []string{empty, failed}, "ToolError id_reused"},
		{"a handshake", []string{read, other("initialize")}, []string{answer(`"result":{"protocolVersion":"1"}`), failed}, "ToolError id_reused"},
		{"a ping with the call's second id", []string{two("6"), sixth}, []string{`{"jsonrpc":"2.0","id":6,"result":{"isError":true}}`, `{"jsonrpc":"2.0","id":6,"result":{}}`},
			"ToolError case_variant_member id_reused"},
		{"calls with one second id", []string{two("7"), strings.Replace(two("7"), `5`, `6`, 1)}, []string{`{"jsonrpc":"2.0","id":7,"result":{}}`},
			"NoResponse case_variant_member id_reused"},
		{"ids that no server makes of what it cannot read", []string{`{}`}, []string{`{"jsonrpc":"2.0","id":-1,"result":{}}`, `{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","id":9,"result":{}}`},
			"NoResponse not_rpc"},
		{"a ping without an id", []string{call, `{"jsonrpc":"2.0","method":"ping"}`}, []string{empty}, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, j := testSession(t)
			c.server = io.Discard
			q, a := wire.NewRequests(wire.Config{Hash: c.s.wireHash}), &wire.Answers{}
			reply := func() {
				if len(tt.answers) > 0 {
					c.s.finish(a.Scan([]byte(tt.answers[0]+"\n")), false)
					tt.answers = tt.answers[1:]
				}
			}
			for _, r := range tt.requests {
				if r == "answers" {
					reply()
					continue
				}
				c.forward(q.Scan(copy(q.Space(), r+"\n")), q.Ready())
			}
			for len(tt.answers) > 0 {
				reply()
			}
			c.s.end(audit.ErrNoResponse)
			if c.s.open.n != 0 || c.s.open.others != 0 || c.s.wanted.Load() < 0 {
				t.Errorf("%d requests are open, %d of them not calls, %d answers wanted", c.s.open.n, c.s.open.others, c.s.wanted.Load())
			}
			var got string
			for _, r := range j.records(t) {
				if r.Kind != audit.KindCall {
					continue
				}
				if got = r.ErrorType; got == "" {
					got = string(r.Outcome)
				}
				got = strings.Join(append([]string{got}, r.Anomalies...), " ")
			}
			if got = strings.ReplaceAll(got, " batch", ""); got != tt.want {
				t.Errorf("the call ended as %q, want %q", got, tt.want)
			}
		})
	}
}

// Tens of thousands of calls may be open, and the client decides how many: what
// is kept of each must stay small, or they exceed the memory of the proxy.
func TestOpenCallIsSmall(t *testing.T) {
	const most = 768 // a size class of the allocator
	if n := unsafe.Sizeof(call{}); n > most {
		t.Errorf("an open call takes %d bytes, at most %d are expected", n, most)
	}
}

// The records that were kept while the journal failed are tried with the last ones,
// although the journal pauses after a failure.
func TestLastRecordsDoNotPause(t *testing.T) {
	c, j := testSession(t)
	c.ask(t, "1", "t")
	j.pauses = true
	c.s.finish(answer("1"), false)
	c.s.end(audit.ErrNoResponse)
	records := j.records(t)
	if len(records) != 2 || records[0].Outcome != audit.OutcomeOK || records[1].Kind != audit.KindSessionEnd {
		t.Errorf("records %+v, want the call's and the session's end", records)
	}
}

package replay

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// TestAmbiguousAnomalies: the calls that the gate refuses in any case are those
// with anomalies of ambiguity, except those of batches and missing ids.
func TestAmbiguousAnomalies(t *testing.T) {
	want := (wire.Ambiguous &^ (wire.Batch | wire.NoID)).Append(nil)
	for _, word := range want {
		if !slices.Contains(ambiguous, word) {
			t.Errorf("%q is not among the words", word)
		}
	}
	if len(ambiguous) != len(want) {
		t.Errorf("got %q, want %q", ambiguous, want)
	}
}

func TestDetectorWords(t *testing.T) {
	for _, word := range []string{"more", "command_pattern", "path_unresolved"} {
		if !slices.Contains(detector.All(), word) {
			t.Errorf("%q is no detector", word)
		}
	}
}

// newReplay returns a Replay by a policy.
func newReplay(t *testing.T, source string) *Replay {
	t.Helper()
	p, err := policy.Load([]byte(source), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	a, err := risk.New(risk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Policy: p, Risk: a})
}

// writeLines writes a session that has ended.
func writeLines(t *testing.T, dir, id string, lines ...[]byte) {
	t.Helper()
	s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if _, err := s.Append(line, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, r *Replay, dir string) *Report {
	t.Helper()
	entries, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Spool(t.Context(), dir, entries, Selection{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return r.Report()
}

// TestEachCallOnce replays spools whose lines are missing, repeated, torn and out
// of order: each call of which a line is left counts once.
func TestEachCallOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for range 30 {
		dir := t.TempDir()
		want := int64(0)
		for range 3 {
			id := fmt.Sprintf("%08x-%04x-7000-8000-%012x", start.UnixMilli()>>16, start.UnixMilli()&0xffff, rnd.Uint64()>>16)
			var lines [][]byte
			for no := range 1 + rnd.Uint64N(40) {
				rec := audit.Record{Kind: audit.KindCall, RecordID: fmt.Sprintf("r%d", no), SessionID: id, Seq: no, CallNo: no + 1, TS: start.Add(time.Duration(no) * time.Second),
					Method: "tools/call", Tool: "t", Outcome: audit.OutcomeOK, Forwarded: true}
				left := false
				if rnd.IntN(5) > 0 {
					left, lines = true, append(lines, audit.AppendIntent(nil, &rec))
				}
				if rnd.IntN(5) > 0 {
					record := audit.AppendRecord(nil, &rec)
					at := len(lines) // at or after the intent
					if !left {
						at = rnd.IntN(len(lines) + 1)
					}
					left, lines = true, slices.Insert(lines, at, record)
				}
				if left {
					want++
				}
				if n := len(lines); n > 0 && rnd.IntN(5) == 0 {
					lines = append(lines, lines[rnd.IntN(n)])
				}
			}
			writeLines(t, dir, id, append(lines, []byte(`{"line":"intent","v":1,"record_id":"torn`))...)
		}
		for _, scope := range []string{"session", "user"} {
			r := newReplay(t, `{"version":"1","default":"deny","tools":{"t":{"limits":[{"counter":"c","window":"minute","max":5,"scope":"`+scope+`"}]}}}`)
			got := run(t, r, dir)
			if d := got.Decisions; got.Calls != want || d.Allow+d.Ask+d.Deny+d.Undecidable != want || len(got.Problems) > 0 {
				t.Fatalf("%d calls, %+v, want %d; problems %q", got.Calls, d, want, got.Problems)
			}
		}
	}
}

// TestManyNamesAreBounded: an agent that calls a tool of another name each time
// fills neither the report nor a proposal.
func TestManyNamesAreBounded(t *testing.T) {
	dir := t.TempDir()
	id := audit.NewID(time.Now())
	var lines []byte
	const calls = 3 * maxRows
	for no := range uint64(calls) {
		rec := audit.Record{Kind: audit.KindCall, RecordID: "r", SessionID: id, Seq: no, CallNo: no + 1, TS: time.Unix(1e9, 0), Method: "tools/call", Tool: fmt.Sprintf("t_%d", no),
			Outcome: audit.OutcomeOK, Forwarded: true}
		lines = audit.AppendRecord(lines, &rec)
	}
	writeLines(t, dir, id, lines)
	r := run(t, newReplay(t, `{"version":"1","default":"deny"}`), dir)
	if r.Calls != calls || len(r.Rows) > maxRows+1 || r.Decisions.Deny != calls {
		t.Errorf("%d calls in %d rows", r.Calls, len(r.Rows))
	}
	entries, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var p Proposal
	if p.Risk, err = risk.New(risk.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Spool(t.Context(), dir, entries, Selection{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text, err := p.YAML(); err != nil || len(p.tools) != maxUsed || len(text) < 100<<10 {
		t.Errorf("%d tools, %d bytes: %v", len(p.tools), len(text), err)
	}
}

// TestServerNamedLater: calls before the answer to initialize are those of the
// server that it names, by their intents and without a record too.
func TestServerNamedLater(t *testing.T) {
	dir, id, start := t.TempDir(), audit.NewID(time.Now()), time.Now()
	head := audit.Record{SessionID: id, ServerCommand: audit.Command{Command: "/usr/bin/python3"}}
	lines := [][]byte{audit.AppendContext(nil, &head)}
	calls := make([]audit.Record, 3)
	for i := range calls {
		calls[i] = audit.Record{Kind: audit.KindCall, RecordID: "r", SessionID: id, CallNo: uint64(i + 1), TS: start, Method: "tools/call", Tool: "early", Forwarded: true,
			Args: `{"a":1}`}
		lines = append(lines, audit.AppendIntent(nil, &calls[i]))
	}
	for i := range calls[:2] { // the last one has no record
		calls[i].Seq, calls[i].Outcome, calls[i].Server = uint64(i), audit.OutcomeOK, audit.Peer{Name: "s"}
		lines = append(lines, audit.AppendRecord(nil, &calls[i]))
	}
	writeLines(t, dir, id, lines...)
	entries, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]int64{"": 3, "s": 3, "python3": 3, "other": 0} {
		v, err := Tools(t.Context(), dir, server, entries, Selection{}, io.Discard)
		if err != nil || len(v.Problems) > 0 || v.Calls != want {
			t.Errorf("Tools of %q: %d calls, %v, %v, want %d", server, v.Calls, v.Problems, err, want)
		}
		p := Proposal{Server: server}
		if p.Risk, err = risk.New(risk.Config{}); err != nil {
			t.Fatal(err)
		}
		if err := p.Spool(t.Context(), dir, entries, Selection{}, io.Discard); err != nil {
			t.Fatal(err)
		}
		text, err := p.YAML()
		switch {
		case want > 0 && (err != nil || !strings.Contains(string(text), "# 3 calls, at most 3 in a minute") || strings.Contains(string(text), "several servers")):
			t.Errorf("the policy of %q: %v\n%s", server, err, text)
		case want == 0 && (err == nil || !strings.HasSuffix(err.Error(), `there are calls of "s"`)):
			t.Errorf("the policy of %q: %v", server, err)
		}
	}
}

// TestUnreadableSessions: sessions that cannot be read are reported, and the
// others are replayed.
func TestUnreadableSessions(t *testing.T) {
	dir := t.TempDir()
	id := audit.NewID(time.Now())
	rec := audit.Record{Kind: audit.KindCall, RecordID: "r", SessionID: id, CallNo: 1, TS: time.Now(), Method: "tools/call", Tool: "t", Outcome: audit.OutcomeOK, Forwarded: true}
	writeLines(t, dir, id, audit.AppendIntent(nil, &rec), audit.AppendRecord(nil, &rec))
	bad := filepath.Join(dir, "sessions", audit.NewID(time.Now()))
	if err := os.MkdirAll(filepath.Join(bad, "00000001.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := run(t, newReplay(t, `{"version":"1","default":"deny"}`), dir)
	if r.Calls != 1 || len(r.Problems) != 1 || !r.Unclear() {
		t.Errorf("%d calls, problems %q", r.Calls, r.Problems)
	}
}

// TestManySessionsAtOnce: limits by user are undecidable where more sessions
// overlap than are read at a time; those by session are not.
func TestManySessionsAtOnce(t *testing.T) {
	dir := t.TempDir()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const sessions = maxSources + 2
	for n := range sessions {
		id := fmt.Sprintf("%08x-%04x-7000-8000-%012x", start.UnixMilli()>>16, start.UnixMilli()&0xffff, n)
		var lines [][]byte
		for i := range 3 {
			rec := audit.Record{Kind: audit.KindCall, RecordID: "r", SessionID: id, Seq: uint64(i), CallNo: uint64(i + 1), TS: start.Add(time.Duration(i) * time.Minute), Method: "tools/call", Tool: "t",
				Outcome: audit.OutcomeOK, Forwarded: true}
			lines = append(lines, audit.AppendIntent(nil, &rec), audit.AppendRecord(nil, &rec))
		}
		writeLines(t, dir, id, lines...)
	}
	const source = `{"version":"1","default":"deny","tools":{"t":{"limits":[{"counter":"c","window":"day","max":100000,"scope":"SCOPE"}]}}}`
	r := run(t, newReplay(t, strings.Replace(source, "SCOPE", "user", 1)), dir)
	if r.Calls != 3*sessions || r.Decisions.Undecidable == 0 || r.Decisions.Deny > 0 || len(r.Problems) != 1 {
		t.Errorf("by user: %+v, problems %q", r.Decisions, r.Problems)
	}
	r = run(t, newReplay(t, strings.Replace(source, "SCOPE", "session", 1)), dir)
	if r.Calls != 3*sessions || r.Decisions.Allow != r.Calls || len(r.Problems) > 0 {
		t.Errorf("by session: %+v, problems %q", r.Decisions, r.Problems)
	}
}

// TestRefunds: a call that ends with a JSON-RPC error gives its count back when
// it ends, not before, unless another request had its id.
func TestRefunds(t *testing.T) {
	dir := t.TempDir()
	id := audit.NewID(time.Now())
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	call := func(no uint64, second int, d time.Duration, errorType string) *audit.Record {
		r := &audit.Record{Kind: audit.KindCall, RecordID: fmt.Sprintf("r%d", no), SessionID: id, Seq: no, CallNo: no, TS: start.Add(time.Duration(second) * time.Second),
			Method: "tools/call", Tool: "t", Outcome: audit.OutcomeOK, ErrorType: errorType, Forwarded: true, Duration: d}
		if errorType != "" {
			r.Outcome = audit.OutcomeError
		}
		return r
	}
	calls := []*audit.Record{
		call(1, 1, 3*time.Second, audit.ErrJSONRPC), // counts until second 4
		call(2, 2, time.Second, ""),                 // is denied
		call(3, 5, time.Second, ""),                 // takes its place
		call(4, 7, time.Second, ""),                 // is denied
		call(5, 61, time.Second, audit.ErrJSONRPC),  // counts: the error may be to another request
		call(6, 65, time.Second, ""),                // is denied
	}
	calls[4].Anomalies = []string{"id_reused"}
	var lines [][]byte
	for _, step := range []struct {
		call   int
		record bool
	}{{0, false}, {1, false}, {1, true}, {0, true}, {2, false}, {2, true}, {3, false}, {3, true}, {4, false}, {4, true}, {5, false}, {5, true}} {
		if step.record {
			lines = append(lines, audit.AppendRecord(nil, calls[step.call]))
		} else {
			lines = append(lines, audit.AppendIntent(nil, calls[step.call]))
		}
	}
	writeLines(t, dir, id, lines...)
	const source = `{"version":"1","default":"deny","tools":{"t":{"rules":[{"name":"r","rate_limit":"1/minute"}]}}}`
	r := newReplay(t, source)
	records, _ := r.Records(Selection{})
	for _, rec := range calls {
		records.Add(rec)
	}
	records.Close()
	for place, d := range map[string]Decisions{"spool": run(t, newReplay(t, source), dir).Decisions, "store": r.Report().Decisions} {
		if d.Allow != 3 || d.Deny != 3 || d.Undecidable != 0 {
			t.Errorf("%s: %+v, want three allowed", place, d)
		}
	}
}

// TestProposalOfAnnotatedTools: where a server annotates all its tools as
// destructive, the policy says which of them have a name that says less.
func TestProposalOfAnnotatedTools(t *testing.T) {
	a, err := risk.New(risk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proposal{Risk: a, tools: map[string]*used{
		"capture_pane": {calls: 1, minute: 1, hour: 1, category: risk.Destructive, source: "annotation"},
		"frobnicate":   {calls: 1, minute: 1, hour: 1, category: risk.Destructive, source: "annotation"},
		"kill_pane":    {calls: 1, minute: 1, hour: 1, category: risk.Destructive, source: "name"},
		"send_keys":    {calls: 1, minute: 1, hour: 1, category: risk.Destructive, source: "annotation"},
	}}
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# The server annotates 2 tools as destructive whose name says less. Remove action and\n# reason from those that are harmless.\n",
		"destructive by its annotation, but its name says read\n  capture_pane:\n    action: require_approval\n",
		"destructive by its annotation\n  \"frobnicate\":\n",
		"destructive by its name\n  kill_pane:\n",
		"destructive by its annotation, but its name says execute\n  send_keys:\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got\n%s\nwant it to have %q", text, want)
		}
	}
}

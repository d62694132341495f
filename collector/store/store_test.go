package store_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// base is in the past: a past hour does not change during a test.
var base = time.Now().UTC().Truncate(time.Hour).Add(-5 * time.Hour)

var week = store.Window{From: base.Add(-24 * time.Hour), To: base.Add(6 * time.Hour)}

// A maker makes the records of a session.
type maker struct {
	session   string
	seq, call uint64
	at        time.Time
	host      string
}

func newMaker(n int, host string) *maker {
	return &maker{session: fmt.Sprintf("019e8b1c-0000-7aaa-8bbb-%012x", n), at: base, host: host}
}

func (m *maker) record(kind audit.Kind) audit.Record {
	m.at = m.at.Add(1373 * time.Millisecond)
	r := audit.Record{
		Kind: kind, RecordID: audit.NewID(m.at), SessionID: m.session, Seq: m.seq, TS: m.at, Duration: -1,
		Host: m.host, User: "ann", Server: audit.Peer{Name: "libtmux", Version: "1"}, ClientID: m.host + "'s id", Client: audit.Peer{Name: "agent " + m.host},
	}
	m.seq++
	return r
}

func (m *maker) calls(tool, args string) audit.Record {
	m.call++
	r := m.record(audit.KindCall)
	r.CallNo, r.Method, r.Tool, r.Args, r.Outcome, r.Forwarded = m.call, "tools/call", tool, audit.JSON(args), audit.OutcomeOK, true
	r.Duration = time.Duration(m.call) * time.Millisecond
	return r
}

// refused returns r as a proxy writes it that did not forward the call.
func refused(r audit.Record, why string) audit.Record {
	r.Forwarded = false
	return failed(r, why)
}

func failed(r audit.Record, why string) audit.Record {
	r.Outcome, r.ErrorType = audit.OutcomeError, why
	return r
}

const batch = `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"pipe_pane","arguments":{"pane_id":"%2","output_path":"/tmp/nested"}},{"tool":"list_panes","arguments":{}}]}`

// decide adds a policy's decision about the i-th call.
func decide(r *audit.Record, i int) {
	p := audit.Policy{Decision: audit.DecisionAllow, Applied: true}
	k := audit.Risk{Category: "read", Level: "low"}
	switch i % 10 {
	case 1, 2:
		p = audit.Policy{Decision: audit.DecisionDeny, Applied: i%10 == 1, Rule: hostileRule, Reason: [...]string{"no", "not here"}[i%10-1]}
		k = audit.Risk{Category: "destructive", Level: "critical"}
		r.Detections = audit.DetectionsJSON([]audit.Detection{{Detector: "opaque"}, {Detector: "opaque", At: "keys"}, {Detector: "kill", At: "keys"}})
	case 3, 4, 5:
		p = audit.Policy{Decision: audit.DecisionAsk, Applied: i%10 == 3, Rule: "(default deny)"}
	}
	if p.Decision == audit.DecisionAsk && p.Applied {
		r.Approval = audit.Approval{Outcome: "approved", Scope: "once", By: "bob"}.JSON()
	}
	r.Policy, r.Risk = p.JSON(), k.JSON()
}

const hostileRule = `/tools/it's {x:String}/0`

// sessions makes the records of three sessions: a complete one, one that died and
// misses records, and one that still runs.
func sessions() []audit.Record {
	var list []audit.Record
	m := newMaker(1, "alpha")
	list = append(list, m.record(audit.KindSessionStart))
	for i := range 40 {
		r := m.calls("list_panes", fmt.Sprintf(`{"pane_id":"%%%d","title":"needle%[2]d Deploy\nline%[2]d\r\nFROM%[2]d C:\\table%[2]d"}`, i%3, i))
		decide(&r, i)
		list = append(list, r)
	}
	list = append(list, m.calls("call_tools_batch", batch), m.calls("pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`),
		refused(m.calls("pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`), audit.ErrPolicyDenied),
		refused(m.calls("pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`), audit.ErrAuditFailure),
		refused(m.calls("pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`), audit.ErrAmbiguousRequest),
		failed(m.calls("pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`), audit.ErrPolicyDenied), // the server says so
		refused(m.calls("set_environment", `{"name":"TOKEN","session_name":"x"}`), audit.ErrAuditFailure),
		m.calls("set_environment", `{"name":"TOKEN","value":{"len":3,"hmac_sha256_prefix":"0123456789abcdef"},"session_name":"x"}`),
		m.calls("create_session", `{"environment":{"A":{"len":1,"hmac_sha256_prefix":"0123456789abcdef"},"B":{"len":1,"hmac_sha256_prefix":"0123456789abcdef"}}}`),
		m.calls("split_window", `{"environment":{"len":9,"hmac_sha256_prefix":"0123456789abcdef"}}`))
	odd := m.calls("send_keys", `{}`)
	odd.Candidates, odd.Anomalies = []audit.Candidate{{Method: "tools/call", Tool: "kill_server"}}, []string{"duplicate_member"}
	list = append(list, odd, m.record(audit.KindSessionEnd))

	m = newMaker(2, "beta")
	m.at = base.Add(2 * time.Hour)
	list = append(list, m.record(audit.KindSessionStart), failed(m.calls("capture_pane", `{}`), "PaneNotFound"))
	m.seq += 2 // lost
	unknown := m.calls("send_keys", `{}`)
	unknown.Outcome, unknown.ErrorType, unknown.Recovered, unknown.Duration = audit.OutcomeUnknown, audit.ErrProxyDied, true, -1
	end := m.record(audit.KindSessionEnd)
	end.Recovered = true
	list = append(list, unknown, end)

	m = newMaker(3, "beta")
	m.at = base.Add(3 * time.Hour)
	gap, open := m.record(audit.KindGap), m.record(audit.KindOpen)
	gap.From, gap.To, gap.Count, gap.Denied = base, base.Add(time.Minute), 7, 7
	open.CallNo, open.Method, open.Tool = 1, "tools/call", "wait_for_text"
	anomaly := m.record(audit.KindAnomaly)
	anomaly.Anomalies = []string{"not_json"}
	return append(list, gap, open, anomaly)
}

// scatter stores records in many small inserts, each record one to three times
// and from different places.
func (f fixture) scatter(t *testing.T, records []audit.Record) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	offset := uint64(0)
	for range 3 {
		list := slices.Clone(records)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for chunk := range slices.Chunk(list, 11) {
			if offset == 0 || r.IntN(3) > 0 {
				f.insert(t, offset, chunk...)
			}
			offset += 100
		}
		if offset < 1000 {
			f.insert(t, offset+50, records...) // so that all are there
		}
	}
}

func TestStore(t *testing.T) {
	f := newFixture(t)
	records := sessions()
	f.scatter(t, records)
	t.Run("overview", func(t *testing.T) { testOverview(t, f, records) })
	t.Run("attention", func(t *testing.T) { testAttention(t, f) })
	t.Run("unread part", func(t *testing.T) { testUnreadPart(t, f) })
	t.Run("calls", func(t *testing.T) { testCalls(t, f, records) })
	t.Run("filters", func(t *testing.T) { testFilters(t, f) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, f) })
	t.Run("session", func(t *testing.T) { testSession(t, f) })
	t.Run("decisions", func(t *testing.T) { testDecisions(t, f) })
	t.Run("inventory", func(t *testing.T) { testInventory(t, f) })
	t.Run("alerts", func(t *testing.T) { testAlerts(t, f) })
	t.Run("backfill", func(t *testing.T) { testBackfill(t, f, records) })
	t.Run("untimed", func(t *testing.T) { testUntimed(t, f) })
	t.Run("rewritten", func(t *testing.T) { testRewritten(t, f, records) })
	t.Run("bounded effects", func(t *testing.T) { testBoundedEffects(t, f) })
	t.Run("many definitions", func(t *testing.T) { testManyDefinitions(t, f) })
	t.Run("long name", func(t *testing.T) { testLongName(t, f) })
	t.Run("removed", func(t *testing.T) { testRemoved(t, f) })
	t.Run("many sessions", func(t *testing.T) { testManySessions(t, f) })
	t.Run("unnamed", func(t *testing.T) { testUnnamed(t, f) })
	t.Run("one of many rewritten", func(t *testing.T) { testOneRewritten(t, f, records) })
}

// testOverview compares every number with a count over the records.
func testOverview(t *testing.T, f fixture, records []audit.Record) {
	got, err := f.Overview(t.Context(), week)
	if err != nil {
		t.Fatal(err)
	}
	var total store.Count
	tools, hosts := map[string]*store.ToolUse{}, map[string]uint64{}
	times := map[string][]float64{}
	for _, r := range records {
		if r.Kind != audit.KindCall {
			continue
		}
		switch r.Outcome {
		case audit.OutcomeOK:
			total.OK++
		case audit.OutcomeError:
			total.Error++
		default:
			total.Unknown++
		}
		hosts[r.Host]++
		for i, op := range audit.Operations(&r) {
			u := tools[op.Tool]
			if u == nil {
				u = &store.ToolUse{Operation: op.Tool}
				tools[op.Tool] = u
			}
			u.Operations++
			switch {
			case op.Candidate:
				u.Candidates++
			case op.Path != "":
				u.Nested++
			}
			if r.Outcome != audit.OutcomeOK {
				u.NotOK++
			}
			if i == 0 && r.Duration >= 0 {
				times[op.Tool] = append(times[op.Tool], float64(r.Duration.Microseconds())/1000)
			}
		}
	}
	if diff := cmp.Diff(total, got.Total); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	var sum store.Count
	for _, c := range got.Series {
		sum.OK, sum.Error, sum.Unknown = sum.OK+c.OK, sum.Error+c.Error, sum.Unknown+c.Unknown
	}
	if diff := cmp.Diff(total, sum); diff != "" {
		t.Errorf("sum of the series (-want +got):\n%s", diff)
	}
	for _, u := range got.Tools {
		want := tools[u.Operation]
		delete(tools, u.Operation)
		if want == nil {
			t.Fatalf("an operation %q that nobody asked for", u.Operation)
		}
		if list := times[u.Operation]; list != nil {
			slices.Sort(list)
			at := func(p float64) float64 { return list[min(int(p*float64(len(list))), len(list)-1)] }
			want.Latency = []float64{at(0.5), at(0.95), at(0.99)}
		}
		if diff := cmp.Diff(*want, u); diff != "" {
			t.Errorf("%s (-want +got):\n%s", u.Operation, diff)
		}
	}
	if len(tools) > 0 {
		t.Errorf("missing operations: %v", tools)
	}
	for _, p := range got.Hosts {
		if p.Calls() != hosts[p.Name] {
			t.Errorf("host %q has %d calls, want %d", p.Name, p.Calls(), hosts[p.Name])
		}
		delete(hosts, p.Name)
	}
	if len(hosts) > 0 || len(got.Servers) != 1 || got.Servers[0].Calls() != total.Calls() || got.Servers[0].Sessions != 2 {
		t.Errorf("hosts missing %v, servers %+v", hosts, got.Servers)
	}
}

func testAttention(t *testing.T, f fixture) {
	got, err := f.Attention(t.Context(), week)
	if err != nil || len(got.Failed) > 0 {
		t.Fatal(err, got.Failed)
	}
	want := store.SessionsState{Sessions: 3, Running: 1, Died: 1, Open: 1, Unknown: 1, Missing: 2, Holed: 1, Anomalies: 2, Gaps: 1}
	if diff := cmp.Diff(want, got.Sessions); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	if got.Rewrites.Records != 0 || got.Alerts == nil || got.Offsets == nil || got.Letters == nil || time.Since(got.Arrival.Newest) > time.Hour {
		t.Errorf("Attention = %+v", got)
	}
}

// ids are those of calls, newest first.
func ids(records []audit.Record, choose func(audit.Record) bool) (list []string) {
	calls := slices.DeleteFunc(slices.Clone(records), func(r audit.Record) bool { return !choose(r) })
	slices.SortFunc(calls, func(a, b audit.Record) int { return b.TS.Compare(a.TS) })
	for _, r := range calls {
		list = append(list, r.RecordID)
	}
	return list
}

func isCall(r audit.Record) bool { return r.Kind == audit.KindCall }

func lineIDs(lines []store.Line) (list []string) {
	for _, l := range lines {
		list = append(list, l.RecordID.String())
	}
	return list
}

// testCalls walks through the list both ways, while records arrive.
func testCalls(t *testing.T, f fixture, records []audit.Record) {
	want := ids(records, isCall)
	page := store.Page{Limit: 7, Raw: true}
	var got []string
	var firsts []store.Cursor
	for {
		p, err := f.Calls(t.Context(), store.Filter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Lines {
			if rec, err := audit.Parse([]byte(l.Raw)); err != nil || rec.RecordID != l.RecordID.String() {
				t.Errorf("the bytes of %s: %v", l.RecordID, err)
			}
		}
		got = append(got, lineIDs(p.Lines)...)
		firsts = append(firsts, p.Lines[0].Cursor())
		if p.Newer != (page.Before != nil) {
			t.Errorf("Newer = %t behind %v", p.Newer, page.Before)
		}
		if !p.Older {
			break
		}
		at := p.Lines[len(p.Lines)-1].Cursor()
		page.Before = &at
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("down the list (-want +got):\n%s", diff)
	}
	asked, err := f.Calls(t.Context(), store.Filter{Decision: store.Asked}, store.Page{Limit: 1})
	if err != nil || len(asked.Lines) != 1 || asked.Lines[0].Approval != "approved" || asked.Lines[0].ApprovalBy != "bob" {
		t.Errorf("what was asked for: %+v, %v, want that bob approved it", asked.Lines, err)
	}
	// Up again, each page beginning where the one below it did.
	for i := len(firsts) - 1; i > 0; i-- {
		p, err := f.Calls(t.Context(), store.Filter{}, store.Page{Limit: 7, After: &firsts[i]})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[7*(i-1):7*i], lineIDs(p.Lines)); diff != "" {
			t.Errorf("up to page %d (-want +got):\n%s", i-1, diff)
		}
		if p.Newer != (i > 1) || !p.Older {
			t.Errorf("page %d: Newer = %t, Older = %t", i-1, p.Newer, p.Older)
		}
	}
}

func testFilters(t *testing.T, f fixture) {
	for _, tt := range []struct {
		name string
		f    store.Filter
		want int
	}{
		{"it lists calls", store.Filter{}, 53},
		{"it lists every record", store.Filter{Kind: store.AnyKind}, 60},
		{"it finds operations inside batches", store.Filter{Operation: "pipe_pane"}, 6},
		{"it finds what some servers read", store.Filter{Operation: "kill_server"}, 1},
		{"it finds a word in any case", store.Filter{Text: "NEEDLE7"}, 1},
		{"it wants all words", store.Filter{Text: "deploy needle7"}, 1},
		{"it takes a path for its words", store.Filter{Text: "/tmp/nested"}, 1},
		{"it does not find parts of words", store.Filter{Text: "needl"}, 0},
		{"it finds the first word of a line", store.Filter{Text: "Line7"}, 1},
		{"it finds it with others", store.Filter{Text: "from7 needle7 LINE7"}, 1},
		{"it wants the first word of a line whole", store.Filter{Text: "line"}, 0},
		{"it takes no letter for an escape", store.Filter{Text: "eedle7"}, 0},
		{"it takes no backslash for an escape", store.Filter{Text: "able7"}, 0},
		{"it finds the word after a backslash", store.Filter{Text: "table7"}, 1},
		{"it finds nothing for no word", store.Filter{Text: "%%%"}, 0},
		{"it filters by outcome", store.Filter{Outcome: "error"}, 6},
		{"it filters by error", store.Filter{ErrorType: "PaneNotFound"}, 1},
		{"it filters by host", store.Filter{Host: "beta"}, 2},
		{"it filters by session", store.Filter{Session: newMaker(2, "").session}, 2},
		{"it filters by all at once", store.Filter{Host: "alpha", User: "ann", Outcome: "ok", Operation: "list_panes", Server: "libtmux", Method: "tools/call"}, 41},
		{"it filters by time", store.Filter{Window: store.Window{From: base.Add(time.Hour)}}, 2},
		{"it takes the end of a time for outside", store.Filter{Window: store.Window{From: base, To: base.Add(1373 * 2 * time.Millisecond)}}, 0},
		{"it finds anomalies", store.Filter{Kind: store.AnyKind, Anomalous: true}, 2},
		{"it finds calls that are open", store.Filter{Kind: "open"}, 1},
		{"it finds what was denied", store.Filter{Decision: store.Denied}, 4},
		{"it finds what would have been denied", store.Filter{Decision: store.WouldDeny}, 4},
		{"it finds both", store.Filter{Decision: "deny"}, 8},
		{"it finds what was asked for", store.Filter{Decision: store.Asked}, 4},
		{"it finds what would have been asked for", store.Filter{Decision: store.WouldAsk}, 8},
		{"it finds what a policy decided against", store.Filter{Decision: store.AnyDecision}, 20},
		{"it finds what was allowed", store.Filter{Decision: "allow"}, 20},
		{"it finds no other decision", store.Filter{Decision: "' OR 1=1 --"}, 0},
		{"it filters by rule", store.Filter{Rule: hostileRule}, 8},
		{"it filters by category", store.Filter{Risk: "destructive"}, 8},
		{"it filters by level", store.Filter{Risk: "low"}, 32},
		{"it filters by detector", store.Filter{Detector: "kill", Decision: "deny"}, 8},
		{"it finds no part of a detector", store.Filter{Detector: "kil"}, 0},
		{"it filters by client", store.Filter{Client: "agent beta"}, 2},
		{"it finds no part of a client", store.Filter{Client: "agent"}, 0},
		{"it takes the id that a client gives", store.Filter{Client: "alpha's id"}, 51},
		{"it filters by approver", store.Filter{Approver: "bob"}, 4},
		{"it finds no other approver", store.Filter{Approver: "bo"}, 0},
	} {
		got, err := f.Calls(t.Context(), tt.f, store.Page{Limit: 100})
		if err != nil || len(got.Lines) != tt.want {
			t.Errorf("%s: %d records, %v, want %d", tt.name, len(got.Lines), err, tt.want)
		}
	}
}

// testHostile queries with texts that have a meaning in SQL or in a parameter.
func testHostile(t *testing.T, f fixture) {
	texts := []string{"' OR 1=1 --", "{x:String}", "\x00", "a\tb\nc", `\`, `\'`, "'); DROP TABLE events", "\u202e", "\xff", strings.Repeat("x", 8<<10), "[1,2]", "NULL", `\N`}
	for _, s := range texts {
		for name, q := range map[string]store.Filter{
			"operation": {Operation: s}, "host": {Host: s}, "session": {Session: s}, "outcome": {Outcome: s}, "kind": {Kind: s}, "text": {Text: s + " nowhere"},
			"decision": {Decision: s}, "rule": {Rule: s}, "risk": {Risk: s}, "detector": {Detector: s}, "client": {Client: s}, "approver": {Approver: s},
		} {
			q.Window = week
			got, err := f.Calls(t.Context(), q, store.Page{Limit: 10})
			if err != nil || len(got.Lines) != 0 {
				t.Errorf("%s %.40q: %d records, %v, want none", name, s, len(got.Lines), err)
			}
		}
		if _, err := f.Session(t.Context(), s); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("session %.40q: %v, want %v", s, err, store.ErrNotFound)
		}
	}
	if got, err := f.Calls(t.Context(), store.Filter{}, store.Page{Limit: 100}); err != nil || len(got.Lines) != 53 {
		t.Errorf("after all that: %d calls, %v", len(got.Lines), err)
	}
}

func testSession(t *testing.T, f fixture) {
	id := newMaker(2, "").session
	got, err := f.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Records != 4 || got.Calls != 2 || got.Errors != 2 || got.Missing != 2 || !got.Ended || !got.Died || got.State(time.Now()) != "died" {
		t.Errorf("Session = %+v", got)
	}
	lines, err := f.Timeline(t.Context(), got, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for _, l := range lines {
		seqs = append(seqs, l.Seq)
	}
	if diff := cmp.Diff([]uint64{1, 4, 5}, seqs); diff != "" {
		t.Errorf("Timeline (-want +got):\n%s", diff)
	}
	stored, err := f.Record(t.Context(), lines[1].RecordID)
	if err != nil || len(stored) != 1 {
		t.Fatalf("Record = %d versions, %v, want 1", len(stored), err)
	}
	around, err := f.Neighbours(t.Context(), got, stored[0])
	if err != nil || len(around) != 4 {
		t.Errorf("Neighbours = %d records, %v, want 4", len(around), err)
	}
	if _, err := f.Record(t.Context(), uuid.New()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Record of nobody = %v, want %v", err, store.ErrNotFound)
	}
	one, err := f.Session(t.Context(), newMaker(1, "").session)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := f.Summary(t.Context(), one, 0, 1000)
	want := []store.NameCount{{What: "pipe", Name: "/tmp/a", N: 5, Refused: 3}, {What: "pipe", Name: "/tmp/nested", N: 1}}
	if diff := cmp.Diff(want, sum.Pipes); diff != "" || err != nil {
		t.Errorf("Summary: %v, pipes (-want +got):\n%s", err, diff)
	}
	// 40 calls, a batch and a pane that is piped are the records 1 to 42.
	sum, err = f.Summary(t.Context(), one, 1, 42)
	want = []store.NameCount{{What: "pipe", Name: "/tmp/a", N: 1}, {What: "pipe", Name: "/tmp/nested", N: 1}}
	if diff := cmp.Diff(want, sum.Pipes); diff != "" || err != nil || sum.Last != 42 || !sum.More {
		t.Errorf("Summary of 42 records: %v, last %d, pipes (-want +got):\n%s", err, sum.Last, diff)
	}
	if sum, err = f.Summary(t.Context(), one, 1000, 1); err != nil || sum.Last != 1000 || sum.More || len(sum.Operations) > 0 {
		t.Errorf("Summary behind the end: %+v, %v, want none", sum, err)
	}
	for client, n := range map[string]int{"agent alpha": 1, "agent beta": 2, "beta's id": 2, "agent": 0, "' OR 1=1 --": 0} {
		list, err := f.Sessions(t.Context(), store.SessionFilter{Window: week, Client: client}, 10)
		if err != nil || len(list) != n {
			t.Errorf("sessions of the client %q: %d, %v, want %d", client, len(list), err, n)
		}
	}
	for problem, n := range map[string]int{"": 3, "died": 1, "missing": 1, "open": 1, "gaps": 1, "anomalies": 2, "running": 1, "quiet": 0, "errors": 2} {
		list, err := f.Sessions(t.Context(), store.SessionFilter{Window: week, Problem: problem}, 10)
		if err != nil || len(list) != n {
			t.Errorf("sessions that are %q: %d, %v, want %d", problem, len(list), err, n)
		}
	}
}

// testDecisions counts the decisions that decide made. Every record was stored one
// to three times.
func testDecisions(t *testing.T, f fixture) {
	got, err := f.Decisions(t.Context(), store.DecisionFilter{Window: week})
	if err != nil {
		t.Fatal(err)
	}
	deny := store.DecisionCount{Denied: 4, WouldDeny: 4}
	ask := store.DecisionCount{Asked: 4, WouldAsk: 8}
	all := store.DecisionCount{Denied: 4, WouldDeny: 4, Asked: 4, WouldAsk: 8}
	last := got.Last
	if last.Before(base) || last.After(base.Add(time.Hour)) || !got.First.Equal(base) {
		t.Errorf("the decisions are from %v to %v", got.First, last)
	}
	for i := range got.Rules {
		got.Rules[i].Last = last
	}
	want := store.Decisions{
		Window: week, Total: all, First: base, Last: last,
		Rules:      []store.DecisionUse{{"(default deny)", "", []string{}, ask, last}, {hostileRule, "", []string{"no", "not here"}, deny, last}},
		Tools:      []store.DecisionUse{{"list_panes", "", nil, all, last}},
		Users:      []store.DecisionUse{{"ann", "alpha", nil, all, last}},
		Categories: []store.RiskUse{{"read", 32, 1}, {"destructive", 8, 1}},
		Detectors:  []store.RiskUse{{"kill", 8, 1}, {"opaque", 8, 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decisions (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		f    store.DecisionFilter
		want uint64
	}{
		{store.DecisionFilter{Decision: store.Denied}, 4},
		{store.DecisionFilter{Decision: store.AnyDecision}, 20},
		{store.DecisionFilter{Decision: "allow"}, 0},
		{store.DecisionFilter{Decision: "' OR 1=1 --"}, 0},
		{store.DecisionFilter{Rule: hostileRule, User: "ann", Host: "alpha", Tool: "list_panes", Category: "destructive"}, 8},
		{store.DecisionFilter{Category: "write"}, 0},
		{store.DecisionFilter{User: "bob"}, 0},
	} {
		tt.f.Window = week
		got, err := f.Decisions(t.Context(), tt.f)
		if err != nil || got.Total.Calls() != tt.want || got.First.IsZero() != (tt.want == 0) {
			t.Errorf("Decisions(%+v) = %+v, %v, want %d calls", tt.f, got, err, tt.want)
		}
	}
	if got, err := f.Decisions(t.Context(), store.DecisionFilter{Window: store.Window{From: base.Add(time.Hour), To: week.To}}); err != nil || got.Total.Calls() != 0 || got.Categories != nil {
		t.Errorf("an hour later: %+v, %v", got, err)
	}
	for n, want := range map[int]store.DecisionCount{1: all, 2: {}} {
		se, err := f.Session(t.Context(), newMaker(n, "").session)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.SessionDecisions(t.Context(), se); err != nil || got != want {
			t.Errorf("session %d: %+v, %v, want %+v", n, got, err, want)
		}
	}
	if at, err := f.Attention(t.Context(), week); err != nil || at.Decided != all {
		t.Errorf("the overview counts %+v, %v, want %+v", at.Decided, err, all)
	}
}

func testInventory(t *testing.T, f fixture) {
	pipes, err := f.Effects(t.Context(), store.EffectFilter{Kind: store.Pipe}, 10)
	if err != nil || len(pipes) != 2 {
		t.Fatalf("Effects = %+v, %v, want 2 paths", pipes, err)
	}
	if p := pipes[0]; p.Name != "/tmp/a" || p.Allowed != 2 || p.Refused != 3 || p.Failed != 1 || p.Least || !slices.Equal(p.Who, []string{"ann@alpha"}) {
		t.Errorf("the first path: %+v", p)
	}
	variables, err := f.Effects(t.Context(), store.EffectFilter{Kind: store.Variable}, 10)
	var got []string
	for _, v := range variables {
		got = append(got, v.Scope+" "+v.Name)
		if v.Name == "TOKEN" && (v.Allowed != 1 || v.Refused != 1 || v.Failed != 0) {
			t.Errorf("the variable %+v, want two operations, one of them refused", v)
		}
	}
	slices.Sort(got)
	want := []string{`pane {"len":9,"hmac_sha256_prefix":"0123456789abcdef"}`, "session A", "session B", "session TOKEN"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, variables (-want +got):\n%s", err, diff)
	}
	if list, err := f.Effects(t.Context(), store.EffectFilter{Kind: store.Variable, Name: "oke"}, 10); err != nil || len(list) != 1 {
		t.Errorf("variables with oke: %+v, %v, want 1", list, err)
	}
	tools, more, err := f.Definitions(t.Context())
	if err != nil || more {
		t.Fatalf("Definitions: more %t, %v", more, err)
	}
	var names []string
	for _, d := range tools {
		names = append(names, fmt.Sprint(d.Tool, " ", d.Called))
	}
	want = []string{"call_tools_batch true", "capture_pane true", "create_session true", "kill_server false", "list_panes true", "pipe_pane true", "send_keys true", "set_environment true", "split_window true"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func testAlerts(t *testing.T, f fixture) {
	f.exec(t, "INSERT INTO audit.alerts (alert_id, rule, severity, title, ts, suppressed, stored_at) VALUES "+
		"('a1', 'r', 'critical', 'first', now64(6), 0, now64(3)), ('a1', 'r', 'critical', 'first', now64(6) - 1, 0, now64(3)), ('a2', 'r', 'info', 'second', now64(6) - 60, 1, now64(3))")
	states := func() (list []string) {
		t.Helper()
		alerts, err := f.Alerts(t.Context(), store.AlertFilter{Severity: "critical"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			list = append(list, a.ID+" "+a.State)
		}
		return list
	}
	if diff := cmp.Diff([]string{"a1 open"}, states()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	event := store.AlertEvent{ID: uuid.New(), AlertID: "a1", At: time.Now().UTC().Truncate(time.Millisecond), Action: store.Acknowledged, Who: "ann", Comment: "it's \\ fine\n", Tenant: ""}
	for range 2 { // a form that is sent twice
		if err := f.AddAlertEvent(t.Context(), alert.Alert{ID: "a1"}, event); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a1 acknowledged"}, states()); diff != "" {
		t.Errorf("acknowledged (-want +got):\n%s", diff)
	}
	a, events, err := f.Alert(t.Context(), "a1")
	if diff := cmp.Diff([]store.AlertEvent{event}, events); diff != "" || err != nil || a.Title != "first" {
		t.Errorf("Alert = %+v, %v, events (-want +got):\n%s", a, err, diff)
	}
	event.ID, event.Action, event.At = uuid.New(), store.Reopened, event.At.Add(time.Second)
	if err := f.AddAlertEvent(t.Context(), a.Alert, event); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a1 open"}, states()); diff != "" {
		t.Errorf("reopened (-want +got):\n%s", diff)
	}
	if _, _, err := f.Alert(t.Context(), "nobody's"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Alert = %v, want %v", err, store.ErrNotFound)
	}
}

// testBackfill migrates a store that has records already, twice: a crash in it
// leaves a part of them counted.
func testBackfill(t *testing.T, f fixture, records []audit.Record) {
	for i := range 2 {
		for _, view := range []string{"review_feed", "number_feed", "session_feed", "place_feed", "definition_feed", "effect_set_feed"} {
			f.exec(t, "DROP VIEW IF EXISTS audit."+view+" SYNC")
		}
		f.exec(t, "TRUNCATE TABLE audit.session_states")
		if i == 0 { // then the hours have the maps of an older version alone, and effects its exact counts
			f.exec(t, "DROP TABLE audit.operation_states SYNC")
			f.exec(t, "DROP TABLE audit.effect_states SYNC")
		}
		f.exec(t, "ALTER TABLE audit.migrations DELETE WHERE number >= 5 SETTINGS mutations_sync = 1")
		f.migrate(t)
		testOverview(t, f, records)
		testAttention(t, f)
		testInventory(t, f)
		for from := 0; from < len(records); from += 50 { // they arrive again, and now have the new columns
			f.insert(t, uint64(2_000_000+1000*i+from), records[from:min(from+50, len(records))]...)
		}
		testOverview(t, f, records)
		testInventory(t, f)
	}
}

// testBoundedEffects repeats one operation more often than is counted: the page
// says so, and a merge makes no longer row.
// testManyDefinitions has a server change a tool's definition with each call. Its
// other tools and those of others are listed, and the page has memory for it.
func testManyDefinitions(t *testing.T, f fixture) {
	for from := range 4 {
		f.fill(t, fmt.Sprintf("INSERT INTO audit.definition_states (server_name, tool, part, tool_hash, annotations, last_ts) SELECT 'restless', 'changes', 'call', lower(hex(SHA256(toString(number)))), '{\"readOnlyHint\":true}', now64(6) FROM numbers(%d, 150000)", 150_000*from))
	}
	f.exec(t, "INSERT INTO audit.definition_states (server_name, tool, part, tool_hash, first_ts, last_ts) SELECT 'steady', 'stays', 'call', lower(hex(SHA256(toString(number)))), now64(6) - INTERVAL 9 - number DAY, now64(6) - INTERVAL 8 - number DAY FROM numbers(3)")
	tools, more, err := f.Definitions(t.Context())
	found := map[string]int{}
	for _, d := range tools {
		found[d.Tool]++
	}
	if err != nil || !more || found["stays"] != 3 || found["changes"] != 50 {
		t.Errorf("Definitions: more %t, %v, %d of the tool that changes and %d of the other, want 50 and 3", more, err, found["changes"], found["stays"])
	}
	f.exec(t, "TRUNCATE TABLE audit.definition_states")
}

// TestRulesOverHistory: the shipped rules have memory for a history in many parts,
// of calls that a policy decided about.
func TestRulesOverHistory(t *testing.T) {
	f := newFixture(t)
	for part := range 30 {
		f.fill(t, fmt.Sprintf(`INSERT INTO audit.events (kind, record_id, session_id, seq, call_no, ts, method, tool, outcome, policy, payload_hash, ops, ops_args, ops_path, ops_candidate, ingested_at)
			SELECT 'call', generateUUIDv7(), '01aaaaaa-0000-7000-8000-00000000000a', number, number + 1, now64(6) - toIntervalMillisecond(1000000 + number * 100), 'tools/call', 'list_panes', 'ok',
			       concat('{"decision":"allow","reason":"', repeat('because ', 125), '"}'), substring(SHA256(toString(number)), 1, 16), ['list_panes'], ['{}'], [''], [false], now64(3) - INTERVAL 1000 SECOND
			FROM numbers(%d, 8000)`, part*8000))
	}
	rules, err := alert.LoadShipped(alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.All() {
		if !r.Scheduled() {
			continue
		}
		if err := alert.Ask(t.Context(), f.Reader, r, time.Now().Add(-time.Minute), func(alert.Alert) error { return nil }); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}

// TestAskWithCopies: a question that collapses the copies of records itself reads them
// without FINAL, which takes most of the time of one about millions. Others see each once.
func TestAskWithCopies(t *testing.T) {
	f := newFixture(t)
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: plain, title: T, severity: info, reason: R, query: "SELECT 'k' AS key, now64(6) AS ts WHERE getSetting('final')"}
  - {name: copies, title: T, severity: info, reason: R, copies: true, query: "SELECT 'k' AS key, now64(6) AS ts WHERE NOT getSetting('final')"}
  - {name: many, title: T, severity: info, reason: R, operations: ["*"], threshold: {count: 1, within: 1m, by: [user], where: "NOT getSetting('final')"}}
  - {name: new, title: T, severity: info, reason: R, operations: ["*"], first_seen: {by: [tool], among: [host], where: "NOT getSetting('final')"}}
`)}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	call := ingesttest.Call(0, "send_keys", time.Now().UTC().Truncate(time.Minute).Add(-50*time.Second)) // both in one minute
	later := ingesttest.Call(1, "pipe_pane", call.TS.Add(time.Second))                                   // new, once there was another
	f.insert(t, 0, call, later)
	for _, r := range rules.All() {
		found := 0
		err := alert.Ask(t.Context(), f.Reader, r, time.Now().Add(-time.Hour), func(alert.Alert) error { found++; return nil })
		if err != nil || found != 1 {
			t.Errorf("%s finds %d, %v, want what it says of its setting", r.Name, found, err)
		}
	}
}

// TestCallsWithAnotherHint: the table of sessions only hints at where the newest
// records are. A list has every record if the hint is wrong, and if there is none.
func TestCallsWithAnotherHint(t *testing.T) {
	f := newFixture(t)
	var records []audit.Record
	for i, ago := range []time.Duration{-time.Hour, 0, time.Minute, 30 * time.Minute, 70 * time.Hour} { // the first one is ahead
		records = append(records, ingesttest.Call(i, "send_keys", time.Now().Add(-ago).UTC().Truncate(time.Microsecond)))
	}
	f.insert(t, 0, records...)
	insert := func(last string) string {
		return "INSERT INTO audit.session_states (session_id, last_ts) SELECT 'x', " + last
	}
	for _, hint := range []string{
		"SELECT 1",
		"TRUNCATE TABLE audit.session_states",
		insert("toDateTime64('2001-01-01 00:00:00', 6, 'UTC')"),
		insert("now64(6) - INTERVAL 20 MINUTE"),
		insert("toDateTime64('2199-01-01 00:00:00', 6, 'UTC')"),
		"DROP TABLE audit.session_states SYNC",
	} {
		f.exec(t, hint)
		var got []string
		for page := (store.Page{Limit: 2}); ; {
			list, err := f.Calls(t.Context(), store.Filter{}, page)
			if err != nil {
				t.Fatalf("after %s: %v", hint, err)
			}
			for _, line := range list.Lines {
				got = append(got, line.RecordID.String())
			}
			if !list.Older {
				break
			}
			before := list.Lines[len(list.Lines)-1].Cursor()
			page.Before = &before
		}
		var want []string
		for _, r := range records {
			want = append(want, r.RecordID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", hint, diff)
		}
	}
}

// TestRuleOverManyCalls: a rule that counts has memory for a minute of a fleet, in
// which all calls but a few differ.
func TestRuleOverManyCalls(t *testing.T) {
	f := newFixture(t)
	for _, feed := range []string{"review_feed", "place_feed", "arrival_feed"} { // nothing asks for their states
		f.exec(t, "DROP VIEW audit."+feed)
	}
	minute := time.Now().Add(-2 * time.Minute).Truncate(time.Minute)
	insert := func(from, n int, args string) {
		f.exec(t, fmt.Sprintf(`INSERT INTO audit.events (kind, record_id, session_id, seq, call_no, ts, method, tool, outcome, host, user, payload_hash, ops, ops_args, ops_path, ops_candidate, ingested_at)
			SELECT 'call', generateUUIDv7(number), '01aaaaaa-0000-7000-8000-00000000000a', number, number + 1, fromUnixTimestamp64Milli(%d + number %% 60000, 'UTC'), 'tools/call', 'send_keys', 'ok', 'host-1', 'ann',
			       substring(SHA256(toString(number)), 1, 16), ['send_keys'], [%s], [''], [false], now64(3) FROM numbers(%d, %d)`, minute.UnixMilli(), args, from, n))
	}
	const parts, each = 40, 10_000
	for part := range parts {
		insert(part*each, each, "concat('{\"keys\":{\"len\":46,\"hmac\":\"', lower(hex(SHA256(toString(number)))), '\"},\"cwd\":\"', repeat('/srv/build', 20), '\"}')")
	}
	insert(parts*each, 60, "'{\"keys\":\"again\"}'")
	insert(parts*each+60, 59, "'{\"keys\":\"less often\"}'")
	rules, err := alert.LoadShipped(alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	var found []alert.Alert
	for _, r := range rules.All() {
		if r.Name == "retry-loop" {
			err = alert.Ask(t.Context(), f.Reader, r, minute, func(a alert.Alert) error {
				found = append(found, a)
				return nil
			})
		}
	}
	if err != nil || len(found) != 1 || !found[0].TS.Equal(minute) || found[0].Host != "host-1" || found[0].Operation != "send_keys" || !strings.Contains(found[0].Details, "again") {
		t.Errorf("found %+v, %v, want the call that is repeated 60 times", found, err)
	}
}

// TestRulesOverSessions: the rules on policies read of many sessions, each with a
// policy that enforces, only those of the same user and host as one without: 32 MiB
// are enough for it.
func TestRulesOverSessions(t *testing.T) {
	f := newFixture(t)
	for _, feed := range []string{"review_feed", "place_feed", "arrival_feed"} { // nothing asks for their states
		f.exec(t, "DROP VIEW audit."+feed)
	}
	const parts, each = 10, 10_000
	insert := func(kind string, from, n int, policy, age string) {
		f.exec(t, fmt.Sprintf(`INSERT INTO audit.events (kind, record_id, session_id, seq, ts, policy, host, user, server_command, payload_hash, ingested_at)
			SELECT '%[1]s', generateUUIDv7(number), concat('01aaaaaa-0000-7000-8000-', leftPad(toString(number), 12, '0')), '%[1]s' = 'policy', now64(6) - %[5]s AS at,
			       '%[4]s', concat('host-', toString(number %% 4000)), 'ann', 'tmux', substring(SHA256(concat('%[1]s', toString(number))), 1, 16), at
			FROM numbers(%[2]d, %[3]d)`, kind, from, n, policy, age))
	}
	const loaded = `{"event":"loaded","mode":"enforce","hash":"aa"}`
	for part := range parts {
		insert("session_start", part*each, each, "", "toIntervalSecond(120 + 6 * number)")
		insert("policy", part*each, each, loaded, "toIntervalSecond(120 + 6 * number)")
	}
	insert("session_start", parts*each, 1, "", "INTERVAL 20 MINUTE")
	insert("session_start", parts*each+1, 1, "", "INTERVAL 20 MINUTE")
	insert("policy", parts*each+1, 1, strings.Replace(loaded, "aa", "bb", 1), "INTERVAL 20 MINUTE")
	rules, err := alert.LoadShipped(alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	asked := strings.NewReplacer("FROM events", "FROM audit.events", "{since:DateTime64(3)}", "now64(3) - INTERVAL 22 MINUTE")
	for _, r := range rules.All() {
		if r.Name != "policy-switched-off" && r.Name != "policy-changed" {
			continue
		}
		rows := chdbtest.Query(t, f.dir, asked.Replace(r.Query)+" SETTINGS final = 1, max_block_size = 8192, max_memory_usage = 33554432")
		if len(rows) != 1 {
			t.Errorf("%s finds %q, want one session", r.Name, rows)
		}
	}
}

// testManySessions: as many sessions as a fleet has in a month are listed within
// the memory of one query.
func testManySessions(t *testing.T, f fixture) {
	const parts, each = 6, 50_000
	for part := range parts {
		f.exec(t, fmt.Sprintf(`INSERT INTO audit.session_states (session_id, first_ts, last_ts, max_seq, ended, seqs, calls, errors, unknown, opened, anomalies, gaps, places)
			SELECT concat('01aaaaaa-0000-7000-8000-', leftPad(toString(number * %d + %d), 12, '0')), now64(6), now64(6), if(number < 2, 7, 1), 1, groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1)),
			       groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1)), groupBitmapState(toUInt64(1))
			FROM numbers(%d) GROUP BY number`, parts, part, each))
	}
	list, err := f.Sessions(t.Context(), store.SessionFilter{}, 101)
	if err != nil || len(list) != 101 || list[0].SessionID != "01aaaaaa-0000-7000-8000-000000299999" || list[0].SessionID < list[100].SessionID || list[0].Records != 1 {
		t.Errorf("%d sessions, %v, want the last 101", len(list), err)
	}
	if list, err := f.Sessions(t.Context(), store.SessionFilter{Problem: "missing", After: "01aaaaaa-0000-7000-8000-000000000011"}, 101); err != nil || len(list) < 11 || list[0].Missing != 7 {
		t.Errorf("%d sessions miss records, %v, want the 11 that began first", len(list), err)
	}
	if at, err := f.Attention(t.Context(), store.Window{}); err != nil || len(at.Failed) > 0 || at.Sessions.Sessions < parts*each {
		t.Errorf("Attention = %+v, %v, want %d sessions", at, err, parts*each)
	}
}

// testRemoved removes all records of a session but the first and the last.
func testRemoved(t *testing.T, f fixture) {
	m := newMaker(7, "alpha")
	first := m.record(audit.KindSessionStart)
	m.seq = 5000
	f.insert(t, 2_000_000, first, m.record(audit.KindSessionEnd))
	f.exec(t, "INSERT INTO audit.session_states (session_id, first_ts, last_ts, seqs) SELECT '"+m.session+"', now64(6), now64(6), groupBitmapState(number) FROM numbers(5000)")
	se, err := f.Session(t.Context(), m.session)
	if err != nil || se.Records != 5001 {
		t.Fatalf("Session = %+v, %v, want 5001 records", se, err)
	}
	lines, err := f.Timeline(t.Context(), se, 1, 3)
	if err != nil || len(lines) != 1 || lines[0].Seq != 5000 {
		t.Errorf("Timeline = %v, %v, want the last record", lines, err)
	}
}

// testLongName: names that fit in no head of a request keep the latency of no other
// tool from being read.
func testLongName(t *testing.T, f fixture) {
	m := newMaker(9, "gamma")
	m.at = base.AddDate(0, 0, 1)
	f.insert(t, 3_000_000, m.calls("short", `{}`), m.calls(strings.Repeat("\u05d0", 1<<18), `{}`), m.calls(strings.Repeat("A", 1<<20), `{}`))
	got, err := f.Overview(t.Context(), store.Window{From: m.at.Truncate(time.Hour), To: m.at.Add(time.Hour)})
	if err != nil || len(got.Failed) > 0 || len(got.Tools) != 3 {
		t.Fatalf("Overview = %d tools, failed %.200v, %v, want 3 and none", len(got.Tools), got.Failed, err)
	}
	for _, tool := range got.Tools {
		if timed := len(tool.Latency) > 0; timed != (tool.Operation == "short") {
			t.Errorf("the latency of %.20s is %v", tool.Operation, tool.Latency)
		}
	}
}

func testBoundedEffects(t *testing.T, f fixture) {
	for from := range 2 {
		f.exec(t, fmt.Sprintf("INSERT INTO audit.effect_states (effect, name, last_ts, allowed_ids, refused_ids) SELECT 'pipe', '/tmp/often', now64(6), range(%d, %d), [1]", 40_000*from, 40_000*from+40_000))
	}
	list, err := f.Effects(t.Context(), store.EffectFilter{Kind: store.Pipe, Name: "/tmp/often"}, 10)
	if err != nil || len(list) != 1 || list[0].Allowed != 65_536 || list[0].Refused != 1 || !list[0].Least {
		t.Errorf("Effects = %+v, %v, want at least 65536 operations", list, err)
	}
	// Each by two users, the second later; two names at a time.
	for user := range 2 {
		f.exec(t, fmt.Sprintf("INSERT INTO audit.effect_states (effect, name, user, last_ts) SELECT 'pipe', concat('/tmp/page', toString(number)), 'u%d', toDateTime64('2026-11-21 09:00:00', 6, 'UTC') + INTERVAL intDiv(number, 2) MINUTE + INTERVAL %[1]d SECOND FROM numbers(9)", user))
	}
	all, err := f.Effects(t.Context(), store.EffectFilter{Kind: store.Pipe, Name: "/tmp/page"}, 10)
	if err != nil || len(all) != 9 {
		t.Fatalf("Effects = %+v, %v, want 9", all, err)
	}
	var got, want []string
	for _, e := range all[:8] {
		want = append(want, e.Name)
	}
	filter := store.EffectFilter{Kind: store.Pipe, Name: "/tmp/page"}
	for range 4 {
		page, err := f.Effects(t.Context(), filter, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			place := e.Place()
			got, filter.After = append(got, e.Name), &place
		}
		// The last one is seen again: it moves to the start, and no other one moves.
		f.exec(t, "INSERT INTO audit.effect_states (effect, name, user, last_ts) SELECT 'pipe', '"+all[8].Name+"', 'u0', now64(6)")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by pages (-want +got):\n%s", diff)
	}
	// Names of tools that an agent makes do not hide those of a server.
	f.exec(t, "INSERT INTO audit.definition_states (server_name, tool, part, tool_hash, last_ts) SELECT 's', if(number = 0, 'z', concat('a', toString(number))), 'call', if(number = 0, 'aa', ''), now64(6) - INTERVAL if(number = 0, 9, 0) DAY FROM numbers(6000)")
	tools, more, err := f.Definitions(t.Context())
	if err != nil || !more || len(tools) > 5001 || !slices.ContainsFunc(tools, func(d store.Definition) bool { return d.Tool == "z" }) {
		t.Errorf("Definitions = %d, more %t, %v, want about 5000 of more, with the server's own", len(tools), more, err)
	}
}

// testUnreadPart has one part of the attention fail: the others are there, and
// the part is named.
func testUnreadPart(t *testing.T, f fixture) {
	f.exec(t, "RENAME TABLE audit.decision_states TO audit.away")
	got, err := f.Attention(t.Context(), week)
	f.exec(t, "RENAME TABLE audit.away TO audit.decision_states")
	if err != nil || len(got.Failed) != 1 || got.Failed[0].Part != store.PartDecisions || got.Failed[0].Err == nil || got.Has(store.PartDecisions) {
		t.Errorf("failed %v, %v, want %s", got.Failed, err, store.PartDecisions)
	}
	if !got.Has(store.PartSessions) || got.Sessions.Sessions == 0 || got.Arrival.Newest.IsZero() {
		t.Errorf("with one part missing, Attention = %+v", got)
	}
}

// testUnnamed has more names than can be counted by: the calls over time are there.
func testUnnamed(t *testing.T, f fixture) {
	const parts, each = 5, 40_000
	hour := base.AddDate(0, -2, 0).Truncate(time.Hour)
	for part := range parts {
		f.exec(t, fmt.Sprintf(`INSERT INTO audit.operation_states (hour, session_id, operation, outcome, part, numbers)
			SELECT toDateTime(%d, 'UTC'), '01aaaaaa-0000-7000-8000-%012d', concat(repeat('x', 1000), toString(number)), 'ok', 'call', groupBitmapState(number)
			FROM numbers(%d) GROUP BY number`, hour.Unix(), part, each))
	}
	got, err := f.Overview(t.Context(), store.Window{From: hour, To: hour.Add(2 * time.Hour)})
	if err != nil || len(got.Failed) != 1 || got.Failed[0].Part != store.PartNames || got.Failed[0].Err == nil || len(got.Tools)+len(got.Hosts)+len(got.Servers) > 0 {
		t.Errorf("failed %v, %v, with %d tools, want %s", got.Failed, err, len(got.Tools), store.PartNames)
	}
	if want := uint64(parts * each); got.Total.OK != want || len(got.Series) != 2 || got.Series[0].OK != want {
		t.Errorf("calls over time %+v, want %d", got.Series, want)
	}
	f.exec(t, fmt.Sprintf("ALTER TABLE audit.operation_states DROP PARTITION ID '%s'", hour.AddDate(0, 0, -(int(hour.Weekday())+6)%7).Format("20060102")))
}

// testUntimed has the latency of tools fail: everything else of the overview is there.
func testUntimed(t *testing.T, f fixture) {
	whole, err := f.Overview(t.Context(), week)
	if err != nil || !whole.Has(store.PartLatency) {
		t.Errorf("Overview = %v, %v, want all of it", whole.Failed, err)
	}
	// The fixture stops merges, for which a change of the parts would wait.
	f.exec(t, "ALTER TABLE audit.operation_states RENAME COLUMN times TO away SETTINGS alter_sync = 0")
	got, err := f.Overview(t.Context(), week)
	f.exec(t, "ALTER TABLE audit.operation_states RENAME COLUMN away TO times SETTINGS alter_sync = 0")
	if err != nil || len(got.Failed) != 1 || got.Failed[0].Part != store.PartLatency || got.Failed[0].Err == nil {
		t.Errorf("failed %v, %v, want %s", got.Failed, err, store.PartLatency)
	}
	if got.Total != whole.Total || len(got.Tools) != len(whole.Tools) || len(got.Hosts) == 0 {
		t.Errorf("without the latency of tools, Overview = %+v", got)
	}
}

// testRewritten stores a record again with another content.
func testRewritten(t *testing.T, f fixture, records []audit.Record) {
	forged := records[len(records)-1]
	forged.Anomalies = []string{"bare_cr"}
	f.insert(t, 1_000_000, forged)
	got, err := f.Attention(t.Context(), week)
	if err != nil || len(got.Failed) > 0 || got.Rewrites.Records != 1 {
		t.Errorf("Rewrites = %+v, %v, %v, want 1", got.Rewrites, err, got.Failed)
	}
	versions, err := f.Record(t.Context(), uuid.MustParse(forged.RecordID))
	if err != nil || len(versions) != 2 {
		t.Errorf("Record = %d versions, %v, want 2", len(versions), err)
	}
	lines, err := f.Calls(t.Context(), store.Filter{Kind: "anomaly"}, store.Page{Limit: 1})
	if err != nil || len(lines.Lines) != 1 || !lines.Older {
		t.Errorf("Calls = %+v, %v, want one of two versions", lines, err)
	}
}

// testOneRewritten stores a record again among 3000 sessions, of which each has a number
// from two places: more than are looked at by their ids.
func testOneRewritten(t *testing.T, f fixture, records []audit.Record) {
	forged := records[len(records)-1]
	forged.Anomalies = []string{"bare_cr"}
	f.insert(t, 1_000_000, forged)
	f.exec(t, "INSERT INTO audit.events (session_id, seq, ts, ingested_at, record_id, kafka_offset) "+
		"SELECT concat('00', leftPad(toString(number % 3000), 4, '0')), 0, now64(6) - INTERVAL 1 HOUR, now64(3), toUUID('019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e'), number FROM numbers(6000)")
	if got, err := f.Attention(t.Context(), week); err != nil || len(got.Failed) > 0 || got.Rewrites.Records != 1 {
		t.Errorf("Rewrites = %+v, %v, %v, want 1", got.Rewrites, err, got.Failed)
	}
}

func TestCursor(t *testing.T) {
	c := store.Cursor{TS: time.UnixMicro(math.MaxInt32).UTC(), RecordID: uuid.New(), Hash: strings.Repeat("0a", 16)}
	if got, err := store.ParseCursor(c.String()); err != nil || got != c {
		t.Errorf("ParseCursor(%q) = %+v, %v, want %+v", c, got, err, c)
	}
	for _, text := range []string{"", "1.2", "x." + c.RecordID.String() + "." + c.Hash, "1.x." + c.Hash, "1." + c.RecordID.String() + ".0", c.String() + ".1"} {
		if got, err := store.ParseCursor(text); err == nil {
			t.Errorf("ParseCursor(%q) = %+v, want an error", text, got)
		}
	}
}

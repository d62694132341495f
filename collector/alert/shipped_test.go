package alert_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestShippedOnOperations checks what the rules on operations find and what not, in
// a call of its own, inside a batch, inside a batch in a batch, and relayed.
func TestShippedOnOperations(t *testing.T) {
	rules := shipped(t, paths)
	tested := map[string]bool{}
	files, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		rule := strings.TrimSuffix(filepath.Base(file), ".txtar")
		tested[rule] = true
		arch, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(arch.Files) != 2 || len(arch.Comment) == 0 {
			t.Errorf("%s: want some prose, what fires and what is silent", file)
		}
		for _, f := range arch.Files {
			for line := range strings.Lines(string(f.Data)) {
				tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
				once := fmt.Sprintf(`{"operations":[{"tool":"list_panes","arguments":{}},{"tool":%q,"arguments":%s}]}`, tool, args)
				twice := fmt.Sprintf(`{"operations":[{"tool":"call_tools_batch","arguments":%s}]}`, once)
				for in, row := range map[string]struct{ tool, args string }{
					"a call":             {tool, args},
					"a batch":            {"call_tools_batch", once},
					"a batch in a batch": {"call_tools_batch", twice},
					"a relayed call":     {"call_tool", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)},
					"a relayed batch":    {"call_tool", fmt.Sprintf(`{"name":"call_tools_batch","arguments":%s}`, once)},
				} {
					if got, want := fired(rules, call(1, row.tool, row.args))[rule], f.Name == "fires"; got != want {
						t.Errorf("%s in %s: %s: fires %v, want %v", rule, in, strings.TrimSpace(line), got, want)
					}
				}
			}
		}
	}
	for _, r := range rules.All() {
		if !r.Scheduled() && len(r.Operations) > 0 && !tested[r.Name] {
			t.Errorf("%s: there is no testdata/rules/%[1]s.txtar", r.Name)
		}
	}
}

// TestUnseenArguments has calls whose arguments are not all in the record, or not
// where most servers would read them.
func TestUnseenArguments(t *testing.T) {
	rules := shipped(t, paths)
	for _, tt := range []struct {
		name   string
		change func(*audit.Record)
	}{
		{"another reading's", func(r *audit.Record) {
			r.Tool, r.Candidates = "list_panes", []audit.Candidate{{Method: "tools/call", Tool: "pipe_pane", Args: `{"output_path":"/etc/cron.d/x"}`}}
		}},
		{"another reading has the call's", func(r *audit.Record) {
			r.Tool, r.Args, r.Candidates = "list_panes", `{"output_path":"/etc/cron.d/x"}`, []audit.Candidate{{Method: "tools/call", Tool: "pipe_pane"}}
		}},
		{"a batch in another reading", func(r *audit.Record) {
			r.Tool = "call_mutating_tools_batch"
			r.Candidates = []audit.Candidate{{Method: "tools/call", Tool: r.Tool,
				Args: `{"operations":[{"tool":"pipe_pane","arguments":{"output_path":"/etc/cron.d/x"}}]}`}}
		}},
		{"a name in another case", func(r *audit.Record) { r.Args = `{"Output_Path":"/etc/cron.d/x"}` }},
		{"more readings than are listed", func(r *audit.Record) { r.Anomalies = []string{"candidates_cut"} }},
		{"cut", func(r *audit.Record) { r.Anomalies = []string{"args_cut"} }},
		{"too long", func(r *audit.Record) { r.Anomalies = []string{"oversize"} }},
	} {
		if got := fired(rules, call(1, "pipe_pane", `{"pane_id":"%1"}`, tt.change)); !got["pipe-pane-outside"] {
			t.Errorf("%s: %v, want pipe-pane-outside", tt.name, got)
		}
	}
	for tool, rule := range map[string]string{
		"create_session": "environment-of-later-shells",
		"rename_window":  "tmux-format-runs-a-shell",
	} {
		if got := fired(rules, call(1, tool, "{}", func(r *audit.Record) { r.Anomalies = []string{"args_cut"} })); !got[rule] {
			t.Errorf("%s that is cut: %v, want %s", tool, got, rule)
		}
	}
}

// TestShippedOnRecords checks what the rules on records find and what not.
func TestShippedOnRecords(t *testing.T) {
	rules := shipped(t, paths)
	kind := func(k audit.Kind, change ...func(*audit.Record)) func(*audit.Record) {
		return func(r *audit.Record) {
			r.Kind, r.CallNo, r.Method, r.Tool, r.Args, r.Outcome = k, 0, "", "", "", ""
			for _, c := range change {
				c(r)
			}
		}
	}
	anomaly := func(words ...string) func(*audit.Record) {
		return func(r *audit.Record) { r.Anomalies = words }
	}
	decided := func(p audit.Policy) func(*audit.Record) {
		return func(r *audit.Record) { r.Policy = p.JSON() }
	}
	approved := func(a audit.Approval) func(*audit.Record) {
		return func(r *audit.Record) { r.User, r.Approval = "ann", a.JSON() }
	}
	refused := func(r *audit.Record) { r.Outcome, r.Forwarded = audit.OutcomeError, false }
	unknown := func(r *audit.Record) { r.Outcome, r.Forwarded = audit.OutcomeUnknown, false }
	// detected makes a forwarded call with detectors, then applies changes.
	detected := func(category string, more ...any) func(*audit.Record) {
		return func(r *audit.Record) {
			var found []audit.Detection
			r.Forwarded, r.Risk = true, audit.Risk{Category: category}.JSON()
			for _, m := range more {
				switch m := m.(type) {
				case string:
					found = append(found, audit.Detection{Detector: m, At: "keys"})
				case func(*audit.Record):
					m(r)
				}
			}
			r.Detections = audit.DetectionsJSON(found)
		}
	}
	tested := map[string]bool{}
	for _, tt := range []struct {
		rule   string
		fires  bool
		change func(*audit.Record)
	}{
		{"proxy-died", true, kind(audit.KindSessionEnd, func(r *audit.Record) { r.Recovered = true })},
		{"proxy-died", false, kind(audit.KindSessionEnd)},
		{"proxy-died", false, func(r *audit.Record) { r.Recovered = true }},
		{"calls-not-recorded", true, kind(audit.KindGap, func(r *audit.Record) { r.Count = 3 })},
		{"calls-not-recorded", false, kind(audit.KindSessionEnd)},
		{"anomalies", true, anomaly("duplicate_member")},
		{"anomalies", true, anomaly("args_cut", "bare_cr")},
		{"bytes-that-are-no-call", true, kind(audit.KindAnomaly, anomaly("not_json"))},
		{"bytes-that-are-no-call", true, kind(audit.KindAnomaly)},
		{"bytes-that-are-no-call", false, anomaly("not_json")},
		{"opaque-calls", true, func(r *audit.Record) { r.Method, r.Tool, r.Anomalies = "", "", []string{"not_json"} }},
		{"opaque-calls", false, anomaly("not_json")},
		{"anomalies", false, anomaly()},
		{"anomalies", false, anomaly("args_cut", "oversize")},
		{"anomalies", false, kind(audit.KindSessionStart)},
		{"record-refused", true, anomaly("args_cut", "undeliverable")},
		{"record-refused", true, kind(audit.KindSessionStart, anomaly("undeliverable"))},
		{"record-refused", false, anomaly("args_cut")},
		{"dangerous-call-let-through", true, detected("destructive", "recursive_delete")},
		{"dangerous-call-let-through", true, detected("execute", "path_sensitive", "opaque")},
		{"dangerous-call-let-through", true, detected("execute", "path_sensitive", "more")},
		{"dangerous-call-let-through", true, detected("destructive", "kill", decided(audit.Policy{Decision: "deny"}))},
		{"dangerous-call-let-through", true, detected("destructive", "shutdown", decided(audit.Policy{Decision: "allow", Applied: true}))},
		{"dangerous-call-let-through", true, detected("destructive", "shutdown", unknown)},
		{"dangerous-call-let-through", true, detected("destructive", "shutdown", func(r *audit.Record) { r.Kind, r.Outcome, r.Forwarded = audit.KindOpen, "", false })},
		{"dangerous-call-let-through", false, detected("destructive", "shutdown", unknown, decided(audit.Policy{Decision: "ask", Applied: true}))},
		{"dangerous-call-let-through", false, detected("destructive", "shutdown", refused, decided(audit.Policy{Decision: "deny", Applied: true}))},
		{"dangerous-call-let-through", false, detected("destructive", "shutdown", refused)},
		{"dangerous-call-let-through", false, detected("destructive", "shutdown", func(r *audit.Record) { r.Approval = audit.Approval{Outcome: "approved"}.JSON() })},
		{"dangerous-call-let-through", false, detected("destructive", "path_relative")},
		{"dangerous-call-let-through", false, detected("execute", "credential_read")},
		{"dangerous-call-let-through", false, detected("destructive")},
		{"approval-by-own-user", true, approved(audit.Approval{Outcome: "approved", User: "ann", Channel: "files"})},
		{"approval-by-own-user", true, approved(audit.Approval{Outcome: "approved", User: "ann", Channel: "files", Scope: "always", By: "bob"})},
		{"approval-by-own-user", true, func(r *audit.Record) {
			approved(audit.Approval{Outcome: "approved", User: "ann", Channel: "files"})(r)
			r.Kind, r.Outcome = audit.KindOpen, ""
		}},
		{"approval-by-own-user", false, approved(audit.Approval{Outcome: "approved", User: "root", By: "ann", Channel: "files"})},
		{"approval-by-own-user", false, approved(audit.Approval{Outcome: "denied", User: "ann", Channel: "files"})},
		{"approval-by-own-user", false, approved(audit.Approval{Outcome: "timeout"})},
		{"approval-by-own-user", false, approved(audit.Approval{Outcome: "approved", By: "client", Channel: "client"})},
		{"approval-by-own-user", false, func(*audit.Record) {}},
		{"approval-unverified", true, approved(audit.Approval{Outcome: "approved", By: "client", Channel: "client"})},
		{"approval-unverified", false, approved(audit.Approval{Outcome: "denied", By: "client", Channel: "client"})},
		{"approval-unverified", false, approved(audit.Approval{Outcome: "approved", User: "ann", By: "client", Channel: "files"})},
		{"policy-not-loaded", false, kind(audit.KindPolicy, decided(audit.Policy{Event: "always_added", Detail: "kill_session"}))},
		{"policy-not-loaded", true, kind(audit.KindPolicy, decided(audit.Policy{Event: "reload_failed", Detail: "line 3"}))},
		{"policy-not-loaded", false, kind(audit.KindPolicy, decided(audit.Policy{Event: "loaded"}))},
		{"policy-not-loaded", false, decided(audit.Policy{Event: "reload_failed"})},
	} {
		tested[tt.rule] = true
		row := call(1, "list_panes", "{}", tt.change)
		if got := fired(rules, row)[tt.rule]; got != tt.fires {
			t.Errorf("%s of %+v: fires %v, want %v", tt.rule, row.Record, got, tt.fires)
		}
	}
	for _, r := range rules.All() {
		if !r.Scheduled() && len(r.Operations) == 0 && !tested[r.Name] {
			t.Errorf("%s has no test", r.Name)
		}
	}
}

// TestDetectionsAreKnown compares the detectors that the rules name with the
// published list.
func TestDetectionsAreKnown(t *testing.T) {
	known := detector.All()
	for _, r := range shipped(t, paths).All() {
		for _, word := range r.Detections {
			if !slices.Contains(known, word) {
				t.Errorf("%s: %q is not a detector", r.Name, word)
			}
		}
	}
}

// TestOrdinaryUse evaluates the rules on each record of ordinary work: a session
// with libtmux-mcp, as make demo drives it. Its one pipe is allowed, or else the
// only finding.
func TestOrdinaryUse(t *testing.T) {
	lines, err := os.ReadFile("testdata/ordinary.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		paths alert.Paths
		want  []string
	}{{paths, nil}, {alert.Paths{}, []string{"pipe-pane-outside"}}} {
		rules := shipped(t, tt.paths)
		var got []string
		for line := range strings.Lines(string(lines)) {
			r, err := audit.Parse([]byte(strings.TrimSuffix(line, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range rules.Match(&ingest.Row{Record: r, Operations: audit.Operations(&r)}) {
				got = append(got, a.Rule)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("allowed %v (-want +got):\n%s", tt.paths.Allowed, diff)
		}
	}
}

// TestIdentity checks which findings are the same and which differ.
func TestIdentity(t *testing.T) {
	rules := shipped(t, paths)
	ids := func(row ingest.Row) (list []string) {
		for _, a := range rules.Match(&row) {
			if a.Rule == "pipe-pane-outside" {
				list = append(list, a.ID)
			}
		}
		return list
	}
	const args = `{"output_path":"/x"}`
	first := ids(call(1, "pipe_pane", args))
	if len(first) != 1 || len(first[0]) != 32 {
		t.Fatalf("ids %q", first)
	}
	open := call(1, "pipe_pane", args, func(r *audit.Record) { r.Kind, r.Outcome, r.RecordID = audit.KindOpen, "", audit.NewID(noon) })
	if diff := cmp.Diff(first, ids(open)); diff != "" {
		t.Errorf("the record of the open call is another finding:\n%s", diff)
	}
	twice := ids(call(1, "batch", `{"operations":[{"tool":"pipe_pane","arguments":`+args+`},{"tool":"pipe_pane","arguments":`+args+`}]}`))
	// A duplicate member: both lists have the same paths.
	double := ids(call(1, "batch", `{"operations":[{"tool":"pipe_pane","arguments":{"output_path":"/a"}}],"operations":[{"tool":"pipe_pane","arguments":{"output_path":"/b"}}]}`))
	all := map[string]bool{}
	for _, id := range append(append(append(ids(call(2, "pipe_pane", args)), first...), twice...), double...) {
		all[id] = true
	}
	if len(all) != 6 {
		t.Errorf("%d findings, want 6", len(all))
	}
}

// TestRefused checks that the alert about a call that the server did not get says
// so, and does not silence the one about a call that it got.
func TestRefused(t *testing.T) {
	rules := shipped(t, paths)
	find := func(change ...func(*audit.Record)) alert.Alert {
		row := call(1, "kill_session", `{"session_name":"deploy"}`, change...)
		for _, a := range rules.Match(&row) {
			if a.Rule == "kill-tools" {
				return a
			}
		}
		t.Fatal("kill-tools does not fire")
		return alert.Alert{}
	}
	done := find(func(r *audit.Record) { r.Forwarded = true })
	failed := find(func(r *audit.Record) {
		r.Forwarded, r.Outcome, r.ErrorType = true, audit.OutcomeError, audit.ErrPolicyDenied
	}) // the server says so
	tried := find(func(r *audit.Record) {
		r.Forwarded, r.Outcome, r.ErrorType = false, audit.OutcomeError, audit.ErrPolicyDenied
	})
	if strings.Contains(done.Details, "refused") || strings.Contains(failed.Details, "refused") || !strings.Contains(tried.Details, `"refused":"PolicyDenied"`) {
		t.Errorf("details %s, %s and %s", done.Details, failed.Details, tried.Details)
	}
	if done.ID != tried.ID || done.SuppressKey == "" || done.SuppressKey != failed.SuppressKey || tried.SuppressKey == done.SuppressKey || len(tried.SuppressKey) != len(done.SuppressKey) {
		t.Errorf("keys %q, %q and %q", done.SuppressKey, failed.SuppressKey, tried.SuppressKey)
	}
}

// TestCannotTell has a condition that fails on strange arguments, and one that
// would never end: both count as findings.
func TestCannotTell(t *testing.T) {
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: missing, title: T, severity: info, reason: R, operations: [x], when: op.args.a.b == "c"}
  - {name: costly, title: T, severity: info, reason: R, operations: [y], when: "op.args.l.all(a, op.args.l.all(b, op.args.l.all(c, true)))"}
`)}}, paths)
	if err != nil {
		t.Fatal(err)
	}
	long := `{"l":[` + strings.Repeat("0,", 500) + `0]}`
	for _, tt := range []struct {
		tool, args, want string
	}{
		{"x", `{"a":1}`, "no such key"},
		{"x", `{}`, "no such key"},
		{"y", long, "cost limit exceeded"},
	} {
		row := call(1, tt.tool, tt.args)
		alerts := rules.Match(&row)
		if len(alerts) != 1 || !strings.Contains(alerts[0].Details, tt.want) {
			t.Errorf("%s %.20s: %+v, want an alert that says %q", tt.tool, tt.args, alerts, tt.want)
		}
	}
	row := call(1, "x", `{"a":{"b":"d"}}`)
	if alerts := rules.Match(&row); len(alerts) != 0 {
		t.Errorf("what is clear raised %+v", alerts)
	}
}

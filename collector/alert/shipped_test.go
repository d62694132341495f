package alert_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"

	"golang.org/x/tools/txtar"
)

// TestShippedOnOperations holds the rules on operations against what they must
// find and what not, in a call of its own, inside a batch, and inside a batch
// in a batch.
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

// TestUnseenArguments looks at calls whose arguments are not all in the record.
func TestUnseenArguments(t *testing.T) {
	rules := shipped(t, paths)
	for _, tt := range []struct {
		name   string
		change func(*audit.Record)
	}{
		{"another reading", func(r *audit.Record) {
			r.Tool, r.Candidates = "list_panes", []audit.Candidate{{Method: "tools/call", Tool: "pipe_pane"}}
		}},
		{"cut", func(r *audit.Record) { r.Anomalies = []string{"args_cut"} }},
		{"too long", func(r *audit.Record) { r.Anomalies = []string{"oversize"} }},
	} {
		if got := fired(rules, call(1, "pipe_pane", `{"pane_id":"%1"}`, tt.change)); !got["pipe-pane-outside"] {
			t.Errorf("%s: %v, want pipe-pane-outside", tt.name, got)
		}
	}
}

// TestShippedOnRecords holds the rules on records against what they must find
// and what not.
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
		{"anomalies", false, anomaly()},
		{"anomalies", false, anomaly("args_cut", "oversize")},
		{"anomalies", false, kind(audit.KindSessionStart)},
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

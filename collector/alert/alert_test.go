package alert_test

import (
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
)

// paths are those of the golden files.
var paths = alert.Paths{Allowed: []string{"/srv/logs"}, Own: []string{"/srv/spool"}}

// shipped loads the rules that come with the program.
func shipped(t testing.TB, paths alert.Paths) *alert.Rules {
	t.Helper()
	files, err := alert.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := alert.Load(files, paths)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// noon is when everything in these tests happens.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const sessionID = "019e8b1c-0000-7aaa-8bbb-0123456789ab"

// call makes what the collector makes of the record of a call.
func call(no uint64, tool, args string, change ...func(*audit.Record)) ingest.Row {
	r := audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(noon), SessionID: sessionID, Seq: no, CallNo: no,
		TS: noon, Method: "tools/call", Tool: tool, Args: audit.JSON(args), Outcome: audit.OutcomeOK, Duration: time.Millisecond,
		Host: "h1", User: "ann", Tenant: "acme", Server: audit.Peer{Name: "tmux", Version: "1"},
	}
	for _, c := range change {
		c(&r)
	}
	return ingest.Row{Record: r, Operations: audit.Operations(&r)}
}

// fired returns the names of the rules that have an alert about row.
func fired(rules *alert.Rules, row ingest.Row) map[string]bool {
	names := map[string]bool{}
	for _, a := range rules.Match(&row) {
		names[a.Rule] = true
	}
	return names
}

// TestUntouchedRecords: a record that no rule has a condition for costs no
// memory, also where a rule searches its arguments.
func TestUntouchedRecords(t *testing.T) {
	rules := shipped(t, paths)
	for _, tool := range []string{"send_keys", "list_panes"} {
		row := call(1, tool, `{"pane_id":"%1","enter":true}`)
		n := testing.AllocsPerRun(100, func() {
			if alerts := rules.Match(&row); len(alerts) > 0 {
				t.Errorf("%s: %+v", tool, alerts)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want none", tool, n)
		}
	}
}

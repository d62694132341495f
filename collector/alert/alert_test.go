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
	rules, err := alert.LoadShipped(paths)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// noon is when everything in these tests happens.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const sessionID = "019e8b1c-0000-7aaa-8bbb-0123456789ab"

// call returns what the collector makes of the record of a call.
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

// TestUntouchedRecords checks that a record without a rule's condition costs no
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

// TestTenants checks that records of several tenants with the same session, call
// and record ids are different findings, which had one identity before.
func TestTenants(t *testing.T) {
	rules := shipped(t, paths)
	ids, old := map[string]bool{}, map[string]bool{}
	for _, tenant := range []string{"acme", "other", ""} {
		for _, kind := range []audit.Kind{audit.KindCall, audit.KindGap} {
			row := call(1, "pipe_pane", `{"output_path":"/etc/x"}`, func(r *audit.Record) {
				r.Tenant, r.Kind, r.RecordID = tenant, kind, sessionID
			})
			for _, a := range rules.Match(&row) {
				if ids[a.ID] {
					t.Errorf("%s of %q has the id of another tenant's alert", a.Rule, tenant)
				}
				ids[a.ID], old[a.OldID] = true, true
			}
		}
	}
	if len(ids) == 0 || len(old)*3 != len(ids) {
		t.Errorf("%d ids and %d from before, want a third", len(ids), len(old))
	}
}

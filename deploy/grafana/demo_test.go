package grafana

import (
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
)

// The sessions of the demonstration.
const (
	whole  = "019e8b1c-0000-7aaa-8bbb-000000000001" // a batch, errors, an anomaly, a rewritten record
	holed  = "019e8b1c-0000-7aaa-8bbb-000000000002" // two records missing, a call open, silent for two hours
	silent = "019e8b1c-0000-7aaa-8bbb-000000000003" // silent for thirty hours
	died   = "019e8b1c-0000-7aaa-8bbb-000000000004" // ended by recovery
)

// A demo makes records of one session.
type demo struct {
	session, tenant, host string
	at                    time.Time
	offset                uint64
	rows                  []ingest.Row
}

// add adds a record and fills in what every record has.
func (d *demo) add(t *testing.T, seq uint64, r audit.Record) *demo {
	t.Helper()
	r.RecordID, r.SessionID, r.Seq, r.TS = audit.NewID(d.at), d.session, seq, d.at.Add(time.Duration(seq)*time.Second)
	r.Tenant, r.Host, r.User = d.tenant, d.host, "ann"
	r.Client, r.Server = audit.Peer{Name: "agent", Version: "1"}, audit.Peer{Name: "libtmux", Version: "0.1"}
	d.rows = append(d.rows, row(t, r, d.offset+seq))
	return d
}

func (d *demo) call(t *testing.T, seq, no uint64, tool, args string) *demo {
	t.Helper()
	return d.add(t, seq, call(no, tool, args))
}

func call(no uint64, tool, args string) audit.Record {
	return audit.Record{
		Kind: audit.KindCall, CallNo: no, Method: "tools/call", Tool: tool, Args: audit.JSON(args),
		Outcome: audit.OutcomeOK, Duration: time.Duration(no) * time.Millisecond, Forwarded: true,
	}
}

// row returns what the collector makes of a record.
func row(t *testing.T, r audit.Record, offset uint64) ingest.Row {
	t.Helper()
	return ingesttest.Row(t, r, ingest.Source{Topic: "mcp.audit.v1", Offset: offset})
}

// hostile is a tool's name that has to be quoted.
const hostile = `it's, (a "tool")`

// fill stores the demonstration, in which every panel and every rule finds
// something.
func fill(t *testing.T, s *store.Store, now time.Time) {
	t.Helper()
	insert := func(d *demo, arrived time.Time) {
		t.Helper()
		if err := s.InsertRows(t.Context(), d.rows, arrived); err != nil {
			t.Fatal(err)
		}
	}
	a := &demo{session: whole, tenant: "acme", host: "alpha", at: now.Add(-10 * time.Minute), offset: 100}
	failed := call(4, "capture_pane", `{"pane_id":"%1"}`)
	failed.Outcome, failed.ErrorType = audit.OutcomeError, "PaneNotFound"
	twofold := call(5, hostile, `{}`)
	twofold.Candidates, twofold.Anomalies = []audit.Candidate{{Method: "tools/call", Tool: "kill_server"}}, []string{"duplicate_member"}
	decided := func(r *audit.Record, decision string, applied bool, rule string) {
		r.Policy = audit.Policy{Hash: strings.Repeat("a", 64), Decision: decision, Applied: applied, Rule: rule, Reason: "because"}.JSON()
		r.Risk = audit.Risk{Category: "destructive", Level: "critical", Source: "detection"}.JSON()
		r.Detections = audit.DetectionsJSON([]audit.Detection{{Detector: "recursive_delete", At: "keys"}, {Detector: "opaque"}})
	}
	decided(&failed, audit.DecisionDeny, true, "/tools/capture_pane")
	decided(&twofold, audit.DecisionDeny, false, hostile)
	policy := audit.Record{Kind: audit.KindPolicy, Policy: audit.Policy{Hash: strings.Repeat("a", 64), Mode: "enforce", Event: "loaded", Source: "/etc/policy.yaml"}.JSON()}
	read := call(6, "", "")
	read.Method, read.Target = "resources/read", "tmux://sessions"
	decided(&read, audit.DecisionAsk, true, "(default deny)")
	read.Approval = audit.Approval{Outcome: "approved", Scope: "once", By: "ann", User: "root", Channel: "files", WaitMS: 1500}.JSON()
	a.add(t, 0, audit.Record{Kind: audit.KindSessionStart}).
		call(t, 1, 1, "create_session", `{"session_name":"work","environment":{"EDITOR":{"len":2}}}`).
		call(t, 2, 2, "batch", `{"operations":[{"tool":"pipe_pane","arguments":{"pane_id":"%1","output_path":"/tmp/pane.log"}},{"tool":"send_keys","arguments":{"keys":{"len":1}}}]}`).
		call(t, 3, 3, "set_environment", `{"name":"PATH","value":{"len":4}}`).
		add(t, 4, failed).add(t, 5, twofold).add(t, 6, read).
		add(t, 7, audit.Record{Kind: audit.KindGap, From: a.at, To: now, Count: 3, Denied: 3}).
		add(t, 8, audit.Record{Kind: audit.KindAnomaly, Anomalies: []string{"not_json"}, Bytes: 5}).
		add(t, 9, audit.Record{Kind: audit.KindSessionEnd}).
		add(t, 10, policy)
	insert(a, now.Add(-8*time.Minute))
	for i := range a.rows {
		a.rows[i].Source.Offset += 1000 // it was produced again
	}
	insert(a, now.Add(-7*time.Minute))
	insert((&demo{session: whole, tenant: "acme", host: "alpha", at: a.at, offset: 5000}).
		add(t, 9, audit.Record{Kind: audit.KindSessionEnd, Recovered: true}), now.Add(-6*time.Minute))

	quiet := now.Add(-2 * time.Hour)
	insert((&demo{session: holed, host: "beta", at: quiet, offset: 200}).
		add(t, 0, audit.Record{Kind: audit.KindSessionStart}).
		call(t, 1, 1, "pipe_pane", `{"pane_id":"%1","output_path":"~/notes"}`).
		add(t, 4, audit.Record{Kind: audit.KindGap, From: quiet, To: now, Count: 5}).
		add(t, 5, audit.Record{Kind: audit.KindOpen, CallNo: 3, Method: "tools/call", Tool: "wait_for_channel", Duration: -1}), quiet)
	insert((&demo{session: silent, tenant: "acme", host: "alpha", at: now.Add(-30 * time.Hour), offset: 300}).
		add(t, 0, audit.Record{Kind: audit.KindSessionStart}), now.Add(-30*time.Hour))
	unknown := call(1, "run_command", `{}`)
	unknown.Outcome, unknown.ErrorType, unknown.Recovered, unknown.Duration = audit.OutcomeUnknown, audit.ErrProxyDied, true, -1
	insert((&demo{session: died, tenant: "acme", host: "alpha", at: now.Add(-5 * time.Minute), offset: 400}).
		add(t, 0, audit.Record{Kind: audit.KindSessionStart}).add(t, 1, unknown).
		add(t, 2, audit.Record{Kind: audit.KindSessionEnd, Recovered: true}), now.Add(-4*time.Minute))

	letters := []ingest.DeadLetter{
		{Source: ingest.Source{Topic: "mcp.audit.v1", Offset: 1}, Reason: "json", Error: "it is no JSON", Raw: []byte("x"), Seen: now.Add(-time.Hour)},
		{Source: ingest.Source{Topic: "mcp.audit.v1", Offset: 2}, Reason: "json", Error: "it is no JSON", Raw: []byte("y"), Seen: now.Add(-time.Hour)},
	}
	gaps := []ingest.Gap{
		{Topic: "mcp.audit.v1", From: 10, To: 14, Reason: "deleted", Seen: now.Add(-time.Hour)},
		{Topic: "mcp.audit.v1", From: 20, To: 20, Reason: "deleted", Seen: now.Add(-time.Hour)},
	}
	alerts := []alert.Alert{
		{ID: strings.Repeat("a", 32), Rule: "pipe-pane-outside", Severity: alert.Critical, Title: "A pane is piped", Tenant: "acme", Host: "alpha", SessionID: whole,
			RecordID: a.rows[2].Record.RecordID, CallNo: 2, Operation: "pipe_pane", TS: a.at, Details: "{}"},
		{ID: strings.Repeat("b", 32), Rule: "error-rate", Severity: alert.Warning, Title: "Half of the calls fail", Tenant: "acme", Host: "alpha", TS: a.at, Details: "{}"},
	}
	for n := 1; n <= 2; n++ { // the first ones again, as after a crash
		if err := s.InsertDeadLetters(t.Context(), letters[:n]); err != nil {
			t.Fatal(err)
		}
		if err := s.InsertGaps(t.Context(), gaps[:n]); err != nil {
			t.Fatal(err)
		}
		if _, err := s.InsertAlerts(t.Context(), alerts); err != nil {
			t.Fatal(err)
		}
	}
}

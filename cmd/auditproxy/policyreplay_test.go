package main

import (
	"fmt"
	"testing"
	"time"

	"auditproxy/schemas/audit"
)

// TestReplayGolden runs the commands that name the sections of testdata/replay.
func TestReplayGolden(t *testing.T) {
	goldenCommands(t, writeReplayed(t), "testdata/replay/*.txtar")
}

// writeReplayed writes two sessions of one user that overlap, and one that is
// damaged.
func writeReplayed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	one, two := startSession(t, dir, noon), startSession(t, dir, after(time.Second))
	read := audit.Risk{Category: "read", Level: "low", Source: "annotation"}.JSON()
	executes := audit.Risk{Category: "execute", Level: "high", Source: "name"}.JSON()
	destroys := audit.Risk{Category: "destructive", Level: "critical", Source: "name"}.JSON()
	second := 1
	next := func() time.Time { second++; return after(time.Duration(second) * time.Second) }
	for range 3 {
		one.done(audit.Record{TS: next(), Tool: "capture_pane", Risk: read, Args: `{"pane_id":"%1"}`})
	}
	two.done(audit.Record{TS: next(), Tool: "capture_pane", Risk: read, Args: `{"pane_id":"%1"}`}) // of a session's own
	for i := range 4 {
		w := one
		if i%2 == 0 {
			w = two
		}
		w.done(audit.Record{TS: next(), Tool: "send_keys", Risk: executes, Args: `{"keys":"ls"}`})
	}
	one.done(audit.Record{TS: after(70 * time.Second), Tool: "send_keys", Risk: executes, Args: `{"keys":` + someDigest + `}`})
	one.done(audit.Record{TS: after(71 * time.Second), Tool: "pipe_pane", Risk: executes, Args: `{"output_path":"/srv/pane-logs/a"}`})
	one.done(audit.Record{TS: after(72 * time.Second), Tool: "pipe_pane", Risk: executes, Args: `{"output_path":"/etc/cron.d/a"}`})
	refused := one.intent(audit.Record{TS: after(73 * time.Second), Tool: "kill_session", Risk: destroys,
		Policy: audit.Policy{Hash: "0a", Mode: "enforce", Decision: "deny", Applied: true, Rule: "(default deny)"}.JSON()})
	refused.Outcome, refused.ErrorType = audit.OutcomeError, audit.ErrPolicyDenied
	one.record(refused)
	one.done(audit.Record{TS: after(74 * time.Second), Tool: "kill_session", Risk: destroys})
	one.done(audit.Record{TS: after(75 * time.Second), Tool: "call_tools_batch", Risk: executes,
		Args: `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"pipe_pane","arguments":{"output_path":"/tmp/x"}}]}`})
	one.done(audit.Record{TS: after(76 * time.Second), Tool: "list_panes", Risk: executes,
		Detections: audit.DetectionsJSON([]audit.Detection{{Detector: "path_blocked", At: "args.file"}})})
	one.done(audit.Record{TS: after(77 * time.Second), Tool: "list_panes", Risk: read, Anomalies: []string{"case_variant_member"}})
	one.done(audit.Record{TS: after(78 * time.Second), Tool: "list_panes", Risk: read, Anomalies: []string{"batch"}})
	one.done(audit.Record{TS: after(79 * time.Second), Tool: "evil\x1b[31m\u202etxt\n(default allow)", Risk: executes})
	two.intent(audit.Record{TS: after(80 * time.Second), Tool: "list_panes", Risk: read})
	one.end(after(81 * time.Second))
	two.end(time.Time{})

	three := startSession(t, dir, after(time.Hour))
	for i := range 5 {
		three.done(audit.Record{TS: after(time.Hour + time.Duration(i)*time.Second), Tool: "list_panes", Risk: read})
	}
	three.end(after(time.Hour + time.Minute))
	three.edit(func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return append(b, fmt.Sprintf(`{"v":1,"kind":"ca%c`, 0)...)
	})
	return dir
}

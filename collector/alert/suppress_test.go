package alert_test

import (
	"slices"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/schemas/audit"
)

// ruleOf loads one rule.
func ruleOf(t *testing.T, text string, p alert.Paths) *alert.Rules {
	t.Helper()
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte("rules:\n  - title: t\n    severity: info\n    reason: r\n    operations: [t]\n" + text)}}, p)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestSuppression: an alert silences others only if all that the rule names is the
// same, and their tenant, and the window of time.
func TestSuppression(t *testing.T) {
	rules := ruleOf(t, `    name: s
    details: {pane: op.args.pane}
    suppress: {for: 1h, by: [host, user, session_id, operation, pane]}
`, alert.Paths{})
	key := func(args string, change ...func(*audit.Record)) string {
		t.Helper()
		row := call(1, "t", args, change...)
		list := rules.Match(&row)
		if len(list) != 1 || list[0].SuppressKey == "" || list[0].SuppressFor != time.Hour {
			t.Fatalf("alerts %+v, want one that suppresses for an hour", list)
		}
		return list[0].SuppressKey
	}
	const args = `{"pane":"%1"}`
	first := key(args)
	if same := key(args, func(r *audit.Record) { r.TS, r.CallNo = r.TS.Add(59*time.Minute), 2 }); same != first {
		t.Error("the same within the hour is another key")
	}
	keys := []string{
		first,
		key(`{"pane":"%2"}`), key(`{}`),
		key(args, func(r *audit.Record) { r.TS = r.TS.Add(time.Hour) }),
		key(args, func(r *audit.Record) { r.Host = "h2" }),
		key(args, func(r *audit.Record) { r.User = "bob" }),
		key(args, func(r *audit.Record) { r.Tenant = "other" }),
		key(args, func(r *audit.Record) { r.SessionID = "019e8b1c-0000-7aaa-8bbb-000000000000" }),
	}
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			t.Errorf("key %d is that of another", i)
		}
	}
}

// TestEvery: a scheduled rule runs as often as it says, else once a minute.
func TestEvery(t *testing.T) {
	const scheduled = "    name: e\n    threshold: {count: 2, within: 1h, by: [host]}\n"
	for text, want := range map[string]time.Duration{scheduled: time.Minute, scheduled + "    every: 5m\n": 5 * time.Minute} {
		if got := ruleOf(t, text, alert.Paths{}).All()[0].Every; got != want {
			t.Errorf("%s: every %v, want %v", text, got, want)
		}
	}
}

// TestDirectoriesAsConfigured: a directory is the same however it is written.
func TestDirectoriesAsConfigured(t *testing.T) {
	for _, dir := range []string{"/srv/logs", "/srv/logs/", "/srv//logs", "/srv/./logs", "/srv/x/../logs"} {
		rules := shipped(t, alert.Paths{Allowed: []string{dir}})
		for path, want := range map[string]bool{"/srv/logs/a": false, "/srv/logs": false, "/srv/logsx/a": true, "/srv/a": true} {
			if got := fired(rules, call(1, "pipe_pane", `{"output_path":"`+path+`"}`))["pipe-pane-outside"]; got != want {
				t.Errorf("allowed %q: an alert about %q: %v, want %v", dir, path, got, want)
			}
		}
	}
}

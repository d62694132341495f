package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/replay"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
)

// TestPolicyReplay replays the same calls from ClickHouse and from the spool:
// both reports are equal.
func TestPolicyReplay(t *testing.T) {
	t.Parallel()
	const source = `{"version":"1","default":"deny","tools":{"list_panes":{"limits":[{"counter":"c","window":"minute","max":7,"scope":"user"},{"counter":"d","window":"hour","max":60,"scope":"session"}]},
		"send_keys":{"deny_if":[{"conditions":[{"path":"args.keys","op":"regex","value":"rm"}]}]},"kill_session":{"action":"require_approval"}}}`
	h := newHome(t)
	file := filepath.Join(h.dir, "policy.json")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	p := h.collect(t)
	writers := []*writer{h.writer(t), h.writer(t)}
	start := time.Now().Truncate(time.Microsecond).UTC()
	const calls = 300
	for i := range calls {
		writers[i%2].call(func(r *audit.Record) {
			r.TS, r.Forwarded, r.Host, r.User = start.Add(time.Duration(i)*5*time.Second), true, "h", "u"
			switch {
			case i%10 == 3:
				r.Tool, r.Args = "send_keys", `{"keys":{"len":2,"hmac_sha256_prefix":"0123456789abcdef"}}`
			case i%10 == 5:
				r.Tool, r.Args = "send_keys", `{"keys":"rm"}`
			case i%50 == 7:
				r.Tool, r.Outcome, r.ErrorType, r.Forwarded = "kill_session", audit.OutcomeError, audit.ErrPolicyDenied, false
			case i%50 == 8:
				r.Tool = "evil\x1b[31m"
			}
		})
	}
	for _, w := range writers {
		w.stop()
	}
	eventually(t, "the calls are stored", h.counts(t, "SELECT count() FROM events FINAL WHERE kind = 'call'", calls))

	got := h.run(t, "policy", "replay", file, "--format", "json")
	var report replay.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != cli.ExitFound {
		t.Fatalf("got %+v: %v", got, err)
	}
	loaded, err := policy.Load([]byte(source), file)
	if err != nil {
		t.Fatal(err)
	}
	assessor, err := risk.New(risk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := spool.List(h.spoolDir())
	if err != nil {
		t.Fatal(err)
	}
	r := replay.New(replay.Config{Policy: loaded, Risk: assessor})
	if err := r.Spool(t.Context(), h.spoolDir(), entries, replay.Selection{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := r.Report()
	want.Policy = report.Policy
	if diff := cmp.Diff(want, &report); diff != "" {
		t.Errorf("the report (-spool +ClickHouse):\n%s", diff)
	}
	if d := want.Decisions; want.Calls != calls || d.Allow == 0 || d.Ask == 0 || d.Deny < 30 || d.Undecidable != 30 {
		t.Errorf("%d calls: %+v", want.Calls, d)
	}

	// Times and sessions select as in the spool; people get a table.
	since := start.Add(10 * time.Minute)
	got = h.run(t, "policy", "replay", file, "--since", since.Format(time.RFC3339Nano), "--session", writers[0].ID())
	r = replay.New(replay.Config{Policy: loaded, Risk: assessor})
	if err := r.Spool(t.Context(), h.spoolDir(), entries, replay.Selection{Since: since, Session: writers[0].ID()}, io.Discard); err != nil {
		t.Fatal(err)
	}
	want = r.Report()
	want.Policy = replay.Source{Source: file, Dialect: loaded.Dialect, Hash: loaded.Hash, Mode: policy.Enforce}
	var text strings.Builder
	if err := want.Print(&text, false, time.UTC); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text.String(), got.stdout); diff != "" {
		t.Errorf("the selection (-spool +ClickHouse):\n%s", diff)
	}

	// Without a collector the command runs the engine itself.
	p.end(syscall.SIGTERM)
	if got := h.run(t, "policy", "replay", "preset:observe", "--until", start.Add(-time.Hour).Format(time.RFC3339)); got.code != 0 || !strings.Contains(got.stdout, "0 calls of 0 sessions") {
		t.Errorf("without a collector: %+v", got)
	}
}

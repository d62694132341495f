package main_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/cmd/internal/replay"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// replayed replays a spool by a policy.
func replayed(t *testing.T, dir, source string) *replay.Report {
	t.Helper()
	p, err := policy.Load([]byte(source), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c risk.Config
	for _, o := range p.Risk {
		c.Risk = append(c.Risk, risk.Override(o))
	}
	a, err := risk.New(c)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := replay.New(replay.Config{Policy: p, Risk: a})
	if err := r.Spool(t.Context(), dir, entries, replay.Selection{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return r.Report()
}

// TestReplayAgreesWithGate sends the frames, and calls with secrets, through a
// proxy whose policy observes. A replay by the same rules decides each call as
// the gate did, or not at all. The rules are in a text with another
// hash, so that the recorded decisions are not used.
func TestReplayAgreesWithGate(t *testing.T) {
	t.Parallel()
	proxy := build(t, "./cmd/auditproxy")
	dir := t.TempDir()
	const source = `{"version":"1","default":"allow","hide":["hidden"],
		"tools":{"send_keys":{"deny_if":[{"conditions":[{"path":"args.keys","op":"regex","value":"rm"}]}],"limits":[{"counter":"c","window":"day","max":40,"scope":"user"}]},
			"pipe_pane":{"require":[{"conditions":[{"path":"args.output_path","op":"regex","value":"^/srv/"}]}]}},
		"auditproxy":{"approval":"ask_for_writes","deny_detections":["recursive_delete","path_blocked"],"allowed_tools":["send_keys"],"risk":[{"tool":"pipe_pane","category":"destructive"}]}}`
	file := filepath.Join(dir, "p.json")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(input []byte) {
		cmd := exec.Command(proxy, "--spool-dir", filepath.Join(dir, "spool"), "--policy-file", file, "--policy-mode", "observe", "--", "sh", "-c", "exec cat >/dev/null")
		cmd.Env = environ("HOME=" + dir)
		cmd.Stdin = bytes.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("running the proxy: %v\n%s", err, out)
		}
	}
	var calls bytes.Buffer
	for i, arguments := range []string{`{"keys":"ls"}`, `{"keys":"rm -rf /"}`, `{"keys":["a"]}`, `{}`, `{"keys":null}`, `{"keys":7}`} {
		for n, tool := range []string{"send_keys", "capture_pane", "kill_server", "hidden"} {
			fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", 10*i+n, tool, arguments)
		}
	}
	for i, arguments := range []string{`{"output_path":"/srv/a"}`, `{"output_path":"/etc/shadow"}`, `{"output_path":"` + strings.Repeat("/srv", 100) + `"}`,
		`{"output_path":"/srv/` + strings.Repeat("x", 5000) + `"}`} {
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":"p%d","method":"tools/call","params":{"name":"pipe_pane","arguments":%s}}`+"\n", i, arguments)
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":"b%d","method":"tools/call","params":{"name":"call_tools_batch","arguments":{"operations":[{"tool":"pipe_pane","arguments":%s},{"tool":"list_panes"}]}}}`+"\n", i, arguments)
	}
	calls.WriteString(`{"jsonrpc":"2.0","id":"r","method":"resources/read","params":{"uri":"file:///etc/shadow"}}` + "\n")
	for range 60 {
		calls.WriteString(`{"jsonrpc":"2.0","id":"k","method":"tools/call","params":{"name":"send_keys","arguments":{"keys":"ls"}}}` + "\n")
	}
	run(calls.Bytes())
	// Frames that an unfinished one makes unreadable are calls as well.
	var input []byte
	for i, f := range frames(t) {
		if b := f.bytes(t); len(b) < 1<<20 {
			input = append(append(input, b...), '\n')
		}
		if i%16 == 15 {
			run(input)
			input = input[:0]
		}
	}

	type key struct{ decision, rule string }
	recorded := map[key]int64{}
	all := int64(0)
	for _, r := range records(t, filepath.Join(dir, "spool")) {
		if r.Kind != audit.KindCall {
			continue
		}
		d, err := audit.ParsePolicy(r.Policy)
		if err != nil || d.Decision == "" {
			t.Fatalf("record %s has no decision: %v", r.RecordID, err)
		}
		all++
		recorded[key{d.Decision, d.Rule}]++
	}
	report := replayed(t, filepath.Join(dir, "spool"), source+" ")
	if report.Calls != all || len(report.Problems) > 0 || all < 300 {
		t.Errorf("replayed %d of %d calls; problems: %q", report.Calls, all, report.Problems)
	}
	decided := map[key]int64{}
	for _, row := range report.Rows {
		if row.Why == "" {
			decided[key{row.Decision, row.Rule}] += row.Calls
		}
		t.Logf("%+v", *row)
	}
	for k, n := range decided {
		if n > recorded[k] {
			t.Errorf("%+v: %d calls, the gate decided so about %d", k, n, recorded[k])
		}
	}
	if share := report.Decisions.Undecidable * 100 / all; share > 30 {
		t.Errorf("%d of %d calls are undecidable: the test shows little", report.Decisions.Undecidable, all)
	}

	// With the text that was in force, the recorded decisions are used.
	report = replayed(t, filepath.Join(dir, "spool"), source)
	if report.Decisions.Undecidable > 0 {
		t.Errorf("%d calls are undecidable, want none: their decisions are recorded", report.Decisions.Undecidable)
	}
	for _, row := range report.Rows {
		if k := (key{row.Decision, row.Rule}); recorded[k] == 0 {
			t.Errorf("%+v: %d calls, the gate decided so about none", k, row.Calls)
		}
	}
}

// TestInitAllowsWhatWasDone makes a policy of a session with every tool of the
// real server. It loads without a warning, and a replay by it denies nothing but
// the call of a tool without a name, which no policy can allow.
func TestInitAllowsWhatWasDone(t *testing.T) {
	t.Parallel()
	proxy := build(t, "./cmd/auditproxy")
	s := newTmuxSession(t, "0.1.0a22", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown")
	dir := filepath.Join(s.dir, "spool")
	s.run(t, proxy, "--spool-dir", dir, "--")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(proxy, append(args, "--spool-dir", dir)...)
		cmd.Env = s.env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("auditproxy %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	text := run("policy", "init")
	p, err := policy.Load([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if l := p.Describe(nil); len(l.Warnings) > 0 || len(l.Tools) < 50 {
		t.Errorf("%d tools, warnings %v", len(l.Tools), l.Warnings)
	}
	if !strings.Contains(text, "  kill_session:\n    action: require_approval\n") {
		t.Errorf("kill_session needs no approval:\n%s", text)
	}
	r := replayed(t, dir, text)
	d := r.Decisions
	t.Logf("%d calls: %+v", r.Calls, d)
	if d.Undecidable > 0 || d.Allow+d.Ask != r.Calls-1 || len(r.Problems) > 0 {
		t.Errorf("%d calls: %+v, want all but one allowed or asked about; problems: %q", r.Calls, d, r.Problems)
	}
	for _, row := range r.Rows {
		if row.Decision == "deny" && row.Tool != "" {
			t.Errorf("%+v", *row)
		}
	}
	if again := run("policy", "init", "--server", serverName(t, dir)); !strings.Contains(again, "\n  list_sessions:\n") {
		t.Errorf("for the server by name:\n%s", again)
	}
}

// serverName is the name of the server in the records.
func serverName(t *testing.T, dir string) string {
	t.Helper()
	for _, r := range records(t, dir) {
		if r.Server.Name != "" {
			return r.Server.Name
		}
	}
	t.Fatal("no record names the server")
	return ""
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// noon is when the first of the sessions below starts.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

// sessionID is the UUIDv7 of a session that started then.
func sessionID(start time.Time) string {
	ms := fmt.Sprintf("%012x", start.UnixMilli())
	return ms[:8] + "-" + ms[8:] + "-7000-8000-000000000000"
}

// A logWriter writes a session as the proxy does.
type logWriter struct {
	t    *testing.T
	dir  string
	id   string
	s    *spool.Session
	seq  uint64
	call uint64
}

func startSession(t *testing.T, dir string, start time.Time) *logWriter {
	t.Helper()
	w := &logWriter{t: t, dir: dir, id: sessionID(start)}
	var err error
	if w.s, err = spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, w.id); err != nil {
		t.Fatal(err)
	}
	w.record(audit.Record{Kind: audit.KindSessionStart, TS: start, ServerCommand: audit.Command{Command: "/usr/bin/libtmux-mcp"},
		Proxy: `{"version":"1.0.0","profile":"strict"}`})
	return w
}

func (w *logWriter) write(line []byte) {
	w.t.Helper()
	if _, err := w.s.Append(line, true); err != nil {
		w.t.Fatal(err)
	}
}

// record writes a record that is about no call, or a call's after its intent.
func (w *logWriter) record(r audit.Record) {
	w.t.Helper()
	r.SessionID, r.Seq = w.id, w.seq
	if r.RecordID == "" {
		r.RecordID = fmt.Sprintf("%s-7000-8000-%012x", r.TS.Format("15040500-0000"), w.seq)
	}
	w.seq++
	w.write(audit.AppendRecord(nil, &r))
}

// intent writes the intent of a call.
func (w *logWriter) intent(r audit.Record) audit.Record {
	w.t.Helper()
	w.call++
	r.Kind, r.Method, r.CallNo = audit.KindCall, "tools/call", w.call
	r.RecordID = fmt.Sprintf("%s-7000-8000-ca11%08x", r.TS.Format("15040500-0000"), w.call)
	r.RequestID, r.RequestIDType = fmt.Sprint(w.call), "number"
	w.write(audit.AppendIntent(nil, &r))
	return r
}

// done writes a call that went well.
func (w *logWriter) done(r audit.Record) {
	w.t.Helper()
	if r.Outcome == "" {
		r.Outcome = audit.OutcomeOK
	}
	r.Forwarded = true
	w.record(w.intent(r))
}

// end ends the session as the proxy does, or kills it.
func (w *logWriter) end(at time.Time) {
	w.t.Helper()
	if !at.IsZero() {
		w.record(audit.Record{Kind: audit.KindSessionEnd, TS: at})
	}
	if err := w.s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// segment is the path of a session's file.
func (w *logWriter) segment(no int) string {
	return filepath.Join(w.dir, "sessions", w.id, fmt.Sprintf("%08d.jsonl", no))
}

// edit changes a session's first file behind its back.
func (w *logWriter) edit(change func([]byte) []byte) {
	w.t.Helper()
	b, err := os.ReadFile(w.segment(1))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.segment(1), change(b), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

const someDigest = `{"len":9,"hmac_sha256_prefix":"89abcdef01234567"}`

// writeSpool writes three sessions: one that ended well, one that died, with a
// damaged line and a torn tail, and one that is alive until the test ends.
func writeSpool(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	code := int64(-32602)

	one := startSession(t, dir, noon)
	one.done(audit.Record{TS: after(1 * time.Second), Tool: "send_keys", Tier: "mutating", Duration: 12345 * time.Microsecond,
		Args: `{"pane_id":"%1","keys":` + someDigest + `,"enter":true}`, ArgsBytes: 60, ResultBytes: 812, ClientID: "agent-7",
		Client: audit.Peer{Name: "claude-code", Version: "2.1"}, User: "ann", Host: "build-7"})
	one.done(audit.Record{TS: after(3 * time.Second), Tool: "call_tools_batch", Tier: "destructive", Duration: 1500 * time.Millisecond,
		Args: `{"operations":[{"tool":"send_keys","arguments":{"keys":` + someDigest + `}},{"tool":"pipe_pane","arguments":{"output_path":"/tmp/x y","pane_id":"%2"}}],"on_error":"stop"}`})
	one.done(audit.Record{TS: after(5 * time.Second), Tool: "kill_session", Tier: "destructive", Duration: 800 * time.Microsecond,
		Outcome: audit.OutcomeError, ErrorType: "SessionNotFound", ErrorDigest: someDigest, Args: `{"session_name":"prod"}`})
	one.done(audit.Record{TS: after(6 * time.Second), Tool: "evil\x1b[31m\u202etxt", Duration: 90 * time.Second,
		Outcome: audit.OutcomeError, ErrorType: audit.ErrJSONRPC, ErrorCode: &code, Args: `{"a\u0007":"\u001b]0;x\u0007","b":"line\nbreak"}`,
		Anomalies: []string{"duplicate_member"}, Candidates: []audit.Candidate{{Method: "tools/call", Tool: "pipe_pane", Args: `{"output_path":"/etc/cron.d/\u001bx"}`}, {Method: "x"}}})
	one.record(audit.Record{Kind: audit.KindAnomaly, TS: after(7 * time.Second), Anomalies: []string{"not_json"}, At: 4096, Bytes: 17,
		Digest: `{"bytes":17,"hmac_sha256_prefix":"0011223344556677"}`})
	one.record(audit.Record{Kind: audit.KindGap, TS: after(8 * time.Second), From: after(8 * time.Second), To: after(9 * time.Second), Count: 12, Denied: 11})
	one.end(after(100 * time.Second))

	two := startSession(t, dir, after(2*time.Second))
	two.done(audit.Record{TS: after(2500 * time.Millisecond), Tool: "list_panes", Tier: "readonly", Duration: 2 * time.Millisecond, Args: `{}`})
	two.done(audit.Record{TS: after(2600 * time.Millisecond), Tool: "list_windows", Tier: "readonly", Duration: 2 * time.Millisecond, Args: `{}`})
	two.done(audit.Record{TS: after(2700 * time.Millisecond), Tool: "list_sessions", Tier: "readonly", Duration: 2 * time.Millisecond, NotDurable: true})
	two.intent(audit.Record{TS: after(2800 * time.Millisecond), Tool: "pipe_pane", Args: `{"output_path":"/etc/cron.d/x"}`})
	two.end(time.Time{})
	two.edit(func(b []byte) []byte {
		i := bytes.Index(b, []byte(`"tool":"list_windows","outcome"`))
		b[i+8] ^= 1
		return append(b, `{"v":1,"kind":"ca`...)
	})

	three := startSession(t, dir, after(time.Hour))
	three.done(audit.Record{TS: after(time.Hour + time.Second), Tool: "capture_pane", Tier: "inspect", Duration: 3 * time.Millisecond,
		Args: `{"pane_id":"%1"}`})
	open := three.intent(audit.Record{TS: after(time.Hour + 2*time.Second), Tool: "wait_for_text", Args: `{"pattern":"done"}`})
	open.Kind, open.RecordID, open.Duration = audit.KindOpen, "", -1
	open.TS = after(time.Hour + 62*time.Second)
	three.record(open)
	t.Cleanup(func() { three.end(time.Time{}) })
	return dir
}

// runApp runs a command as a person would and returns its output.
func runApp(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		env: []string{"HOME=" + t.TempDir(), "TZ=Europe/Berlin", "AUDITPROXY_SPOOL_DIR=" + dir}}
	code := a.run(context.Background(), args)
	out := stdout.String()
	if stderr.Len() > 0 {
		out += "stderr:\n" + stderr.String()
	}
	if code != 0 {
		out += fmt.Sprintf("exit %d\n", code)
	}
	return strings.ReplaceAll(out, dir, "$SPOOL")
}

// TestLogGolden runs the commands that name the sections of testdata/log.
func TestLogGolden(t *testing.T) { goldenCommands(t, writeSpool(t), "testdata/log/*.txtar") }

// TestDecisionsGolden does the same for records with decisions.
func TestDecisionsGolden(t *testing.T) {
	goldenCommands(t, writeDecisions(t), "testdata/decisions/*.txtar")
}

// writeDecisions writes a session under a policy that observes and then
// enforces. Some texts are those of a hostile proxy or policy.
func writeDecisions(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const hash = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
	w := startSession(t, dir, noon)
	second := 0
	next := func() time.Time { second++; return after(time.Duration(second) * time.Second) }
	change := func(p audit.Policy) {
		w.record(audit.Record{Kind: audit.KindPolicy, TS: next(), Policy: p.JSON()})
	}
	call := func(r audit.Record, k audit.Risk, p audit.Policy, found ...audit.Detection) {
		p.Hash = hash
		if p.Decision != "" {
			r.Policy = p.JSON()
		}
		r.TS, r.Risk, r.Detections = next(), k.JSON(), audit.DetectionsJSON(found)
		if r.Outcome == "" {
			r.Outcome, r.Forwarded = audit.OutcomeOK, true
		}
		w.record(w.intent(r))
	}
	high := audit.Risk{Category: "execute", Level: "high", Source: "name"}
	critical := audit.Risk{Category: "destructive", Level: "critical", Source: "detection"}
	change(audit.Policy{Hash: hash, Mode: "observe", Dialect: "hosted", Source: "/etc/auditproxy/policy.yaml", Event: "loaded"})
	call(audit.Record{Tool: "list_panes", Tier: "readonly"}, audit.Risk{Category: "read", Level: "low", Source: "annotation", Conflict: true},
		audit.Policy{Mode: "observe", Decision: audit.DecisionAllow, Applied: true})
	call(audit.Record{Tool: "send_keys", Tier: "mutating", Args: `{"keys":` + someDigest + `}`}, critical,
		audit.Policy{Mode: "observe", Decision: audit.DecisionDeny, Rule: "/auditproxy/deny_detections/0", Reason: "no deletes"},
		audit.Detection{Detector: "recursive_delete", At: "keys"}, audit.Detection{Detector: "opaque"})
	change(audit.Policy{Hash: hash, Mode: "enforce", Source: "/etc/auditproxy/policy.yaml", Event: "reload_failed", Detail: "line 3, column 1: \"tolls\" is not known"})
	call(audit.Record{Tool: "send_keys", Tier: "mutating", Outcome: audit.OutcomeError, ErrorType: audit.ErrPolicyDenied}, high,
		audit.Policy{Mode: "enforce", Decision: audit.DecisionDeny, Applied: true, Rule: "/tools/send_keys/limits/typing", Counter: "typing", Count: 30, Max: 30, Window: "minute"})
	call(audit.Record{Tool: "kill_session", Outcome: audit.OutcomeError, ErrorType: audit.ErrApprovalUnavailable,
		Approval: audit.Approval{Outcome: "unavailable"}.JSON()}, critical,
		audit.Policy{Mode: "enforce", Decision: audit.DecisionAsk, Applied: true, Rule: "/tools/kill_session"})
	call(audit.Record{Tool: "kill_pane", Approval: audit.Approval{Outcome: "approved", Scope: "once", By: "ann", User: "ann", Channel: "files", WaitMS: 4200}.JSON()},
		critical, audit.Policy{Mode: "observe", Decision: audit.DecisionAsk, Rule: "(default deny)"})
	call(audit.Record{Tool: "evil"}, audit.Risk{Category: "\x1b[2J", Level: "critical"},
		audit.Policy{Decision: audit.DecisionDeny, Rule: "/a\x1b]0;x\x07 b\nc", Reason: "\u202edrow"}, audit.Detection{Detector: "\x1b[31m", At: "a b\x07"})
	change(audit.Policy{Hash: "\x1b[1m" + hash, Mode: "\x1b[2m", Source: "a\nb", Event: "always_added\x1b[3m", Detail: "\x1b[4m"})
	w.intent(audit.Record{TS: next(), Tool: "pipe_pane", Risk: high.JSON(), Policy: audit.Policy{Hash: hash, Mode: "enforce", Decision: audit.DecisionDeny, Applied: true, Rule: "(hidden)"}.JSON()})
	w.end(time.Time{})
	return dir
}

// goldenCommands runs the commands that name the sections of golden files.
func goldenCommands(t *testing.T, dir, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range arch.Files {
				got := runApp(t, dir, commandWords(f.Name)...)
				if *update {
					arch.Files[i].Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("auditproxy %s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// commandWords splits at spaces, but not inside single quotes.
func commandWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

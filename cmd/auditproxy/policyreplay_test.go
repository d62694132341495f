package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
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
	one.done(audit.Record{TS: after(79500 * time.Millisecond), Tool: "kill_session", Risk: destroys, Approval: audit.Approval{Outcome: "approved", Scope: "once"}.JSON()})
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

// TestInitHoldsHostileNames makes policies of tools whose names try to leave
// their place in YAML, a comment, JSON or a terminal. Each is the name of a tool
// in the policy and appears nowhere else, and the policy denies nothing of what
// it was made of.
func TestInitHoldsHostileNames(t *testing.T) {
	names := []string{"a: {}\n  b", "x\ndefault: allow\n#", "# comment", "a #b", "'", "''", `"`, `\"`, `\`, `\x41`, "{a: b}", "[a]", "- a", "? a", ": a", "!!binary a", "&a", "*a", "|", ">",
		"%YAML 1.2", "---", "...", "~", "null", "true", "yes", "n", "on", "1", "1e3", "0x10", "1:30", "2026-11-22", "<<", "=", "a\tb", " a", "a ", "a\rb", "\x1b]0;x\x07", "\u0085", "\u2028", "\ufeff",
		"\u202etxt", "🪟", strings.Repeat("\x01", 256), strings.Repeat("🪟", 256), strings.Repeat("\U000e0001", 256), "tools", "auditproxy", "version", `},"default":"allow","x":{"`, "\ufffd", "a\u0300"}
	rnd := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune("ab_ :#\"'\\{}[],&*!|>%@`-?\n\r\t\x00\x7f\u0085\u2028\u202e\ufeff🪟~0")
	for range 200 {
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteRune(alphabet[rnd.IntN(len(alphabet))])
		}
		names = append(names, b.String())
	}
	dir := t.TempDir()
	w := startSession(t, dir, noon)
	var want []string
	for i, name := range names {
		if strings.TrimSpace(name) == "" || strings.Contains(name, "\x00") || name == "*" || slices.Contains(want, name) {
			continue // which no policy can have
		}
		want = append(want, name)
		w.done(audit.Record{TS: after(time.Duration(i) * time.Second), Tool: name})
	}
	w.done(audit.Record{TS: after(time.Hour), Tool: "*"})
	w.end(after(time.Hour))
	slices.Sort(want)

	text := runApp(t, dir, "policy", "init")
	comment := regexp.MustCompile(`^ *# ([A-Za-z0-9 .,:;\n-]*)$`)
	for _, line := range strings.Split(text, "\n") {
		for _, c := range line {
			if c < ' ' || c == 0x7f || c == 0x85 || c == 0x202e || c == 0x2028 || c == 0xfeff {
				t.Errorf("line %q has a character that is not visible", line)
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "# ") && !comment.MatchString(line) {
			t.Errorf("comment %q has a text of the agent", line)
		}
	}
	for file, text := range map[string]string{"policy.yaml": text, "policy.json": runApp(t, dir, "policy", "init", "--format", "json")} {
		p, err := policy.Load([]byte(text), file)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
		if diff := cmp.Diff(want, p.Names()); diff != "" {
			t.Errorf("%s: the names of tools (-want +got):\n%s", file, diff)
		}
		l := p.Describe(nil)
		l.Warnings = slices.DeleteFunc(l.Warnings, func(w policy.Problem) bool { // of names that look like another
			return strings.Contains(w.Text, "cannot be seen") || strings.Contains(w.Text, "look like others") || strings.Contains(w.Text, "is no pattern")
		})
		if len(l.Warnings) > 0 || l.Default != "deny" || l.Mode != policy.Observe {
			t.Errorf("%s: default %s, mode %s, warnings %v", file, l.Default, l.Mode, l.Warnings)
		}
		file = filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := runApp(t, dir, "policy", "replay", file, "--format", "json")
		var report struct {
			Decisions struct{ Allow, Deny, Undecidable int }
			Rows      []struct{ Decision, Tool string }
		}
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&report); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if d := report.Decisions; d.Deny != 1 || d.Undecidable != 0 || d.Allow == 0 || report.Rows[0].Tool != "*" {
			t.Errorf("%s: %+v, want one denial, of \"*\", which no policy can name", file, d)
		}
	}
}

// A fullDisk accepts no byte.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestOutputIsWhole checks that output which cannot be written is an error, once.
func TestOutputIsWhole(t *testing.T) {
	dir := writeReplayed(t)
	// More than log writes at once.
	startSession(t, dir, after(2*time.Hour)).done(audit.Record{TS: after(3 * time.Hour), Tool: "send_keys", Args: audit.JSON(`{"keys":"` + strings.Repeat("x", 70<<10) + `"}`)})
	for _, args := range []string{"policy check preset:observe", "policy check preset:observe --format json", "policy replay preset:observe", "policy replay preset:observe --format json",
		"policy init --until 2026-11-20T12:10:00Z", "policy init --until 2026-11-20T12:10:00Z --format json", "log", "log --json", "verify", "verify --json"} {
		var stderr strings.Builder
		a := &app{stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &stderr, env: []string{"HOME=" + t.TempDir(), "TZ=UTC", "AUDITPROXY_SPOOL_DIR=" + dir}}
		if code := a.run(t.Context(), strings.Fields(args)); code != 2 || strings.Count(stderr.String(), "no space left") != 1 {
			t.Errorf("%s: exit code %d, %q", args, code, stderr.String())
		}
	}
}

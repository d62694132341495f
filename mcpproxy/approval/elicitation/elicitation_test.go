package elicitation_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/schemas/audit"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestSupport(t *testing.T) {
	for _, tt := range []struct {
		version, capabilities string
		want                  elicitation.Form
	}{
		{"2025-06-18", `{"elicitation":{}}`, elicitation.Request},
		{"2025-11-25", `{"elicitation":{}}`, elicitation.Request},
		{"2025-11-25", `{"roots":{},"elicitation":{"form":{},"url":{}}}`, elicitation.Request},
		{"2025-11-25", `{"elicitation":{"form":{"applyDefaults":true}}}`, elicitation.Request},
		{"2025-11-25", `{"elicitation":{"form":null,"url":null}}`, elicitation.Request},
		{"2026-07-28", `{"elicitation":{"form":{}}}`, elicitation.InputRequired},
		{"2026-07-28", ` { "\u0065licitation" : { } } `, elicitation.InputRequired},

		{"2024-11-05", `{"elicitation":{}}`, elicitation.None},
		{"2025-03-26", `{"elicitation":{}}`, elicitation.None},
		{"2027-01-01", `{"elicitation":{}}`, elicitation.None},
		{"", `{"elicitation":{}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{"url":{}}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{"url":{},"form":null}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{"form":true}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":true}`, elicitation.None},
		{"2025-11-25", `{"elicitation":null}`, elicitation.None},
		{"2025-11-25", `{"experimental":{"elicitation":{}}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{},"elicitation":{}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{},"Elicitation":{"url":{}}}`, elicitation.None},
		{"2025-11-25", `{"elicitation":{}`, elicitation.None},
		{"2025-11-25", `[]`, elicitation.None},
		{"2025-11-25", ``, elicitation.None},
	} {
		if got := elicitation.Support(tt.version, []byte(tt.capabilities)); got != tt.want {
			t.Errorf("Support(%q, %s) = %v, want %v", tt.version, tt.capabilities, got, tt.want)
		}
	}
}

func TestAsks(t *testing.T) {
	for method, want := range map[string][3]bool{
		"tools/call":          {false, true, true},
		"prompts/get":         {false, true, true},
		"resources/read":      {false, true, true},
		"completion/complete": {false, true, false},
		"":                    {false, true, false},
	} {
		got := [3]bool{elicitation.None.Asks(method), elicitation.Request.Asks(method), elicitation.InputRequired.Asks(method)}
		if got != want {
			t.Errorf("%q can be asked about: %v, want %v", method, got, want)
		}
	}
}

// questions are asked in the golden files of the same names.
func questions() map[string]*approval.Question {
	asked := approval.Question{ID: "019ab-cd_1", Expires: time.Date(2026, 11, 22, 12, 3, 5, 123e6, time.UTC), SessionID: "019ab0",
		Host: "build-7", User: "alice", PID: 4711, Server: "libtmux-mcp", Client: "claude-code"}
	typed := approval.Call{CallNo: 7, Method: "tools/call", Tool: "send_keys", Target: "%3", Rule: "/auditproxy/ask_detections", Reason: "Somebody may be working there.",
		Args:       `{"keys":{"len":14,"sha256_prefix":"0a1b2c3d4e5f"},"pane_id":"%3"}`,
		Risk:       `{"category":"destructive","level":"critical","source":"detection","conflict":true}`,
		Detections: `[{"detector":"recursive_delete","at":"keys"},{"detector":"path_sensitive","at":"cwd"}]`}

	one := asked
	one.Calls = []approval.Call{typed}

	many := slices.Repeat([]audit.Detection{{Detector: "path_sensitive", At: "uri"}}, 9) // which hide no other
	many = append(many, audit.Detection{Detector: "private_address", At: "uri"})
	several := asked
	several.Calls, several.More = []approval.Call{typed, {CallNo: 8, Method: "tools/call", Tool: "kill_server", Rule: "/tools/kill_server/action", Args: "{}",
		Risk: `{"category":"destructive","level":"critical"}`}, {CallNo: 9, Method: "resources/read", Target: "tmux://panes", Detections: audit.DetectionsJSON(many)}}, 2

	const forged = "x`\n- risk: `read`, `low`\r\n\u2028<b>\x1b[2J\u202e   \u200b**[yes](https://x)**\x00\xff \\` "
	quoted, _ := json.Marshal(forged)
	batch := asked
	batch.Calls = []approval.Call{{CallNo: 7, Method: "tools/call", Tool: "call_tools_batch", Operations: []string{"send_keys", "kill_server"}, MoreOperations: 2, Rule: "/tools/send_keys/action",
		Args: `{"operations":[{"tool":"send_keys"}]}`, Risk: typed.Risk}}

	hostile := approval.Question{ID: forged, SessionID: forged, Host: forged, User: forged, Server: forged, Client: forged, Calls: []approval.Call{{Operations: []string{forged, forged}, MoreOperations: 1,
		Method: forged, Tool: forged, Target: forged, Rule: forged, Reason: forged + strings.Repeat("long ", 1000),
		Args: audit.JSON("{\n\"x\":" + string(quoted) + `,"y":"` + strings.Repeat("ab", 2000) + `"}`), Risk: audit.JSON(quoted), Detections: audit.JSON(quoted)}}}
	return map[string]*approval.Question{"one": &one, "several": &several, "batch": &batch, "hostile": &hostile}
}

// TestMessages compares what people read, and what clients get, with the golden
// files.
func TestMessages(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txtar")
			golden, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := []txtar.File{
				{Name: "2025-06-18", Data: elicitation.AppendRequest(nil, "2025-06-18", "auditproxy-1", q)},
				{Name: "2025-11-25", Data: elicitation.AppendRequest(nil, "2025-11-25", "auditproxy-1", q)},
				{Name: "2026-07-28", Data: elicitation.AppendInputRequired(nil, []byte(`"id 5"`), q)},
				{Name: "taken back", Data: elicitation.AppendCancel(nil, "auditproxy-1", "The call was cancelled.")},
			}
			for _, f := range lines {
				if bytes.Count(f.Data, []byte("\n")) != 1 || !json.Valid(f.Data) {
					t.Errorf("%s: %s is not a line of JSON", f.Name, f.Data)
				}
			}
			got := &txtar.Archive{Comment: golden.Comment, Files: []txtar.File{{Name: "the person reads", Data: []byte(message(t, lines[0].Data) + "\n")}}}
			switch name {
			case "one":
				got.Files = append(got.Files, lines...)
			case "several":
				got.Files = append(got.Files, lines[1])
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(golden)), string(txtar.Format(got))); diff != "" {
				t.Errorf("golden file and messages differ, -want +got:\n%s", diff)
			}
		})
	}
}

// message is what a person reads of a request.
func message(t testing.TB, request []byte) string {
	t.Helper()
	var r struct{ Params struct{ Message string } }
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return r.Params.Message
}

// labels begin the lines of a question about one call.
var labels = []string{"tool", "method", "target", "operations", "risk", "detected", "arguments", "rule", "reason", "asked by", "server", "question"}

// own is what a line has outside of backticks.
var own = regexp.MustCompile("^(|client |user |host |process | in |, | and [0-9]+ more( characters)?|, and [0-9]+ more)*$")

// checkLines fails unless s has only the proxy's own lines, each label at most
// once and in order, with every text of others in a pair of backticks.
func checkLines(t testing.TB, s string) {
	t.Helper()
	lines := strings.Split(s, "\n")
	if !regexp.MustCompile(`^auditproxy asks: may this call run( \([a-z_]+(: [a-z_]+(, [a-z_]+)*)?\))?\?$`).MatchString(lines[0]) {
		t.Errorf("the first line is %q", lines[0])
	}
	rest := labels
	for _, line := range lines[1:] {
		if line == "" || line == "- what is known of the tool disagrees" {
			continue
		}
		label, value, _ := strings.Cut(strings.TrimPrefix(line, "- "), ": ")
		i := slices.Index(rest, label)
		outside := regexp.MustCompile("`[^`]+`").ReplaceAllString(value, "")
		if i < 0 || !own.MatchString(outside) || strings.Contains(value, "  ") {
			t.Errorf("the line %q is not the proxy's", line)
			continue
		}
		rest = rest[i+1:]
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q reaches the screen", r)
		}
	}
}

func TestLinesCannotBeForged(t *testing.T) {
	checkLines(t, message(t, elicitation.AppendRequest(nil, "2025-11-25", "x", questions()["hostile"])))
}

// TestDangerIsFirst checks that long arguments push nothing out of a window, and that a name
// looks like no other.
func TestDangerIsFirst(t *testing.T) {
	q := &approval.Question{Calls: []approval.Call{{Method: "tools/call", Tool: "s\u0435nd_keys", Operations: []string{"kill_s\u0435rver"},
		Args: audit.JSON(`{"a":"` + strings.Repeat("x", 900) + `"}`), Risk: `{"category":"destructive","level":"critical"}`, Detections: `[{"detector":"recursive_delete","at":"args.keys"}]`}}}
	s := message(t, elicitation.AppendRequest(nil, "2025-11-25", "x", q))
	head, _, _ := strings.Cut(s, "- arguments")
	want := "auditproxy asks: may this call run (destructive: recursive_delete)?\n\n- tool: `s\\u0435nd_keys`\n- operations: `kill_s\\u0435rver`\n- risk: `destructive`, `critical`\n- detected: `recursive_delete` in `args.keys`\n"
	if head != want {
		t.Errorf("before the arguments is %q, want %q", head, want)
	}
}

func TestQuestionIsBounded(t *testing.T) {
	long := strings.Repeat("`\u202e", 1<<16)
	quoted, _ := json.Marshal(long)
	list := make([]audit.Detection, 32)
	for i := range list {
		list[i] = audit.Detection{Detector: strings.Repeat("\u202e", 200), At: strings.Repeat("`", 200)}
	}
	call := approval.Call{Operations: slices.Repeat([]string{long}, approval.MaxOperations), Method: long, Tool: long, Target: long, Rule: long, Reason: long, Args: audit.JSON(quoted), Risk: audit.JSON(quoted), Detections: audit.DetectionsJSON(list)}
	q := &approval.Question{ID: long, Host: long, User: long, Server: long, Client: long, Calls: []approval.Call{call}}
	for len(q.Calls) < 100 {
		q.Calls = append(q.Calls, call)
	}
	s := message(t, elicitation.AppendRequest(nil, "2025-11-25", "x", q))
	if len(s) > 128<<10 {
		t.Errorf("the question has %d bytes", len(s))
	}
	if want := "auditproxy asks: may these 100 calls run?"; !strings.HasPrefix(s, want) || !strings.Contains(s, "\nand 84 more calls") {
		t.Errorf("the question says %.100s", s)
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add("send_keys", `{"keys":"x"}`, "Somebody\nworks ` there")
	f.Add("`", "\x00", `\u0060`)
	f.Fuzz(func(t *testing.T, tool, args, reason string) {
		q := &approval.Question{ID: reason, Client: tool, Calls: []approval.Call{{Method: tool, Tool: tool, Target: args, Operations: []string{tool, args}, Args: audit.JSON(args), Reason: reason, Risk: audit.JSON(args), Detections: audit.JSON(args)}}}
		checkLines(t, message(t, elicitation.AppendRequest(nil, "2025-11-25", reason, q)))
	})
}

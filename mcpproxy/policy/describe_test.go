package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestDescribe compares what is said about policies and the tools of a server.
func TestDescribe(t *testing.T) {
	files, err := filepath.Glob("testdata/describe/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, tools, want := arch.Files[0], arch.Files[1], &arch.Files[2]
			p := load(t, string(in.Data), in.Name)
			var seen []policy.Seen
			for line := range strings.Lines(string(tools.Data)) {
				var d struct{ Name, Category string }
				if err := json.Unmarshal([]byte(line), &d); err != nil {
					t.Fatal(err)
				}
				seen = append(seen, policy.Seen{Name: d.Name, Category: d.Category, Definition: []byte(line)})
			}
			l := p.Describe(seen)
			var b strings.Builder
			b.WriteString("dialect " + string(l.Dialect) + ", default " + l.Default + ", mode " + string(l.Mode) + ", approval " + string(l.Approval) + "\n")
			for _, tool := range l.Tools {
				b.WriteString(tool.Name + ": " + tool.Action + "\n")
				for _, r := range tool.Rules {
					b.WriteString("    " + r.Rule + ": " + r.Text + "\n")
				}
			}
			for _, o := range l.Open {
				b.WriteString("open: " + o + "\n")
			}
			for _, w := range l.Warnings {
				b.WriteString("warning: " + w.Error() + "\n")
			}
			if *update {
				want.Data = []byte(b.String())
				if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), b.String()); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
			for range 9 { // in whatever order maps give their members
				if diff := cmp.Diff(l, p.Describe(seen)); diff != "" {
					t.Fatalf("another listing:\n%s", diff)
				}
			}
			if text, err := json.Marshal(l); err != nil || !json.Valid(text) {
				t.Errorf("encoding: %v", err)
			}
		})
	}
}

// TestDescribeManyLimits warns of limits by user that no counter has room for.
func TestDescribeManyLimits(t *testing.T) {
	for n, want := range map[int]string{policy.MaxUser: "", policy.MaxUser + 1: "1:1: 1024 limits by user: at most 1023 count, and calls that need another one are denied"} {
		var tools []string
		for i := range n {
			tools = append(tools, fmt.Sprintf(`"t%d":{"limits":[{"counter":"c","window":"day","max":1,"scope":"user"},{"counter":"d","window":"day","max":1,"scope":"session"}]}`, i))
		}
		got := ""
		for _, w := range load(t, `{"version":"1","default":"deny","tools":{`+strings.Join(tools, ",")+`}}`, "p.json").Describe(nil).Warnings {
			got += w.Error()
		}
		if got != want {
			t.Errorf("%d tools: got %q, want %q", n, got, want)
		}
	}
}

// TestSeedPolicy enforces the policy.json of PolicyLayer's page about send, word
// for word: ten calls a minute, and no other tool.
func TestSeedPolicy(t *testing.T) {
	source, err := os.ReadFile("testdata/send/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"policy.json", "policy.yaml", "policy"} {
		p := load(t, string(source), name)
		if p.Dialect != policy.Hosted {
			t.Errorf("%s is of the dialect %s", name, p.Dialect)
		}
		var counters policy.Memory
		d := make([]policy.Decision, 1)
		decide := func(tool string, at time.Time) policy.Decision {
			if err := p.Decide([]policy.Call{{Tool: tool, Arguments: []byte(`{"instanceId":"i1","text":"x"}`)}}, at, &counters, d); err != nil {
				t.Fatal(err)
			}
			return d[0]
		}
		for minute := range 3 {
			for call := range 15 {
				at := time.Unix(int64(minute)*60, int64(call)*1e9)
				d := decide("send", at)
				if (d.Action == policy.Allow) != (call < 10) {
					t.Errorf("minute %d, call %d: got %s", minute, call, d.Action)
				}
				if call >= 10 && (d.Rule != "/tools/send/limits/send_rate" || d.Counter != "send_rate" || d.Count != 10 || d.Max != 10 || d.Window != "minute") {
					t.Errorf("got %+v", d)
				}
			}
		}
		for _, tool := range []string{"spawn", "read", "Send", "send ", "terminate", "*", ""} {
			if d := decide(tool, time.Unix(600, 0)); d.Rule != "(default deny)" {
				t.Errorf("%q: got %s %s", tool, d.Action, d.Rule)
			}
		}
	}
}

// TestQuestionLists loads what the question lists of the pages describe, in JSON
// and in YAML.
func TestQuestionLists(t *testing.T) {
	for _, c := range []struct {
		rule, want string // decisions of calls, ten seconds apart
	}{
		{`{"rate_limit":{"max":2,"window":60}}`, "allow allow deny deny deny deny allow"},
		{`{"rate_limit":{"window":60,"max":2},"reason":"Too often."}`, "allow allow deny deny deny deny allow"},
		{`{"action":"allow","rate_limit":{"max":2,"window":"minute"}}`, "allow allow deny deny deny deny allow"},
		{`{"rate_limit":{"max":1,"window":30}}`, "allow deny deny allow deny deny allow"},
		{`{"action":"deny"}`, "deny deny deny deny deny deny deny"},
		{`{"action":"deny","reason":"not from agents"}`, "deny deny deny deny deny deny deny"},
		{`{"action":"require_approval"}`, "ask ask ask ask ask ask ask"},
		{`{"action":"require_approval","rate_limit":{"max":2,"window":60}}`, "ask ask deny deny deny deny ask"},
		{`{"action":"allow"}`, "allow allow allow allow allow allow allow"},
		{`{}`, "allow allow allow allow allow allow allow"},
	} {
		for _, name := range []string{"policy.json", "policy.yaml"} {
			p := load(t, `{"version":"1","default":"deny","tools":{"tmux_detach_session":`+c.rule+`}}`, name)
			var counters policy.Memory
			var got []string
			d := make([]policy.Decision, 1)
			for i := range 7 {
				if err := p.Decide([]policy.Call{{Tool: "tmux_detach_session", Arguments: []byte(`{"task_id":"t"}`)}}, time.Unix(int64(10*i), 0), &counters, d); err != nil {
					t.Fatal(err)
				}
				got = append(got, d[0].Action.String())
				if strings.Contains(c.rule, "not from agents") && d[0].Reason != "not from agents" || strings.Contains(c.rule, "Too often") && d[0].Action == policy.Deny && d[0].Reason != "Too often." {
					t.Errorf("%s: got reason %q", c.rule, d[0].Reason)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, c.rule, diff)
			}
		}
	}
}

// TestDescribeRecordedNames compares the paths of conditions with the arguments
// of recorded calls, below the top too. What a digest replaced is not known.
func TestDescribeRecordedNames(t *testing.T) {
	names := policy.Names{}
	for _, arguments := range []string{
		`{"pane":{"id":"%1"},"environment":{"len":9,"sha256_prefix":"00"},"list":[{"x":1}]}`,
		`{"pane":{"id":"%1","size":{"w":1}},"plain":1}`,
		`{"cut":{"a":1,"[redacted name]":2}}`,
	} {
		if !names.Add([]byte(arguments), 256) {
			t.Fatalf("%s: not added", arguments)
		}
	}
	seen := []policy.Seen{{Name: "t", Calls: 3, Arguments: names}}
	for path, want := range map[string]string{
		"args.pane.id":        "",
		"args.pane.size.w":    "",
		"args.plain":          "",
		"args.environment.A":  "",
		"args.cut.b":          "",
		"args.pane.ID":        "tools.t: none of 3 recorded calls has args.pane.ID",
		"args.pane.size.w.x":  "tools.t: none of 3 recorded calls has args.pane.size.w.x",
		"args.pane.siz.w":     "tools.t: none of 3 recorded calls has args.pane.siz",
		"args.list.x":         "tools.t: none of 3 recorded calls has args.list.x",
		"args.environments.A": "tools.t: none of 3 recorded calls has args.environments",
	} {
		p := load(t, `{"version":"1","default":"deny","tools":{"t":{"require":[{"conditions":[{"path":"`+path+`","op":"exists","value":true}]}]}}}`, "p.json")
		var got string
		for _, w := range p.Describe(seen).Warnings {
			got += w.Text
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if (policy.Names{}).Add([]byte(`{"a":{"b":{"c":1}}}`), 3) {
		t.Error("added as many names as there may be")
	}
}

// TestDescribeLeaving checks which patterns for a directory are said to match a path out
// of it.
func TestDescribeLeaving(t *testing.T) {
	for _, tt := range []struct{ pattern, more, out string }{
		{`^/srv/`, "", "/srv/../x"},
		{`^/srv`, "", "/srv/../x"},
		{`(?i)^/srv/`, "", "/srv/../x"},
		{`^/srv/my\\.dir/.*`, "", "/srv/my.dir/../x"},
		{`^/srv/logs?/`, "", "/srv/log/../x"},
		{`^/srv/.+\\.log$`, "", "/srv/../x.log"},
		{`^/srv/[^/]+$`, "", ""},
		{`^/srv/[\\w/-]+$`, "", ""},
		{`^/srv/a$`, "", ""},
		{`^/`, "", ""},
		{`srv`, "", ""},
		{`^(/srv|/tmp)/`, "", ""}, // not looked at
		{`^/srv/`, `,"auditproxy":{"deny_detections":["path_traversal"]}`, ""},
		{`^/srv/`, `,"auditproxy":{"ask_detections":["path_traversal"]}`, ""},
	} {
		for _, deny := range []bool{false, true} {
			denyIf := ""
			if deny {
				denyIf = `,"deny_if":[{"conditions":[{"path":"args.path","op":"regex","value":"(^|/)\\.\\.(/|$)"}]}]`
			}
			p := load(t, `{"version":"1","default":"deny","tools":{"t":{"require":[{"conditions":[{"path":"args.path","op":"regex","value":"`+tt.pattern+`"}]}]`+denyIf+`}}`+tt.more+`}`, "p.json")
			got, want := "", ""
			for _, w := range p.Describe(nil).Warnings {
				got += w.Text
			}
			if tt.out != "" && !deny {
				want = fmt.Sprintf(`/tools/t/require/args.path-regex: also matches %q: exclude "..", or put path_traversal into deny_detections`, tt.out)
			} else if deny && tt.pattern == "^/srv" {
				want = `/tools/t/require/args.path-regex: also matches "/srv-x/y": end the directory with /`
			}
			if got != want {
				t.Errorf("%s%s%s: got %q, want %q", tt.pattern, denyIf, tt.more, got, want)
			}
		}
	}
}

// TestPartOfAText checks the warnings of a part that a text has to contain, or must not.
func TestPartOfAText(t *testing.T) {
	for _, tt := range []struct{ rule, path, value, more, want string }{
		{"require", "url", "example.com", "", `/tools/t/require/args.url-contains: also matches "example.com.x.example": use op regex, from ^ to $`},
		{"require", "tags", "approved", "", ""},
		{"deny_if", "sql", "drop table", "", `/tools/t/deny_if/args.sql-contains: does not deny "drop/**/table": a comment is a space in SQL: put what it does, such as sql_unfiltered, into deny_detections`},
		{"deny_if", "sql", "drop table", `,"auditproxy":{"deny_detections":["sql_unfiltered"]}`, ""},
	} {
		p := load(t, `{"version":"1","default":"deny","tools":{"t":{"`+tt.rule+`":[{"conditions":[{"path":"args.`+tt.path+`","op":"contains","value":"`+tt.value+`"}]}]}}`+tt.more+`}`, "p.json")
		got := ""
		for _, w := range p.Describe(nil).Warnings {
			got += w.Text
		}
		if got != tt.want {
			t.Errorf("%s %s contains %q%s: got %q, want %q", tt.rule, tt.path, tt.value, tt.more, got, tt.want)
		}
	}
}

// TestOldNumerals checks the warning of texts that readers of YAML 1.1 take for numbers.
func TestOldNumerals(t *testing.T) {
	for value, want := range map[string]bool{"1_000": true, "12:30": true, "'12:30'": false, "12-30": false} {
		source := "version: \"1\"\ndefault: deny\ntools:\n  a:\n    deny_if: [{conditions: [{path: args.x, op: eq, value: " + value + "}]}]\n"
		warned := false
		for _, w := range load(t, source, "p.yaml").Describe(nil).Warnings {
			warned = warned || strings.Contains(w.Error(), "readers of YAML 1.1 take")
		}
		if warned != want {
			t.Errorf("%s: warned %v, want %v", value, warned, want)
		}
	}
}

// TestSecretsAreNotQuoted: no message and no listing has the value of a condition on an
// argument with the name of a secret.
func TestSecretsAreNotQuoted(t *testing.T) {
	const canary = "Hunter2"
	told := func(source string) string {
		p, err := policy.Load([]byte(source), "p.yaml")
		if err != nil {
			return err.Error()
		}
		listing, _ := json.Marshal(p.Describe(nil))
		return string(listing)
	}
	for _, path := range []string{"args.password", "args.db.api_token", "args.secrets.a", "args.headers.X-Api-Key", "argz.password"} {
		for _, condition := range []string{
			`op: eq, value: Hunter2`, `op: neq, value: Hunter2`, `op: in, value: [a, Hunter2, [Hunter2]]`, `op: in, value: Hunter2`, `op: not_in, value: [Hunter2]`,
			`op: regex, value: ^Hunter2`, `op: regex, value: (Hunter2`, `op: regex, value: 'Hunter2\z\k'`, `op: regex, value: [Hunter2]`, `op: contains, value: /srv/Hunter2`,
			`op: gt, value: Hunter2`, `op: exists, value: Hunter2`, `op: eq, value: {a: Hunter2}`, "op: eq, value: \"Hunter2\\b\"",
		} {
			for _, rule := range []string{"tools: {t: {require: [{conditions: [{%s}]}]}}", "tools: {t: {deny_if: [{conditions: [{%s}]}]}}", "tools: {t: {rules: [{name: r, conditions: [{%s}]}]}}"} {
				source := "version: \"1\"\ndefault: allow\n" + fmt.Sprintf(rule, "path: "+path+", "+condition)
				if text := told(source); strings.Contains(strings.ToUpper(text), strings.ToUpper(canary)) {
					t.Errorf("%s\n%s", source, text)
				}
			}
		}
	}
	for _, number := range []string{"0471100", "47110815471108154711"} {
		for _, op := range []string{"contains", "eq", "exists", "regex", "in"} {
			if text := told("version: \"1\"\ndefault: allow\ntools: {t: {require: [{conditions: [{path: args.password, op: " + op + ", value: " + number + "}]}]}}"); strings.Contains(text, "4711") {
				t.Errorf("%s %s: %s", op, number, text)
			}
		}
	}
	for _, path := range []string{"args.keys", "args.output_path", "args.max_tokens", "args.value"} {
		if text := told(`{"version":"1","default":"allow","tools":{"t":{"require":[{"conditions":[{"path":"` + path + `","op":"eq","value":"Hunter2"}]}]}}}`); !strings.Contains(text, canary) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

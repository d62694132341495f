package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/redact"
)

// replayOne replays a call without detections.
func replayOne(p *policy.Policy, tool, arguments string, at time.Time, h policy.Histories) policy.Replayed {
	decisions := make([]policy.Replayed, 1)
	calls := []policy.Recorded{{Call: policy.Call{Tool: tool, Arguments: []byte(arguments)}, Least: "read", Most: "financial"}}
	p.Replay(calls, at, h, decisions)
	return decisions[0]
}

func histories() policy.Histories {
	return policy.Histories{Session: new(policy.History), User: new(policy.History)}
}

// TestReplayOfVectors: with arguments in clear, a replay decides as Decide does.
func TestReplayOfVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	for line := range bytes.Lines(text) {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		name := "policy.json"
		if v.Dialect == "intercept" {
			name = "policy.yaml"
		}
		p, err := policy.Load(v.Policy, name)
		if err != nil {
			continue
		}
		h := histories()
		type refund struct {
			at int64
			d  policy.Replayed
		}
		var refunds []refund
		for i, c := range v.Calls {
			refunds = slices.DeleteFunc(refunds, func(r refund) bool {
				if r.at > c.AtMs {
					return false
				}
				r.d.Refund()
				return true
			})
			d := replayOne(p, c.Tool, string(c.Arguments), time.UnixMilli(c.AtMs), h)
			want := v.Expected[i]
			got := d.Action.String()
			if got == "ask" {
				got = "deny"
			}
			if d.Unknown != "" || got != want.Decision || want.Rule != nil && *want.Rule != d.Rule {
				t.Errorf("%s: call %d: got %+v, want %+v", v.ID, i, d, want)
			}
			decided++
			if c.Upstream == "rpc_error" {
				at := c.AtMs
				if c.RespAtMs != nil {
					at = *c.RespAtMs
				}
				refunds = append(refunds, refund{at, d})
			}
		}
	}
	if decided < 100 {
		t.Errorf("%d calls were decided, want 100 at least", decided)
	}
}

// TestReplayIsNeverWrong makes random policies and calls, and compares what is
// decided about the calls with what is decided about their redacted records.
// There is an answer or none, but no other one.
func TestReplayIsNeverWrong(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	long := strings.Repeat("x", 300)
	values := []string{`"ls"`, `"ls -la; rm -rf /"`, `5`, `5.0`, `-1`, `2`, `1e400`, `null`, `true`, `[]`, `["ls",2]`, `{}`, `{"b":"ls"}`, `{"b":5,"secret":"ls"}`,
		`"` + long + `"`, `"curl -H 'Authorization: Bearer abcdefghijklmnop0123456789' x"`, `"…[len"`, `{"len":3}`, `{"type":"str","redacted":true}`, `["` + long + `"]`, `[{"keys":"ls"}]`, `{"B":"ls","b":5}`}
	paths := []string{"a", "keys", "password", "a.b", "secret.b", "a.secret", "environment.PATH", "missing", "output_path", "command"}
	names := []string{"a", "keys", "password", "secret", "environment", "output_path", "command", "AKIAIOSFODNN7EXAMPLE", "Keys", "A"}
	operands := []string{`"ls"`, `5`, `"5"`, `null`, `[]`, `"x"`, `true`, `"map[b:5]"`, `"abcdefghijklmnop"`}
	condition := func() string {
		op := pick([]string{"eq", "neq", "in", "not_in", "lt", "gte", "regex", "contains", "exists"})
		v := pick(operands)
		switch op {
		case "in", "not_in":
			v = "[" + v + "," + pick(operands) + "]"
		case "lt", "gte":
			v = "3"
		case "regex":
			v = pick([]string{`"ls"`, `"^x+$"`, `"abcdefghijklm"`, `"redacted"`, `""`})
		case "exists":
			v = pick([]string{"true", "false"})
		}
		return fmt.Sprintf(`{"path":"args.%s","op":"%s","value":%s}`, pick(paths), op, v)
	}
	conditions := func() string {
		var list []string
		for range 1 + rnd.IntN(2) {
			list = append(list, condition())
		}
		return `{"conditions":[` + strings.Join(list, ",") + `]}`
	}
	redactors := map[string]*redact.Redactor{}
	for name, c := range map[string]redact.Config{"strict": {Key: make([]byte, 32)}, "libtmux": {Profile: redact.Libtmux}} {
		r, err := redact.New(c)
		if err != nil {
			t.Fatal(err)
		}
		redactors[name] = r
	}
	decided, all := map[string]int{}, 0
	for range 1500 {
		scope := pick([]string{"session", "user"})
		source := fmt.Sprintf(`{"version":"1","default":"deny","hide":["gone"],"tools":{"t":{"require":[%s],"deny_if":[%s,%s],"limits":[{"counter":"c","window":"minute","max":%d,"scope":"%s"}]},"u":{"limits":[{"counter":"c","window":"minute","max":3,"scope":"%s"}],"action":"require_approval"}}}`,
			conditions(), conditions(), conditions(), 1+rnd.IntN(6), scope, scope)
		if rnd.IntN(2) == 0 {
			source = strings.Replace(source, `"require":[`, `"require":[],"deny_if":[`, 1)
			source = strings.Replace(source, `]}],"deny_if":[`, `]},`, 1)
		}
		p, err := policy.Load([]byte(source), "p.json")
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		for profile, r := range redactors {
			h := histories()
			var memory policy.Memory
			at := time.Unix(0, 0)
			for range 8 {
				at = at.Add(time.Duration(rnd.IntN(20)) * time.Second)
				tool := pick([]string{"t", "t", "t", "u", "gone", "other"})
				var members []string
				for _, name := range names {
					if rnd.IntN(2) == 0 {
						members = append(members, fmt.Sprintf("%q:%s", name, pick(values)))
					}
				}
				args := "{" + strings.Join(members, ",") + "}"
				if rnd.IntN(20) == 0 {
					args = pick([]string{"[]", "null", `"x"`, ""})
				}
				summary, flags := r.AppendArgs(nil, []byte(args))
				if flags&redact.NonFinite != 0 {
					continue // such a frame is refused before any rule
				}
				decisions := make([]policy.Decision, 1)
				if err := p.Decide([]policy.Call{{Tool: tool, Arguments: []byte(args)}}, at, &memory, decisions); err != nil {
					t.Fatal(err)
				}
				want := decisions[0]
				if want.Action == policy.AskFirst {
					memory.Release(want.Held) // as the proxy does
				}
				got := replayOne(p, tool, string(summary), at, h)
				all++
				if got.Unknown == "" {
					decided[want.Action.String()]++
				}
				if got.Unknown == "" && got.Action != want.Action {
					t.Fatalf("%s: %s\n%s %s\nrecord %s\ngot %+v, want %s by %q", profile, source, tool, args, summary, got, want.Action, want.Rule)
				}
			}
		}
	}
	t.Logf("%d calls, decided %v", all, decided)
	for _, word := range []string{"allow", "ask", "deny"} {
		if decided[word] < 250 {
			t.Errorf("of %d calls %d were decided as %s: the test shows nothing", all, decided[word], word)
		}
	}
}

// What a redactor left of an argument decides where it can: at each place a condition is
// required, then denied by.
func TestReplayOfSummaries(t *testing.T) {
	const (
		three, four = `{"len":3,"hmac_sha256_prefix":"0123456789abcdef"}`, `{"len":4,"hmac_sha256_prefix":"0123456789abcdef"}`
		head        = `{"head":"abc","len":300,"hmac_sha256_prefix":"0123456789abcdef"}`
		partial     = `"x [redacted len=8 hmac=0123456789abcdef] y"`
	)
	for _, tt := range []struct {
		path, op, value, args string
		cut                   bool
		want                  string
	}{
		{"a", "exists", "false", ``, false, "allow deny"},
		{"a", "exists", "false", `{"b":1}`, false, "allow deny"},
		{"a", "exists", "false", `{}`, true, "cut cut"},
		{"a", "exists", "false", `{"b":1,"[cut]":{"members":3}}`, false, "cut cut"},
		{"a", "exists", "false", `{"[arguments]":1}`, false, "cut cut"},
		{"a", "exists", "false", `{"[redacted len=4 hmac=0123456789abcdef]":1}`, false, "redacted redacted"},
		{"a", "exists", "true", `{"a":` + three + `}`, false, "allow deny"},
		{"a", "exists", "true", `{"a":` + four + `}`, false, "redacted redacted"}, // of null, perhaps
		{"a", "exists", "true", `{"a":{"type":"str","redacted":true}}`, false, "allow deny"},
		{"a", "exists", "true", `{"a":{"type":"NoneType","redacted":true}}`, false, "redacted redacted"},
		{"a", "exists", "true", `{"a":{"redacted":true,"bytes":4}}`, false, "redacted redacted"},
		{"a", "exists", "true", `{"a":` + head + `}`, false, "allow deny"},
		{"a", "exists", "true", `{"a":["x",` + three + `]}`, false, "allow deny"},
		{"a", "eq", `"x"`, `{"a":` + partial + `}`, false, "redacted redacted"},
		{"a", "regex", `"y"`, `{"a":` + partial + `}`, false, "redacted redacted"},
		{"a", "lt", "3", `{"a":` + partial + `}`, false, "deny redacted"},
		{"a", "lt", "3", `{"a":` + head + `}`, false, "deny redacted"},
		{"a", "lt", "3", `{"a":` + three + `}`, false, "redacted redacted"},
		{"a", "eq", "3", `{"a":` + three + `}`, false, "redacted redacted"},
		{"a", "regex", `"3"`, `{"a":` + three + `}`, false, "redacted redacted"},
		{"a", "regex", `"3"`, `{"a":["x",` + three + `]}`, false, "deny deny"}, // no text
		{"a", "eq", `"x"`, `{"a":["x",` + three + `]}`, false, "redacted redacted"},
		{"a", "lt", "3", `{"a":["x",` + three + `]}`, false, "redacted redacted"},
		{"a", "eq", `"x"`, `{"a":["x",` + partial + `]}`, false, "redacted redacted"},
		{"a", "eq", `"x"`, `{"a":["x","y"]}`, false, "deny allow"},
		{"a", "eq", "1", `{"a":{"c":` + three + `}}`, false, "redacted redacted"},
		{"a", "regex", `"abc"`, `{"a":{"c":1,"head":"abc"}}`, false, "deny deny"},
		{"a", "eq", "1", `{"a":1`, false, "cut cut"},
		{"a.b", "eq", "1", `{"a":5}`, false, "deny deny"},
		{"a.b", "eq", "1", `{"a":null}`, false, "deny allow"},
		{"a.b", "eq", "1", `{"a":` + three + `}`, false, "redacted redacted"},
		{"a.b", "eq", "1", `{"a":{"b":1,"c":` + three + `}}`, false, "allow deny"},
		{"a", "eq", `"x"`, `{"a":"x\u0000y"}`, false, "deny deny"},
		{"a", "eq", `"x"`, `{"A":"x"}`, false, "deny deny"},
		{"a", "eq", `"y"`, `{"A":"x","a":"y"}`, false, "deny deny"},
	} {
		var got []string
		for _, list := range []string{"require", "deny_if"} {
			p := load(t, fmt.Sprintf(`{"version":"1","default":"allow","tools":{"t":{"%s":[{"conditions":[{"path":"args.%s","op":"%s","value":%s}]}]}}}`,
				list, tt.path, tt.op, tt.value), "p.json")
			var d [1]policy.Replayed
			p.Replay([]policy.Recorded{{Call: policy.Call{Tool: "t", Arguments: []byte(tt.args)}, Cut: tt.cut}}, time.Unix(0, 0), histories(), d[:])
			word := d[0].Action.String()
			if d[0].Unknown != "" {
				word = string(d[0].Unknown)
			}
			got = append(got, word)
		}
		if word := strings.Join(got, " "); word != tt.want {
			t.Errorf("%s %s %s of %s: %s, want %s", tt.path, tt.op, tt.value, tt.args, word, tt.want)
		}
	}
}

// TestReplayOfFrames: operations of one call are decided together, and a limit
// has bounds where calls are not decided.
func TestReplayOfFrames(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{"a":{"limits":[{"counter":"c","window":"minute","max":2,"scope":"session"}]},
		"b":{"deny_if":[{"conditions":[{"path":"args.keys","op":"regex","value":"rm"}]}],"limits":[{"counter":"c","window":"minute","max":2,"scope":"session"}]}}}`, "p.json")
	at := time.Unix(0, 0)
	call := func(tool, args string) policy.Recorded {
		return policy.Recorded{Call: policy.Call{Tool: tool, Arguments: []byte(args)}, Most: "financial"}
	}
	const secret = `{"keys":{"len":2,"hmac_sha256_prefix":"0123456789abcdef"}}`
	for _, c := range []struct {
		name  string
		calls [][]policy.Recorded
		want  []string
	}{
		{"a limit", [][]policy.Recorded{{call("a", "")}, {call("a", "")}, {call("a", "")}}, []string{"allow", "allow", "deny /tools/a/limits/c"}},
		{"a limit in one call", [][]policy.Recorded{{call("a", ""), call("a", ""), call("a", "")}, {call("a", "")}}, []string{"deny /tools/a/limits/c", "allow"}},
		{"the strictest", [][]policy.Recorded{{call("a", ""), call("b", secret), call("other", "")}}, []string{"deny (default deny)"}},
		{"a digest", [][]policy.Recorded{{call("b", secret)}}, []string{"redacted /tools/b/deny_if/args.keys-regex"}},
		{"a redacted name", [][]policy.Recorded{{call("b", `{"[redacted len=4 hmac=0123456789abcdef]":"rm"}`)}}, []string{"redacted /tools/b/deny_if/args.keys-regex"}},
		{"after a digest", [][]policy.Recorded{{call("b", secret)}, {call("b", `{"keys":"ls"}`)}, {call("b", `{"keys":"ls"}`)}, {call("b", `{"keys":"rm"}`)}}, []string{
			"redacted /tools/b/deny_if/args.keys-regex", "allow", "history /tools/b/limits/c", "deny /tools/b/deny_if/args.keys-regex"}},
	} {
		h := histories()
		for i, calls := range c.calls {
			decisions := make([]policy.Replayed, len(calls))
			d := decisions[p.Replay(calls, at, h, decisions)]
			got := d.Action.String()
			if d.Unknown != "" {
				got = string(d.Unknown)
			}
			if got = strings.TrimSpace(got + " " + d.Rule); got != c.want[i] {
				t.Errorf("%s: call %d: got %q, want %q", c.name, i, got, c.want[i])
			}
		}
	}
	h := histories()
	h.Session.From = time.Unix(30, 0)
	if d := replayOne(p, "a", "", time.Unix(40, 0), h); d.Unknown != policy.UnknownHistory {
		t.Errorf("a limit whose window began before the first call that is known: %+v", d)
	}
	if d := replayOne(p, "a", "", time.Unix(60, 0), h); d.Unknown != "" {
		t.Errorf("a limit in the window after it: %+v", d)
	}
	if d := replayOne(p, "a [redacted len=40 hmac=0123456789abcdef]", "", at, h); d.Unknown != policy.UnknownTool {
		t.Errorf("a tool with a redacted name: %+v", d)
	}
}

// A recorded call is denied for what it is known to do, and undecided where it may do
// more than that.
func TestReplayOfDetections(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{"a":{}},"auditproxy":{"deny_detections":["fork_bomb","kill"]}}`, "p.json")
	for _, tt := range []struct {
		detections []string
		unseen     bool
		want       string
	}{
		{nil, false, "allow"},
		{[]string{"shutdown", "kill"}, false, "deny /auditproxy/deny_detections/kill"},
		{[]string{"kill"}, true, "deny /auditproxy/deny_detections/kill"},
		{[]string{"shutdown"}, false, "allow"},
		{nil, true, string(policy.UnknownEffects) + " /auditproxy/deny_detections"},
	} {
		var d [1]policy.Replayed
		p.Replay([]policy.Recorded{{Call: policy.Call{Tool: "a", Detections: tt.detections}, Unseen: tt.unseen}}, time.Unix(0, 0), histories(), d[:])
		got := d[0].Action.String()
		if d[0].Unknown != "" {
			got = string(d[0].Unknown)
		}
		if got = strings.TrimSpace(got + " " + d[0].Rule); got != tt.want {
			t.Errorf("detections %q, unseen %v: %q, want %q", tt.detections, tt.unseen, got, tt.want)
		}
	}
}

// Conditions on arguments and counters hold in any order, and one detection is enough
// to leave open what a call may do.
func TestReplayInAnyOrder(t *testing.T) {
	p := load(t, `{"version":"1","default":"allow","tools":{"pay":{"rules":[{"name":"sum","conditions":[
		{"path":"args.kind","op":"eq","value":"x"},{"path":"state.pay.sum","op":"neq","value":2},{"path":"args.to","op":"eq","value":"y"}],
		"state":{"counter":"sum","window":"day","increment_from":"args.amount"}}]}},"auditproxy":{"deny_detections":["kill"]}}`, "p.json")
	h := histories()
	for _, tt := range []struct{ args, want string }{
		{`{"kind":"x","to":"z","amount":1}`, "deny"}, {`{"kind":"z","to":"y","amount":1}`, "deny"}, {`{"kind":"x","to":"y","amount":2}`, "allow"}, {`{"kind":"x","to":"y","amount":9}`, "deny"},
	} {
		if got := replayOne(p, "pay", tt.args, time.Unix(0, 0), h); got.Action.String() != tt.want || got.Unknown != "" {
			t.Errorf("%s: %+v, want %s", tt.args, got, tt.want)
		}
	}
	var d [1]policy.Replayed
	p.Replay([]policy.Recorded{{Call: policy.Call{Tool: "other"}, Unseen: true}}, time.Unix(0, 0), h, d[:])
	if d[0].Unknown != policy.UnknownEffects {
		t.Errorf("a call whose effects are not all known: %+v", d[0])
	}
}

// A limit by an amount counts whole numbers only, also when calls are replayed.
func TestReplayOfAmounts(t *testing.T) {
	p := load(t, `{"version":"1","default":"allow","tools":{"pay":{"rules":[{"name":"sum","conditions":[{"path":"state.pay.sum","op":"lte","value":5}],
		"state":{"counter":"sum","window":"day","increment_from":"args.amount"}}]}}}`, "p.json")
	h := histories()
	const digest = `{"len":1,"hmac_sha256_prefix":"0123456789abcdef"}`
	for _, tt := range []struct{ args, want, unknown string }{
		{`{"amount":2}`, "allow", ""}, {`{"amount":2.5}`, "deny", ""}, {`{"amount":3}`, "allow", ""}, {`{"amount":1}`, "deny", ""},
		{`{"amount":0}`, "allow", ""}, {`{"amount":"1 [redacted len=8 hmac=0123456789abcdef]"}`, "deny", ""}, {`{"amount":[` + digest + `]}`, "deny", ""},
		{`{"amount":{"head":"1","len":300,"hmac_sha256_prefix":"0123456789abcdef"}}`, "deny", ""}, {`{"amount":"1"}`, "deny", ""},
		{`{"amount":` + digest + `}`, "allow", "redacted"}, {`{"[redacted len=4 hmac=0123456789abcdef]":1}`, "allow", "history"}, {`{}`, "deny", ""},
	} {
		if got := replayOne(p, "pay", tt.args, time.Unix(0, 0), h); got.Action.String() != tt.want || string(got.Unknown) != tt.unknown {
			t.Errorf("%s: %+v, want %s %s", tt.args, got, tt.want, tt.unknown)
		}
	}
}

package mcpproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// A defect in what reads hostile text neither ends the session nor lets a call
// through that it could not judge.
func TestPanicInAssessment(t *testing.T) {
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := risk.New(risk.Config{Text: func([]byte, []byte) []byte { panic("a defect") }})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load([]byte(`{"version":"1","default":"allow"}`), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []policy.Mode{policy.Enforce, policy.Observe} {
		c := testClient(t, Config{Redactor: red, Journal: &lines{}, Log: zap.NewNop(), Gate: Gate{Risk: a, Policy: p, Mode: mode, Counters: &policy.Memory{}}})
		args := []byte(`{"path":"/etc/shadow"}`)
		m := wire.Message{Raw: []byte(`{}`), ID: []byte("1"), Method: []byte(`"tools/call"`), Name: []byte(`"read_file"`), Arguments: args}
		c.read(0, &m, 0, time.Now(), "")
		c.decide(&wire.Frame{}, c.items, false, false, time.Now())
		it := &c.items[0]
		found, err := audit.ParseDetections(it.call.rec.Detections)
		if err != nil || len(found) != 1 || found[0].Detector != "opaque" {
			t.Errorf("%s: detections %s, want opaque", mode, it.call.rec.Detections)
		}
		want := ""
		if mode == policy.Enforce {
			want = audit.ErrPolicyDenied
		}
		decided, err := audit.ParsePolicy(it.call.rec.Policy)
		if err != nil || decided.Rule != ruleFailed || it.refused != want {
			t.Errorf("%s: decided %+v, refused as %q, want %q", mode, decided, it.refused, want)
		}
	}
}

// gateOf returns what a client needs to decide by a policy, "" for none.
func gateOf(t *testing.T, source string, mode policy.Mode) (*redact.Redactor, Gate) {
	t.Helper()
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := risk.New(risk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g := Gate{Risk: a, Mode: mode, Counters: &policy.Memory{}}
	if source != "" {
		if g.Policy, err = policy.Load([]byte(source), "p.json"); err != nil {
			t.Fatal(err)
		}
	}
	return red, g
}

// TestAnswerToTheProxyStandsAlone refuses an answer to a question of the proxy that has company on
// its line: another reader could take it for something else.
func TestAnswerToTheProxyStandsAlone(t *testing.T) {
	red, gate := gateOf(t, `{"version":"1","default":"allow"}`, policy.Enforce)
	c := testClient(t, Config{Redactor: red, Journal: &lines{}, Log: zap.NewNop(),
		Gate: gate})
	one := []wire.Message{{}}
	for _, tt := range []struct {
		name    string
		frame   wire.Frame
		midLine bool
		want    string
	}{
		{"alone", wire.Frame{Messages: one}, false, ""},
		{"in a batch", wire.Frame{Messages: []wire.Message{{}, {}}}, false, audit.ErrAmbiguousRequest},
		{"inside a line", wire.Frame{Messages: one, Inside: true}, false, audit.ErrAmbiguousRequest},
		{"behind another frame", wire.Frame{Messages: one}, true, audit.ErrAmbiguousRequest},
	} {
		items := []item{{ours: []byte(`"auditproxy-1"`)}}
		c.decide(&tt.frame, items, tt.midLine, false, time.Now())
		if items[0].refused != tt.want {
			t.Errorf("%s: refused as %q, want %q", tt.name, items[0].refused, tt.want)
		}
	}
}

// TestAmbiguousBehindCut has a name twice where the summary of the arguments is cut: the
// policy reads the last value, and a server could read the first.
func TestAmbiguousBehindCut(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine has nothing for the race detector")
	}
	red, gate := gateOf(t, `{"version":"1","default":"allow"}`, policy.Enforce)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `"k%d":%q,`, i, strings.Repeat("x", 400))
	}
	deep := strings.Repeat("[", 300) + `{"a":1,"a":2}` + strings.Repeat("]", 300)
	for last, want := range map[string]string{
		`"o":{"a":"bad","a":"good"}`:               audit.ErrAmbiguousRequest,
		`"o":[[{"x":1},{"a":1,"b":2,"\u0061":3}]]`: audit.ErrAmbiguousRequest,
		`"o":` + deep:                       audit.ErrAmbiguousRequest,
		`"o":[{"a":1},{"a":2}]`:             "",
		`"o":{"a":{"a":"a"},"A":["a","a"]}`: "",
	} {
		c := testClient(t, Config{Redactor: red, Journal: &lines{}, Log: zap.NewNop(), Gate: gate})
		m := wire.Message{Raw: []byte(`{}`), ID: []byte("1"), Method: []byte(`"tools/call"`), Name: []byte(`"t"`), Arguments: []byte("{" + b.String() + last + "}")}
		c.read(0, &m, 0, time.Now(), "")
		c.decide(&wire.Frame{}, c.items, false, false, time.Now())
		if it := &c.items[0]; it.refused != want || !slices.Contains(it.call.rec.Anomalies, "args_cut") {
			t.Errorf("%.60s: refused as %q with %v, want %q", last, it.refused, it.call.rec.Anomalies, want)
		}
	}
}

// A tool is judged by the newest listing, and by the assessor in force.
func TestRiskOfAToolFollowsItsListing(t *testing.T) {
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	c := testClient(t, Config{Redactor: red, Journal: &lines{}, Log: zap.NewNop()})
	list := func(definition string) {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.learn(&call{class: listTools}, &wire.Answer{Raw: []byte(`{"result":{"tools":[` + definition + `]}}`)}, time.Now())
	}
	check := func(when string, want risk.Category) {
		t.Helper()
		if got := c.riskTool("frobnicate").Category; got != want {
			t.Errorf("%s: category %v, want %v", when, got, want)
		}
	}
	check("not listed", risk.Execute)
	check("again", risk.Execute)
	list(`{"name":"frobnicate","description":"Read a value."}`)
	check("listed", risk.Read)
	list(`{"name":"frobnicate","description":"Delete all values."}`)
	check("listed in another way", risk.Destructive)
	// Which of them the server runs is unknown.
	list(`{"name":"frobnicate","description":"Delete all values."},{"name":"frobnicate","description":"Read a value."}`)
	check("listed twice, the worst first", risk.Destructive)
	list(`{"name":"frobnicate","description":"Delete all values."},{"name":"frobnicate","description":"Read a value."},{"name":"frobnicate","description":"List values."}`)
	check("listed three times", risk.Destructive)
	list(`{"name":"other"}`)
	check("listed no more", risk.Execute)
	a, err := risk.New(risk.Config{Risk: []risk.Override{{Tool: "frobnicate", Category: "write"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.gate = &gate{Gate: Gate{Risk: a}}
	check("under an override", risk.Write)
}

// No server reads operations in arguments that are not looked at for them.
func TestMayHaveOperations(t *testing.T) {
	for args, want := range map[string]bool{
		"operations": true, "xOPERATIONSx": true, "oPerations": true, "opoperations": true, "oopOpErAtIoNs": true, "operation\u017f": true, `oper\u0061tions`: true,
		"operation": false, "perations": false, "ooperation s": false, "op": false, "é": false, "": false,
	} {
		if mayHaveOperations([]byte(args)) != want {
			t.Errorf("%s may have operations: %v, want %v", args, !want, want)
		}
	}
}

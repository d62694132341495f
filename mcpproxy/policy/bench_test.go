package policy_test

import (
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/policy/policytest"
)

// unreached is a limit that no benchmark reaches.
const unreached = `[{"counter":"c","window":"minute","max":9000000000,"scope":"session"}]`

func BenchmarkDecide(b *testing.B) {
	keys := []byte(`{"keys":"ls -la /srv/project && git status","pane_id":"%12","enter":true,"literal":false,"suppress_history":false}`)
	for _, c := range []struct {
		name   string
		limits string
		call   policy.Call
	}{
		{"two rules", "", policy.Call{Tool: "tool7", Arguments: keys}},
		{"20 conditions", "", policy.Call{Tool: "send_keys", Arguments: keys, Category: "execute"}},
		{"20 conditions and a limit", unreached, policy.Call{Tool: "send_keys", Arguments: keys, Category: "execute"}},
		{"default deny", "", policy.Call{Tool: "unknown", Arguments: keys}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := load(b, policytest.ManyRules(c.limits), "p.json")
			calls, decisions := []policy.Call{c.call}, make([]policy.Decision, 1)
			var counters policy.Memory
			at := time.Unix(0, 0)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Decide(calls, at, &counters, decisions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"p.json", "p.yaml"} {
		b.Run(name, func(b *testing.B) {
			source := []byte(policytest.ManyRules(unreached))
			if name == "p.yaml" {
				source = append([]byte("# YAML\n"), source...)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Load(source, name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDecidingAllocatesNothing measures a call that conditions about arguments
// decide.
func TestDecidingAllocatesNothing(t *testing.T) {
	p := load(t, policytest.ManyRules(""), "p.json")
	calls := []policy.Call{{Tool: "send_keys", Arguments: []byte(`{"keys":"ls -la","pane_id":"%12"}`), Category: "execute"}}
	decisions := make([]policy.Decision, 1)
	var counters policy.Memory
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Decide(calls, time.Unix(0, 0), &counters, decisions); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLoadingAllocatesLittle: every start of a proxy loads the policy before the
// server runs.
func TestLoadingAllocatesLittle(t *testing.T) {
	source := []byte(policytest.ManyRules(unreached))
	n := testing.AllocsPerRun(10, func() {
		if _, err := policy.Load(source, "p.json"); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2000 {
		t.Errorf("%v allocations for 200 rules", n)
	}
}

// TestLongListsAreNotPrinted compares a long list with texts: none of them is what a list
// looks like, so nothing is made of it.
func TestLongListsAreNotPrinted(t *testing.T) {
	p := load(t, `{"version":"1","default":"allow","tools":{"a":{"deny_if":[{"conditions":[{"path":"args.x","op":"in","value":["a","b",5]}]}]}}}`, "p.json")
	for x, want := range map[string]policy.Action{
		"[" + strings.Repeat(`{"k":[]},`, 5000) + "1]":       policy.Allow,
		"{" + strings.Repeat(`"k":{},`, 5000) + `"l":1}`:     policy.Allow,
		"[" + strings.Repeat(`{"k":[]},`, 5000) + "1e400]":   policy.Deny, // cannot be read
		"[" + strings.Repeat("9", 400) + "]":                 policy.Deny,
		"[true,false,null,1e5,\"1e400\",-1.5E-3,[1e300],{}]": policy.Allow,
	} {
		calls, decisions := []policy.Call{{Tool: "a", Arguments: []byte(`{"x":` + x + `}`)}}, make([]policy.Decision, 1)
		var counters policy.Memory
		n := testing.AllocsPerRun(1, func() {
			if err := p.Decide(calls, time.Unix(0, 0), &counters, decisions); err != nil {
				t.Fatal(err)
			}
		})
		if decisions[0].Action != want || n > 100 {
			t.Errorf("%.30s: %v with %v allocations, want %v with at most 100", x, decisions[0].Action, n, want)
		}
	}
}

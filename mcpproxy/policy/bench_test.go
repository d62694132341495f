package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
)

// large is a policy of 200 rules: one tool with 20 conditions, 90 with two each.
func large(limits bool) string {
	var b strings.Builder
	b.WriteString(`{"version":"1","default":"deny","tools":{"send_keys":{"deny_if":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.keys","op":"regex","value":"(?i)drop\\s+table%d"}]}`, i)
		case 1:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.session_name","op":"eq","value":"prod%d"}]}`, i)
		case 2:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.socket_name","op":"exists","value":true}]}`)
		case 3:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.keys","op":"contains","value":"--force%d"}]}`, i)
		}
	}
	b.WriteString(`]`)
	if limits {
		b.WriteString(`,"limits":[{"counter":"c","window":"minute","max":9000000000,"scope":"session"}]`)
	}
	b.WriteString(`}`)
	for i := range 90 {
		fmt.Fprintf(&b, `,"tool%d":{"deny_if":[{"conditions":[{"path":"args.a","op":"eq","value":1}]},{"conditions":[{"path":"args.b","op":"gt","value":1}]}]}`, i)
	}
	b.WriteString(`}}`)
	return b.String()
}

func BenchmarkDecide(b *testing.B) {
	keys := []byte(`{"keys":"ls -la /srv/project && git status","pane_id":"%12","enter":true,"literal":false,"suppress_history":false}`)
	for _, c := range []struct {
		name   string
		limits bool
		call   policy.Call
	}{
		{"two rules", false, policy.Call{Tool: "tool7", Arguments: keys}},
		{"20 conditions", false, policy.Call{Tool: "send_keys", Arguments: keys, Category: "execute"}},
		{"20 conditions and a limit", true, policy.Call{Tool: "send_keys", Arguments: keys, Category: "execute"}},
		{"default deny", false, policy.Call{Tool: "unknown", Arguments: keys}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := load(b, large(c.limits), "p.json")
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
			source := []byte(large(true))
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
	p := load(t, large(false), "p.json")
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

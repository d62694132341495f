package gate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/mcpproxy/wire"

	"github.com/google/go-cmp/cmp"
)

// TestEvalOperations evaluates the operations of a call as the gate decides them: as any
// server reads them, each with what the whole call does.
func TestEvalOperations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	write(t, file, `{"version":"1","default":"allow","auditproxy":{"denied_tools":["kill_server"],"allowed_tools":["batch"],"approval":"ask_for_dangerous","ask_detections":["recursive_delete"]}}`)
	l, err := Config{File: file}.Load()
	if err != nil {
		t.Fatal(err)
	}
	const calls = `{"tool":"batch","arguments":{"operations":[{"tool":"list_panes"}]}}
{"tool":"batch","arguments":{"operations":[{"tool":"send_keys","arguments":{"keys":"rm -rf /srv"}}]}}
{"tool":"batch","arguments":{"operations":"[{\"tool\":\"kill_server\"}]"}}
{"tool":"batch","arguments":{"Operations":[{"Tool":"kill_server"}]}}
{"tool":"batch","arguments":{"operations":"[{\"tool\":NaN}]"}}
{"tool":"batch","arguments":{"operations":[{"tool":"tidy"}]}}
{"tool":"batch","arguments":{"operations":[{"tool":"tidy"}]},"definition":{"name":"batch"}}
{"tool":"tidy","arguments":{},"definition":{"name":"tidy","annotations":{"destructiveHint":true}}}
{"tool":"batch","arguments":{"operations":[{"tool":"tidy"}]}}
`
	var got []string
	err = Eval(strings.NewReader(calls), l, wire.IsAmbiguous, func(_ string, e Evaluation) error {
		got = append(got, fmt.Sprint(e.Decision, " ", e.Rule))
		return nil
	})
	want := []string{"allow ", "ask /auditproxy/ask_detections/recursive_delete", "deny /auditproxy/denied_tools/kill_server", "deny /auditproxy/denied_tools/kill_server", "deny (oversize)", "allow ", "allow ", "ask /auditproxy/approval", "ask /auditproxy/approval"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, decisions (-want +got):\n%s", err, diff)
	}
}

// TestEvalAmbiguous evaluates calls that the proxy refuses because two servers could
// read them differently.
func TestEvalAmbiguous(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	write(t, file, `{"version":"1","default":"allow","tools":{"t":{"deny_if":[{"conditions":[{"path":"args.o.a","op":"eq","value":"bad"}]}]}}}`)
	l, err := Config{File: file}.Load()
	if err != nil {
		t.Fatal(err)
	}
	const denied = "deny /tools/t/deny_if/args.o.a-eq"
	for args, want := range map[string]string{
		`{"o":{"a":"good"}}`:                "allow ",
		`{"x":[{"a":"good"},{"a":"fine"}]}`: "allow ",
		`{"o":{"a":"bad"}}`:                 denied,
		`{"o":{"a":"bad","a":"good"}}`:      "deny (ambiguous)",
		`{"o":{"\u0061":"bad","a":"good"}}`: "deny (ambiguous)",
		`{"x":[[{"b":1,"b":2}]]}`:           "deny (ambiguous)",
		`{"x":1,"x":2}`:                     "deny (ambiguous)",
		`{"x":"\ud800"}`:                    "deny (ambiguous)",
		`{"x":1e999}`:                       "deny (ambiguous)",
		`[1]`:                               "deny (ambiguous)",
		`null`:                              "allow ",
	} {
		var got string
		err := Eval(strings.NewReader(`{"tool":"t","arguments":`+args+"}\n"), l, wire.IsAmbiguous, func(_ string, e Evaluation) error {
			got = e.Decision + " " + e.Rule
			return nil
		})
		if got != want || err != nil {
			t.Errorf("%s: %q, error %v, want %q", args, got, err, want)
		}
	}
}

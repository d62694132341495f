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
	cases := map[string]string{
		`{"tool":"t","tool":"u","arguments":{}}`:                               "deny (ambiguous)",
		`{"tool":"u","tool":"t","arguments":{}}`:                               "deny (ambiguous)",
		`{"tool":"t","to\u006fl":"u"}`:                                         "deny (ambiguous)",
		`{"tool":"t\ud800"}`:                                                   "deny (ambiguous)",
		`{"tool":"t","arguments":{"o":{"a":"bad"}},"arguments":{}}`:            "deny (ambiguous)",
		`{"arguments":null,"at_ms":1,"tool":"t","arguments":{},"upstream":""}`: "deny (ambiguous)",
		`{"arguments":{"o":{"a":"bad"}},"at_ms":1,"tool":"t"}`:                 denied,
	}
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
		cases[`{"tool":"t","arguments":`+args+"}"] = want
	}
	for line, want := range cases {
		var got string
		err := Eval(strings.NewReader(line+"\n"), l, wire.IsAmbiguous, func(_ string, e Evaluation) error {
			got = e.Decision + " " + e.Rule
			return nil
		})
		if got != want || err != nil {
			t.Errorf("%s: %q, error %v, want %q", line, got, err, want)
		}
	}
}

// TestEvalMistakes reads lines that are not calls: each error is in the words of the
// input.
func TestEvalMistakes(t *testing.T) {
	for line, want := range map[string]string{
		`{"tool":5}`:                       "tool is of the type number, want a text",
		`{"tool":"a","at_ms":"x"}`:         "at_ms is of the type string, want a whole number",
		`{"tool":"a","at_ms":1.5}`:         "at_ms is of the type number 1.5, want a whole number",
		`[]`:                               "want one JSON object with tool and arguments, got the type array",
		`"send_keys"`:                      "want one JSON object with tool and arguments, got the type string",
		`{"tool":"a","argumentz":{}}`:      `want one JSON object with tool and arguments: unknown field "argumentz"`,
		`{"tool":"a","Tool":"b"}`:          `want one JSON object with tool and arguments: unknown field "Tool"`,
		`{"tool":"a","TOOL":"b"}`:          `want one JSON object with tool and arguments: unknown field "TOOL"`,
		`{"tool":"a","home":"","home":""}`: `want one JSON object with tool and arguments: duplicate field "home"`,
		`{"tool":"a","arguments":{"a"`:     "want one JSON object with tool and arguments: unexpected EOF",
	} {
		err := Eval(strings.NewReader(line+"\n"), Loaded{}, wire.IsAmbiguous, nil)
		if want = "reading call 1: " + want; err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", line, err, want)
		}
	}
}

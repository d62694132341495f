package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"auditproxy/mcpproxy/policy"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// decide decides one call with counters of its own.
func decide(t testing.TB, p *policy.Policy, call policy.Call) policy.Decision {
	t.Helper()
	decisions := make([]policy.Decision, 1)
	if err := p.Decide([]policy.Call{call}, time.Unix(0, 0), new(policy.Memory), decisions); err != nil {
		t.Fatal(err)
	}
	return decisions[0]
}

// load loads a policy that has no mistakes.
func load(t testing.TB, source, name string) *policy.Policy {
	t.Helper()
	p, err := policy.Load([]byte(source), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOperators holds each operator against each type of argument. An argument
// without text is missing. converted are those for which deny_if denies too, and
// require with neq or not_in, since a server may convert them to what is compared.
func TestOperators(t *testing.T) {
	const every = ` | null | true | false | 5 | 5.0 | 5e0 | -0 | 0 | 4.9 | 1000000 | 1e400 | "5" | "05" | "5.0" | "1e+06" | "true" | "<nil>" | "" | "dev" | "de\u0076" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`
	const (
		noNumber = `true | false | "true" | "<nil>" | "" | "dev" | "de\u0076" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`
		nested   = `[] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5}`
	)
	const truthy = `5 | 5.0 | 5e0 | 4.9 | 1000000 | "5" | "05" | "5.0" | "1e+06" | "<nil>" | "dev" | "de\u0076" | "devel" | "map[a:5]" | "[5]" | "[]" | "map[]" | ` + nested
	converted := map[string]string{
		`eq 5`: `"05" | "5.0" | [5] | ["5"] | [[5]]`, `eq 5.0`: `"05" | "5.0" | [5] | ["5"] | [[5]]`, `eq 0`: `false | "" | [] | [null]`, `eq 1000000`: `"1e+06"`, `eq true`: truthy, `eq false`: `-0 | 0 | "" | ` + nested,
		`eq "5"`: `[5] | ["5"] | [[5]]`, `eq "5.0"`: `5.0`, `eq "1000000"`: `1000000`, `eq ""`: `[] | [null]`, `eq "dev"`: `["dev"]`, `neq "dev"`: `["dev"]`,
		`neq true`: truthy, `in [5, "dev", null]`: `"05" | "5.0" | ["dev"] | [5] | ["5"] | [[5]]`, `not_in [5, "dev", null, true, ""]`: `"05" | "5.0" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]]`,
		`lt 5`: noNumber, `lte 5`: noNumber + ` | "5" | "05" | "5.0"`, `gt 4.9`: noNumber + ` | "5" | "05" | "5.0" | "1e+06"`, `gte 4.9`: noNumber + ` | "5" | "05" | "5.0" | "1e+06"`,
		`regex "^de"`: nested, `regex "v"`: nested, `regex "^$"`: nested, `regex "(?i)DEV$"`: nested, `regex "5"`: nested + ` | 5 | 5.0 | 5e0`,
		`contains "ev"`: `{} | {"a":5}`, `contains "dev"`: `{} | {"a":5}`, `contains 5`: `{} | {"a":5} | "[5]"`, `contains null`: `{} | {"a":5}`, `contains [5]`: `{} | {"a":5}`,
		`contains "5"`: `{} | {"a":5} | 5 | 5.0 | 5e0`, `contains ""`: `{} | {"a":5} | true | false | 5 | 5.0 | 5e0 | -0 | 0 | 4.9 | 1000000 | 1e400 | "[5]" | "[]"`,
	}
	for _, c := range []struct{ op, value, holds string }{
		{"eq", `5`, `5 | 5.0 | 5e0 | "5"`},
		{"eq", `5.0`, `5 | 5.0 | 5e0 | "5"`},
		{"eq", `"5"`, `5 | 5.0 | 5e0 | "5"`},
		{"eq", `"5.0"`, `"5.0"`},
		{"eq", `0`, `-0 | 0`},
		{"eq", `1000000`, `1000000`},
		{"eq", `"1000000"`, ``},
		{"eq", `"1e+06"`, `1000000 | "1e+06"`},
		{"eq", `true`, `true | "true"`},
		{"eq", `false`, `false`},
		{"eq", `"true"`, `true | "true"`},
		{"eq", `null`, `null | "<nil>"`},
		{"eq", `""`, `""`},
		{"eq", `"dev"`, `"dev" | "de\u0076"`},
		{"eq", `[]`, `[] | "[]"`},
		{"eq", `[5]`, `[5] | ["5"] | "[5]"`},
		{"eq", `{"a":5}`, `{"a":5} | "map[a:5]"`},
		{"eq", `{}`, `{} | "map[]"`},
		{"neq", `"dev"`, `null | true | false | 5 | 5.0 | 5e0 | -0 | 0 | 4.9 | 1000000 | "5" | "05" | "5.0" | "1e+06" | "true" | "<nil>" | "" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`},
		{"neq", `true`, `null | false | 5 | 5.0 | 5e0 | -0 | 0 | 4.9 | 1000000 | "5" | "05" | "5.0" | "1e+06" | "<nil>" | "" | "dev" | "de\u0076" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`},
		{"in", `[5, "dev", null]`, `null | 5 | 5.0 | 5e0 | "5" | "<nil>" | "dev" | "de\u0076"`},
		{"in", `[]`, ``},
		{"not_in", `[5, "dev", null, true, ""]`, `false | -0 | 0 | 4.9 | 1000000 | "05" | "5.0" | "1e+06" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`},
		{"lt", `5`, `-0 | 0 | 4.9`},
		{"lte", `5`, `5 | 5.0 | 5e0 | -0 | 0 | 4.9`},
		{"gt", `4.9`, `5 | 5.0 | 5e0 | 1000000`},
		{"gte", `4.9`, `5 | 5.0 | 5e0 | 4.9 | 1000000`},
		{"regex", `"^de"`, `"dev" | "de\u0076" | "devel"`},
		{"regex", `"v"`, `"dev" | "de\u0076" | "devel"`},
		{"regex", `"^$"`, `""`},
		{"regex", `"5"`, `"5" | "05" | "5.0" | "map[a:5]" | "[5]"`},
		{"regex", `"(?i)DEV$"`, `"dev" | "de\u0076"`},
		{"contains", `"ev"`, `"dev" | "de\u0076" | "devel"`},
		{"contains", `"dev"`, `"dev" | "de\u0076" | "devel" | ["dev"]`},
		{"contains", `5`, `[5] | ["5"]`},
		{"contains", `"5"`, `"5" | "05" | "5.0" | [5] | ["5"] | "map[a:5]" | "[5]"`},
		{"contains", `null`, `[null]`},
		{"contains", `[5]`, `[[5]]`},
		{"contains", `""`, `"5" | "05" | "5.0" | "1e+06" | "true" | "<nil>" | "" | "dev" | "de\u0076" | "devel" | "map[a:5]" | "[5]" | "[]" | "map[]"`},
		{"exists", `true`, `true | false | 5 | 5.0 | 5e0 | -0 | 0 | 4.9 | 1000000 | 1e400 | "5" | "05" | "5.0" | "1e+06" | "true" | "<nil>" | "" | "dev" | "de\u0076" | "devel" | [] | ["dev"] | [5] | ["5"] | [null] | [[5]] | {} | {"a":5} | "map[a:5]" | "[5]" | "[]" | "map[]"`},
		{"exists", `false`, ` | null`},
	} {
		condition := fmt.Sprintf(`[{"path":"args.x","op":%q,"value":%s}]`, c.op, c.value)
		rules := load(t, `{"version":"1","tools":{"t":{"rules":[{"name":"r","conditions":`+condition+`}]}}}`, "p.yaml")
		require := load(t, `{"version":"1","default":"deny","tools":{"t":{"require":[{"conditions":`+condition+`}]}}}`, "p.json")
		denyIf := load(t, `{"version":"1","default":"deny","tools":{"t":{"deny_if":[{"conditions":`+condition+`}]}}}`, "p.json")
		holds := strings.Split(c.holds, " | ")
		for _, x := range strings.Split(every, " | ") {
			arguments := `{"x":` + x + `}`
			if x == "" {
				arguments = `{"y":1}`
			}
			want := slices.Contains(holds, x) && (c.holds != "" || x == "" && c.op == "exists")
			// A number that no float64 has is denied, unless nobody reads it.
			lost := x == "1e400" && c.op != "exists" && c.op != "regex" && c.op != "contains" && !(c.op == "in" && c.value == "[]")
			also := slices.Contains(strings.Split(converted[c.op+" "+c.value], " | "), x) && x != ""
			call := policy.Call{Tool: "t", Arguments: []byte(arguments)}
			for _, p := range []struct {
				name   string
				policy *policy.Policy
				allow  bool
			}{{"rules", rules, want && !lost}, {"require", require, want && !lost && !also}, {"deny_if", denyIf, !want && !lost && !also}} {
				if d := decide(t, p.policy, call); (d.Action == policy.Allow) != p.allow {
					t.Errorf("%s: %s %s with %s: got %s", p.name, c.op, c.value, x, d.Action)
				}
			}
		}
	}
}

// TestEqualIsAsIntercept compares eq with what Intercept does: float64 if both
// are numbers, else the texts that fmt prints.
func TestEqualIsAsIntercept(t *testing.T) {
	values := []string{`0`, `-0`, `1`, `1.5`, `1e21`, `1e20`, `123456789`, `1e-5`, `1e-4`, `0.1`, `9007199254740993`, `9007199254740992`,
		`"0"`, `"1"`, `"1e+21"`, `"1e+20"`, `"1.23456789e+08"`, `"1e-05"`, `"0.0001"`, `""`, `" "`, `"true"`, `true`, `false`, `null`, `"<nil>"`,
		`[]`, `[1,"1",null,true,[2],{"b":1,"a":2}]`, `"[1 1 <nil> true [2] map[a:2 b:1]]"`, `{"a":{"b":[1.5,2]}}`, `"map[a:map[b:[1.5 2]]]"`, `"ü"`, `"\u00fc"`, `"\ud83d\ude00"`, `"😀"`}
	for _, want := range values {
		p := load(t, `{"version":"1","tools":{"t":{"rules":[{"name":"r","conditions":[{"path":"args.x","op":"eq","value":`+want+`}]}]}}}`, "p.json")
		for _, got := range values {
			var a, b any
			if err := json.Unmarshal([]byte(got), &a); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(want), &b); err != nil {
				b = nil
				if err := json.Unmarshal([]byte(want), &b); err != nil {
					t.Fatal(err)
				}
			}
			equal := fmt.Sprintf("%v", a) == fmt.Sprintf("%v", b)
			if f, ok := a.(float64); ok {
				switch g := b.(type) {
				case float64:
					equal = f == g
				case int:
					equal = f == float64(g)
				}
			}
			d := decide(t, p, policy.Call{Tool: "t", Arguments: []byte(`{"x":` + got + `}`)})
			if (d.Action == policy.Allow) != equal {
				t.Errorf("%s eq %s: got %s, want equal %v", got, want, d.Action, equal)
			}
		}
	}
}

// TestDeniedInEveryReading holds deny_if against arguments that some servers read as
// what it denies: those in Go ignore the case of names, and Python's FastMCP decodes
// texts where it wants a list or an object.
func TestDeniedInEveryReading(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{"t":{"deny_if":[
		{"conditions":[{"path":"args.path","op":"regex","value":"^/etc"}]},
		{"conditions":[{"path":"args.keys","op":"contains","value":"rm"}]},
		{"conditions":[{"path":"args.size","op":"gt","value":1000},{"path":"args.size","op":"neq","value":5000}]},
		{"conditions":[{"path":"args.force","op":"eq","value":true}]},
		{"conditions":[{"path":"args.check","op":"in","value":[false]}]},
		{"conditions":[{"path":"args.n","op":"eq","value":5}]},
		{"conditions":[{"path":"args.one","op":"eq","value":1}]},
		{"conditions":[{"path":"args.m","op":"eq","value":{"a":5}}]},
		{"conditions":[{"path":"args.list","op":"eq","value":[5]}]},
		{"conditions":[{"path":"args.literal","op":"regex","value":"^1e6$"}]},
		{"conditions":[{"path":"args.zero","op":"in","value":[0]}]},
		{"conditions":[{"path":"args.id","op":"eq","value":"1234567"}]},
		{"conditions":[{"path":"args.code","op":"regex","value":"^1000000$"}]},
		{"conditions":[{"path":"args.all","op":"eq","value":true},{"path":"args.target","op":"exists","value":false}]},
		{"conditions":[{"path":"args.a.b","op":"regex","value":"x"}]}]}}}`, "p.json")
	for _, c := range []struct {
		arguments string
		want      policy.Action
	}{
		{`{"path":"/srv"}`, policy.Allow},
		{`{"Path":"/etc/x"}`, policy.Deny},
		{`{"path":"/srv","PATH":"/etc/x"}`, policy.Deny},
		{`{"\u0050ath":"/etc/x"}`, policy.Deny},
		{`{"paths":"/etc/x"}`, policy.Allow},
		{`{"path\u0000":"/etc/x"}`, policy.Deny},
		{`{"path":"/srv","Path\u0000x":"/etc/x"}`, policy.Deny},
		{`{"path\\u0000":"/etc/x"}`, policy.Allow},
		{`{"path":"/srv\u0000"}`, policy.Deny},
		{`{"path":"/srv","other":"\u0000"}`, policy.Allow},
		{`{"path":["/srv"]}`, policy.Deny},
		{`{"path":"[\"/srv\",\"/etc/x\"]"}`, policy.Deny},
		{`{"path":"[\"/srv\",7]"}`, policy.Allow},
		{`{"path":"{\"a\":\"/etc/x\"}"}`, policy.Allow},
		{`{"key\u017f":"rm"}`, policy.Deny},
		{`{"keys":["ls"]}`, policy.Allow},
		{`{"keys":["rm"]}`, policy.Deny},
		{`{"keys":["rm","ls"]}`, policy.Deny},
		{`{"keys":["ls","rm"]}`, policy.Deny},
		{`{"keys":"[NaN,\"r\\u006d\"]"}`, policy.Deny},
		{`{"keys":"[\"r\\u006d\"]"}`, policy.Deny},
		{`{"keys":" [\"l\\u0073\"]"}`, policy.Allow},
		{`{"keys":"[r m"}`, policy.Allow},
		{`{"keys":null}`, policy.Allow},
		{`{"size":999}`, policy.Allow},
		{`{"size":"999"}`, policy.Allow},
		{`{"size":"1001"}`, policy.Deny},
		{`{"size":" 1001 "}`, policy.Deny},
		{`{"size":"5000"}`, policy.Allow},
		{`{"size":"1_001"}`, policy.Deny},
		{`{"size":"9_99"}`, policy.Allow},
		{`{"size":"01001"}`, policy.Deny}, // no octal number, as in Python and JavaScript
		{`{"size":"0x3E9"}`, policy.Deny},
		{`{"size":"nan"}`, policy.Deny},
		{`{"size":[1001]}`, policy.Deny},
		{`{"force":"yes"}`, policy.Deny},
		{`{"force":1}`, policy.Deny},
		{`{"force":0}`, policy.Allow},
		{`{"force":null}`, policy.Allow},
		{`{"force":false,"check":true}`, policy.Allow},
		{`{"check":"No"}`, policy.Deny},
		{`{"check":" off "}`, policy.Deny},
		{`{"check":"yes"}`, policy.Allow},
		{`{"check":0.0}`, policy.Deny},
		{`{"n":" 5.0"}`, policy.Deny},
		{`{"n":"0x5"}`, policy.Deny},
		{`{"n":"010"}`, policy.Allow},
		{`{"n":"five"}`, policy.Allow},
		{`{"n":[5]}`, policy.Deny}, // z.coerce.number() of Zod makes 5 of it
		{`{"n":["5"]}`, policy.Deny},
		{`{"n":[ [[5]] ]}`, policy.Deny},
		{`{"n":["05"]}`, policy.Deny},
		{`{"n":[1e400,1e1]}`, policy.Deny}, // what no float64 can hold is not readable
		{`{"list":[1e400]}`, policy.Deny},
		{`{"list":[6]}`, policy.Allow},
		{`{"one":true}`, policy.Deny},
		{`{"one":false}`, policy.Allow},
		{`{"m":"{\"a\": 5}"}`, policy.Deny},
		{`{"m":"{\"a\": 6}"}`, policy.Allow},
		{`{"n":[[5],[5]]}`, policy.Allow},
		{`{"n":[5,5]}`, policy.Allow},
		{`{"n":[]}`, policy.Allow},
		{`{"zero":[]}`, policy.Deny},
		{`{"zero":" "}`, policy.Deny},
		{`{"zero":"-"}`, policy.Allow},
		{`{"zero":[[]]}`, policy.Deny},
		{`{"zero":[null]}`, policy.Deny},
		{`{"zero":[[],[]]}`, policy.Allow},
		{`{"id":1234567}`, policy.Deny},
		{`{"id":1.234567e6}`, policy.Deny},
		{`{"id":["1234567"]}`, policy.Deny},
		{`{"id":12345678}`, policy.Allow},
		{`{"id":[]}`, policy.Allow},
		{`{"code":1e6}`, policy.Deny},
		{`{"code":1e400}`, policy.Allow},
		{`{"code":1e7}`, policy.Allow},
		{`{"literal":1e6}`, policy.Deny},
		{`{"all":true,"target":"x"}`, policy.Allow},
		{`{"all":true,"target":" null "}`, policy.Deny}, // FastMCP makes None of it
		{`{"all":true,"target":"nul"}`, policy.Allow},
		{`{"path":"[\"/\\u0065tc/x\",NaN,-Infinity]"}`, policy.Deny}, // which Python reads
		{`{"path":"[\"/\\u0065tc/x\",\"\\ud800\"]"}`, policy.Deny},
		{`{"path":"[\"/\\u0065tc/x\",NaN,5,true]"}`, policy.Deny},
		{`{"path":"[/etc/x]"}`, policy.Allow},
		{`{"path":"[\"/etc/x\"] "}`, policy.Deny},
		{`{"path":"[\"/etc/x\"] and"}`, policy.Allow},
		{`{"a":{"b":"y"}}`, policy.Allow},
		{`{"a":{"B":"y"}}`, policy.Deny},
		{`{"a":"{\"b\":\"x\"}"}`, policy.Deny},
		{`{"a":[{"b":"x"}]}`, policy.Deny},
		{`{"a":null}`, policy.Allow},
		{`{}`, policy.Allow},
	} {
		if d := decide(t, p, policy.Call{Tool: "t", Arguments: []byte(c.arguments)}); d.Action != c.want {
			t.Errorf("%s: %s by %q, want %s", c.arguments, d.Action, d.Rule, c.want)
		}
	}
}

// TestRequiredInEveryReading holds require against texts that Python's FastMCP decodes.
func TestRequiredInEveryReading(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{
		"name":{"require":[{"conditions":[{"path":"args.x","op":"regex","value":"^[a-z]+$"}]}]},
		"any":{"require":[{"conditions":[{"path":"args.x","op":"exists","value":true}]}]},
		"word":{"require":[{"conditions":[{"path":"args.x","op":"contains","value":"safe"}]}]},
		"not":{"require":[{"conditions":[{"path":"args.x","op":"neq","value":0}]}]}}}`, "p.json")
	for _, c := range []struct {
		tool, x string
		want    policy.Action
	}{
		{"name", `"null"`, policy.Deny},
		{"name", `"nulls"`, policy.Allow},
		{"any", `" null"`, policy.Deny},
		{"any", `"x"`, policy.Allow},
		{"any", `"[]"`, policy.Allow},
		{"word", `"un\u0000safe"`, policy.Deny},
		{"word", `"[\"unsafe\"]"`, policy.Deny},
		{"word", `"[\"safe\"]"`, policy.Allow},
		{"word", `"{\"a\":\"safe\"}"`, policy.Allow},
		{"word", `"[safe]"`, policy.Allow},
		{"not", `""`, policy.Deny},
		{"not", `[0]`, policy.Deny},
		{"not", `"null"`, policy.Allow},
	} {
		if d := decide(t, p, policy.Call{Tool: c.tool, Arguments: []byte(`{"x":` + c.x + `}`)}); d.Action != c.want {
			t.Errorf("%s, %s: %s by %q, want %s", c.tool, c.x, d.Action, d.Rule, c.want)
		}
	}
}

// TestPaths checks which argument a path leads to.
func TestPaths(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{"t":{"require":[{"conditions":[{"path":"args.a.b","op":"eq","value":1}]}]}}}`, "p.json")
	for _, c := range []struct {
		arguments string
		want      policy.Action
	}{
		{`{"a":{"b":1}}`, policy.Allow},
		{"\t{ \"c\" : [ 1 , {} ] , \"a\" : { \"x\" : \"}\" , \"b\" : 1 } } ", policy.Allow},
		{`{"\u0061":{"\u0062":1}}`, policy.Allow},
		{`{"a":{"b":2,"b":1}}`, policy.Allow},
		{`{"a":{"b":2},"a":{"b":1}}`, policy.Allow},
		{`{"a":{"b":1,"b":2}}`, policy.Deny},
		{`{"a":{"b":1},"a":{"b":2}}`, policy.Deny},
		{`{"a":{"b":1},"a":{}}`, policy.Deny},
		{`{"a":{"b":1},"a":7}`, policy.Deny},
		{`{"a":{"b":1},"\u0061":null}`, policy.Deny},
		{`{"a.b":1}`, policy.Deny},
		{`{"a":{"b":1},"A":1}`, policy.Deny},
		{`{"a":{"b":1,"\u0042":1}}`, policy.Deny},
		{`{"A":{"b":1}}`, policy.Deny},
		{`{"a":{"B":1}}`, policy.Deny},
		{`{"a":[{"b":1}]}`, policy.Deny},
		{`{"a":"{\"b\":1}"}`, policy.Deny},
		{`{"x":{"a":{"b":1}}}`, policy.Deny},
		{`{}`, policy.Deny},
		{``, policy.Deny},
		{`null`, policy.Deny},
		{`[]`, policy.Deny},
		{`{"a":{"b":1}`, policy.Deny},
		{`{"a":{"b":1}}}`, policy.Deny},
		{`{"a":{"b":1},}`, policy.Deny},
		{`{"a":{"b":1},"c":NaN}`, policy.Deny},
		{`{"a":{"b":1},"c":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, policy.Deny},
	} {
		if d := decide(t, p, policy.Call{Tool: "t", Arguments: []byte(c.arguments)}); d.Action != c.want {
			t.Errorf("%.80s: got %s, want %s", c.arguments, d.Action, c.want)
		}
	}
}

// TestUnreadableArguments checks that a rule denies what it cannot read, whether
// it requires something or forbids it, and that no rule reads what it need not.
func TestUnreadableArguments(t *testing.T) {
	for _, tool := range []string{
		`"deny_if":[{"conditions":[{"path":"args.a","op":"eq","value":1}]}]`,
		`"deny_if":[{"conditions":[{"path":"args.a.b","op":"exists","value":true}]}]`,
		`"require":[{"conditions":[{"path":"args.a","op":"exists","value":false}]}]`,
	} {
		p := load(t, `{"version":"1","default":"deny","tools":{"t":{`+tool+`}, "free":{}}}`, "p.json")
		for _, arguments := range []string{`[1]`, `"{\"a\":1}"`, `7`, `{`, `{"b":1,}`, `{'b':1}`, "{\"b\":\"\xff\"}"} {
			if d := decide(t, p, policy.Call{Tool: "t", Arguments: []byte(arguments)}); d.Action != policy.Deny {
				t.Errorf("%s: %s: got %s", tool, arguments, d.Action)
			}
			if d := decide(t, p, policy.Call{Tool: "free", Arguments: []byte(arguments)}); d.Action != policy.Allow {
				t.Errorf("%s: got %s", arguments, d.Action)
			}
		}
		if d := decide(t, p, policy.Call{Tool: "t"}); d.Action != policy.Allow {
			t.Errorf("%s without arguments: got %s", tool, d.Action)
		}
	}
}

// TestOrder checks the order of decisions by taking away what decides first.
func TestOrder(t *testing.T) {
	call := policy.Call{Tool: "t", Arguments: []byte(`{"a":1}`), Category: "destructive", Detections: []string{"opaque", "fork_bomb"}}
	pieces := []struct{ top, tool, own, rule string }{
		{top: `"hide":["t"]`, rule: "(hidden)"},
		{own: `"denied_tools":["t"]`, rule: "/auditproxy/denied_tools/t"},
		{tool: `"action":"deny"`, rule: "/tools/t/action"},
		{own: `"deny_detections":["fork_bomb"]`, rule: "/auditproxy/deny_detections/fork_bomb"},
		{tool: `"require":[{"conditions":[{"path":"args.a","op":"eq","value":2}]}]`, rule: "/tools/t/require/args.a-eq"},
		{tool: `"deny_if":[{"conditions":[]}]`, rule: "/tools/t/deny_if/0"},
		{tool: `"limits":[{"counter":"c","window":"day","max":1,"scope":"session"}]`, rule: "/tools/t/limits/c"},
		{top: `"all_tools":{"limits":[{"counter":"c","window":"day","max":1,"scope":"user"}]}`, rule: "/all_tools/limits/c"},
		{own: `"ask_detections":["opaque"]`, rule: "/auditproxy/ask_detections/opaque"},
		{own: `"approval":"ask_for_dangerous"`, rule: "/auditproxy/approval"},
		{rule: ""},
	}
	for first := range pieces {
		top, tool, own := []string{`"version":"1"`, `"default":"deny"`}, []string{}, []string{}
		for _, p := range pieces[first:] {
			top, tool, own = add(top, p.top), add(tool, p.tool), add(own, p.own)
		}
		source := "{" + strings.Join(top, ",") + `,"tools":{"t":{` + strings.Join(tool, ",") + `}},"auditproxy":{` + strings.Join(own, ",") + "}}"
		p := load(t, source, "p.json")
		var counters policy.Memory
		decisions := make([]policy.Decision, 1)
		rules := []string{}
		for range 2 { // the second call finds the limits used
			if err := p.Decide([]policy.Call{call}, time.Unix(0, 0), &counters, decisions); err != nil {
				t.Fatal(err)
			}
			rules = append(rules, decisions[0].Rule)
		}
		if rules[1] != pieces[first].rule {
			t.Errorf("%s: got rules %q, want %q", source, rules, pieces[first].rule)
		}
		closed := load(t, strings.Replace(source, `"tools":{"t"`, `"tools":{"u"`, 1), "p.json")
		want := "(default deny)"
		if first < 2 {
			want = pieces[first].rule
		} else if first <= 3 {
			want = pieces[3].rule // the tool's own action is gone
		}
		if d := decide(t, closed, call); d.Rule != want {
			t.Errorf("%s: unlisted: got rule %q, want %q", source, d.Rule, want)
		}
	}
}

func add(list []string, piece string) []string {
	if piece == "" {
		return list
	}
	return append(list, piece)
}

// TestApproval checks whom each mode asks about.
func TestApproval(t *testing.T) {
	for _, c := range []struct{ own, asked string }{
		{``, ``},
		{`"approval":"auto"`, ``},
		{`"approval":"ask_for_dangerous"`, `destructive financial unknown`},
		{`"approval":"ask_for_writes"`, `write execute destructive financial unknown`},
		{`"approval":"ask"`, `write execute destructive financial unknown`},
		{`"approval":"ask","allowed_tools":["t"]`, ``},
		{`"ask_detections":["opaque"]`, `read write execute destructive financial unknown`},
		{`"ask_detections":["opaque"],"allowed_tools":["t"]`, ``},
		{`"ask_detections":["kill"],"deny_detections":["fork_bomb"]`, ``},
		{`"ask_detections":["kill","opaque"]`, `read write execute destructive financial unknown`},
	} {
		p := load(t, `{"version":"1","default":"allow","auditproxy":{`+c.own+`}}`, "p.json")
		for _, category := range []string{"read", "write", "execute", "destructive", "financial", "", "another word"} {
			call := policy.Call{Tool: "t", Category: category, Detections: []string{"opaque"}}
			if category == "" || category == "another word" {
				category = "unknown"
			}
			want := slices.Contains(strings.Fields(c.asked), category)
			d := decide(t, p, call)
			if (d.Action == policy.AskFirst) != want || d.Action == policy.Deny {
				t.Errorf("%s: %s: got %s", c.own, category, d.Action)
			}
			reason := "Approval is required for " + category + " tools"
			if strings.HasPrefix(d.Rule, "/auditproxy/ask_detections/") {
				reason = "Approval is required for this effect of the arguments: opaque"
			}
			if want && d.Reason != reason {
				t.Errorf("%s: %s: the reason is %q, want %q", c.own, category, d.Reason, reason)
			}
		}
	}
	p := load(t, `{"version":"1","default":"allow","tools":{"t":{"action":"require_approval","reason":"Somebody may be working there."}}}`, "p.json")
	d := decide(t, p, policy.Call{Tool: "t", Category: "read"})
	if d.Action != policy.AskFirst || d.Rule != "/tools/t/action" || d.Reason != "Somebody may be working there." {
		t.Errorf("got %+v", d)
	}
}

// TestRuleNames checks that rules are named by JSON Pointers that differ.
func TestRuleNames(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{
		"a/b~c":{"limits":[{"counter":"x/y","window":60,"max":1,"scope":"user"}],"deny_if":[
			{"conditions":[{"path":"args.k","op":"eq","value":1}]},
			{"conditions":[{"path":"args.k","op":"eq","value":2}],"on_deny":"no\n  two\u202e"},
			{"conditions":[{"path":"args.k","op":"gt","value":2},{"path":"args.k","op":"lt","value":4}]}]},
		"q":{"rate_limit":{"max":1,"window":90}}}}`, "p.json")
	var counters policy.Memory
	for _, c := range []struct{ tool, arguments, rule, reason string }{
		{"a/b~c", `{"k":1}`, "/tools/a~1b~0c/deny_if/args.k-eq", `Denied by rule "/tools/a~1b~0c/deny_if/args.k-eq"`},
		{"a/b~c", `{"k":2}`, "/tools/a~1b~0c/deny_if/1", `no two\u202e`},
		{"a/b~c", `{"k":3}`, "/tools/a~1b~0c/deny_if/2", `Denied by rule "/tools/a~1b~0c/deny_if/2"`},
		{"a/b~c", `{"k":4}`, "", ""},
		{"a/b~c", `{"k":4}`, "/tools/a~1b~0c/limits/x~1y", "Rate limit of 1 per minute reached. Try again later."},
		{"q", `{}`, "", ""},
		{"q", `{}`, "/tools/q/rate_limit", "Rate limit of 1 per 90s reached. Try again later."},
		{"z", `{}`, "(default deny)", `Tool "z" is not permitted by policy`},
	} {
		d := make([]policy.Decision, 1)
		if err := p.Decide([]policy.Call{{Tool: c.tool, Arguments: []byte(c.arguments)}}, time.Unix(0, 0), &counters, d); err != nil {
			t.Fatal(err)
		}
		if d[0].Rule != c.rule || d[0].Reason != c.reason {
			t.Errorf("%s %s: got %q %q, want %q %q", c.tool, c.arguments, d[0].Rule, d[0].Reason, c.rule, c.reason)
		}
	}
}

// TestWindows checks both sides of each edge of a window.
func TestWindows(t *testing.T) {
	const day = 86400
	for _, c := range []struct {
		window string
		edge   int64 // the first second of a window
	}{
		{`"minute"`, 60}, {`"hour"`, 3600}, {`"day"`, day}, {`60`, 60}, {`90`, 90}, {`7`, 7 * 13}, {`1`, 5},
		{`"day"`, 20_000 * day}, {`"minute"`, 0}, {`"day"`, -day}, {`90`, -90},
	} {
		p := load(t, `{"version":"1","default":"allow","tools":{"t":{"limits":[{"counter":"c","window":`+c.window+`,"max":1,"scope":"session"}]}}}`, "p.json")
		var counters policy.Memory
		for _, step := range []struct {
			at   time.Time
			want policy.Action
		}{
			{time.Unix(c.edge, 0).Add(-time.Nanosecond), policy.Allow},
			{time.Unix(c.edge, 0).Add(-time.Nanosecond), policy.Deny},
			{time.Unix(c.edge, 0), policy.Allow},
			{time.Unix(c.edge, 1), policy.Deny},
		} {
			d := make([]policy.Decision, 1)
			if err := p.Decide([]policy.Call{{Tool: "t"}}, step.at, &counters, d); err != nil {
				t.Fatal(err)
			}
			if d[0].Action != step.want {
				t.Errorf("window %s at %d: got %s, want %s", c.window, step.at.UnixNano(), d[0].Action, step.want)
			}
		}
	}
}

// TestClockGoesBack checks that a clock that is set back is no new window, and
// that calls which wait for each other at an edge are not taken for one.
func TestClockGoesBack(t *testing.T) {
	p := load(t, `{"version":"1","default":"allow","tools":{"t":{"limits":[{"counter":"c","window":"minute","max":2,"scope":"session"}]}}}`, "p.json")
	var counters policy.Memory
	for _, step := range []struct {
		at     float64
		want   policy.Action
		reason string
	}{
		{120, policy.Allow, ""},
		{119.5, policy.Allow, ""}, // they count in the window before
		{118.5, policy.Allow, ""},
		{119.5, policy.Deny, "Rate limit of 2 per minute reached. Try again later."},
		{121, policy.Allow, ""},
		{121, policy.Deny, "Rate limit of 2 per minute reached. Try again later."},
		{110, policy.Deny, "A limit cannot be applied: the clock went back"},
		{0, policy.Deny, "A limit cannot be applied: the clock went back"},
		{180, policy.Allow, ""},
	} {
		d := make([]policy.Decision, 1)
		p.Decide([]policy.Call{{Tool: "t"}}, time.UnixMilli(int64(step.at*1000)), &counters, d)
		if d[0].Action != step.want || d[0].Reason != step.reason {
			t.Errorf("at %v: got %s %q, want %s %q", step.at, d[0].Action, d[0].Reason, step.want, step.reason)
		}
	}
}

// TestFrames checks that the calls of a frame use quota together or not at all.
func TestFrames(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","all_tools":{"limits":[{"counter":"all","window":"day","max":5,"scope":"user"}]},"tools":{
		"a":{"limits":[{"counter":"c","window":"day","max":3,"scope":"session"}]},"b":{}}}`, "p.json")
	var counters policy.Memory
	for _, c := range []struct{ tools, want string }{
		{"a a a a", "allow allow allow deny"}, // the fourth refuses all
		{"a a x", "allow allow deny"},
		{"x a a a", "deny allow allow allow"},
		{"a b b", "allow allow allow"},
		{"b b b", "allow allow deny"},
		{"a a", "allow allow"},
		{"b", "deny"},
	} {
		var calls []policy.Call
		for _, name := range strings.Fields(c.tools) {
			calls = append(calls, policy.Call{Tool: name})
		}
		decisions := make([]policy.Decision, len(calls))
		if err := p.Decide(calls, time.Unix(0, 0), &counters, decisions); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range decisions {
			got = append(got, d.Action.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.tools, diff)
		}
		refused := slices.Index(got, "deny")
		if i := policy.Strictest(decisions); i != max(refused, 0) {
			t.Errorf("%s: call %d decides, want the first of the strictest", c.tools, i)
		}
		if refused >= 0 && slices.ContainsFunc(decisions, func(d policy.Decision) bool { return d.Held != nil }) {
			t.Errorf("%s: a refused frame holds quota", c.tools)
		}
	}
}

// TestRelease checks that quota goes back to the window that it came from.
func TestRelease(t *testing.T) {
	p := load(t, `{"version":"1","default":"deny","tools":{"a":{"limits":[
		{"counter":"c","window":"minute","max":1,"scope":"session"},{"counter":"d","window":"day","max":9,"scope":"session"}]}}}`, "p.json")
	var counters policy.Memory
	call := func(at int64) policy.Decision {
		d := make([]policy.Decision, 1)
		if err := p.Decide([]policy.Call{{Tool: "a"}}, time.Unix(at, 0), &counters, d); err != nil {
			t.Fatal(err)
		}
		return d[0]
	}
	first := call(120)
	if len(first.Held) != 2 || first.Held[0].Start != 120 || first.Held[1].Start != 0 {
		t.Errorf("held %+v, want windows from 120 and 0", first.Held)
	}
	if first.Refunds() != nil {
		t.Error("attempts do not count")
	}
	counters.Release(first.Held)
	second := call(121)
	if second.Action != policy.Allow {
		t.Error("a call that was refused later uses quota")
	}
	third := call(180)
	counters.Release(second.Held)
	if d := call(181); third.Action != policy.Allow || d.Action != policy.Deny {
		t.Error("quota of one window went to the next")
	}
}

// TestAmounts checks what an argument adds to a counter.
func TestAmounts(t *testing.T) {
	p := load(t, `{"version":"1","tools":{"pay":{"rules":[{"name":"spend","on_deny":"spent","conditions":[
		{"path":"state.pay.sum","op":"lte","value":1000}],"state":{"counter":"sum","window":"day","increment_from":"args.in.amount"}}]}}}`, "p.json")
	const internal = "Internal policy error"
	for _, c := range []struct{ amounts, reasons string }{
		{`600 500 400 1 0`, `,spent,,spent,`},
		{`1e3 0`, `,`},
		{`1000.0 1`, `,spent`},
		{`-1 -0 -0.0`, internal + `,,`},
		{`0.5 1e-9 999.5`, internal + `,` + internal + `,` + internal},
		{`"1" null true [1] {}`, strings.TrimSuffix(strings.Repeat(internal+",", 5), ",")},
		{`1e18 1e19 1e300 9223372036854775807 9223372036854775808 1e999`, `spent,spent,spent,spent,spent,` + internal},
	} {
		var counters policy.Memory
		var got []string
		for _, a := range strings.Fields(c.amounts) {
			d := make([]policy.Decision, 1)
			call := policy.Call{Tool: "pay", Arguments: []byte(`{"in":{"amount":` + a + `}}`)}
			if err := p.Decide([]policy.Call{call}, time.Unix(0, 0), &counters, d); err != nil {
				t.Fatal(err)
			}
			got = append(got, d[0].Reason)
		}
		if diff := cmp.Diff(c.reasons, strings.Join(got, ",")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.amounts, diff)
		}
	}
	for _, arguments := range []string{``, `{"in":{"amount":1,"Amount":900}}`} { // a server in Go takes 900
		if d := decide(t, p, policy.Call{Tool: "pay", Arguments: []byte(arguments)}); d.Reason != internal {
			t.Errorf("arguments %q: got %q", arguments, d.Reason)
		}
	}
}

// TestCountersOfOtherRules checks conditions on counters that another rule or
// tool counts, and counters that have no limit.
func TestCountersOfOtherRules(t *testing.T) {
	p := load(t, `{"version":"1","tools":{
		"a.b":{"rules":[
			{"name":"count","conditions":[{"path":"args.n","op":"exists","value":true}],"state":{"counter":"n.m","window":"hour"}},
			{"name":"cap","conditions":[{"path":"state.a.b.n.m","op":"lt","value":2}]}]},
		"c":{"rules":[{"name":"after a","conditions":[{"path":"state.a.b.n.m","op":"gte","value":1},{"path":"args.go","op":"eq","value":true}]}]},
		"*":{"rules":[{"name":"all","rate_limit":"9/hour"},{"name":"early","conditions":[{"path":"state._global._rate_hour","op":"neq","value":7}]}]}}}`, "p.yaml")
	var counters policy.Memory
	for i, c := range []struct{ tool, arguments, rule string }{
		{"c", `{"go":true}`, "after a"},
		{"a.b", `{}`, "count"},
		{"a.b", `{"n":1}`, ""},
		{"a.b", `{"n":1}`, ""},
		{"a.b", `{"n":1}`, "cap"},
		{"c", `{"go":true}`, ""},
		{"c", `{"go":false}`, "after a"},
		{"x", `{}`, ""}, {"x", `{}`, ""}, {"x", `{}`, ""}, {"x", `{}`, ""},
		{"x", `{}`, "early"},
	} {
		d := make([]policy.Decision, 1)
		if err := p.Decide([]policy.Call{{Tool: c.tool, Arguments: []byte(c.arguments)}}, time.Unix(0, 0), &counters, d); err != nil {
			t.Fatal(err)
		}
		if d[0].Rule != c.rule {
			t.Errorf("call %d: got rule %q, want %q", i, d[0].Rule, c.rule)
		}
	}
}

// TestCountersBeforeArguments checks rules about counters and arguments of tools without a
// limit of their own: the first that fails denies, also where the call does not count itself.
func TestCountersBeforeArguments(t *testing.T) {
	p := load(t, `{"version":"1","tools":{
		"a":{"rules":[{"name":"count","conditions":[{"path":"args.none","op":"exists","value":false}],"state":{"counter":"n","window":"hour"}}]},
		"b":{"rules":[{"name":"counter","conditions":[{"path":"state.a.n","op":"lt","value":2}]},
			{"name":"argument","conditions":[{"path":"args.go","op":"eq","value":true}]}]},
		"c":{"rules":[{"name":"text","conditions":[{"path":"state.a.n","op":"eq","value":"2"}]}]},
		"d":{"rules":[{"name":"word","conditions":[{"path":"state.a.n","op":"neq","value":"x"}]}]}}}`, "p.yaml")
	var counters policy.Memory
	for i, c := range []struct{ tools, arguments, rule string }{
		{"b", `{"go":true}`, ""},
		{"b", `{}`, "argument"},
		{"c", `{}`, "text"},
		{"d", `{}`, ""},
		{"a", `{}`, ""},
		{"a x", `{}`, ""}, // the second needs no counter
		{"b", `{"go":true}`, "counter"},
		{"b", `{}`, "counter"},
		{"c", `{}`, ""},
	} {
		var calls []policy.Call
		for _, name := range strings.Fields(c.tools) {
			calls = append(calls, policy.Call{Tool: name, Arguments: []byte(c.arguments)})
		}
		d := make([]policy.Decision, len(calls))
		if err := p.Decide(calls, time.Unix(0, 0), &counters, d); err != nil {
			t.Fatal(err)
		}
		if d[0].Rule != c.rule || (d[0].Action == policy.Deny) != (c.rule != "") {
			t.Errorf("call %d: %s by rule %q, want %q", i, d[0].Action, d[0].Rule, c.rule)
		}
	}
	d := make([]policy.Decision, 1)
	failed := broken{policy.ErrBusy}
	err := p.Decide([]policy.Call{{Tool: "b", Arguments: []byte(`{"go":true}`)}}, time.Unix(0, 0), failed, d)
	if err == nil || d[0].Action != policy.Deny || d[0].Rule != "(counter)" {
		t.Errorf("without counters: %+v, %v", d[0], err)
	}
}

// TestNearestLimit checks which limit a decision names: the one that denies, else the one that
// is the nearest to its maximum.
func TestNearestLimit(t *testing.T) {
	p := load(t, `{"version":"1","tools":{
		"a":{"rules":[{"name":"r1","rate_limit":"5/minute"},{"name":"r2","rate_limit":"3/hour"},{"name":"r3","rate_limit":"4/day"}]},
		"b":{"rules":[{"name":"calls","rate_limit":"1/day"},{"name":"spend","conditions":[
			{"path":"state.b.sum","op":"lte","value":1}],"state":{"counter":"sum","window":"day","increment_from":"args.n"}}]}}}`, "p.yaml")
	var counters policy.Memory
	for i, c := range []struct {
		tool   string
		action policy.Action
		rule   string
		count  int64
		most   int64
	}{
		{"a", policy.Allow, "", 0, 3}, {"a", policy.Allow, "", 1, 3}, {"a", policy.Allow, "", 2, 3}, {"a", policy.Deny, "r2", 3, 3},
		{"b", policy.Deny, "spend", 0, 1}, // it is as near as the one before
	} {
		d := make([]policy.Decision, 1)
		call := policy.Call{Tool: c.tool, Arguments: []byte(`{"n":2}`)}
		if err := p.Decide([]policy.Call{call}, time.Unix(0, 0), &counters, d); err != nil {
			t.Fatal(err)
		}
		if got := d[0]; got.Action != c.action || got.Rule != c.rule || got.Count != c.count || got.Max != c.most {
			t.Errorf("call %d of %s: %+v", i, c.tool, got)
		}
	}
}

// A broken set of counters fails.
type broken struct{ err error }

func (b broken) Update(time.Time, []policy.Counter, func([]int64) bool) error { return b.err }
func (b broken) Release([]policy.Counter) error                               { return b.err }

// TestBrokenCountersDeny checks that a call whose counters fail is denied, and
// no other, and that the reason names no file.
func TestBrokenCountersDeny(t *testing.T) {
	p := load(t, `{"version":"1","default":"allow","hide":["hidden"],"tools":{"t":{"limits":[{"counter":"c","window":"minute","max":2,"scope":"user"}]},
		"hidden":{"limits":[{"counter":"c","window":"minute","max":2,"scope":"user"}]}}}`, "p.json")
	for _, c := range []struct {
		err    error
		reason string
	}{
		{fmt.Errorf("opening %q: %w", "/home/me/counters/x", policy.ErrDamaged), "A limit cannot be applied: its counter is damaged"},
		{errors.New("opening /home/me: strange"), "A limit cannot be applied: its counter cannot be used"},
	} {
		d := make([]policy.Decision, 1)
		if err := p.Decide([]policy.Call{{Tool: "t"}}, time.Unix(0, 0), broken{c.err}, d); err != c.err {
			t.Errorf("got error %v, want %v", err, c.err)
		}
		if d[0].Action != policy.Deny || d[0].Rule != "/tools/t/limits/c" || d[0].Reason != c.reason {
			t.Errorf("got %+v", d[0])
		}
		if err := p.Decide([]policy.Call{{Tool: "u"}}, time.Unix(0, 0), broken{c.err}, d); err != nil || d[0].Action != policy.Allow {
			t.Errorf("a call without limits: %v, %+v", err, d[0])
		}
		d = make([]policy.Decision, 3)
		p.Decide([]policy.Call{{Tool: "t"}, {Tool: "u"}, {Tool: "hidden"}}, time.Unix(0, 0), broken{c.err}, d)
		if d[0].Reason != c.reason || d[1].Action != policy.Allow || d[2].Rule != "(hidden)" {
			t.Errorf("in one frame with others: %+v", d)
		}
	}
}

// TestReasonsQuoteNoArgument puts a canary at every position of a call and looks
// for it in every decision of every kind of rule.
func TestReasonsQuoteNoArgument(t *testing.T) {
	const canary = "canary4711"
	var sources []string
	for _, op := range []string{`"eq","value":"x"`, `"neq","value":"` + canary + `"`, `"in","value":[1]`, `"not_in","value":["` + canary + `"]`,
		`"lt","value":1`, `"gte","value":1`, `"regex","value":"^x"`, `"contains","value":"x"`, `"exists","value":false`} {
		sources = append(sources, `"require":[{"conditions":[{"path":"args.a","op":`+op+`}]}]`)
	}
	sources = append(sources, `"deny_if":[{"conditions":[{"path":"args.a","op":"regex","value":"c[a]nary"}]}]`, `"deny_if":[{"conditions":[]}]`, `"action":"deny"`,
		`"limits":[{"counter":"c","window":"day","max":1,"scope":"user"}]`, `"rate_limit":{"max":1,"window":1}`, `"action":"require_approval"`)
	for _, source := range sources {
		for _, p := range []*policy.Policy{
			load(t, `{"version":"1","default":"deny","tools":{"t":{`+source+`}}}`, "p.json"),
			load(t, `{"version":"1","default":"deny","tools":{"t":{`+source+`}},"auditproxy":{"approval":"ask","deny_detections":["kill"]}}`, "p.json"),
		} {
			for _, call := range []policy.Call{
				{Tool: "t", Arguments: []byte(`{"a":"` + canary + `"}`)},
				{Tool: "t", Arguments: []byte(`{"a":["` + canary + `"]}`)},
				{Tool: "t", Arguments: []byte(`{"a":{"` + canary + `":"` + canary + `"}}`)},
				{Tool: "t", Arguments: []byte(`{"` + canary + `":1}`)},
				{Tool: "t", Arguments: []byte(`"` + canary + `"`)},
				{Tool: canary, Inner: true},
				{Tool: "t", Category: canary, Detections: []string{canary, "kill"}},
			} {
				d := make([]policy.Decision, 1)
				var counters policy.Memory
				for range 2 {
					if err := p.Decide([]policy.Call{call}, time.Unix(0, 0), &counters, d); err != nil {
						t.Fatal(err)
					}
					text := fmt.Sprintf("%s %s %s %s %v", d[0].Rule, d[0].Reason, d[0].Counter, d[0].Denied(), d[0].Held)
					if strings.Contains(text, canary) {
						t.Errorf("%s with %s: %s", source, call.Arguments, text)
					}
				}
			}
		}
	}
}

// TestReasonsAreBounded checks that no name or text makes a reason long.
func TestReasonsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 250)
	p := load(t, `{"version":"1","tools":{"t":{"rules":[{"name":"`+long+`","conditions":[{"path":"args.a","op":"eq","value":1}]}]},
		"u":{"rules":[{"name":"n","action":"deny","on_deny":"`+strings.Repeat(long, 9)+`"}]}}}`, "p.json")
	closed := load(t, `{"version":"1","default":"deny"}`, "p.json")
	for _, d := range []policy.Decision{
		decide(t, p, policy.Call{Tool: "t"}), decide(t, p, policy.Call{Tool: "u"}),
		decide(t, closed, policy.Call{Tool: long}), decide(t, closed, policy.Call{Tool: strings.Repeat("\x00\u202e\xff", 99)}),
	} {
		if n := utf8.RuneCountInString(d.Reason); d.Action != policy.Deny || n < 50 || n > 200 || !utf8.ValidString(d.Reason) {
			t.Errorf("%d code points: %q", n, d.Reason)
		}
		if n := utf8.RuneCountInString(d.Rule); n > 200 {
			t.Errorf("a rule's name of %d code points", n)
		}
	}
}

package audit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

func TestOperations(t *testing.T) {
	const call = "tools/call"
	for _, tt := range []struct {
		name string
		r    audit.Record
		want []string // path method tool args, "?" before a candidate
	}{
		{"it lists the call itself", audit.Record{Kind: audit.KindCall, Method: call, Tool: "send_keys", Args: `{"pane_id":"%1"}`},
			[]string{` tools/call send_keys {"pane_id":"%1"}`}},
		{"it lists a call of another method", audit.Record{Kind: audit.KindCall, Method: "resources/read", Target: "file:///x"},
			[]string{" resources/read file:///x "}},
		{"it lists an open call", audit.Record{Kind: audit.KindOpen, Method: call, Tool: "a"}, []string{" tools/call a "}},
		{"it lists an intent", audit.Record{CallNo: 1, Method: call, Tool: "a"}, []string{" tools/call a "}},
		{"it lists nothing of a session's end", audit.Record{Kind: audit.KindSessionEnd}, nil},
		{"it lists nothing of an anomaly", audit.Record{Kind: audit.KindAnomaly, CallNo: 3}, nil},
		{"it lists nothing of a context line", audit.Record{SessionID: "s"}, nil},
		{"it lists a batch", audit.Record{Kind: audit.KindCall, Method: call, Tool: "batch",
			Args: `{"operations":[{"tool":"a","arguments":{"x":1}},{"arguments":{"x":[2]},"tool":"b"},{"tool":"c"}],"on_error":"stop"}`},
			[]string{
				` tools/call batch {"operations":[{"tool":"a","arguments":{"x":1}},{"arguments":{"x":[2]},"tool":"b"},{"tool":"c"}],"on_error":"stop"}`,
				`operations[0] tools/call a {"x":1}`, `operations[1] tools/call b {"x":[2]}`, `operations[2] tools/call c `,
			}},
		{"it lists a batch in a batch", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args: `{"operations":[0,{"tool":"a","arguments":{"operations":[{"tool":"b"},{"tool":"c"}]}},{"tool":"d"}]}`},
			[]string{
				` tools/call z {"operations":[0,{"tool":"a","arguments":{"operations":[{"tool":"b"},{"tool":"c"}]}},{"tool":"d"}]}`,
				`operations[1] tools/call a {"operations":[{"tool":"b"},{"tool":"c"}]}`,
				`operations[1].arguments.operations[0] tools/call b `,
				`operations[1].arguments.operations[1] tools/call c `,
				`operations[2] tools/call d `,
			}},
		{"it finds a batch under any name", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args: `{"plan":[[{"steps":{"operations":[{"tool":"a"}]}}]]}`},
			[]string{` tools/call z {"plan":[[{"steps":{"operations":[{"tool":"a"}]}}]]}`,
				`plan[0][0].steps.operations[0] tools/call a `}},
		{"it reads escaped names", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args: `{"oper\u0061tions":[{"t\u006fol":"\u0061"}]}`},
			[]string{` tools/call z {"oper\u0061tions":[{"t\u006fol":"\u0061"}]}`, `operations[0] tools/call a `}},
		{"it takes no name for a tool that is not one", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args: `{"operations":[{"tool":1},{"Tool":"a"},"tool",[{"tool":"b"}],{}],"tool":"c","x":{"tool":"d"},"operation":[{"tool":"e"}]}`},
			[]string{` tools/call z {"operations":[{"tool":1},{"Tool":"a"},"tool",[{"tool":"b"}],{}],"tool":"c","x":{"tool":"d"},"operation":[{"tool":"e"}]}`}},
		{"it lists every reading of a doubled name", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args: `{"operations":[{"tool":"a","tool":"b","arguments":{}}],"operations":[{"tool":"c"}]}`},
			[]string{` tools/call z {"operations":[{"tool":"a","tool":"b","arguments":{}}],"operations":[{"tool":"c"}]}`,
				`?operations[0] tools/call a {}`, `operations[0] tools/call b {}`, `operations[0] tools/call c `}},
		{"it lists every candidate", audit.Record{Kind: audit.KindCall, Method: "ping",
			Candidates: []audit.Candidate{{Method: call, Tool: "a"}, {Method: "resources/read", Target: "file:///x"}}},
			[]string{" ping  ", "? tools/call a ", "? resources/read file:///x "}},
		{"a candidate has its own arguments, or the call's", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z",
			Args:       `{"operations":[{"tool":"a","arguments":{}}]}`,
			Candidates: []audit.Candidate{{Method: call, Tool: "y"}, {Method: call, Tool: "z", Args: `{"operations":[{"tool":"b","arguments":{"x":1}}]}`}}},
			[]string{` tools/call z {"operations":[{"tool":"a","arguments":{}}]}`, `operations[0] tools/call a {}`,
				`? tools/call y {"operations":[{"tool":"a","arguments":{}}]}`,
				`? tools/call z {"operations":[{"tool":"b","arguments":{"x":1}}]}`, `?operations[0] tools/call b {"x":1}`}},
		{"it lists what a tool relays", audit.Record{Kind: audit.KindCall, Method: call, Tool: "call_tool",
			Args: `{"name":"pipe_pane","arguments":{"output_path":"/x"}}`},
			[]string{` tools/call call_tool {"name":"pipe_pane","arguments":{"output_path":"/x"}}`, `name tools/call pipe_pane {"output_path":"/x"}`}},
		{"it lists what a relayed tool relays, and operations", audit.Record{Kind: audit.KindCall, Method: call, Tool: "callTool",
			Args: `{"toolName":"call_tool","args":{"name":"batch","arguments":{"operations":[{"tool":"a"}]}}}`},
			[]string{` tools/call callTool {"toolName":"call_tool","args":{"name":"batch","arguments":{"operations":[{"tool":"a"}]}}}`,
				`toolname tools/call call_tool {"name":"batch","arguments":{"operations":[{"tool":"a"}]}}`,
				`args.name tools/call batch {"operations":[{"tool":"a"}]}`,
				`args.arguments.operations[0] tools/call a `}},
		{"it lists what an operation relays", audit.Record{Kind: audit.KindCall, Method: call, Tool: "batch",
			Args: `{"operations":[{"tool":"call_tool","arguments":{"name":"a","arguments":"{\"x\":1}"}}]}`},
			[]string{` tools/call batch {"operations":[{"tool":"call_tool","arguments":{"name":"a","arguments":"{\"x\":1}"}}]}`,
				`operations[0] tools/call call_tool {"name":"a","arguments":"{\"x\":1}"}`, `operations[0].arguments.name tools/call a {"x":1}`}},
		{"it lists every reading of what is relayed", audit.Record{Kind: audit.KindCall, Method: call, Tool: "call_tool",
			Args: `{"name":"a","tool":"b","arguments":{}}`},
			[]string{` tools/call call_tool {"name":"a","tool":"b","arguments":{}}`, `?name tools/call a {}`, `tool tools/call b {}`}},
		{"it lists what another reading of an operation relays", audit.Record{Kind: audit.KindCall, Method: call, Tool: "batch",
			Args: `{"operations":[{"tool":"call_tool","tool":"b","arguments":{"name":"a"}}]}`},
			[]string{` tools/call batch {"operations":[{"tool":"call_tool","tool":"b","arguments":{"name":"a"}}]}`,
				`?operations[0] tools/call call_tool {"name":"a"}`, `operations[0] tools/call b {"name":"a"}`, `?operations[0].arguments.name tools/call a `}},
		{"it lists what a candidate relays", audit.Record{Kind: audit.KindCall, Method: call, Tool: "z", Args: `{"name":"a"}`,
			Candidates: []audit.Candidate{{Method: call, Tool: "call_tool"}}},
			[]string{` tools/call z {"name":"a"}`, `? tools/call call_tool {"name":"a"}`, `?name tools/call a `}},
		{"it lists nothing that another tool names", audit.Record{Kind: audit.KindCall, Method: call, Tool: "create_tool", Args: `{"name":"a"}`},
			[]string{` tools/call create_tool {"name":"a"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, show(audit.Operations(&tt.r))); diff != "" {
				t.Errorf("Operations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOperationsAreBounded lists what is made to be long: a text of the arguments
// that counts for thousands of operations.
func TestOperationsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 50<<10)
	items := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"tool":"a"},`, n), ",") }
	nested := func(n int, text string) audit.JSON {
		return audit.JSON(strings.Repeat(`{"operations":[{"tool":"a","arguments":`, n) + `{"k":"` + text + `"}` + strings.Repeat("}]}", n))
	}
	tools := func(n int) (s string) {
		for i := range n {
			s += fmt.Sprintf(`,"tool":"%x"`, i)
		}
		return s
	}
	for _, tt := range []struct {
		name string
		r    audit.Record
		ops  int
	}{
		{"below a long name", audit.Record{Args: audit.JSON(`{"` + long + `":{"operations":[` + items(8000) + `]}}`)}, 8001},
		{"below many names", audit.Record{Args: audit.JSON(strings.Repeat(`{"`+long[:400]+`":`, 100) + `{"operations":[` + items(8000) + `]}` + strings.Repeat("}", 100))}, 8001},
		{"an item with many names of tools", audit.Record{Args: audit.JSON(`{"operations":[{"arguments":{"k":"` + long + `"}` + tools(6000) + `}]}`)}, 6001},
		{"a relayed call with many names", audit.Record{Tool: "call_tool", Args: audit.JSON(`{"arguments":{"k":"` + long + `"}` + tools(6000) + `}`)}, 2},
		{"a relayed call with some names", audit.Record{Tool: "call_tool", Args: audit.JSON(`{"arguments":{"k":"` + long + long + `"}` + tools(60) + `}`)}, 61},
		{"relayed calls in relayed calls", audit.Record{Tool: "call_tool", Args: audit.JSON(strings.Repeat(`{"name":"call_tool","arguments":`, 80) + `{"k":"` + long + `"}` + strings.Repeat("}", 80))}, 5},
		{"relayed calls in relayed calls that have many readings", audit.Record{Tool: "call_tool", Args: audit.JSON(strings.Repeat(`{`+strings.Repeat(`"name":"call_tool",`, 4)+`"arguments":`, 3) + `{"k":"` + long[:4096] + `"}` + strings.Repeat("}", 3))}, 67},
		{"relayed calls in operations in operations", audit.Record{Args: nested(40, long[:4096]), Tool: "batch"}, 41},
		{"many candidates", audit.Record{Args: audit.JSON(`{"k":"` + long + `"}`), Candidates: slices.Repeat([]audit.Candidate{{Method: "a"}}, 7000)}, 7001},
		{"a candidate with operations in operations", audit.Record{Candidates: []audit.Candidate{{Method: "a", Args: nested(80, long)}}}, 82},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Kind = audit.KindCall
			ops := audit.Operations(&tt.r)
			paths, args := 0, 0
			for i, op := range ops {
				paths += len(op.Path)
				if args += len(op.Args); !op.Candidate && op.Args == "" && strings.Contains(string(tt.r.Args), `"arguments"`) {
					t.Errorf("operation %d, which is no candidate, has no arguments", i)
				}
				if !utf8.ValidString(op.Path) {
					t.Fatalf("the path %q is not UTF-8", op.Path)
				}
			}
			if len(ops) != tt.ops || paths > 256*len(ops) || args > 8<<20 {
				t.Errorf("%d operations with %d bytes of paths and %d of arguments, want %d with few", len(ops), paths, args, tt.ops)
			}
			if last := ops[len(ops)-1].Path; len(ops) == 8001 && (!strings.HasSuffix(last, ".operations[7999]") || !strings.Contains(last, "é…")) {
				t.Errorf("the last one is at %q, want its beginning and its end", last)
			}
		})
	}
}

// TestNothingHidesACandidate fills the room of late candidates: what a server may run
// behind them keeps its arguments, which rules look at.
func TestNothingHidesACandidate(t *testing.T) {
	const pipe = `{"operations":[{"tool":"pipe_pane","arguments":{"output_path":"/etc/cron.d/x"}}]}`
	deep := audit.JSON(strings.Repeat(`{"operations":[{"tool":"a","arguments":`, 80) + `{"k":"` + strings.Repeat("k", 100_000) + `"}` + strings.Repeat("}]}", 80))
	item := audit.JSON(`{"operations":[{"tool":"pipe_pane"` + strings.Repeat(`,"tool":"x"`, 100) + `,"arguments":{"output_path":"/etc/cron.d/x","k":"` + strings.Repeat("k", 100_000) + `"}}]}`)
	for name, r := range map[string]audit.Record{
		"another reading":     {Candidates: []audit.Candidate{{Method: "a", Args: deep}, {Method: "a", Tool: "pipe_pane", Args: `{"output_path":"/etc/cron.d/x"}`}}},
		"an operation of one": {Candidates: []audit.Candidate{{Method: "a", Args: deep}, {Method: "a", Args: pipe}}},
		"what is relayed":     {Tool: "call_tool", Args: `{"name":"pipe_pane","arguments":{"output_path":"/etc/cron.d/x"}}`, Candidates: []audit.Candidate{{Method: "a", Args: deep}}},
		"what another reading relays": {Tool: "call_tool", Args: audit.JSON(`{` + strings.Repeat(`"name":"x",`, 100) + `"name":"pipe_pane","arguments":{"output_path":"/etc/cron.d/x"}}`),
			Candidates: []audit.Candidate{{Method: "a", Args: deep}}},
		"another name of a tool": {Candidates: []audit.Candidate{{Method: "a", Args: deep}, {Method: "a", Args: item}}},
		"the same arguments":     {Args: `{"output_path":"/etc/cron.d/x"}`, Candidates: []audit.Candidate{{Method: "a", Args: deep}, {Method: "a", Tool: "pipe_pane"}}},
	} {
		r.Kind = audit.KindCall
		ops := audit.Operations(&r)
		if !slices.ContainsFunc(ops, func(op audit.Operation) bool { return op.Candidate && op.Args == "" }) {
			t.Errorf("%s: there is room left", name)
		}
		if !slices.ContainsFunc(ops, func(op audit.Operation) bool {
			return op.Tool == "pipe_pane" && strings.Contains(string(op.Args), "/etc/cron.d/x")
		}) {
			t.Errorf("%s: no pipe_pane with its path", name)
		}
	}
}

func show(ops []audit.Operation) (lines []string) {
	for _, op := range ops {
		line := fmt.Sprintf("%s %s %s %s", op.Path, op.Method, op.Tool+op.Target, op.Args)
		if op.Candidate {
			line = "?" + line
		}
		lines = append(lines, line)
	}
	return lines
}

// inside defines an operation level by level.
func inside(v []byte, path string, listed bool) (lines []string) {
	n := 0
	jsontext.Elements(v, func(e []byte) bool {
		at := fmt.Sprintf("%s[%d]", path, n)
		n++
		var tools []string
		args := ""
		if listed {
			jsontext.Members(e, func(name, v []byte) bool {
				switch string(jsontext.AppendUnquote(nil, name)) {
				case "tool":
					if v[0] == '"' {
						tools = append(tools, string(jsontext.AppendUnquote(nil, v)))
					}
				case "arguments":
					args = string(v)
				}
				return true
			})
		}
		for i, tool := range tools {
			line := fmt.Sprintf("%s m %s %s", at, tool, args)
			if i < len(tools)-1 {
				line = "?" + line
			}
			lines = append(lines, line)
		}
		lines = append(lines, inside(e, at, false)...)
		return true
	})
	jsontext.Members(v, func(name, v []byte) bool {
		key := string(jsontext.AppendUnquote(nil, name))
		at := key
		if path != "" {
			at = path + "." + key
		}
		lines = append(lines, inside(v, at, key == "operations")...)
		return true
	})
	return lines
}

// TestInnerOperations lists what any server reads, for a decision.
func TestInnerOperations(t *testing.T) {
	deep := `[{"tool":"a"}]`
	for range 5 {
		b, _ := json.Marshal(deep)
		deep = `{"x":` + string(b) + `}`
	}
	for _, tt := range []struct {
		args string
		want string
		ok   bool
	}{
		{`{"operations":[{"tool":"a","arguments":{"x":1}},{"tool":"b"}]}`, `a{"x":1} b`, true},
		{`{"OPERATIONS":[{"TOOL":"a","Arguments":{}}],"operation\u017f":[{"tool":"b"}]}`, `a{} b`, true},
		{`{"operations\u0000":[{"tool\u0000x":"a"}]}`, `a`, true},
		{`{"operations":[{"tool":"a\u0000b","arguments":{}}]}`, "a\x00b{} a{}", true},
		{`{"operations":[{"tool":"a","Tool":"b","arguments":{"x":1},"Arguments":{"x":2}}]}`, `a{"x":1} b{"x":1} a{"x":2} b{"x":2}`, true},
		{`{"operations":" [{\"tool\":\"a\"}] "}`, `a`, true},
		{`{"operations":"\u005b{\"tool\":\"a\"}]"}`, `a`, true},
		{`{"request":"{\"operations\":[{\"tool\":\"a\"}]}"}`, `a`, true},
		{`{"operations":"[{\"tool\":\"a\",\"x\":NaN}]"}`, ``, false},
		{`{"operations":"[{\"tool\":\"a\"}] x"}`, ``, false},
		{`{"note":"[see operations, tool]"}`, ``, false},
		{`{"note":"[see the operations]","operations":"none"}`, ``, true},
		{`{"operations":["{\"tool\":\"a\"}"]}`, ``, true},
		{`{"operations":[{"tool":"a"},{"tool":"b"},{"tool":"c"},{"tool":"d"},{"tool":"e"}]}`, ``, false},
		{deep, ``, true},
	} {
		ops, ok := audit.InnerOperations(audit.JSON(tt.args), 4)
		var got []string
		for _, o := range ops {
			got = append(got, o.Tool+string(o.Args))
		}
		if s := strings.Join(got, " "); ok != tt.ok || ok && s != tt.want {
			t.Errorf("%s: %q, %v, want %q, %v", tt.args, s, ok, tt.want, tt.ok)
		}
	}
}

// TestLongPaths has many operations below a long name: their paths must not take the
// length of the name for each of them.
func TestLongPaths(t *testing.T) {
	const n, name = 4000, 100_000
	args := audit.JSON(`{"` + strings.Repeat("é", name/2) + `":{"operations":[` + strings.Repeat(`{"tool":"a"},`, n-1) + `{"tool":"b"}]}}`)
	size := func(ops []audit.Operation) (sum int) {
		for _, op := range ops {
			sum += len(op.Path)
		}
		return sum
	}
	ops, ok := audit.InnerOperations(args, n)
	if !ok || len(ops) != n || size(ops) != 0 {
		t.Errorf("%d operations, %v, with paths of %d bytes, want %d with none", len(ops), ok, size(ops), n)
	}
	ops = audit.Operations(&audit.Record{Kind: audit.KindCall, Args: args})[1:]
	if len(ops) != n || size(ops) > n*256 {
		t.Errorf("%d operations with paths of %d bytes, want %d with at most 256 each", len(ops), size(ops), n)
	}
	if path := ops[len(ops)-1].Path; !strings.Contains(path, "é…é") || !strings.HasSuffix(path, "é.operations[3999]") || !utf8.ValidString(path) {
		t.Errorf("path %q, want its beginning and its end", path)
	}
}

func FuzzOperations(f *testing.F) {
	f.Add(`{"operations":[{"tool":"a","arguments":{"operations":[{"tool":"b","tool":"c"}]}}]}`)
	f.Add(`{"a":{"operations":[[],{"oper\u0061tions":[{"tool":""}],"tool":"x"}]},"":[{"operations":[{"tool":"y"}]}]}`)
	f.Fuzz(func(t *testing.T, args string) {
		if !jsontext.Valid([]byte(args)) || args[0] != '{' {
			return
		}
		got := audit.Operations(&audit.Record{Kind: audit.KindCall, Method: "m", Args: audit.JSON(args)})
		if diff := cmp.Diff(inside([]byte(args), "", false), show(got[1:])); diff != "" {
			t.Fatalf("Operations of %s (-want +got):\n%s", args, diff)
		}
	})
}

func BenchmarkOperations(b *testing.B) {
	for _, bb := range []struct{ name, args string }{
		{"plain", `{"pane_id":"%1","keys":{"len":4}}`},
		{"batch", `{"operations":[` + strings.Repeat(`{"tool":"send_keys","arguments":{"pane_id":"%1"}},`, 99) + `{"tool":"x"}]}`},
		{"deep", strings.Repeat(`{"operations":[{"tool":"a","arguments":`, 80) + "{}" + strings.Repeat("}]}", 80)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := audit.Record{Kind: audit.KindCall, Args: audit.JSON(bb.args)}
			b.SetBytes(int64(len(bb.args)))
			b.ReportAllocs()
			for b.Loop() {
				audit.Operations(&r)
			}
		})
	}
}

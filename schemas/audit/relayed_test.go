package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
)

// TestWithRelayed lists what a tool that calls other tools is told to call.
func TestWithRelayed(t *testing.T) {
	nested := strings.Repeat(`{"name":"call_tool","arguments":`, 5) + `{"name":"a"}` + strings.Repeat("}", 5)
	for _, tt := range []struct {
		tool, args string
		want       []string
		ok         bool
	}{
		{"call_tool", `{"name":"a","arguments":{"x":1}}`, []string{`a {"x":1}`}, true},
		{"call_tool", `{"Tool_Name":"a","toolInput":"{\"x\":1}"}`, []string{`a {"x":1}`}, true},
		{"call_tool", `{"n\u0061me":"\u0061"}`, []string{`a `}, true},
		{"call_tool", `{"name\u0000x":"a\u0000b"}`, []string{`a `, "a\x00b "}, true},
		{"call_tool", `{"name":"a","tool":"b","args":1,"params":2}`, []string{"a 1", "a 2", "b 1", "b 2"}, true},
		{"call_tool", `{"name":"call_tool","arguments":{"name":"a","arguments":{}}}`, []string{`call_tool {"name":"a","arguments":{}}`, "a {}"}, true},
		{"batch", `{"operations":[{"tool":"call_tool","arguments":{"name":"a"}}]}`, []string{`call_tool {"name":"a"}`, "a "}, true},
		{"other", `{"name":"a","arguments":{}}`, nil, true},
		{"call_tool", `{"name":1}`, nil, true},
		{"call_tool", ``, nil, true},
		{"call_tool", `[]`, nil, false},
		{"call_tool", nested, nil, false},
		{"call_tool", `{` + strings.Repeat(`"name":"a",`, 70) + `"x":1}`, nil, false},
	} {
		ops, ok := audit.InnerOperations(audit.JSON(tt.args), 100)
		ops, ok = audit.WithRelayed(ops, ok, tt.tool, audit.JSON(tt.args), 100)
		var got []string
		for _, op := range ops {
			got = append(got, op.Tool+" "+string(op.Args))
		}
		if ok != tt.ok || ok && !slices.Equal(got, tt.want) {
			t.Errorf("%s %s: ok %v, %s", tt.tool, tt.args, ok, cmp.Diff(tt.want, got))
		}
	}
	many := `{"operations":[` + strings.Repeat(`{"tool":"call_tool","arguments":{"name":"a"}},`, 60) + `0]}`
	ops, ok := audit.InnerOperations(audit.JSON(many), 100)
	if _, ok = audit.WithRelayed(ops, ok, "batch", audit.JSON(many), 100); ok {
		t.Error("more operations than there may be")
	}
}

// TestOlderVersionsListNothingRelayed lists what they stored.
func TestOlderVersionsListNothingRelayed(t *testing.T) {
	r := audit.Record{Kind: audit.KindCall, Tool: "call_tool", Args: `{"name":"a","b":{"operations":[{"tool":"call_tool","arguments":{"name":"c"}}]}}`}
	if all, older := audit.Operations(&r), audit.WholeOperations(&r); len(all) != 4 || len(older) != 2 {
		t.Errorf("operations %v, of older versions %v, want 4 and 2", show(all), show(older))
	}
}

// TestRelays tells tools that call others from those that do something else.
func TestRelays(t *testing.T) {
	for name, want := range map[string]bool{
		"call_tool": true, "callTool": true, "CALL_TOOL": true, "invoke-tool": true, "use_mcp_tool": true, "MCPCallTool": true, "call_tool_by_name": true, "run.tools": true,
		"": false, "tool": false, "call": false, "create_tool": false, "list_tools": false, "call_tool2": false, "run_tool_check": false, "callé_tool": false, "_": false,
	} {
		if got := audit.Relays(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

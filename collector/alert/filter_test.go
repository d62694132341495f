package alert_test

import (
	"strings"
	"testing"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
)

// TestFilter checks which records conditions select.
func TestFilter(t *testing.T) {
	batch := audit.Record{Kind: audit.KindCall, Tool: "call_tools_batch", Method: "tools/call", Host: "h", Args: `{"operations":[{"tool":"kill_server","arguments":{"force":true}},{"tool":"list_panes"}]}`}
	start := audit.Record{Kind: audit.KindSessionStart, User: "ann"}
	for _, tt := range []struct {
		when         string
		batch, start bool
	}{
		{`true`, true, true},
		{`false`, false, false},
		{`op.tool == "kill_server"`, true, false},
		{`op.tool == "kill_server" && op.args.force`, true, false},
		{`op.tool == "list_panes" && op.path != ""`, true, false},
		{`record.kind == "session_start"`, false, true},
		{`record.user == "ann" || record.host == "x"`, false, true},
		{`op.args.missing == 1`, true, true}, // an error: rather sent than lost
		{`op.tool.matches("(a+)+$") && false`, false, false},
	} {
		f, err := alert.NewFilter(tt.when, alert.Paths{})
		if err != nil {
			t.Errorf("%s: %v", tt.when, err)
			continue
		}
		for _, of := range []struct {
			record audit.Record
			want   bool
		}{{batch, tt.batch}, {start, tt.start}} {
			row := ingest.Row{Record: of.record, Operations: audit.Operations(&of.record)}
			if got := f.Match(&row); got != of.want {
				t.Errorf("%s: a record of kind %s: %v, want %v", tt.when, of.record.Kind, got, of.want)
			}
		}
	}
	for when, want := range map[string]string{
		`op.tool`:               "1:1: the expression gives string, want bool",
		"true &&\n nothing > 1": "2:2: undeclared reference to 'nothing'",
		`op.tool = "x"`:         "1:9: Syntax error",
	} {
		if _, err := alert.NewFilter(when, alert.Paths{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", when, err, want)
		}
	}
}

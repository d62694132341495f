package audit_test

import (
	"bytes"
	"fmt"
	"time"

	"auditproxy/schemas/audit"
)

func ExampleAppendRecord() {
	line := audit.AppendRecord(nil, &audit.Record{
		Kind:      audit.KindCall,
		RecordID:  "019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e",
		SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab",
		Seq:       1,
		CallNo:    1,
		TS:        time.Date(2026, 11, 20, 9, 14, 3, 123456000, time.UTC),
		Method:    "tools/call",
		Tool:      "kill_pane",
		Args:      `{"pane_id":"%1"}`, // already redacted
		Outcome:   audit.OutcomeOK,
		Duration:  18 * time.Millisecond,
	})
	fmt.Printf("%s", line) // it ends with a line feed
	// Output:
	// {"v":1,"kind":"call","record_id":"019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e","session_id":"019e8b1c-0000-7aaa-8bbb-0123456789ab","seq":1,"call_no":1,"ts":"2026-11-20T09:14:03.123456Z","method":"tools/call","tool":"kill_pane","outcome":"ok","duration_ms":18,"args":{"pane_id":"%1"},"crc":"446075d6"}
}

func ExampleParse() {
	line := audit.AppendRecord(nil, &audit.Record{Kind: audit.KindCall, Tool: "kill_pane", Outcome: audit.OutcomeOK, Duration: -1})
	line = bytes.TrimSuffix(line, []byte("\n"))
	r, err := audit.Parse(line)
	fmt.Println(r.Tool, r.Outcome, err)
	line[20] ^= 1 // a flipped bit
	_, err = audit.Parse(line)
	fmt.Println(err)
	// Output:
	// kill_pane ok <nil>
	// line fails its checksum
}

func ExampleOperations() {
	r := audit.Record{
		Kind: audit.KindCall, Method: "tools/call", Tool: "call_tools_batch",
		Args: `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"pipe_pane","arguments":{"output_path":"/tmp/x"}}]}`,
	}
	for _, op := range audit.Operations(&r) {
		fmt.Printf("%s %q\n", op.Tool, op.Path)
	}
	// Output:
	// call_tools_batch ""
	// list_panes "operations[0]"
	// pipe_pane "operations[1]"
}

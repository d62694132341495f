package clickhouse

import (
	"fmt"
	"io"
	"regexp"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// ordinary are the calls of a working agent: it types, waits and reads, and
// seldom makes a window.
var ordinary = []struct{ tool, args string }{
	{"list_sessions", `{}`},
	{"create_window", `{"session_name":"work","window_name":"build","start_directory":"/home/ann/src","environment":{"CI":{"len":4,"hmac_sha256_prefix":"0123456789abcdef"}}}`},
	{"send_keys", `{"pane_id":"%4","keys":{"len":31,"hmac_sha256_prefix":"0123456789abcdef"},"enter":true}`},
	{"wait_for_text", `{"pane_id":"%4","patterns":["ok  \\tauditproxy","FAIL"],"timeout":30}`},
	{"capture_pane", `{"pane_id":"%4","max_lines":200}`},
	{"capture_pane", `{"pane_id":"%4","start":-100,"end":0}`},
	{"search_panes", `{"pattern":"error:","regex":false,"limit":50}`},
	{"display_message", `{"format_string":"#{pane_current_path}","pane_id":"%4"}`},
	{"call_readonly_tools_batch", `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"get_pane_info","arguments":{"pane_id":"%4"}}]}`},
	{"snapshot_pane", `{"pane_id":"%4"}`},
	{"send_keys", `{"pane_id":"%5","keys":{"len":12,"hmac_sha256_prefix":"0123456789abcdef"}}`},
	{"capture_pane", `{"pane_id":"%5"}`},
	{"run_command", `{"pane_id":"%5","command":{"len":12,"hmac_sha256_prefix":"0123456789abcdef"},"timeout":20}`},
	{"capture_since", `{"cursor":"c-1f","pane_id":"%5","max_lines":500}`},
	{"wait_for_text", `{"pane_id":"%5","patterns":["$ "]}`},
	{"send_keys", `{"pane_id":"%5","keys":{"len":2,"hmac_sha256_prefix":"0123456789abcdef"},"enter":false,"literal":true}`},
	{"capture_pane", `{"pane_id":"%5","max_lines":50}`},
	{"list_panes", `{"session_name":"work"}`},
	{"resize_pane", `{"pane_id":"%5","zoom":true}`},
	{"capture_pane", `{"pane_id":"%5"}`},
}

// BenchmarkAlerts says how much more processor time records take with 30 rules.
// It compares with all that a collector does with a record between Kafka and
// its connection to ClickHouse: it is read, and written as a compressed block.
// What the clients of both cost besides would make the share smaller.
func BenchmarkAlerts(b *testing.B) {
	letters := ordinaryMessages(b)
	rules := thirty(b)
	rows := make([]ingest.Row, 1000)
	decoder := ingest.Decoder{Keep: 24 * time.Hour}
	var reading, writing, matching time.Duration
	b.ResetTimer()
	for range b.N {
		began := processorTime(b)
		for i := range rows {
			var err error
			if rows[i], err = decoder.Retry(letters[i%len(letters)]); err != nil {
				b.Fatal(err)
			}
		}
		read := processorTime(b)
		if _, err := io.Copy(io.Discard, newBlockReader(rows, rows[0].Record.TS, true)); err != nil {
			b.Fatal(err)
		}
		written := processorTime(b)
		for i := range rows {
			if alerts := rules.Match(&rows[i]); len(alerts) > 0 {
				b.Fatalf("%s raised an alert: %+v", rows[i].Raw, alerts)
			}
		}
		matched := processorTime(b)
		reading += read - began
		writing += written - read
		matching += matched - written
	}
	records := float64(b.N * len(rows))
	b.ReportMetric(float64(reading)/records, "reading-ns/record")
	b.ReportMetric(float64(writing)/records, "writing-ns/record")
	b.ReportMetric(float64(matching)/records, "rules-ns/record")
	b.ReportMetric(100*float64(matching)/float64(reading), "%-of-reading")
	b.ReportMetric(100*float64(matching)/float64(reading+writing), "%-more")
}

// processorTime returns what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// ordinaryMessages returns the records of ordinary calls as they lie in Kafka.
func ordinaryMessages(b *testing.B) (letters []ingest.DeadLetter) {
	now := time.Now()
	for i, o := range ordinary {
		session := audit.NewID(now)
		line := audit.AppendRecord(nil, &audit.Record{
			Kind: audit.KindCall, RecordID: audit.NewID(now), SessionID: session, Seq: uint64(i), CallNo: uint64(i + 1),
			TS: now.Truncate(time.Microsecond), Method: "tools/call", Tool: o.tool, Args: audit.JSON(o.args), ArgsBytes: int64(len(o.args)),
			Outcome: audit.OutcomeOK, Forwarded: true, Duration: 12345 * time.Microsecond, RequestID: "17", RequestIDType: "number",
			Client: audit.Peer{Name: "claude-code", Version: "2.1.0"}, Server: audit.Peer{Name: "tmux", Version: "0.1.0a22"},
			ProtocolVersion: "2025-11-25", ServerCommand: audit.Command{Command: "libtmux-mcp"}, Tier: "manage",
			ToolHash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ResultBytes: 1834,
			Annotations: `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`,
			Host:        "build-7", User: "ann", PID: 4711, Tenant: "acme",
		})
		letters = append(letters, ingest.DeadLetter{Key: session, Raw: line[:len(line)-1]})
	}
	return letters
}

// thirty returns 30 rules that look at each record: the shipped ones, as often
// as it takes.
func thirty(b *testing.B) *alert.Rules {
	files, err := alert.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^  - name: `)
	for copies := 2; ; copies++ {
		rules, err := alert.Load(files, alert.Paths{})
		if err != nil {
			b.Fatal(err)
		}
		streaming := 0
		for _, r := range rules.All() {
			if !r.Scheduled() {
				streaming++
			}
		}
		if streaming >= 30 {
			return rules
		}
		for _, f := range files[:2] {
			text := name.ReplaceAllString(string(f.Text), fmt.Sprintf("  - name: copy-%d-of-", copies))
			files = append(files, alert.File{Name: f.Name, Text: []byte(text)})
		}
	}
}

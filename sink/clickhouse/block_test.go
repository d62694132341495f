package clickhouse

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	driver "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/google/go-cmp/cmp"
)

// mixedRows makes n rows, some of which have all that is optional.
func mixedRows(t testing.TB, n int) []ingest.Row {
	t.Helper()
	rows := oldRows(t, n)
	for i := range rows {
		switch {
		case i%7 == 0:
			r := &rows[i].Record
			r.Kind, r.Outcome, r.RecordID = audit.KindOpen, "", "not a UUID"
			r.Candidates = []audit.Candidate{{Method: "resources/read", Target: "file:///x"}, {Method: "tools/call", Tool: "pipe_\"pane", Args: `{"y":2}`}}
			r.Args, r.NotDurable = audit.JSON(`{"operations":[{"tool":"a","arguments":{"x":1}},{"tool":"b"}]}`), true
			rows[i].Operations, rows[i].Source = audit.Operations(r), ingest.Source{Topic: "other", Partition: 7, Offset: 1 << 60}
		case i%50 == 1:
			rows[i].Raw = strings.Repeat("é", 100_000)
		}
	}
	return rows
}

// TestBlockReader has the driver read the blocks and write them again, which
// must give the same bytes.
func TestBlockReader(t *testing.T) {
	rows := mixedRows(t, 2500)
	written, err := io.ReadAll(newBlockReader(rows, time.UnixMilli(1_700_000_000_123), false))
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	r := newBlockReader(rows, time.UnixMilli(1_700_000_000_123), false)
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil { // the first block is begun
		t.Fatal(err)
	}
	n, err := io.Copy(&copied, r)
	if err != nil || n != int64(len(written)-1000) || !bytes.Equal(copied.Bytes(), written[1000:]) {
		t.Errorf("%d bytes copied, %v, are not the %d that were read", n, err, len(written)-1000)
	}
	in := proto.NewReader(bytes.NewReader(written))
	var again proto.Buffer
	var blocks []int
	for n := 0; n < len(rows); {
		b := driver.NewBlock()
		b.ServerContext.Timezone = time.UTC
		if err := b.Decode(in, 0); err != nil {
			t.Fatalf("block %d: %v", len(blocks), err)
		}
		if err := b.Encode(&again, 0); err != nil {
			t.Fatalf("block %d: %v", len(blocks), err)
		}
		var size int64
		for i := n; i < n+b.Rows()-1; i++ {
			size += rows[i].Size()
		}
		if size >= blockSize {
			t.Errorf("block %d has %d rows, and would be large enough without its last", len(blocks), b.Rows())
		}
		n += b.Rows()
		blocks = append(blocks, b.Rows())
	}
	if !bytes.Equal(written, again.Buf) {
		t.Errorf("the driver reads other values than were written; blocks of %v rows", blocks)
	}
	if len(blocks) < 5 {
		t.Errorf("blocks of %v rows, want more and smaller ones", blocks)
	}
	compressed, err := io.ReadAll(newBlockReader(rows, time.UnixMilli(1_700_000_000_123), true))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(compress.NewReader(bytes.NewReader(compressed)))
	if !errors.Is(err, io.EOF) { // what this reader says at the end
		t.Fatal(err)
	}
	if !bytes.Equal(written, plain) || len(compressed) >= len(written) {
		t.Errorf("%d bytes compressed to %d are not those that were written", len(written), len(compressed))
	}
}

// TestColumnValues says what the driver reads in columns that are more than a
// member's own text.
func TestColumnValues(t *testing.T) {
	rows := mixedRows(t, 2)
	at := time.UnixMilli(1_700_000_000_123).UTC()
	r := newBlockReader(rows, at, false)
	b := driver.NewBlock()
	b.ServerContext.Timezone = time.UTC
	if err := b.Decode(proto.NewReader(r), 0); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i, name := range b.ColumnsNames() {
		got[name] = fmt.Sprintf("%v | %v", deref(b.Columns[i].Row(0, false)), deref(b.Columns[i].Row(1, false)))
	}
	second := rows[1].Record
	want := map[string]string{
		"v":               "1 | 1",
		"kind":            "open | call",
		"record_id":       "00000000-0000-0000-0000-000000000000 | " + second.RecordID,
		"seq":             "0 | 1",
		"ts":              "2026-01-02 03:04:05 +0000 UTC | 2026-01-02 03:04:06 +0000 UTC",
		"candidates":      `[{"method":"resources/read","target":"file:///x"},{"method":"tools/call","tool":"pipe_\"pane","args":{"y":2}}] | `,
		"outcome":         " | error",
		"error_code":      "<nil> | -32603",
		"forwarded":       "false | true",
		"duration_ms":     "<nil> | 1",
		"anomalies":       "[] | [batch nan]",
		"from":            "<nil> | 2026-01-02 03:04:05 +0000 UTC",
		"to":              "<nil> | 2026-01-02 04:04:05 +0000 UTC",
		"durable":         "false | true",
		"ops":             "[send_keys a b resources/read pipe_\"pane] | [send_keys]",
		"ops_args":        fmt.Sprintf("[%s {\"x\":1}  %[1]s {\"y\":2}] | [%s]", rows[0].Record.Args, second.Args),
		"ops_path":        "[ operations[0] operations[1]  ] | []",
		"ops_candidate":   "[false false false true true] | [false]",
		"kafka_topic":     "other | t",
		"kafka_partition": "7 | 0",
		"kafka_offset":    "1152921504606846976 | 1",
		"payload_hash":    fmt.Sprintf("%s | %s", rows[0].Hash[:], rows[1].Hash[:]),
		"ingested_at":     fmt.Sprintf("%v | %[1]v", at),
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func deref(v any) any {
	switch v := v.(type) {
	case *int64:
		return *v
	case *float64:
		return *v
	case *time.Time:
		return *v
	}
	return v
}

// oldRows makes n records of which each second has all that is optional.
func oldRows(t testing.TB, n int) (rows []ingest.Row) {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range n {
		r := audit.Record{
			Kind: audit.KindCall, RecordID: audit.NewID(start), SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab",
			Seq: uint64(i), CallNo: uint64(i + 1), TS: start.Add(time.Duration(i) * time.Second), Duration: -1,
			Method: "tools/call", Tool: "send_keys", Outcome: audit.OutcomeOK, Args: `{"keys":{"len":3,"hmac_sha256_prefix":"0011223344556677"}}`,
		}
		if i%2 == 1 {
			code := int64(-32603)
			r.Outcome, r.ErrorCode, r.Duration = audit.OutcomeError, &code, time.Millisecond
			r.Anomalies, r.From, r.To, r.Forwarded = []string{"batch", "nan"}, start, start.Add(time.Hour), true
		}
		raw := audit.AppendRecord(nil, &r)
		raw = raw[:len(raw)-1]
		sum := sha256.Sum256(raw)
		rows = append(rows, ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: string(raw), Hash: [16]byte(sum[:]), Source: ingest.Source{Topic: "t", Offset: uint64(i)}})
	}
	return rows
}

func BenchmarkBlockReader(b *testing.B) {
	rows := mixedRows(b, 1000)
	for b.Loop() {
		if _, err := io.Copy(io.Discard, newBlockReader(rows, time.Unix(0, 0), false)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}

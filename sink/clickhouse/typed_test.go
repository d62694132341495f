package clickhouse_test

import (
	"os"
	"strings"
	"testing"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"golang.org/x/tools/txtar"
)

// TestTyped stores one record of each kind with all members, and edits each
// column next to its raw bytes.
func TestTyped(t *testing.T) {
	dir := migrated(t)
	s := open(t, dir)
	arch, err := txtar.ParseFile("../../schemas/audit/testdata/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var rows []ingest.Row
	for i, f := range arch.Files {
		if strings.HasPrefix(string(f.Data), `{"v":1,"kind":`) {
			rows = append(rows, ingesttest.RowOf(t, f.Data, ingest.Source{Topic: "t", Partition: 3, Offset: uint64(i)}))
		}
	}
	// What an older collector stored of it has longer texts, and not what it relays.
	r := rows[0].Record
	r.RecordID, r.Kind, r.CallNo, r.Outcome = audit.NewID(start), audit.KindCall, 1, audit.OutcomeOK
	r.Tool, r.Args = "call_tool", audit.JSON(`{"name":"b","`+strings.Repeat("n", 300)+`":{"operations":[{"tool":"a"}]}}`)
	long := ingesttest.RowOf(t, audit.AppendRecord(nil, &r), ingest.Source{Topic: "t", Partition: 4})
	long.Operations = audit.WholeOperations(&long.Record)
	rows = append(rows, long)
	if err := s.InsertRows(t.Context(), rows, start); err != nil {
		t.Fatal(err)
	}
	typed := clickhouse.NewTyped()
	// agrees returns the columns in which any of the rows that a query selects differs.
	agrees := func(from string) (differ []string) {
		t.Helper()
		got, err := s.Conn().Query(t.Context(), "SELECT raw, "+typed.SQL()+", "+typed.ColumnSQL()+" FROM "+from)
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		defer got.Close()
		n := 0
		for ; got.Next(); n++ {
			var raw, hash string
			var values []string
			if err := got.Scan(&raw, &hash, &values); err != nil {
				t.Fatal(err)
			}
			*typed.Row() = ingesttest.RowOf(t, []byte(raw+"\n"), ingest.Source{})
			names := typed.Differing(func(i int) string { return values[i] })
			if typed.Agrees(hash) == (len(names) > 0) {
				t.Errorf("%s: a record of kind %s differs in %q", from, typed.Row().Record.Kind, names)
			}
			differ = append(differ, names...)
		}
		if err := got.Err(); err != nil || n != len(rows) {
			t.Fatalf("%s: %d rows, %v, want %d", from, n, err, len(rows))
		}
		return differ
	}
	if differ := agrees("audit.events"); differ != nil {
		t.Errorf("of rows as they were stored, %q differ", differ)
	}
	if differ := agrees("(SELECT * REPLACE ('' AS evidence) FROM audit.events)"); differ != nil {
		t.Errorf("of rows that an older collector stored, %q differ", differ)
	}
	edits := map[string]string{"String": "'x'", "Array(String)": "['x']", "LowCardinality(String)": "toLowCardinality('x')", "UUID": "generateUUIDv4()", "FixedString(16)": "toFixedString('x', 16)",
		"Nullable(Int64)": "toNullable(toInt64(12345))", "Nullable(Float64)": "toNullable(toFloat64(12345))", "Bool": "NOT %", "Array(Bool)": "[true, false, true, true, true]", "UInt8": "%+1", "Int64": "%+1", "UInt64": "%+1",
		"DateTime64(6, 'UTC')": "%+1", "Nullable(DateTime64(6, 'UTC'))": "toNullable(toDateTime64(9, 6, 'UTC'))"}
	tested := 0
	for _, line := range chdbtest.Query(t, dir, "SELECT name, type FROM system.columns WHERE database = 'audit' AND table = 'events' AND default_kind = ''") {
		name, typ, _ := strings.Cut(line, "\t")
		typ = strings.ReplaceAll(typ, `\'`, "'")
		if name == "raw" || name == "ingested_at" || strings.HasPrefix(name, "kafka_") {
			continue
		}
		edit, ok := edits[typ]
		if !ok {
			t.Fatalf("no edit for column %q of type %q", name, typ)
		}
		tested++
		if differ := agrees("(SELECT * REPLACE (" + strings.ReplaceAll(edit, "%", "`"+name+"`") + " AS `" + name + "`) FROM audit.events)"); len(differ) == 0 || differ[0] != name {
			t.Errorf("column %q was edited, and %q differ", name, differ)
		}
	}
	if tested < 60 {
		t.Errorf("edited %d columns only", tested)
	}
}

// BenchmarkTyped compares a row with its raw bytes.
func BenchmarkTyped(b *testing.B) {
	text, err := os.ReadFile("../../schemas/audit/testdata/lines.txtar")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range txtar.Parse(text).Files {
		if f.Name != "call" {
			continue
		}
		typed := clickhouse.NewTyped()
		*typed.Row() = ingesttest.RowOf(b, f.Data, ingest.Source{})
		b.ReportAllocs()
		for b.Loop() {
			typed.Agrees("")
		}
	}
}

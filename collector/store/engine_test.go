package store_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	chdbtest.IfEngine()
	goleak.VerifyTestMain(m)
}

// A fixture is an engine with tables.
type fixture struct {
	*store.Store
	sink   *clickhouse.Store
	writer driver.Conn
	reader driver.Conn
}

// start starts ClickHouse's engine. It merges nothing.
func start(t *testing.T) fixture {
	t.Helper()
	return connect(t, chdbtest.Start(t))
}

func connect(t *testing.T, dir string) fixture {
	t.Helper()
	c := clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true}
	var f fixture
	var err error
	if f.sink, err = clickhouse.Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.sink.Close() })
	f.migrate(t)
	if f.writer, err = clickhouse.OpenWriter(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.writer.Close() })
	c.Dial = chdb.Dialer(dir, chdb.Reader)
	if f.reader, err = clickhouse.OpenReader(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.reader.Close() })
	for _, table := range []string{"events", "operation_states", "session_states", "definition_states", "effect_states"} {
		f.exec(t, "SYSTEM STOP MERGES audit."+table)
	}
	if f.Store, err = store.New(store.Config{Reader: f.reader, Writer: f.writer, Database: "audit"}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) migrate(t *testing.T) {
	t.Helper()
	const keep = 400 * 24 * time.Hour
	if _, err := f.sink.Migrate(t.Context(), clickhouse.Retention{Events: keep, DeadLetters: keep}); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) exec(t *testing.T, sql string) {
	t.Helper()
	if err := f.writer.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// insert stores records as the collector does, from a place in a topic.
func (f fixture) insert(t *testing.T, offset uint64, records ...audit.Record) {
	t.Helper()
	rows := make([]ingest.Row, len(records))
	for i, r := range records {
		rows[i] = row(t, r, offset+uint64(i))
	}
	if err := f.sink.InsertRows(t.Context(), rows, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// row makes what the collector makes of a record.
func row(t *testing.T, r audit.Record, offset uint64) ingest.Row {
	t.Helper()
	line := audit.AppendRecord(nil, &r)
	raw := line[:len(line)-1]
	r, err := audit.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: string(raw), Hash: [16]byte(sum[:]), Source: ingest.Source{Topic: "t", Offset: offset}}
}

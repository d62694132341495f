package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/store/storetest"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

// keep is the retention of the tests.
var keep = clickhouse.Retention{Events: 9000 * 24 * time.Hour, DeadLetters: 400 * 24 * time.Hour}

// A fixture is an engine with tables.
type fixture struct {
	*store.Reader
	*store.Store
	dir string // of the engine
}

// newFixture starts ClickHouse's engine with the tables. It merges nothing.
func newFixture(t *testing.T) fixture {
	t.Helper()
	return connect(t, storetest.Start(t))
}

func connect(t *testing.T, dir string) fixture {
	t.Helper()
	f := fixture{openReader(t, dir), open(t, dir), dir}
	f.migrate(t)
	for _, table := range []string{"events", "operation_states", "session_states", "definition_states", "effect_states", "decision_states", "risk_states"} {
		f.exec(t, "SYSTEM STOP MERGES audit."+table)
	}
	return f
}

func engine(dir string, role chdb.Role) clickhouse.Config {
	return clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, role), Uncompressed: true}
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(engine(dir, chdb.Writer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openReader(t *testing.T, dir string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(engine(dir, chdb.Reader))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (f fixture) migrate(t *testing.T) {
	t.Helper()
	if _, err := f.Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) exec(t *testing.T, sql string) {
	t.Helper()
	chdbtest.Query(t, f.dir, sql)
}

// fill is exec for an insert that needs memory: on a busy machine the engine counts
// more than it has, for a second.
func (f fixture) fill(t *testing.T, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		err := f.DB().Conn().Exec(ctx, sql)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "(total) memory limit exceeded") || wait.For(ctx, time.Second) != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// insert stores records as the collector does, from a place in a topic.
func (f fixture) insert(t *testing.T, offset uint64, records ...audit.Record) {
	t.Helper()
	rows := make([]ingest.Row, len(records))
	for i, r := range records {
		rows[i] = row(t, r, offset+uint64(i))
	}
	if err := f.InsertRows(t.Context(), rows, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// row makes what the collector makes of a record.
func row(t *testing.T, r audit.Record, offset uint64) ingest.Row {
	t.Helper()
	return ingesttest.Row(t, r, ingest.Source{Topic: "t", Offset: offset})
}

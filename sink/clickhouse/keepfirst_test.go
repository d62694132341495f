package clickhouse_test

import (
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestKeepFirst migrates tables of a program that kept the last arrival, from
// every state in which a crash or another program can leave that, and stores the
// same records again.
func TestKeepFirst(t *testing.T) {
	const (
		engine   = "SELECT engine_full LIKE 'ReplacingMergeTree(precedence) %' FROM system.tables WHERE database = 'audit' AND name = 'events'"
		tables   = "SELECT count() FROM system.tables WHERE database = 'audit' AND name = 'events_before'"
		exchange = "EXCHANGE TABLES audit.events AND audit.events_before"
	)
	// create returns the statement that makes events, as another table.
	create := func(t *testing.T, dir, name, from, to string) string {
		t.Helper()
		sql := strings.Join(chdbtest.Query(t, dir, "SELECT create_table_query FROM system.tables WHERE database = 'audit' AND name = 'events'"), "\n")
		sql = strings.NewReplacer(`\'`, `'`, `\\`, `\`).Replace(sql)
		return strings.Replace(strings.Replace(sql, "audit.events ", "audit."+name+" ", 1), from, to, 1)
	}
	for _, tt := range []struct {
		name string
		left func(t *testing.T, dir string)
	}{
		{"nothing was done", func(*testing.T, string) {}},
		{"the new table was made", func(t *testing.T, dir string) {
			chdbtest.Query(t, dir, "ALTER TABLE audit.events ADD COLUMN precedence UInt64 MATERIALIZED 18446744073709551615 - toUInt64(toUnixTimestamp64Milli(ingested_at)) CODEC(Delta(8), ZSTD(1))")
			chdbtest.Query(t, dir, create(t, dir, "events_before", "ENGINE = ReplacingMergeTree ", "ENGINE = ReplacingMergeTree(precedence) "))
		}},
		{"the tables were exchanged", func(t *testing.T, dir string) {
			chdbtest.Query(t, dir, "ALTER TABLE audit.events ADD COLUMN precedence UInt64 MATERIALIZED 18446744073709551615 - toUInt64(toUnixTimestamp64Milli(ingested_at)) CODEC(Delta(8), ZSTD(1))")
			chdbtest.Query(t, dir, create(t, dir, "events_before", "ENGINE = ReplacingMergeTree ", "ENGINE = ReplacingMergeTree(precedence) "))
			chdbtest.Query(t, dir, exchange)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := migratedDir(t)
			var rows []ingest.Row
			for i := range 100 {
				rows = append(rows, row(t, call(i+1, "list_panes"), uint64(i)))
			}
			t.Run("upgrade", func(t *testing.T) {
				chdbtest.StartIn(t, dir)
				s := open(t, dir)
				chdbtest.Query(t, dir, create(t, dir, "older", "(precedence)", ""))
				chdbtest.Query(t, dir, "EXCHANGE TABLES audit.events AND audit.older")
				chdbtest.Query(t, dir, "DROP TABLE audit.older SYNC")
				chdbtest.Query(t, dir, "ALTER TABLE audit.events DROP COLUMN precedence")
				chdbtest.Query(t, dir, "ALTER TABLE audit.migrations DELETE WHERE number = 9 SETTINGS mutations_sync = 1")
				if err := s.InsertRows(t.Context(), rows[:60], start); err != nil {
					t.Fatal(err)
				}
				if tt.left(t, dir); t.Failed() {
					return
				}
				// An insert that was under way in the old table, or came after.
				if err := s.InsertRows(t.Context(), rows[60:], start); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if _, err := s.Migrate(t.Context(), keep); err != nil {
						t.Fatal(err)
					}
					chdbtest.Want(t, dir, engine, "1")
					chdbtest.Want(t, dir, "SELECT count(), uniqExact(record_id), max(kafka_offset) FROM audit.events", "100\t100\t99")
				}
				chdbtest.Want(t, dir, tables, "0")
			})
			t.Run("after a restart", func(t *testing.T) {
				chdbtest.StartIn(t, dir)
				s := open(t, dir)
				again := append([]ingest.Row{row(t, call(101, "list_panes"), 100)}, rows...)
				for i := range again {
					again[i].Source.Offset += 1000
				}
				if err := s.InsertRows(t.Context(), again, start.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				want := "101\t100\t1100"
				chdbtest.Want(t, dir, "SELECT count(), countIf(ingested_at = min_at), max(kafka_offset) FROM (SELECT *, min(ingested_at) OVER () AS min_at FROM audit.events FINAL)", want)
				chdbtest.Query(t, dir, "OPTIMIZE TABLE audit.events FINAL")
				chdbtest.Want(t, dir, "SELECT count(), countIf(ingested_at = min_at), max(kafka_offset) FROM (SELECT *, min(ingested_at) OVER () AS min_at FROM audit.events)", want)
				chdbtest.Want(t, dir, "SELECT sum(calls) FROM audit.hourly", "101") // the views follow
				chdbtest.Want(t, dir, "SELECT sum(bitmapCardinality(seqs)) FROM audit.session_states FINAL", "101")
			})
		})
	}
}

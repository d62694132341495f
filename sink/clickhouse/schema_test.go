package clickhouse_test

import (
	"auditproxy/sink/clickhouse/chdb/chdbtest"
	"testing"
)

// TestSchema asks the engine what holds of the tables.
func TestSchema(t *testing.T) {
	dir := migrated(t)
	t.Run("inserts are synced", func(t *testing.T) {
		// Every table with rows of its own syncs them, and the directory that names
		// them, before an insert is answered; a merge is synced before its parts go.
		chdbtest.Want(t, dir, `SELECT name FROM system.tables WHERE database = 'audit' AND engine LIKE '%MergeTree' AND NOT (
			engine_full LIKE '%fsync_after_insert = 1%' AND engine_full LIKE '%fsync_part_directory = 1%')`)
		chdbtest.Want(t, dir, `SELECT name FROM system.tables WHERE database = 'audit' AND name IN ('events', 'dead_letters', 'gaps', 'operation_states')
			AND engine_full NOT LIKE '%min_rows_to_fsync_after_merge = 1%'`)
	})
	t.Run("strangers choose no partition and no dictionary", func(t *testing.T) {
		// A dictionary, and a partition, may hold only what we choose ourselves.
		chdbtest.Want(t, dir, `SELECT name FROM system.columns WHERE database = 'audit' AND table = 'events' AND type LIKE '%LowCardinality%' ORDER BY name`,
			"kafka_topic", "kind", "outcome")
		chdbtest.Want(t, dir, `SELECT DISTINCT partition_key FROM system.tables WHERE database = 'audit' AND name = 'events'`, "toYYYYMM(ts)")
	})
}

package clickhouse_test

import (
	"os"
	"strings"
	"testing"

	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
)

// TestSchema asks the engine what holds of the tables.
func TestSchema(t *testing.T) {
	dir := migrated(t)
	t.Run("its columns are listed", func(t *testing.T) {
		const golden = "../../schemas/clickhouse/columns.txt"
		got := strings.Join(chdbtest.QueryFormat(t, dir, "TSVRaw", `SELECT concat(table, '\t', name, '\t', type, default_kind = '' ? '' : concat('\t', default_kind, ' ', default_expression)) FROM system.columns
			WHERE database = 'audit' AND table IN (SELECT name FROM system.tables WHERE database = 'audit' AND engine LIKE '%MergeTree') ORDER BY table, position`), "\n") + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%v; go test ./sink/clickhouse -run TestSchema -update writes it (-want +got):\n%s", err, diff)
		}
	})
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

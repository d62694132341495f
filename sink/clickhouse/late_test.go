package clickhouse_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestLateRecords stores a late record in partitions that are over for long: no
// merge writes them again.
func TestLateRecords(t *testing.T) {
	const (
		large  = 20_000 // records of the old partition
		latest = "SELECT table, name, rows FROM system.parts WHERE database = 'audit' AND table IN ('events', 'operation_states') AND active ORDER BY table, name"
		// What such a table once did. When it has merged all its partitions, the
		// others had the time to.
		rewriting = "CREATE TABLE audit.rewriting (n UInt64) ENGINE = ReplacingMergeTree PARTITION BY n % 40 ORDER BY n " +
			"SETTINGS min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1"
	)
	dir := migratedDir(t)
	then := start.Add(-40 * 24 * time.Hour)
	record := func(no int) ingest.Row {
		r := call(no%1000, "list_panes")
		r.TS, r.SessionID = then, audit.NewID(then)
		return row(t, r, uint64(no))
	}
	var before []string
	t.Run("stored", func(t *testing.T) {
		chdbtest.StartIn(t, dir)
		s := open(t, dir)
		chdbtest.Query(t, dir, rewriting)
		rows := make([]ingest.Row, large)
		for i := range rows {
			rows[i] = record(i)
		}
		for _, rows := range [][]ingest.Row{rows, {record(large)}} {
			if err := s.InsertRows(t.Context(), rows, then); err != nil {
				t.Fatal(err)
			}
			chdbtest.Query(t, dir, "INSERT INTO audit.rewriting SELECT number FROM numbers(40)")
		}
		if before = chdbtest.Query(t, dir, latest); len(before) != 4 {
			t.Fatalf("the parts are %q, want two of each table", before)
		}
	})
	// Days later: the age of a part is that of its directory.
	names, err := filepath.Glob(dir + "/data/store/*/*/*_*_*_*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Chtimes(name, then, then); err != nil {
			t.Fatal(err)
		}
	}
	chdbtest.StartIn(t, dir)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for chdbtest.Query(t, dir, "SELECT count() FROM system.parts WHERE database = 'audit' AND table = 'rewriting' AND active")[0] != "40" {
		<-tick.C
	}
	chdbtest.Want(t, dir, latest, before...)
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events FINAL", strconv.Itoa(large+1))
}

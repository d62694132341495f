package clickhouse_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestMergeInLittleMemory merges the parts of some inserts: no merge needs so much
// memory that readers and other inserts get none.
func TestMergeInLittleMemory(t *testing.T) {
	const parts, rows = 6, 4000
	dir := migrated(t)
	s := open(t, dir)
	chdbtest.Query(t, dir, "SYSTEM STOP MERGES")
	for part := range parts {
		list := make([]ingest.Row, rows)
		for i := range list {
			r := call(i%1000, "list_panes")
			r.RecordID = audit.NewID(start)
			r.Args = audit.JSON(fmt.Sprintf(`{"number":%d,"text":"%s"}`, i, strings.Repeat("word ", 150)))
			list[i] = row(t, r, uint64(part*rows+i))
		}
		if err := s.InsertRows(t.Context(), list, start); err != nil {
			t.Fatal(err)
		}
	}
	chdbtest.Query(t, dir, "SYSTEM START MERGES")
	chdbtest.Query(t, dir, "OPTIMIZE TABLE audit.events FINAL")
	chdbtest.Want(t, dir, "SELECT count(), sum(rows) FROM system.parts WHERE database = 'audit' AND table = 'events' AND active", "1\t"+strconv.Itoa(parts*rows))
}

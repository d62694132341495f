package clickhouse_test

import (
	"context"
	"testing"
	"time"

	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestLongStatement has statements run for longer than the timeout: one with a
// deadline is waited for, as retention and migrations need it, another is not.
func TestLongStatement(t *testing.T) {
	dir := chdbtest.Start(t)
	db, err := clickhouse.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true, Timeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const long = "SELECT sleepEachRow(0.5) FROM numbers(4) SETTINGS max_block_size = 1"
	limited, cancel := db.Long(t.Context())
	defer cancel()
	for _, s := range []string{"CREATE DATABASE ${database}", "CREATE TABLE ${database}.rows (n UInt8) ENGINE = MergeTree ORDER BY n", "INSERT INTO ${database}.rows " + long} {
		if err := db.Exec(limited, "trying", s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := db.Exec(t.Context(), "trying", "INSERT INTO ${database}.rows "+long); err == nil {
		t.Error("without a deadline, an answer that does not come is waited for")
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := db.Exec(short, "trying", "INSERT INTO ${database}.rows "+long); err == nil {
		t.Error("a statement outlives its deadline")
	}
}

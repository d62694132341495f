// Package storetest opens stores in ClickHouse's engine, for tests.
package storetest

import (
	"testing"
	"time"

	"auditproxy/collector/store"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// Open starts an engine in a directory, makes the tables in it, and returns their
// store. Engine and store end with the test. What keep leaves zero is kept for 400
// days.
func Open(t testing.TB, keep clickhouse.Retention) (s *store.Store, dir string) {
	t.Helper()
	const long = 400 * 24 * time.Hour
	if keep.Events == 0 {
		keep.Events = long
	}
	if keep.DeadLetters == 0 {
		keep.DeadLetters = long
	}
	dir = chdbtest.Start(t)
	s, err := store.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

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

// long is how long tests keep what they give no time for.
const long = 400 * 24 * time.Hour

// Open starts an engine with tables in a directory, and returns their store. Engine
// and store end with the test. What keep leaves zero is kept for 400 days.
func Open(t testing.TB, keep clickhouse.Retention) (s *store.Store, dir string) {
	t.Helper()
	if keep.Events == 0 {
		keep.Events = long
	}
	if keep.DeadLetters == 0 {
		keep.DeadLetters = long
	}
	dir = Start(t)
	s = open(t, dir, keep)
	t.Cleanup(func() { s.Close() })
	return s, dir
}

// Start starts an engine with tables, and returns its directory. Both end with the
// test.
func Start(t testing.TB) (dir string) {
	t.Helper()
	return chdbtest.StartWith(t, "tables", func(dir string) {
		t.Helper()
		open(t, dir, clickhouse.Retention{Events: long, DeadLetters: long}).Close()
	})
}

func open(t testing.TB, dir string, keep clickhouse.Retention) *store.Store {
	t.Helper()
	s, err := store.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		s.Close()
		t.Fatal(err)
	}
	return s
}

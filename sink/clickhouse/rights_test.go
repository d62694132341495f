package clickhouse_test

import (
	"testing"

	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestMigrateReadsOnly: where all is there, Migrate does nothing that a user
// with the least rights may not, as which the engine's reader stands here.
func TestMigrateReadsOnly(t *testing.T) {
	dir := chdbtest.Start(t)
	if _, err := open(t, dir).Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	s, err := clickhouse.OpenBare(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Reader), Uncompressed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if applied, err := s.Migrate(t.Context(), keep); err != nil || len(applied.Migrations) != 0 || applied.Users {
		t.Errorf("Migrate = %+v, %v, want nothing to do", applied, err)
	}
}

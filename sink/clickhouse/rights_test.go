package clickhouse_test

import (
	"strings"
	"testing"

	"auditproxy/schemas"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestUsersAreRenewed: what users.sql creates unless it exists is altered too,
// in statements that the engine understands. It cannot run them: it has no
// place for roles.
func TestUsersAreRenewed(t *testing.T) {
	dir := chdbtest.Start(t)
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, names := range []schemas.Names{{Database: "audit"}, {Database: "audit", Cluster: schemas.Cluster{Name: "c"}}} {
		for _, statement := range schemas.Statements(sql, names) {
			again := clickhouse.Renewed(statement)
			bare := strings.HasPrefix(statement, "CREATE ROLE") && !strings.Contains(statement, "SETTINGS")
			if strings.HasPrefix(statement, "CREATE") != (len(again) == 1) && !bare {
				t.Errorf("%s\nis renewed by %q", statement, again)
			}
			for _, a := range again {
				n++
				quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(a)
				chdbtest.Query(t, dir, "SELECT formatQuery('"+quoted+"')")
				if strings.Contains(a, "EXISTS") || !strings.HasPrefix(a, "ALTER ") {
					t.Errorf("%s", a)
				}
			}
		}
	}
	if n != 10 {
		t.Errorf("%d statements renew, want 5, and 5 for a cluster", n)
	}
}

// TestMigrateReadsOnly: where all is there, Migrate does nothing that a user
// with the least rights may not, as which the engine's reader stands here.
func TestMigrateReadsOnly(t *testing.T) {
	dir := migrated(t)
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

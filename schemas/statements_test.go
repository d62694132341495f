package schemas_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"auditproxy/schemas"
)

// TestStatements compares what is sent to one server, to a cluster, and to one
// whose shards have a part each. -update writes it, as after a new migration.
func TestStatements(t *testing.T) {
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	users, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	replicated := schemas.Cluster{Name: "prod", ReplicaPath: "/clickhouse/tables/{shard}/<database>/<table>", ReplicaName: "{replica}"}
	distributed := replicated
	distributed.Distributed = true
	for _, tt := range []struct {
		file    string
		cluster schemas.Cluster
	}{
		{"testdata/server.txtar", schemas.Cluster{}},
		{"testdata/cluster.txtar", replicated},
		{"testdata/distributed.txtar", distributed},
	} {
		var got txtar.Archive
		add := func(name, sql string) {
			text := strings.Join(schemas.Statements(sql, schemas.Names{Database: "audit", Cluster: tt.cluster}), ";\n\n") + ";\n"
			got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text)})
		}
		for _, m := range list {
			add(m.Name, m.SQL)
		}
		add("users", users)
		if *update {
			if err := os.WriteFile(tt.file, txtar.Format(&got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
			t.Errorf("%s; go test ./schemas -update writes it (-want +got):\n%s", tt.file, diff)
		}
	}
}

// TestSpread: on a cluster with shards, what a view makes of a session's records
// is kept where these are.
func TestSpread(t *testing.T) {
	list, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	var (
		cluster = schemas.Cluster{Name: "prod", Distributed: true}
		feed    = regexp.MustCompile(`(?m)^CREATE MATERIALIZED VIEW .* TO \$\{database\}\.(\w+) AS`)
		table   = regexp.MustCompile(`(?ms)^CREATE TABLE IF NOT EXISTS \$\{database\}\.(\w+) .*?^ENGINE = (.*?;)$`)
		fed     = map[string]bool{}
		found   = 0
	)
	for _, m := range list {
		for _, f := range feed.FindAllStringSubmatch(m.SQL, -1) {
			fed[f[1]] = true
		}
	}
	for _, m := range list {
		for _, f := range table.FindAllStringSubmatch(m.SQL, -1) {
			if fed[f[1]] && strings.Contains(f[2], "session_id") {
				found++
				if cluster.Part(f[1]) == f[1] {
					t.Errorf("table %q has rows by session, and is whole on each server: add it to spread", f[1])
				}
			}
		}
	}
	if found != 5 {
		t.Errorf("%d tables by session, want 5", found)
	}
}

// TestLastStatement reads a last statement that no semicolon ends: a migration would be
// noted as applied without it.
func TestLastStatement(t *testing.T) {
	for _, sql := range []string{"SELECT 1;\nSELECT 2", "SELECT 1;\nSELECT 2\n", "SELECT 1;\nSELECT 2\n\n-- end\n"} {
		if diff := cmp.Diff([]string{"SELECT 1", "SELECT 2"}, schemas.Statements(sql, schemas.Names{Database: "audit"})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", sql, diff)
		}
	}
}

package clickhouse

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse/chdb/servertest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// replicated is how tests replicate, below a path that the servers share.
func replicated(path string) Cluster {
	return Cluster{
		Cluster: schemas.Cluster{Name: "prod", ReplicaPath: path + "/clickhouse/tables/{shard}/<database>/<table>", ReplicaName: "{replica}"},
		Quorum:  "auto", QuorumTimeout: 30 * time.Second,
	}
}

// statements returns all migrations for a server of a cluster, which this engine
// cannot run ON CLUSTER.
func statements(t *testing.T, c Cluster) (list []string) {
	t.Helper()
	migrations, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	names := schemas.Names{Database: "audit", Cluster: c.Cluster}
	list = schemas.Statements(migrationsTable, names)
	for _, m := range migrations {
		list = append(list, schemas.Statements(m.SQL, names)...)
	}
	for i := range list {
		list[i] = strings.Replace(list[i], "ON CLUSTER prod", "", 1)
	}
	return list
}

// TestShards refuses a cluster of several shards of which each would have some of
// the records.
func TestShards(t *testing.T) {
	port := servertest.Port(t)
	for _, tt := range []struct {
		shards int
		change func(*Cluster)
		want   string // of the error
	}{
		{2, func(*Cluster) {}, `cluster "prod" has 2 shards, and a reader of one would not see the records of the others: set clickhouse.distributed`},
		// From here on the engine refuses ON CLUSTER.
		{1, func(*Cluster) {}, "Replicated DDL queries are disabled"},
		{2, func(c *Cluster) { c.Distributed = true }, "Replicated DDL queries are disabled"},
		{2, func(c *Cluster) { c.ReplicaPath = "/t/<table>" }, "Replicated DDL queries are disabled"},
	} {
		s := servertest.Start(t, servertest.Config{Port: port, Config: servertest.Replica("", 1, "01", slices.Repeat([][]string{{port}}, tt.shards)...)})
		c := replicated("")
		tt.change(&c)
		db, err := Open(Config{Addrs: []string{s.Addr}, Database: "audit", User: "admin", Cluster: c})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Migrate(t.Context(), Retention{Events: time.Hour, DeadLetters: time.Hour})
		if !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%d shards, %+v: %v, want %s", tt.shards, c, err, tt.want)
		}
		db.Close()
		s.Stop()
	}
}

// TestReplicas makes the tables of a cluster on two servers with ZooKeeper. They
// stay read-only, because this engine does not send parts to others: what alters
// or fills them is refused, and they show no more than that they were made.
func TestReplicas(t *testing.T) {
	zookeeper := servertest.ZooKeeper(t)
	ports := []string{servertest.Port(t), servertest.Port(t)}
	first := servertest.Start(t, servertest.Config{Port: ports[0], Config: servertest.Replica(zookeeper, 1, "01", ports)})
	second := servertest.Start(t, servertest.Config{Port: ports[1], Config: servertest.Replica(zookeeper, 2, "01", ports)})
	conn := first.Open(t, "admin", "")
	refused := 0
	for _, sql := range statements(t, replicated("/shared")) {
		switch err := conn.Exec(t.Context(), sql); {
		case err == nil:
		case codeOf(err) == 242 && !strings.HasPrefix(sql, "CREATE"):
			refused++
		case slices.Contains([]int32{8, 47}, codeOf(err)) && refused > 0 && !strings.HasPrefix(sql, "CREATE TABLE"): // about a column that was refused
		default:
			t.Fatalf("%s: %v", sql, err)
		}
	}
	db, err := Open(Config{Addrs: []string{first.Addr}, Database: "audit", User: "admin", Cluster: replicated("/shared")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	// The second server joins.
	lacking := func() map[string]string {
		t.Helper()
		servers, err := db.servers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		own, err := db.ownTables()
		if err != nil {
			t.Fatal(err)
		}
		missing, err := missingTables(servers, own)
		if err != nil || len(servers) != 2 {
			t.Fatalf("%d servers, %v", len(servers), err)
		}
		return missing
	}
	missing := lacking()
	if len(missing) < 30 || missing["events"] == "" || missing["pipe_destinations"] == "" {
		t.Errorf("the second server lacks %q, want all tables", slices.Sorted(maps.Keys(missing)))
	}
	second.Exec(t, "CREATE DATABASE audit")
	late := second.Open(t, "admin", "")
	made := makeTables(missing, func(create string) error {
		sql := onCluster(create, "prod")
		if !strings.Contains(sql, " IF NOT EXISTS ") || !strings.Contains(sql, " ON CLUSTER prod ") {
			t.Errorf("not for a cluster: %s", sql)
		}
		return late.Exec(t.Context(), strings.NewReplacer(" ON CLUSTER prod ", " ", "'/shared/", "'/").Replace(sql))
	})
	if made != nil {
		t.Fatal(made)
	}
	if missing := lacking(); len(missing) > 0 {
		t.Errorf("the second server still lacks %q", slices.Sorted(maps.Keys(missing)))
	}
	for _, s := range []*servertest.Server{first, second} {
		got := s.Query(t, "SELECT total_replicas, count() FROM system.replicas WHERE database = 'audit' GROUP BY 1")
		if len(got) != 1 || !strings.HasPrefix(got[0], "(2,") {
			t.Errorf("replicas and tables: %q, want 2 replicas of each", got)
		}
	}
	// It runs nothing ON CLUSTER, but has the columns of the queue.
	got := first.Query(t, "SELECT name, type FROM system.columns WHERE database = 'system' AND table = 'distributed_ddl_queue' AND name IN ('cluster', 'entry', 'host', 'port', 'status', 'exception_text') ORDER BY name")
	if len(got) != 6 {
		t.Errorf("columns of the queue: %q", got)
	}
	if _, _, err := db.Settled(t.Context()); err == nil || !strings.Contains(err.Error(), "not behind") || !strings.Contains(err.Error(), "242") {
		t.Errorf("a replica that is read-only: %v, want that it is behind", err)
	}
	// A real quorum that cannot be. Without one this engine tries for minutes.
	err = db.Insert(t.Context(), "INSERT INTO audit.gaps (reason)", []byte("token"), func(b driver.Batch) error { return b.Append("removed") })
	if got := Classify("inserting", err); codeOf(err) != 285 || ingest.ClassOf(got) != ingest.Retry || !strings.Contains(got.Error(), "start the other replicas") {
		t.Errorf("an insert: %v of class %v, want code 285 and to try again", got, ingest.ClassOf(got))
	}
}

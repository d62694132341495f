package clickhouse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse/chdb/servertest"
)

// TestOnCluster runs statements on a cluster of two servers. If one is down, the
// error says what to do, and the statement has run there once it is back. The
// servers are old: a modern one says in its queue which server is missing.
func TestOnCluster(t *testing.T) {
	keeper := servertest.ZooKeeper(t)
	ports := []string{servertest.Port(t), servertest.Port(t)}
	var servers []*oldServer
	var dbs []*DB
	for i, port := range ports {
		more := fmt.Sprintf(`<zookeeper><node><host>127.0.0.1</host><port>%s</port></node></zookeeper>
			<macros><shard>1</shard><replica>r%d</replica></macros><distributed_ddl><path>/ddl</path></distributed_ddl>
			<interserver_http_host>127.0.0.1</interserver_http_host><interserver_http_port>%s</interserver_http_port>
			<remote_servers><prod><shard>`, keeper, i, servertest.Port(t))
		for _, p := range ports {
			more += "<replica><host>127.0.0.1</host><port>" + p + "</port><user>default</user><password>" + serverPassword + "</password></replica>"
		}
		server := newOldServer(t, port, more+`</shard></prod></remote_servers>`, "<distributed_ddl_task_timeout>5</distributed_ddl_task_timeout>")
		server.start(t)
		db, err := OpenBare(Config{Addrs: []string{server.addr}, Database: "default", User: "default", Password: serverPassword,
			Cluster: Cluster{Cluster: schemas.Cluster{Name: "prod", ReplicaPath: "/t/{shard}", ReplicaName: "{replica}"}, Quorum: "auto", QuorumTimeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		servers, dbs = append(servers, server), append(dbs, db)
	}
	has := func(db *DB, table string) bool {
		var n uint64
		return db.conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = 'default' AND name = ?", table).Scan(&n) == nil && n == 1
	}
	create := func(table string) error {
		return dbs[0].Exec(t.Context(), "making a table", "CREATE TABLE ${database}.%s ${on_cluster} (x Int32) ENGINE = Log", table)
	}
	if err := create("a"); err != nil {
		t.Fatal(err)
	}
	for i, db := range dbs {
		if !has(db, "a") {
			t.Errorf("server %d has no table", i+1)
		}
	}
	servers[1].kill()
	err := create("b")
	if !strings.Contains(fmt.Sprint(err), "a server of the cluster does not run: start it, or remove it from remote_servers") {
		t.Errorf("with a server down: %v", err)
	}
	if !has(dbs[0], "b") {
		t.Error("the server that runs has no table")
	}
	servers[1].start(t)
	for !has(dbs[1], "b") {
		if err := wait.For(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

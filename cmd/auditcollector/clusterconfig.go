package main

import (
	"strconv"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse"
)

// maxQuorumTimeout leaves an insert time within that in which a consumer group
// waits for a member.
const maxQuorumTimeout = 35 * time.Second

// clusterKeys configure how the tables are replicated.
func clusterKeys() []cli.Key {
	return []cli.Key{
		{Name: "clickhouse.cluster", Kind: cli.Text, Usage: "cluster in the servers' remote_servers on which tables are replicated; none: one server"},
		{Name: "clickhouse.replica_path", Kind: cli.Text, Default: "/clickhouse/tables/{shard}/<database>/<table>", Usage: "path of a new table in Keeper, with the servers' macros"},
		{Name: "clickhouse.replica_name", Kind: cli.Text, Default: "{replica}", Usage: "name of a server's replica of a new table, with its macros"},
		{Name: "clickhouse.distributed", Kind: cli.Bool, Usage: "spread sessions over the cluster's shards; each table has its name_local on a shard"},
		{Name: "clickhouse.insert_quorum", Kind: cli.Text, Default: "auto", Usage: "replicas that must have a batch before it counts as stored: a number, or auto for the majority"},
		{Name: "clickhouse.insert_quorum_timeout", Kind: cli.Duration, Default: "30s", Usage: "longest wait for these replicas; then the batch is sent again"},
		{Name: "clickhouse.sequential_consistency", Kind: cli.Bool, Usage: "read what a quorum has, for completeness and alerts; inserts into a table wait for one another"},
	}
}

// cluster checks that no value is without effect, and that the replicas of one
// table can find each other, today and with one that joins later.
func (c *checker) cluster() clickhouse.Cluster {
	const key, path, name, shards, quorum, timeout, sequential = "clickhouse.cluster", "clickhouse.replica_path", "clickhouse.replica_name", "clickhouse.distributed", "clickhouse.insert_quorum", "clickhouse.insert_quorum_timeout", "clickhouse.sequential_consistency"
	cluster := clickhouse.Cluster{
		Cluster:       schemas.Cluster{Name: c.String(key), ReplicaPath: c.String(path), ReplicaName: c.String(name), Distributed: c.Bool(shards)},
		Quorum:        c.String(quorum),
		QuorumTimeout: c.Duration(timeout),
		Sequential:    c.Bool(sequential),
	}
	if cluster.Name == "" {
		for _, k := range clusterKeys() {
			if c.Source(k.Name).Layer != cli.Default {
				c.Problem(k.Name, "would not be used: set clickhouse.cluster, or remove it")
			}
		}
		return clickhouse.Cluster{}
	}
	if len(c.List("clickhouse.addr")) == 0 {
		c.Problem(key, "needs clickhouse.addr: the local engine is not replicated")
	}
	if !clickhouse.IsIdentifier(cluster.Name) {
		c.Problem(key, "is %q, want 1 to 64 of A-Z a-z 0-9 _: give the cluster in remote_servers another name", cluster.Name)
	}
	switch p := cluster.ReplicaPath; {
	case !clickhouse.IsPlaceInKeeper(p) || !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/"):
		c.Problem(path, "is %q, want a path in Keeper that starts with / and has no spaces or quotes", p)
	case strings.Contains(p, "{uuid}"):
		c.Problem(path, "is %q: a replica that joins later would have another {uuid}; use <database> and <table>", p)
	case !strings.Contains(p, "<table>") && !strings.Contains(p, "{table}"):
		c.Problem(path, "is %q: all tables would have one path; add /<table>", p)
	case strings.Contains(p, "{replica}"):
		c.Problem(path, "is %q: each replica would be alone at its path; put {replica} in clickhouse.replica_name", p)
	}
	if cluster.Distributed && !strings.Contains(cluster.ReplicaPath, "{shard}") {
		c.Problem(shards, "needs {shard} in clickhouse.replica_path: all shards would replicate each other's records")
	}
	if n := cluster.ReplicaName; !clickhouse.IsPlaceInKeeper(n) || strings.Contains(n, "/") || !strings.Contains(n, "{") {
		c.Problem(name, "is %q, want a name with a macro such as {replica}, whose value differs between servers", n)
	}
	if n, err := strconv.Atoi(cluster.Quorum); cluster.Quorum != "auto" && (err != nil || n < 1 || n > 100) {
		c.Problem(quorum, "is %q, want auto or a number of replicas; 1 does not wait for any other", cluster.Quorum)
	}
	if cluster.Sequential && cluster.Quorum == "1" {
		c.Problem(sequential, "needs clickhouse.insert_quorum of more than 1: without a quorum it reads everything and proves nothing")
	}
	if d := cluster.QuorumTimeout; d < time.Second || d > maxQuorumTimeout || d%time.Millisecond != 0 {
		c.Problem(timeout, "is %v, want 1s to %v", d, maxQuorumTimeout)
	}
	return cluster
}

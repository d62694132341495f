package main

import (
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"
)

// TestClusterConfig checks that combinations that would lose records, or have no
// effect, end the start.
func TestClusterConfig(t *testing.T) {
	t.Parallel()
	cluster := []string{"--clickhouse-addr", "127.0.0.1:1", "--clickhouse-cluster", "prod"}
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"it replicates no local engine", []string{"--clickhouse-cluster", "prod"}, []string{"clickhouse.cluster", "needs clickhouse.addr"}},
		{"it wants a name for SQL", []string{"--clickhouse-addr", "127.0.0.1:1", "--clickhouse-cluster", "prod'"}, []string{"clickhouse.cluster", "remote_servers"}},
		{"it wants no path without a cluster", []string{"--clickhouse-replica-path", "/x/<table>"}, []string{"clickhouse.replica_path", "would not be used", "clickhouse.cluster"}},
		{"it wants no quorum without a cluster", []string{"--clickhouse-insert-quorum", "2"}, []string{"clickhouse.insert_quorum", "would not be used"}},
		{"it wants an absolute path", append(cluster, "--clickhouse-replica-path", "x/<table>"), []string{"clickhouse.replica_path", "starts with /"}},
		{"it wants a path without quotes", append(cluster, "--clickhouse-replica-path", "/x'/<table>"), []string{"clickhouse.replica_path", "quotes"}},
		{"it wants a path for each table", append(cluster, "--clickhouse-replica-path", "/x/{shard}"), []string{"clickhouse.replica_path", "/<table>"}},
		{"it wants a path that a late replica finds", append(cluster, "--clickhouse-replica-path", "/x/{uuid}/<table>"), []string{"clickhouse.replica_path", "joins later"}},
		{"it wants a path that replicas share", append(cluster, "--clickhouse-replica-path", "/x/{replica}/<table>"), []string{"clickhouse.replica_path", "alone", "clickhouse.replica_name"}},
		{"it wants shards apart", append(cluster, "--clickhouse-distributed", "--clickhouse-replica-path", "/x/<table>"), []string{"clickhouse.distributed", "{shard}", "clickhouse.replica_path"}},
		{"it spreads nothing without a cluster", []string{"--clickhouse-distributed"}, []string{"clickhouse.distributed", "would not be used"}},
		{"it wants a name for each replica", append(cluster, "--clickhouse-replica-name", "r1"), []string{"clickhouse.replica_name", "macro"}},
		{"it wants a number", append(cluster, "--clickhouse-insert-quorum", "most"), []string{"clickhouse.insert_quorum", "auto"}},
		{"it wants a quorum", append(cluster, "--clickhouse-insert-quorum", "0"), []string{"clickhouse.insert_quorum", "auto"}},
		{"it wants a quorum to read", append(cluster, "--clickhouse-sequential-consistency", "--clickhouse-insert-quorum", "1"), []string{"clickhouse.sequential_consistency", "clickhouse.insert_quorum"}},
		{"it wants time within that of the group", append(cluster, "--clickhouse-insert-quorum-timeout", "10m"), []string{"clickhouse.insert_quorum_timeout", "35s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := emptyHome(t).run(t, append([]string{"migrate"}, tt.args...)...)
			if got.code != cli.ExitConfig {
				t.Errorf("exit code %d, want %d", got.code, cli.ExitConfig)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("standard error has no %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

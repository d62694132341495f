package clickhouse_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/servertest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TestDistributed spreads records over two shards of one server each, which
// needs no keeper. All but the engines' replication is as on a cluster.
func TestDistributed(t *testing.T) {
	cluster := clickhouse.Cluster{
		Cluster: schemas.Cluster{Name: "prod", ReplicaPath: "/t/{shard}/<table>", ReplicaName: "{replica}", Distributed: true},
		Quorum:  "auto", QuorumTimeout: 30 * time.Second,
	}
	ports := []string{servertest.Port(t), servertest.Port(t)}
	var servers []*servertest.Server
	for i, port := range ports {
		c := usersXML(t, cluster.Cluster, map[string]string{"collector": "audit_writer", "auditor": "audit_reader", "ann": "audit_tenant_reader"})
		c.Port, c.Config = port, servertest.Replica("", i+1, fmt.Sprint(i+1), ports[:1], ports[1:])
		servers = append(servers, servertest.Start(t, c))
	}
	migrations, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	arguments := regexp.MustCompile(`ENGINE = Replicated(\w+)\('[^']*', '[^']*'(?:, )?([^)]*)\)`)
	var backfill []string
	for _, s := range servers {
		s.Exec(t, "CREATE DATABASE audit")
		s.Exec(t, "CREATE TABLE audit.migrations (number UInt32, name String, sha256 String, applied_at DateTime64(3, 'UTC'), needs UInt32 DEFAULT number) ENGINE = MergeTree ORDER BY number")
	}
	for _, m := range migrations {
		for _, sql := range schemas.Statements(m.SQL, schemas.Names{Database: "audit", Cluster: cluster.Cluster}) {
			sql = strings.Replace(arguments.ReplaceAllString(sql, "ENGINE = $1($2)"), "ON CLUSTER prod", "", 1)
			sql = regexp.MustCompile(`replicated_deduplication_window = (\d+), replicated_deduplication_window_seconds = \d+`).ReplaceAllString(sql, "non_replicated_deduplication_window = $1")
			if strings.HasPrefix(sql, "INSERT") {
				backfill = append(backfill, sql)
			}
			for _, s := range servers {
				s.Exec(t, sql)
			}
		}
	}

	const sessions, calls = 20, 10
	var rows []ingest.Row
	for i := range sessions {
		for j := range calls {
			r := call(j+1, "set_environment")
			r.Args = audit.JSON(fmt.Sprintf(`{"name":"V%d","value":{"len":1}}`, i))
			r.SessionID = fmt.Sprintf("019e8b1c-0000-7aaa-8bbb-0123456789%02d", i)
			r.Tenant = []string{"acme", "umbrella"}[i%2]
			rows = append(rows, row(t, r, uint64(i*calls+j)))
		}
	}
	db := openServer(t, clickhouse.Config{Addrs: []string{servers[0].Addr, servers[1].Addr}, Cluster: cluster, User: "collector", Password: "collector"})
	other := openServer(t, clickhouse.Config{Addrs: []string{servers[1].Addr}, Cluster: cluster, User: "collector", Password: "collector"})
	if err := db.Changed(t.Context()); err != nil {
		t.Errorf("views as they were made: %v", err)
	}
	for _, db := range []*clickhouse.DB{db, db, other} { // as after a lost answer, and after failover
		if err := db.InsertRows(t.Context(), rows, start); err != nil {
			t.Fatal(err)
		}
	}
	all := fmt.Sprintf("(%d)", sessions*calls)
	parts := []string{}
	see := func(s *servertest.Server, sql, want string) { // as who may only read
		t.Helper()
		if got, err := servertest.Rows(t.Context(), s.Open(t, "auditor", "auditor"), sql); err != nil || fmt.Sprint(got) != fmt.Sprint([]string{want}) {
			t.Errorf("%s: %q, %v, want %s", sql, got, err, want)
		}
	}
	for _, s := range servers {
		parts = append(parts, s.Query(t, "SELECT uniqExact(session_id) FROM audit.events_local")...)
		see(s, "SELECT count() FROM audit.events", all)
		see(s, "SELECT count() FROM audit.operations", all)
		see(s, "SELECT count(), sum(records), sum(missing_records) FROM audit.sessions", fmt.Sprintf("(%d,%d,%d)", sessions, sessions*calls, sessions))
		see(s, "SELECT count(), sum(bitmapCardinality(seqs)) FROM audit.session_states FINAL", fmt.Sprintf("(%d,%d)", sessions, sessions*calls))
		see(s, "SELECT sum(calls) FROM audit.hourly", all)
		see(s, "SELECT count() FROM audit.arrivals FINAL WHERE length(places) = 1", all)
		see(s, "SELECT count() FROM audit.conflicts", "(0)")
	}
	// Whole on each server of a cluster; here each has what it was sent.
	variables := append(servers[0].Query(t, "SELECT name, length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states GROUP BY 1"),
		servers[1].Query(t, "SELECT name, length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states GROUP BY 1")...)
	slices.Sort(variables)
	if len(variables) != sessions || variables[0] != fmt.Sprintf("('V0',%d)", calls) {
		t.Errorf("variables: %q, want one for each session with %d operations", variables, calls)
	}
	if a, b := parts[0], parts[1]; a == "(0)" || b == "(0)" {
		t.Errorf("sessions by shard: %v, want some on each", parts)
	}
	// A query within another, by who writes and by who may only read.
	reader, err := clickhouse.OpenReader(clickhouse.Config{Addrs: []string{servers[0].Addr}, Database: "audit", Cluster: cluster, User: "auditor", Password: "auditor"})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, conn := range []driver.Conn{db.Conn(), reader} {
		const within = "SELECT session_id FROM audit.session_states FINAL WHERE (tenant, session_id) IN (SELECT tenant, session_id FROM audit.session_states)"
		if got, err := servertest.Rows(t.Context(), conn, within); err != nil || len(got) != sessions {
			t.Errorf("%d sessions, %v, want %d", len(got), err, sessions)
		}
	}
	// What fills tables from others does it from all shards, and to each session's.
	for _, sql := range backfill {
		servers[0].Exec(t, sql+", distributed_foreground_insert = 1")
	}
	wantRows(t, servers[1], "SELECT count(), sum(bitmapCardinality(seqs)) FROM audit.session_states FINAL", fmt.Sprintf("(%d,%d)", sessions, sessions*calls))

	// A filter holds on the shards too, if the servers tell each other the user.
	for _, tt := range []struct{ user, sql, want string }{
		{"auditor", "SELECT count() FROM audit.events", all},
		{"auditor", "SELECT count() FROM audit.sessions", fmt.Sprintf("(%d)", sessions)},
		{"ann", "SELECT count() FROM audit.events", fmt.Sprintf("(%d)", sessions*calls/2)},
		{"ann", "SELECT DISTINCT tenant FROM audit.events", "('acme')"},
		{"ann", "SELECT groupUniqArray(tenant), count() FROM audit.session_states", fmt.Sprintf("(['acme'],%d)", sessions/2)},
		{"ann", "SELECT count() FROM audit.events_local WHERE tenant = 'umbrella'", "(0)"},
	} {
		got, err := servertest.Rows(t.Context(), servers[0].Open(t, tt.user, tt.user), tt.sql)
		if err != nil || fmt.Sprint(got) != fmt.Sprint([]string{tt.want}) {
			t.Errorf("%s: %s: %q, %v, want %s", tt.user, tt.sql, got, err, tt.want)
		}
	}
	testPolicyRules(t, db, reader)
}

// testPolicyRules asks the shipped rules on policies, which read the history of
// some users only, about sessions on other shards than those before them.
func testPolicyRules(t *testing.T, db *clickhouse.DB, reader driver.Conn) {
	var rows []ingest.Row
	add := func(host, session int, r audit.Record) {
		at := time.Now().Add(-time.Duration(48-47*session) * time.Hour)
		r.RecordID, r.SessionID, r.TS = audit.NewID(at), fmt.Sprintf("019e8b1c-0001-7aaa-8bbb-%04d%08d", host, session), at
		r.Seq, r.Host, r.User = uint64(len(rows)), fmt.Sprintf("h%d", host), "ann"
		rows = append(rows, row(t, r, uint64(10_000+len(rows))))
	}
	const hosts = 20
	loaded := func(hash, mode string) audit.Record {
		return audit.Record{Kind: audit.KindPolicy, Policy: audit.Policy{Hash: hash, Mode: mode, Event: "loaded"}.JSON()}
	}
	for host := range hosts {
		for session := range 2 {
			add(host, session, audit.Record{Kind: audit.KindSessionStart, ServerCommand: audit.Command{Command: "tmux"}})
		}
		add(host, 0, loaded("aa", "enforce"))
		if host%2 == 0 {
			add(host, 1, loaded("bb", "observe"))
		}
	}
	if err := db.InsertRows(t.Context(), rows, time.Now().Add(-10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	rules, err := alert.LoadShipped(alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"policy-changed": hosts / 2, "policy-switched-off": hosts}
	for _, r := range rules.All() {
		if n, ok := want[r.Name]; ok {
			got, err := servertest.Rows(t.Context(), reader, strings.ReplaceAll(r.Query, "{since:DateTime64(3)}", "now64(3) - INTERVAL 20 MINUTE"))
			if err != nil || len(got) != n {
				t.Errorf("%s finds %q, %v, want %d sessions", r.Name, got, err, n)
			}
		}
	}
}

package clickhouse_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// A replica is an engine that says how far it is.
type replica struct {
	addr   string
	behind bool

	mu   sync.Mutex
	said []string // statements and settings; guarded by mu
}

func newReplica(t *testing.T, dir string, behind bool) *replica {
	r := &replica{behind: behind}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	dial := chdb.Dialer(dir, chdb.Writer)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
	proxy.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		statement := string(body)
		r.mu.Lock()
		r.said = append(r.said, statement+" "+req.URL.Query().Get("select_sequential_consistency"))
		r.mu.Unlock()
		if strings.HasPrefix(statement, "SYSTEM SYNC REPLICA") {
			if r.behind {
				w.Header().Set("X-ClickHouse-Exception-Code", "159")
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, "Code: 159. DB::Exception: SYNC REPLICA audit.events: command timed out. (TIMEOUT_EXCEEDED)")
			}
			return
		}
		q := req.URL.Query()
		for _, unknown := range []string{"insert_quorum", "insert_quorum_timeout", "insert_quorum_parallel"} {
			q.Del(unknown)
		}
		req.URL.RawQuery = q.Encode()
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(statement)), int64(len(body))
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.addr = server.Listener.Addr().String()
	return r
}

func (r *replica) heard(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, text) })
}

// TestSettled asks no replica that is behind.
func TestSettled(t *testing.T) {
	dir := chdbtest.Start(t)
	cluster := clickhouse.Cluster{
		Cluster: schemas.Cluster{Name: "prod", ReplicaPath: "/t/{shard}/<table>", ReplicaName: "{replica}"},
		Quorum:  "auto", QuorumTimeout: 30 * time.Second,
	}
	ask := func(t *testing.T, cluster clickhouse.Cluster, replicas ...*replica) error {
		var addrs []string
		for _, r := range replicas {
			addrs = append(addrs, r.addr)
		}
		db, err := clickhouse.Open(clickhouse.Config{Database: "audit", Addrs: addrs, HTTP: true, Uncompressed: true, Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx, conn, err := db.Settled(t.Context())
		if err != nil {
			return clickhouse.Classify("asking", err)
		}
		var n uint64
		return conn.QueryRow(ctx, "SELECT count() FROM system.one").Scan(&n)
	}
	t.Run("the second is not behind", func(t *testing.T) {
		first, second := newReplica(t, dir, true), newReplica(t, dir, false)
		if err := ask(t, cluster, first, second); err != nil {
			t.Fatal(err)
		}
		if first.heard("system.one") || !second.heard("SYNC REPLICA audit.events LIGHTWEIGHT") || !second.heard("SYNC REPLICA audit.session_states LIGHTWEIGHT") || !second.heard("system.one") {
			t.Errorf("the first: %q\nthe second: %q", first.said, second.said)
		}
	})
	t.Run("all are behind", func(t *testing.T) {
		err := ask(t, cluster, newReplica(t, dir, true), newReplica(t, dir, true))
		if err == nil || ingest.ClassOf(err) != ingest.Retry || !strings.Contains(err.Error(), "a replica that is not behind") {
			t.Errorf("%v of class %v, want to try again", err, ingest.ClassOf(err))
		}
	})
	t.Run("a quorum is asked", func(t *testing.T) {
		cluster := cluster
		cluster.Sequential = true
		r := newReplica(t, dir, true)
		if err := ask(t, cluster, r); err != nil {
			t.Fatal(err)
		}
		if r.heard("SYNC REPLICA") || !r.heard("system.one 1") {
			t.Errorf("%q", r.said)
		}
	})
	t.Run("one server is asked as it is", func(t *testing.T) {
		r := newReplica(t, dir, true)
		if err := ask(t, clickhouse.Cluster{}, r); err != nil || r.heard("SYNC REPLICA") {
			t.Errorf("%v: %q", err, r.said)
		}
	})
}

package clickhouse_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/servertest"
)

// openServer returns a database of a server's administrator.
func openServer(t *testing.T, c clickhouse.Config) *clickhouse.DB {
	t.Helper()
	c.Database = "audit"
	if c.User == "" {
		c.User = "admin"
	}
	db, err := clickhouse.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// wantRows reports an error if a server's query has other rows.
func wantRows(t *testing.T, s *servertest.Server, sql string, want ...string) {
	t.Helper()
	if got := s.Query(t, sql); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %q, want %q", sql, got, want)
	}
}

// TestServer migrates and inserts over either protocol of a server, with and
// without compression.
func TestServer(t *testing.T) {
	s := servertest.Start(t, servertest.Config{})
	for _, c := range []clickhouse.Config{
		{Addrs: []string{s.Addr}},
		{Addrs: []string{s.Addr}, Uncompressed: true},
		{Addrs: []string{s.HTTP}, HTTP: true},
	} {
		t.Run(fmt.Sprintf("http=%t,uncompressed=%t", c.HTTP, c.Uncompressed), func(t *testing.T) {
			db := openServer(t, c)
			if _, err := db.Migrate(t.Context(), keep); err != nil {
				t.Fatal(err)
			}
			var rows []ingest.Row
			for i := range 100 {
				rows = append(rows, row(t, call(i+1, "list_panes"), uint64(i)))
			}
			for range 2 { // as after a lost answer
				if err := db.InsertRows(t.Context(), rows, start); err != nil {
					t.Fatal(err)
				}
			}
			wantRows(t, s, "SELECT count(), uniqExact(record_id), sum(length(ops)) FROM audit.events", "(100,100,100)")
			wantRows(t, s, "SELECT sum(calls) FROM audit.hourly", "(100)")
			s.Exec(t, "DROP DATABASE audit SYNC")
		})
	}
}

// A gate passes bytes on to a server, and can die at the worst times.
type gate struct {
	net.Listener
	most  atomic.Int64 // bytes that one connection sent
	limit atomic.Int64 // bytes that a connection may send; more kill the gate. 0: any number
	mute  atomic.Bool  // answers to connections that sent all are lost

	mu    sync.Mutex
	conns []net.Conn
}

// newGate returns a gate before an address.
func newGate(t *testing.T, addr string) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, client, server)
			g.mu.Unlock()
			var sent atomic.Int64
			running.Go(func() { g.pass(server, client, &sent, false) })
			running.Go(func() { g.pass(client, server, &sent, true) })
		}
	})
	t.Cleanup(func() {
		g.die()
		running.Wait()
	})
	return g
}

// die closes everything.
func (g *gate) die() {
	g.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.Close()
	}
}

func (g *gate) pass(to, from net.Conn, sent *atomic.Int64, answers bool) {
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if !answers && n > 0 {
			g.most.Store(max(g.most.Load(), sent.Add(int64(n))))
			if limit := g.limit.Load(); limit > 0 && sent.Load() > limit {
				g.die()
			}
		}
		if answers && g.mute.Load() && sent.Load() >= g.most.Load() && err == nil {
			continue
		}
		if _, writeErr := to.Write(b[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// TestFailover loses the first of two addresses of a server: before the insert,
// in the middle of its data, and after the rows are stored but before the answer.
// The next attempt goes to the other, and each row is there once.
func TestFailover(t *testing.T) {
	s := servertest.Start(t, servertest.Config{})
	if _, err := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}}).Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "SYSTEM STOP MERGES audit.events") // they would hide what was stored twice
	// insert returns what inserts some rows each time.
	insert := func(t *testing.T, db *clickhouse.DB) func() error {
		var rows []ingest.Row
		for i := range 500 {
			rows = append(rows, row(t, call(i+1, "list_panes"), uint64(i)))
		}
		return func() error { return db.InsertRows(t.Context(), rows, start) }
	}
	empty := func() { s.Exec(t, "TRUNCATE TABLE audit.events", "TRUNCATE TABLE audit.operation_states") }
	const stored = "SELECT count(), uniqExact(record_id) FROM audit.events"
	for _, when := range []string{"before", "during", "after"} {
		for _, http := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,http=%t", when, http), func(t *testing.T) {
				addr := s.Addr
				if http {
					addr = s.HTTP
				}
				first, second := newGate(t, addr), newGate(t, addr)
				open := func() *clickhouse.DB {
					return openServer(t, clickhouse.Config{Addrs: []string{first.Addr().String(), second.Addr().String()}, HTTP: http, Uncompressed: true})
				}
				if err := insert(t, open())(); err != nil { // to measure it
					t.Fatal(err)
				}
				empty()
				again := insert(t, open())
				answer := make(chan error)
				switch when {
				case "before":
					first.limit.Store(1)
				case "during":
					first.limit.Store(first.most.Load() / 2)
				case "after":
					first.mute.Store(true)
				}
				go func() { answer <- again() }()
				if when == "after" {
					for s.Query(t, stored)[0] != "(500,500)" {
						if t.Context().Err() != nil {
							t.Fatal("nothing was stored")
						}
					}
					first.die()
				}
				if err := <-answer; when != "before" && (err == nil || ingest.ClassOf(err) != ingest.Retry) {
					t.Errorf("%v of class %v, want retry", err, ingest.ClassOf(err))
				}
				var err error
				for range 3 {
					if err = again(); err == nil {
						break
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				wantRows(t, s, stored, "(500,500)")
				wantRows(t, s, "SELECT sum(bitmapCardinality(numbers)) FROM audit.operation_states FINAL", "(500)")
				empty()
			})
		}
	}
}

// TestReplicaErrors has a server answer an insert with what a cluster says whose
// replicas fail, when the rows are stored and when they are not: each is sent again with
// its token, and each row is there once.
func TestReplicaErrors(t *testing.T) {
	s := servertest.Start(t, servertest.Config{})
	if _, err := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}}).Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "SYSTEM STOP MERGES audit.events") // they would hide what was stored twice
	for _, tt := range []struct {
		code   int
		remedy string
	}{
		{242, "no contact to Keeper"},
		{285, "start the other replicas"},
		{286, "an earlier insert waits"},
		{319, "neither stored nor lost"},
	} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,stored=%t", tt.code, stored), func(t *testing.T) {
				f := newFailing(t, s.HTTP, tt.code, stored)
				db := openServer(t, clickhouse.Config{Addrs: []string{f.addr}, HTTP: true})
				rows := []ingest.Row{row(t, call(1, "list_panes"), 1), row(t, call(2, "list_panes"), 2)}
				err := db.InsertRows(t.Context(), rows, start)
				if err == nil || ingest.ClassOf(err) != ingest.Retry || !strings.Contains(err.Error(), tt.remedy) {
					t.Errorf("%v of class %v, want retry and %q", err, ingest.ClassOf(err), tt.remedy)
				}
				if err := db.InsertRows(t.Context(), rows, start); err != nil {
					t.Error(err)
				}
				if len(f.tokens) != 2 || f.tokens[0] == "" || f.tokens[0] != f.tokens[1] {
					t.Errorf("tokens %q, want the same twice", f.tokens)
				}
				wantRows(t, s, "SELECT count(), uniqExact(record_id) FROM audit.events", "(2,2)")
				s.Exec(t, "TRUNCATE TABLE audit.events")
			})
		}
	}
}

// A failing server passes requests on, and answers the first insert with an error.
type failing struct {
	addr   string
	tokens []string // of the inserts
}

func newFailing(t *testing.T, addr string, code int, stored bool) *failing {
	f := &failing{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	// Not the usual one, whose connections are closed when another test's server ends.
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// All of the request first: an answer that comes before its end is sent closes its body, and
		// with it the connection to the server.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") {
			proxy.ServeHTTP(w, r)
			return
		}
		f.tokens = append(f.tokens, r.URL.Query().Get("insert_deduplication_token"))
		if len(f.tokens) > 1 {
			proxy.ServeHTTP(w, r)
			return
		}
		if stored {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "Code: %d. DB::Exception: a replica fails. (NAME)\n", code)
	}))
	t.Cleanup(server.Close)
	f.addr = server.Listener.Addr().String()
	return f
}

package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"
)

// A serverFault is a ClickHouse server's fault on one insert.
type serverFault int

const (
	answersError serverFault = iota // stores nothing and reports why
	hangs                           // stores nothing and sends nothing, for a while or until the client is gone
	dropsReply                      // stores all, and the connection ends without an answer
)

// A faultServer is a ClickHouse server at a port that sometimes fails.
type faultServer struct {
	addr   string
	engine http.Handler

	mu   sync.Mutex
	plan []serverFault // of the next inserts of records; guarded by mu
	hang time.Duration // how long the last fault may last; guarded by mu
}

// serve gives the engine's writer a port.
func (h home) serve(t *testing.T) *faultServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := chdb.Dialer(h.dir+"/local", chdb.Writer)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
	quiet := log.New(io.Discard, "", 0)
	s := &faultServer{addr: l.Addr().String(), engine: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
	}}
	server := &http.Server{Handler: s, ErrorLog: quiet}
	go server.Serve(l)
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// fail has the next inserts of records fail. What hangs does so for a time at
// most.
func (s *faultServer) fail(hang time.Duration, faults ...serverFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.hang = append(s.plan, faults...), hang
}

// failed reports whether every planned fault has happened.
func (s *faultServer) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.plan) == 0
}

// next returns the fault for r; ok is false without one.
func (s *faultServer) next(r *http.Request) (f serverFault, hang time.Duration, ok bool) {
	if !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO audit.events ") {
		return 0, 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.plan) == 0 {
		return 0, 0, false
	}
	f, s.plan = s.plan[0], s.plan[1:]
	return f, s.hang, true
}

func (s *faultServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, hang, ok := s.next(r)
	if !ok {
		s.engine.ServeHTTP(w, r)
		return
	}
	switch fault {
	case answersError:
		io.Copy(io.Discard, r.Body)
		w.Header().Set("X-ClickHouse-Exception-Code", "241")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "Code: 241. DB::Exception: (total) memory limit exceeded. (MEMORY_LIMIT_EXCEEDED)")
		return
	case hangs:
		io.Copy(io.Discard, r.Body) // only then the client's close is noticed
		select {
		case <-r.Context().Done():
		case <-time.After(hang):
		}
	case dropsReply:
		s.engine.ServeHTTP(noReply{http.Header{}}, r)
	}
	panic(http.ErrAbortHandler)
}

// noReply is a reply that is discarded.
type noReply struct{ header http.Header }

func (n noReply) Header() http.Header         { return n.header }
func (n noReply) Write(b []byte) (int, error) { return len(b), nil }
func (n noReply) WriteHeader(int)             {}

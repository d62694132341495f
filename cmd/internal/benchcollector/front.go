package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"auditproxy/sink/clickhouse/chdb"
)

// A front serves an engine as a ClickHouse server at a port. It discards or
// refuses inserts of records, and forwards everything else: the tables and
// their columns are the engine's.
type front struct {
	addr    string
	refuses atomic.Bool // an outage

	server    *http.Server
	transport *http.Transport
	served    chan error
}

// newFront starts a front before the engine of dir. close ends it.
func newFront(dir string) (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	dial := chdb.Dialer(dir, chdb.Writer)
	f := &front{
		addr: l.Addr().String(),
		transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return dial(ctx, addr)
		}},
		served: make(chan error, 1),
	}
	engine := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: f.transport, FlushInterval: -1,
	}
	f.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO audit.events "):
			engine.ServeHTTP(w, r)
		case f.refuses.Load():
			http.Error(w, "out of order", http.StatusServiceUnavailable)
		default:
			// The answer follows the last byte, as ClickHouse's does.
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})}
	go func() { f.served <- f.server.Serve(l) }()
	return f, nil
}

func (f *front) close() {
	f.server.Close()
	<-f.served
	f.transport.CloseIdleConnections()
}

package httptls_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"auditproxy/internal/httptls"
)

// TestTransport changes what is trusted between requests, to a server and through a
// proxy to it.
func TestTransport(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	server.StartTLS()
	defer server.Close()
	proxy := httptest.NewServer(http.HandlerFunc(connect))
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for name, base := range map[string]*http.Transport{"directly": {}, "through a proxy": {Proxy: http.ProxyURL(through)}} {
		t.Run(name, func(t *testing.T) {
			connections.Store(0)
			pool := trusted
			transport := httptls.New(base, func() *tls.Config { return &tls.Config{RootCAs: pool.Clone()} })
			defer transport.CloseIdleConnections()
			client := http.Client{Transport: transport}
			for i, step := range []struct {
				pool  *x509.CertPool
				works bool
			}{{trusted, true}, {trusted, true}, {x509.NewCertPool(), false}, {trusted, true}} {
				pool = step.pool
				resp, err := client.Get(server.URL)
				if (err == nil) != step.works {
					t.Errorf("request %d: %v, want it to work: %v", i, err, step.works)
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			if n := connections.Load(); n != 3 {
				t.Errorf("%d connections, want one until the change, one that fails and one after it", n)
			}
		})
	}
}

// connect is a proxy's answer to CONNECT.
func connect(w http.ResponseWriter, r *http.Request) {
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, "no such server", http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, from); to.Close() })
	both.Go(func() { _, _ = io.Copy(from, to); from.Close() })
	both.Wait()
}

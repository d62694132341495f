package review

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/store"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

// served serves h at addr until the test ends, and returns a client for it.
func served(t *testing.T, addr string, h http.Handler) *http.Client {
	t.Helper()
	l, err := Listen(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, nil, h, zap.NewNop()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, goleak.IgnoreCurrent())
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

func TestServe(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "review.sock")} {
		client := served(t, addr, http.HandlerFunc(hello))
		resp, err := client.Get("http://x/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "hello" || err != nil {
			t.Errorf("at %s: %q, %v", addr, body, err)
		}
		r, err := http.NewRequest("GET", "http://x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", 2*maxHeader))
		if resp, err = client.Do(r); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("at %s, with a big header: %s", addr, resp.Status)
		}
	}
}

// TestCrowd holds all connections idle, and opens the page from one more. Some have
// asked before.
func TestCrowd(t *testing.T) {
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""} {
		client := served(t, "127.0.0.1:0", http.HandlerFunc(hello))
		for range 2 * maxConns {
			conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(idleTimeout / 2)); err != nil {
				t.Fatal(err)
			}
			if request == "" {
				continue
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("answer %v, %v, want 200", resp, err)
			}
		}
		client.Timeout = idleTimeout / 2
		resp, err := client.Get("http://x/")
		if err != nil {
			t.Fatalf("behind clients that have sent %q: %v", request, err)
		}
		resp.Body.Close()
	}
}

// parts is a store of so many parts of an export.
type parts struct {
	left int
}

func (p *parts) Calls(context.Context, store.Filter, store.Page) (store.Lines, error) {
	p.left--
	return store.Lines{Lines: make([]store.Line, exportPart), Older: p.left > 0}, nil
}

// deadlines counts how often a writer was given more time.
type deadlines struct {
	*httptest.ResponseRecorder
	n int
}

func (d *deadlines) SetWriteDeadline(time.Time) error { d.n++; return nil }

// TestExportTime checks that an export may take longer than a page, but no part
// of it.
func TestExportTime(t *testing.T) {
	s, err := newServer(Config{}, sources{callReader: &parts{left: 3}})
	if err != nil {
		t.Fatal(err)
	}
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, get("/calls.csv"))
	if rows := strings.Count(w.Body.String(), "\n"); w.n != 3 || rows != 3*exportPart+1 {
		t.Errorf("%d deadlines for %d rows, want 3 for %d", w.n, rows, 3*exportPart+1)
	}
}

// TestListenUnix checks that only a socket without a server is replaced.
func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(t.Context(), path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode: %v, %v", info.Mode(), err)
	}
	if second, err := ListenUnix(t.Context(), path, 0o600); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second listener: %v, %v", second, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as a process that is killed
	l.Close()
	again, err := ListenUnix(t.Context(), path, 0o600)
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	again.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(t.Context(), path, 0o600); err == nil {
		t.Error("it listens where a file is")
	}
	if text, err := os.ReadFile(path); string(text) != "precious" {
		t.Errorf("the file is now %q, %v", text, err)
	}
}

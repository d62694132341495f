package ship

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Limits on those who ask for metrics.
const (
	serveTime  = 5 * time.Second // for one request
	serveBytes = 8 << 10         // of one request
	serveConns = 16
)

// serve answers GET of /metrics, /healthz and /readyz until ctx ends. It is not
// net/http, which no code of this program may use: a wrapped server's proxy must
// not be able to open a port by mistake. It reads one request of a connection,
// ignores its headers and closes the connection.
func (h *host) serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	slots := make(chan struct{}, serveConns)
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		slots <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			h.cfg.Log.Warn("a connection for metrics failed", zap.Error(err))
			<-slots
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // such as too many open files
			}
			continue
		}
		answering.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(serveTime))
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			h.answer(conn)
		})
	}
}

// answer reads one request and answers it.
func (h *host) answer(conn io.ReadWriter) {
	method, path, ok := readRequest(conn)
	status, body := "200 OK", "ok\n"
	switch {
	case !ok:
		status, body = "400 Bad Request", "not a request\n"
	case path != "/metrics" && path != "/healthz" && path != "/readyz":
		status, body = "404 Not Found", "no such page\n"
	case method != "GET":
		status, body = "405 Method Not Allowed\r\nAllow: GET", "only GET\n"
	case path == "/metrics":
		body = h.metrics(time.Now())
	case path == "/readyz":
		if parts := h.notReady(); len(parts) > 0 {
			status, body = "503 Service Unavailable", "not ready; see the log:\n"+strings.Join(parts, "\n")+"\n"
		}
	}
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body)
}

// readRequest reads the first line of a request and skips its headers.
func readRequest(conn io.Reader) (method, path string, ok bool) {
	r := bufio.NewReader(io.LimitReader(conn, serveBytes))
	first, err := r.ReadString('\n')
	if err != nil {
		return "", "", false
	}
	words := strings.Fields(first)
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return "", "", false
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", "", false
		}
		if strings.TrimRight(line, "\r\n") == "" {
			path, _, _ = strings.Cut(words[1], "?")
			return words[0], path, true
		}
	}
}

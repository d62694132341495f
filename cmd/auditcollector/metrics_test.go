package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestMetricsCrowd has a client hold connections to the metrics, which need no login. They
// must not cost the collector a file and memory each: the oldest is closed, and the last
// is answered.
func TestMetricsCrowd(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serveMetrics(ctx, addr, prometheus.NewRegistry(), nil, zap.NewNop()) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	var first net.Conn
	eventually(t, "the metrics are served", func() bool {
		first, err = net.Dial("tcp", addr)
		return err == nil
	})
	defer first.Close()
	ask := func(conn net.Conn) {
		t.Helper()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("answer %v, %v, want 200", resp, err)
		}
	}
	ask(first)
	for range 300 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ask(conn)
	}
	if err := first.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("300 connections are held open")
	}
}

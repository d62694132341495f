package main

import (
	"context"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestMetricsStayHere serves metrics, which need no login, at an address without a host:
// on 127.0.0.1 alone. A program that listens on the same port of another address proves it.
func TestMetricsStayHere(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, port, _ := net.SplitHostPort(other.Addr().String())
	ctx, stop := context.WithCancel(t.Context())
	stop() // it ends once it listens
	if err := serveMetrics(ctx, ":"+port, prometheus.NewRegistry(), nil, zap.NewNop()); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// listening returns the local addresses of the sockets of a process on which it
// can be reached: those that listen for TCP, and those of UDP.
func listening(t *testing.T, pid int) (addrs []string) {
	t.Helper()
	own := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	if len(links) == 0 {
		t.Fatalf("no descriptors of process %d", pid)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	const localAddr, state, inode, listen = 1, 3, 9, "0A"
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		must(t, err)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > inode && own[f[inode]] && (f[state] == listen || strings.HasPrefix(table, "udp")) {
				addrs = append(addrs, table+" "+f[localAddr])
			}
		}
	}
	return addrs
}

// TestProxyOpensNoPort lists the sockets of a proxy that has brokers to ship to,
// between calls.
func TestProxyOpensNoPort(t *testing.T) {
	t.Parallel()
	// The list has a socket that listens.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if len(listening(t, os.Getpid())) == 0 {
		t.Fatal("a socket that listens is not listed")
	}
	w := wrap(t, setup{flags: []string{"--kafka-brokers", l.Addr().String()}})
	for id := range 3 {
		w.answered(id+1, 100)
		if addrs := listening(t, w.cmd.Process.Pid); len(addrs) > 0 {
			t.Errorf("the proxy can be reached at %q", addrs)
		}
	}
	l.Close() // as a broker that has gone
	w.end()
}

// TestShipMetrics asks a follower for its metrics; without the flag it opens no
// port.
func TestShipMetrics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags []string
		ports int
	}{
		{"without a port", nil, 0},
		{"without a host", []string{"--metrics-listen", ":0"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &shipping{T: t, proxy: program(t), spool: filepath.Join(t.TempDir(), "spool"), topic: "t"}
			s.record(3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := s.command(ctx, append([]string{"--follow", "--kafka-brokers", "127.0.0.1:1", "--log-level", "info"}, tt.flags...)...)
			stderr, err := cmd.StderrPipe()
			must(t, err)
			must(t, cmd.Start())
			// The end of this line: it follows and has a port, if any.
			var log strings.Builder
			for part := make([]byte, 1); !strings.Contains(log.String(), "shipping stalled"); {
				n, err := stderr.Read(part)
				if err != nil {
					t.Fatalf("it ended: %s", &log)
				}
				log.Write(part[:n])
			}
			if addrs := listening(t, cmd.Process.Pid); len(addrs) != tt.ports || tt.ports > 0 && !strings.HasPrefix(addrs[0], "tcp 0100007F:") {
				t.Errorf("it can be reached at %q, want %d ports on loopback", addrs, tt.ports)
			}
			if m := regexp.MustCompile(`serving metrics.*"addr": ?"([^"]+)"`).FindStringSubmatch(log.String()); m != nil {
				resp, err := http.Get("http://" + m[1] + "/metrics")
				must(t, err)
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				must(t, err)
				if !strings.Contains(string(text), "\nauditproxy_ship_errors_total{class=\"network\"} ") {
					t.Errorf("metrics:\n%s", text)
				}
			} else if tt.ports > 0 {
				t.Errorf("no port in the log:\n%s", &log)
			}
			must(t, cmd.Process.Signal(os.Interrupt))
			go io.Copy(io.Discard, stderr)
			must(t, cmd.Wait())
		})
	}
}

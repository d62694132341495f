package ship

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"
	"auditproxy/sink/kafka"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// TestMetricsText has the whole text. Each metric is in the documentation.
func TestMetricsText(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	h := &host{cfg: Config{Kafka: func() kafka.Stats {
		return kafka.Stats{Requests: 7, Errors: map[string]int64{"topic": 2}, Stalled: "the topic does not exist", Since: now.Add(-30 * time.Second)}
	}}}
	h.began = now.Add(-time.Hour)
	h.records.Add(1000)
	h.bytes.Add(12345678)
	h.aside.Add(1)
	h.recovered.Add(3)
	h.backlog = backlog{listed: true, live: 4, sessions: 2, bytes: 5000, oldest: now.Add(-90500 * time.Millisecond), failing: 1}
	got := h.metrics(now)
	const golden = "testdata/metrics.txt"
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	must(t, err)
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(got, -1) {
		if !strings.Contains(string(page), "`"+name[1]+"`") {
			t.Errorf("docs/operations.md does not explain %s", name[1])
		}
	}
}

// TestServe follows a spool with a sink that is stalled for one session, and
// asks for the pages meanwhile and afterwards.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	good, bad := newWriter(t, dir), newWriter(t, dir)
	bad.record.TS = time.Now().Add(-time.Hour)
	bad.write(audit.KindCall, 100)
	bad.end()
	good.end()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var mu sync.Mutex
	stalled := true
	h := Config{
		Dir: dir, Log: zap.NewNop(), Listener: l,
		Sink: sinkFunc(func(ctx context.Context, session string, lines [][]byte) error {
			mu.Lock()
			defer mu.Unlock()
			if stalled && session == bad.record.SessionID {
				return &sink.StalledError{Until: time.Now().Add(time.Millisecond)}
			}
			return nil
		}),
		Kafka: func() kafka.Stats {
			mu.Lock()
			defer mu.Unlock()
			if stalled {
				return kafka.Stats{Stalled: "a secret cause", Since: time.Now()}
			}
			return kafka.Stats{}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, h) }()
	get := func(path string) (code int, text string) {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + l.Addr().String() + path)
		must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, string(body)
	}
	value := func(name string) string {
		_, text := get("/metrics")
		m := regexp.MustCompile(`(?m)^` + prefix + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in\n%s", name, text)
		}
		return m[1]
	}
	// The session that is stalled has a record of an hour ago after its first.
	await(t, "the other session is shipped", func() bool { return value("unshipped_sessions") == "1" && value("records_total") == "2" })
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable || !strings.HasSuffix(text, "\nkafka\n") || strings.Contains(text, "secret") {
		t.Errorf("/readyz: %d %q, want 503 that names kafka only", code, text)
	}
	if code, text := get("/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("/healthz: %d %q", code, text)
	}
	if code, _ := get("/"); code != 404 {
		t.Errorf("/: %d, want 404", code)
	}
	mu.Lock()
	stalled = false
	mu.Unlock()
	await(t, "all is shipped", func() bool { return value("unshipped_sessions") == "0" && value("records_total") == "5" })
	if bytes, age := value("unshipped_bytes"), value("oldest_unshipped_seconds"); bytes != "0" || age != "0" {
		t.Errorf("%s bytes and %s s wait, want none", bytes, age)
	}
	if code, text := get("/readyz?verbose"); code != 200 {
		t.Errorf("/readyz: %d %q, want 200", code, text)
	}
	// Requests that are none, or never end, hold up nobody.
	var open []net.Conn
	for _, raw := range []string{"POST /metrics HTTP/1.1\r\n\r\n", "hello\r\n\r\n", "GET /metrics HTTP/1.1\r\n" + strings.Repeat("x", 2*serveBytes) + "\r\n\r\n", "GET /metr"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		defer conn.Close()
		_, err = fmt.Fprint(conn, raw)
		must(t, err)
		open = append(open, conn)
	}
	var got []string
	for _, conn := range open[:3] {
		first, _ := bufio.NewReader(conn).ReadString('\n')
		got = append(got, strings.TrimSpace(first))
	}
	// The third may lose its answer: it was closed with data unread.
	if want := []string{"HTTP/1.1 405 Method Not Allowed", "HTTP/1.1 400 Bad Request"}; !slices.Equal(got[:2], want) {
		t.Errorf("answers %q, want %q", got[:2], want)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	cancel()
	must(t, <-done)
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is open after the end")
	}
}

// TestOldestRecord checks that the age in an outage is that of the first record
// that waits, not of the first look at it.
func TestOldestRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	w := newWriter(t, dir)
	began := w.record.TS
	w.record.TS = time.Now().Add(time.Hour)
	w.end()
	h := &host{cfg: Config{Dir: dir, Log: zap.NewNop(), Sink: sinkFunc(func(context.Context, string, [][]byte) error {
		return &sink.StalledError{Until: time.Now()}
	})}}
	follow(t, newFollower(h))
	await(t, "the record's time is known", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.backlog.oldest.Equal(began.Truncate(time.Microsecond)) || h.backlog.oldest.Equal(began.Truncate(time.Millisecond))
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.backlog.sessions != 1 || h.backlog.bytes == 0 || !h.backlog.listed {
		t.Errorf("backlog %+v, want a session with bytes", h.backlog)
	}
}

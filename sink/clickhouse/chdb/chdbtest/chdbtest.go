// Package chdbtest runs ClickHouse's engine for tests, in a process of its own.
package chdbtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// Names of environment variables: with the first, a test binary is the engine
// of that directory.
const (
	engineDir = "CHDBTEST_DIR"
	library   = "CHDBTEST_LIBRARY"
)

// memory is the limit of a test's engine, in bytes.
const memory = 512 << 20

// readyTimeout is generous: an engine needs a second on an idle machine.
const readyTimeout = 3 * time.Minute

// Main is TestMain of packages whose tests start engines. It runs the tests, or
// the engine if a test started this process for that, and exits.
func Main(m *testing.M) {
	ifEngine()
	goleak.VerifyTestMain(shared{m})
}

// shared is tests that share what dev.Share makes.
type shared struct{ *testing.M }

func (s shared) Run() int { return dev.Run(s.M) }

// ifEngine runs the engine and exits, if a test started this process for that.
func ifEngine() {
	dir := os.Getenv(engineDir)
	if dir == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the process
		chdb.AwaitEnd(os.Stdin)
		cancel()
	}()
	err := chdb.Run(ctx, chdb.Config{Dir: dir, Library: os.Getenv(library), Memory: memory})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(chdb.ExitCode(err))
}

// Library returns the path of libchdb, see dev.Fetched.
func Library(t testing.TB) string {
	t.Helper()
	return dev.Fetched(t, "libchdb", "libchdb.so")
}

// Start starts an engine with an empty directory, and returns that when the
// engine answers. Both end with the test.
func Start(t testing.TB) string {
	t.Helper()
	Library(t)
	dir := newDir(t)
	StartIn(t, dir)
	return dir
}

// StartWith is Start in what DirWith returns.
func StartWith(t testing.TB, name string, fill func(dir string)) string {
	t.Helper()
	dir := DirWith(t, name, fill)
	StartIn(t, dir)
	return dir
}

// DirWith returns an engine's directory with the data that fill leaves in an engine,
// which ends with the test. It fills the first one of a name, and the others are a
// copy: that takes a quarter of the processor time in which the tables are made.
// TestMain calls Main.
func DirWith(t testing.TB, name string, fill func(dir string)) string {
	t.Helper()
	const data = "data" // of an engine's directory
	Library(t)
	filled := dev.Share(t, name, func(own string) {
		dir := newDir(t)
		stop := start(t, dir)
		fill(dir)
		stop()
		if err := os.Rename(filepath.Join(dir, data), own); err != nil {
			t.Fatal(err)
		}
	})
	dir := newDir(t)
	if err := os.CopyFS(filepath.Join(dir, data), os.DirFS(filled)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newDir returns an empty directory for an engine, which ends with the test.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ch") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// StartIn starts an engine with the data in dir, and waits until it answers.
// It ends with the test.
func StartIn(t testing.TB, dir string) {
	t.Helper()
	t.Cleanup(start(t, dir))
}

// start is StartIn for an engine that ends when stop is called, or at the latest
// when the test process does.
func start(t testing.TB, dir string) (stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), engineDir+"="+dir, library+"="+Library(t))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		stdin.Close()
		_ = cmd.Wait() // its exit code does not matter here
	}
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	if err := chdb.Ready(ctx, dir); err != nil {
		stop()
		t.Fatal(err)
	}
	return stop
}

// Query returns the rows of a statement, as a writer, each as its columns' text.
func Query(t testing.TB, dir, sql string) (rows []string) {
	t.Helper()
	return QueryFormat(t, dir, "TSVRaw", sql)
}

// QueryFormat is Query in a format with a row in each line. It asks in one request:
// a connection of clickhouse-go first asks for the engine's version, and that and its
// buffers cost twice what a short statement does.
func QueryFormat(t testing.TB, dir, format, sql string) (rows []string) {
	t.Helper()
	dial := chdb.Dialer(dir, chdb.Writer)
	client := http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/?default_format="+url.QueryEscape(format), strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	failed := "__exception__\r\n" + resp.Header.Get("X-ClickHouse-Exception-Tag") // after rows
	if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(string(b), failed) {
		t.Fatalf("%s: status %d, %v: %s", sql, resp.StatusCode, err, b)
	}
	for line := range strings.Lines(string(b)) {
		rows = append(rows, strings.TrimSuffix(line, "\n"))
	}
	return rows
}

// Want reports an error if a statement has other rows.
func Want(t testing.TB, dir, sql string, rows ...string) {
	t.Helper()
	if diff := cmp.Diff(rows, Query(t, dir, sql)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", sql, diff)
	}
}

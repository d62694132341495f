package chdb_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"
)

// engineDir names the directory for which the test binary is the engine. An
// engine that shares a process with its tests could not be killed.
const engineDir = "CHDB_TEST_ENGINE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(engineDir); dir != "" {
		os.Exit(engineMain(chdb.Config{
			Dir:      dir,
			Library:  os.Getenv("CHDB_TEST_LIBRARY"),
			Memory:   512 << 20,
			Listen:   os.Getenv("CHDB_TEST_LISTEN"),
			Password: func() string { return readersPassword(dir) },
		}))
	}
	goleak.VerifyTestMain(m)
}

// readersPassword is in a file of an engine's directory once a test writes it.
func readersPassword(dir string) string {
	if text, err := os.ReadFile(filepath.Join(dir, "password")); err == nil {
		return string(text)
	}
	return "reader's password"
}

// engineMain is the engine until its standard input ends.
func engineMain(cfg chdb.Config) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		chdb.AwaitEnd(os.Stdin)
		cancel()
	}()
	err := chdb.Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return chdb.ExitCode(err)
}

// engineCommand is a process that serves dir.
func engineCommand(t testing.TB, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append([]string{engineDir + "=" + dir, "CHDB_TEST_LIBRARY=" + chdbtest.Library(t)}, env...)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// An engineProcess is a running engine.
type engineProcess struct {
	dir   string
	cmd   *exec.Cmd
	stdin io.Closer
}

func startEngine(t testing.TB, dir string, env ...string) *engineProcess {
	t.Helper()
	return run(t, dir, engineCommand(t, dir, env...))
}

// run starts the engine of dir and waits until it answers.
func run(t testing.TB, dir string, cmd *exec.Cmd) *engineProcess {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &engineProcess{dir, cmd, stdin}
	t.Cleanup(e.kill)
	ready(t, dir)
	return e
}

func ready(t testing.TB, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := chdb.Ready(ctx, dir); err != nil {
		t.Fatal(err)
	}
}

// kill ends the engine without a warning.
func (e *engineProcess) kill() {
	_ = e.cmd.Process.Kill() // it may have ended
	_ = e.cmd.Wait()
}

// shortDir returns a directory whose path is short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func open(t testing.TB, dir string, r chdb.Role, method clickhouse.CompressionMethod) driver.Conn {
	t.Helper()
	db, err := clickhouse.Open(&clickhouse.Options{
		Protocol:     clickhouse.HTTP,
		Addr:         []string{"engine"},
		Auth:         clickhouse.Auth{Database: "default", Username: "test"},
		DialContext:  chdb.Dialer(dir, r),
		Compression:  &clickhouse.Compression{Method: method},
		MaxOpenConns: 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t testing.TB, db driver.Conn, sql string) {
	t.Helper()
	if err := db.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t testing.TB, db driver.Conn, sql string) uint64 {
	t.Helper()
	var n uint64
	if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// events makes a table like that of the records.
func events(t testing.TB, db driver.Conn) {
	t.Helper()
	exec1(t, db, "CREATE DATABASE IF NOT EXISTS audit")
	exec1(t, db, `CREATE TABLE IF NOT EXISTS audit.events
		(id UInt64, ts DateTime64(6, 'UTC'), tool LowCardinality(String), args String, labels Map(String, String), bytes Nullable(UInt64), ops Array(Tuple(path String, tool String)))
		ENGINE = ReplacingMergeTree ORDER BY id
		SETTINGS non_replicated_deduplication_window = 100, fsync_after_insert = 1, fsync_part_directory = 1`)
}

// A response is what came over HTTP.
type response struct {
	status int
	header http.Header
	body   string
}

// post sends a statement as any HTTP client does.
func post(t testing.TB, dir string, r chdb.Role, query, sql string) response {
	t.Helper()
	client := http.Client{Transport: transport(dir, r)}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://engine/?"+query, "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(body)}
}

func transport(dir string, r chdb.Role) *http.Transport {
	dial := chdb.Dialer(dir, r)
	return &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
}

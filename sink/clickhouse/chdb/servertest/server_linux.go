// Package servertest runs ClickHouse's engine with its own listeners, as a
// server with users and the native protocol, for tests. It is for those alone:
// a wrong password, a damaged packet and some cancelled queries end it.
//
// The files, from the top: zookeeper_linux, server_linux, server_other.
package servertest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/internal/wait"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ebitengine/purego"
)

// Names of environment variables: with the first, a test binary is the server
// with that directory.
const (
	serverDir = "SERVERTEST_DIR"
	library   = "SERVERTEST_LIBRARY"
)

// IfServer runs the server and exits, if Start started this process for that.
// TestMain calls it first.
func IfServer() {
	dir := os.Getenv(serverDir)
	if dir == "" {
		return
	}
	syscall.Umask(0o077)
	if err := serve(dir, os.Getenv(library)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve serves until standard input ends: the last query reads it.
func serve(dir, path string) error {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("loading %q: %w", path, err)
	}
	var (
		setSignalHandlers func(enabled int32)
		commandLine       func(argc int32, argv **byte) uintptr
	)
	purego.RegisterLibFunc(&setSignalHandlers, handle, "chdb_set_signal_handlers_enabled")
	purego.RegisterLibFunc(&commandLine, handle, "chdb_query_cmdline")
	setSignalHandlers(0)
	var argv []*byte
	for _, arg := range []string{
		"clickhouse", "--config-file=" + filepath.Join(dir, "config.xml"), "--path=" + filepath.Join(dir, "data"), "--output-format=TSV",
		"--query=SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT count() FROM file('/dev/stdin', 'LineAsString')",
	} {
		argv = append(argv, &append([]byte(arg), 0)[0])
	}
	runtime.LockOSThread()
	commandLine(int32(len(argv)), &append(argv, nil)[0])
	return nil
}

// A Config configures a server. The texts are elements of ClickHouse's files.
type Config struct {
	Dir      string // data of an earlier server; "" for none
	Port     string // of the native protocol; "" for a free one
	Config   string // more of config.xml
	Profiles string // more of profiles in users.xml
	Users    string // more of users there
}

// A Server is one that runs. It ends with the test.
type Server struct {
	Dir  string
	Addr string // of the native protocol, for user admin without a password
	HTTP string // of HTTP

	stdin interface{ Close() error }
	cmd   *exec.Cmd
	once  sync.Once
}

// users is what the program itself needs, which starts the listeners as default,
// and an administrator.
const users = `<clickhouse><profiles><default/>
%s</profiles><quotas><default/></quotas><users>
<default><no_password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
	<grants><query>GRANT SYSTEM LISTEN ON *.*</query><query>GRANT CREATE TEMPORARY TABLE ON *.*</query><query>GRANT READ ON FILE</query></grants></default>
<admin><no_password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></admin>
%s</users></clickhouse>
`

const config = `<clickhouse><listen_host>127.0.0.1</listen_host><tcp_port>%s</tcp_port><http_port>%s</http_port>
<users_config>%s</users_config><max_server_memory_usage>1000000000</max_server_memory_usage><background_pool_size>2</background_pool_size>
%s</clickhouse>
`

// readyTimeout is generous: a server needs a second on an idle machine.
const readyTimeout = 3 * time.Minute

// Port returns a port that is free now.
func Port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Start starts a server and waits until it answers.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	lib := dev.Fetched(t, "libchdb", "libchdb.so")
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	if c.Port == "" {
		c.Port = Port(t)
	}
	httpPort := Port(t)
	s := &Server{Dir: c.Dir, Addr: "127.0.0.1:" + c.Port, HTTP: "127.0.0.1:" + httpPort}
	for name, text := range map[string]string{
		"config.xml": fmt.Sprintf(config, c.Port, httpPort, filepath.Join(c.Dir, "users.xml"), c.Config),
		"users.xml":  fmt.Sprintf(users, c.Profiles, c.Users),
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), serverDir+"="+c.Dir, library+"="+lib)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() && out.Len() > 0 {
			t.Logf("the server said:\n%s", out.String())
		}
	})
	conn := s.Open(t, "admin", "")
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := conn.Ping(ctx)
		cancel()
		if err == nil {
			return s
		}
		if time.Since(began) > readyTimeout || gone(s.cmd) {
			s.Stop()
			t.Fatalf("the server does not answer: %v\n%s", err, out.String())
		}
		if err := wait.For(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// gone reports whether the process has ended.
func gone(cmd *exec.Cmd) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	return err != nil || strings.Contains(string(state), ") Z ")
}

// Stop ends the server in order.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.stdin.Close()
		_ = s.cmd.Wait() // its exit code does not matter here
	})
}

// Open returns connections as a user, which are closed with the test.
func (s *Server) Open(t testing.TB, user, password string) ch.Conn {
	t.Helper()
	conn, err := ch.Open(&ch.Options{Addr: []string{s.Addr}, Auth: ch.Auth{Username: user, Password: password}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Exec runs statements as the administrator.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	conn := s.Open(t, "admin", "")
	defer conn.Close()
	for _, sql := range statements {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// Query returns the rows of a query as the administrator, each as the text of a
// tuple.
func (s *Server) Query(t testing.TB, sql string) (rows []string) {
	t.Helper()
	conn := s.Open(t, "admin", "")
	defer conn.Close()
	rows, err := Rows(t.Context(), conn, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// Rows returns the rows of a query, each as the text of a tuple.
func Rows(ctx context.Context, conn ch.Conn, sql string) (rows []string, err error) {
	found, err := conn.Query(ctx, "SELECT toString(tuple(*)) FROM ("+sql+")")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, err
		}
		rows = append(rows, text)
	}
	return rows, found.Err()
}

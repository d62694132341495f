package clickhouse

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/deploy/dev"
	"auditproxy/sink/clickhouse/chdb/servertest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"
)

// serverPassword is the default user's.
const serverPassword = "smoke"

// An oldServer is a ClickHouse server that speaks the native protocol, the only
// one that packages have: 18.16, from Debian 12.
type oldServer struct {
	addr string
	dir  string
	cmd  *exec.Cmd
}

// newOldServer writes the configuration of a server, with more in it, and with
// settings of its users.
func newOldServer(t *testing.T, port, more, settings string) *oldServer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.xml": `<yandex><listen_host>127.0.0.1</listen_host><tcp_port>` + port + `</tcp_port>
			<logger><level>information</level><console>1</console></logger>
			<path>` + dir + `/data/</path><tmp_path>` + dir + `/tmp/</tmp_path><mark_cache_size>5368709</mark_cache_size>
			<users_config>` + dir + `/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>` + more + `</yandex>`,
		"users.xml": `<yandex><profiles><default>` + settings + `</default></profiles><quotas><default/></quotas><users><default>
			<password>` + serverPassword + `</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &oldServer{addr: "127.0.0.1:" + port, dir: dir}
	t.Cleanup(s.kill)
	return s
}

// start starts the server and waits until it answers.
func (s *oldServer) start(t *testing.T) {
	t.Helper()
	root := filepath.Dir(dev.Fetched(t, "clickhouse", ".done"))
	cmd := exec.Command(filepath.Join(root, "usr/sbin/clickhouse-server"), "--config-file="+s.dir+"/config.xml")
	cmd.Env = []string{"LD_LIBRARY_PATH=" + root + "/usr/lib/x86_64-linux-gnu:" + root + "/lib/x86_64-linux-gnu", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.cmd = cmd
	ready, said := make(chan bool, 1), make(chan string, 1)
	go func() {
		var text strings.Builder
		for s := bufio.NewScanner(out); s.Scan(); {
			fmt.Fprintln(&text, s.Text())
			if strings.Contains(s.Text(), "Ready for connections") {
				ready <- true
			}
		}
		said <- text.String()
	}()
	select {
	case <-ready:
	case text := <-said:
		t.Fatalf("the server ended: %s", text)
	case <-time.After(3 * time.Minute):
		t.Fatal("the server did not start within three minutes")
	}
}

func (s *oldServer) kill() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // it says that it was killed
	}
}

// TestNative speaks the native protocol to a real server, as far as so old a
// one allows: it knows neither the settings that we send nor three types of
// column. What is different here is those, and nothing else.
func TestNative(t *testing.T) {
	server := newOldServer(t, servertest.Port(t), "", "")
	server.start(t)
	addr, kill := server.addr, server.kill
	for _, uncompressed := range []bool{false, true} {
		t.Run(fmt.Sprintf("uncompressed=%t", uncompressed), func(t *testing.T) {
			s, err := OpenBare(Config{Addrs: []string{addr}, Database: fmt.Sprintf("audit_%t", uncompressed), User: "default", Password: serverPassword, Uncompressed: uncompressed})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			testNativeInsert(t, s)
		})
	}
	t.Run("classes", func(t *testing.T) { testNativeClasses(t, addr, kill) })
}

// oldTypes are what 18.16 has in place of what it lacks.
var oldTypes = strings.NewReplacer("LowCardinality(String)", "String", "DateTime64(6, 'UTC')", "DateTime", "DateTime64(3, 'UTC')", "DateTime", "Bool", "Int8")

// oldEvents is the table of records with the types of 18.16, and without
// codecs, indexes and settings.
func oldEvents(t *testing.T, database string) []string {
	t.Helper()
	types := map[string]string{}
	for _, column := range created(t) {
		name, typ, _ := strings.Cut(column, " ")
		types[name] = typ
	}
	var columns []string
	for _, name := range append(columnNames(), "ingested_at") {
		if types[name] == "" {
			t.Fatalf("found no type of column %q", name)
		}
		columns = append(columns, "`"+name+"` "+oldTypes.Replace(types[name]))
	}
	return []string{
		"CREATE DATABASE " + database,
		"CREATE TABLE " + database + ".events (" + strings.Join(columns, ", ") + ") ENGINE = ReplacingMergeTree " +
			"PARTITION BY toYYYYMM(ts) ORDER BY (tenant, tool, ts, record_id, payload_hash)",
	}
}

func columnNames() (names []string) {
	for _, c := range eventColumns() {
		names = append(names, c.name)
	}
	return names
}

func testNativeInsert(t *testing.T, s *DB) {
	ctx := t.Context()
	if err := s.exec(ctx, oldEvents(t, s.c.Database)...); err != nil {
		t.Fatal(err)
	}
	rows := oldRows(t, 1000)
	for range 2 { // as after a lost answer
		if err := s.send(ctx, s.inserts, func(b driver.Batch) error { return appendRows(b, rows, time.Unix(0, 0)) }); err != nil {
			t.Fatal(err)
		}
	}
	var stored, once uint64
	if err := s.conn.QueryRow(ctx, "SELECT count() FROM "+s.c.Database+".events").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.QueryRow(ctx, "SELECT count() FROM "+s.c.Database+".events FINAL").Scan(&once); err != nil {
		t.Fatal(err)
	}
	if stored < 1000 || once != 1000 {
		t.Errorf("%d rows are stored and %d are seen, want 1000 to be seen", stored, once)
	}
	// One text of each row, from columns of every type.
	got, err := s.conn.Query(ctx, "SELECT raw, concat(toString(ts), ' ', toString(seq), ' ', toString(ifNull(error_code, 0)), ' ', toString(ifNull(duration_ms, -1)), ' ', "+
		"arrayStringConcat(anomalies, ','), ' ', arrayStringConcat(ops, ','), ' ', toString(forwarded), ' ', toString(record_id)) FROM "+s.c.Database+".events FINAL ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for i := 0; got.Next(); i++ {
		var raw, text string
		if err := got.Scan(&raw, &text); err != nil {
			t.Fatal(err)
		}
		r := rows[i].Record
		want := fmt.Sprintf("%s %d 0 -1  send_keys 0 %s", r.TS.Format(time.DateTime), i, r.RecordID)
		if i%2 == 1 {
			want = fmt.Sprintf("%s %d -32603 1 batch,nan send_keys 1 %s", r.TS.Format(time.DateTime), i, r.RecordID)
		}
		if diff := cmp.Diff([]string{rows[i].Raw, want}, []string{raw, text}); diff != "" {
			t.Fatalf("row %d (-want +got):\n%s", i, diff)
		}
	}
	if err := got.Err(); err != nil {
		t.Fatal(err)
	}
}

// testNativeClasses is what the store makes of this server's errors; it is the
// store as it is, with all its settings.
func testNativeClasses(t *testing.T, addr string, kill func()) {
	ctx := t.Context()
	c := Config{Addrs: []string{addr}, Database: "audit", User: "default", Password: serverPassword}
	for _, tt := range []struct {
		name string
		do   func(s *DB) error
		set  func(c *Config)
		want ingest.Class
		says string
	}{
		{"a wrong password", func(s *DB) error { return s.Ping(ctx) }, func(c *Config) { c.Password = "guess" }, ingest.Configuration, "Wrong password"},
		{"a server that is too old", func(s *DB) error {
			_, err := s.Migrate(ctx, Retention{})
			return err
		}, func(*Config) {}, ingest.Configuration, "Unknown setting"},
		{"no server", func(s *DB) error { kill(); return s.Ping(ctx) }, func(*Config) {}, ingest.Retry, "asking ClickHouse"},
	} {
		c := c
		tt.set(&c)
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		err = tt.do(s)
		if ingest.ClassOf(err) != tt.want || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v of class %v, want %v and %q", tt.name, err, ingest.ClassOf(err), tt.want, tt.says)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

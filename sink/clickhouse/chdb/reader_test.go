package chdb_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// TestReaderReads holds what a reader must not lose to the checks. A writer, whose
// statements are run as they are, gets the same answers where no setting differs.
func TestReaderReads(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	if err := insert(t, db, 0, 10, "a"); err != nil {
		t.Fatal(err)
	}
	if err := insert(t, db, 0, 10, "b"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ query, sql, want string }{
		{"", "SELECT count() FROM events", "10\n"}, // final = 1 and the database are the reader's own
		{"", "SELECT count() FROM audit.events;", "10\n"},
		{"", "/* a */ select id -- b\nfrom events where args like '%file(%' or tool = 'SETTINGS x = 1' order by id limit 1", ""},
		{"", "SELECT id AS file, 'file(' FROM events WHERE id = 3", "3\tfile(\n"},
		{"", "select id from events where id = 3 -- the last", "3\n"},
		{"", "WITH 1 AS x SELECT x UNION ALL SELECT 2 ORDER BY 1 FORMAT CSV", "1\n2\n"},
		{"", "(SELECT 'a' AS a, 'b' AS `c d`) FORMAT JSONEachRow", "{\"a\":\"a\",\"c d\":\"b\"}\n"},
		{"default_format=JSONEachRow", "SELECT 1 AS a", "{\"a\":1}\n"},
		{"param_x=a%5Ctb&param_n=7", "SELECT {x:String}, {n:UInt8}", "a\\tb\t7\n"},
		{"", "SHOW TABLES", "events\n"},
		{"", "SHOW TABLES FORMAT JSONEachRow", "{\"name\":\"events\"}\n"},
		{"", "EXISTS events", "1\n"},
		{"", "SELECT format('{}-{}', 'a', 'b')", "a-b\n"},
		{"max_execution_time=5&max_block_size=10&output_format_json_quote_64bit_integers=1&readonly=2", "SELECT getSetting('readonly'), getSetting('max_execution_time'), toUInt64(1) FORMAT JSONEachRow",
			"{\"getSetting('readonly')\":1,\"getSetting('max_execution_time')\":5,\"toUInt64(1)\":\"1\"}\n"},
		{"max_execution_time=0", "SELECT getSetting('max_execution_time')", "30\n"},
		{"max_execution_time=500", "SELECT getSetting('max_execution_time')", "30\n"},
		{"query=SELECT+1", "", "1\n"},
		{"query=SELECT+1,", "2", "1\t2\n"},
	} {
		if r := post(t, dir, chdb.Reader, tt.query, tt.sql); r.status != http.StatusOK || r.body != tt.want {
			t.Errorf("%s with %q: status %d, %q, want %q", tt.sql, tt.query, r.status, r.body, tt.want)
		}
		if strings.Contains(tt.query, "max_execution_time") { // the reader's
			continue
		}
		if r := post(t, dir, chdb.Writer, tt.query+"&final=1&database=audit", tt.sql); r.status != http.StatusOK || r.body != tt.want {
			t.Errorf("a writer's %s with %q: status %d, %q, want %q", tt.sql, tt.query, r.status, r.body, tt.want)
		}
	}
	if r := post(t, dir, chdb.Reader, "", "DESCRIBE TABLE events"); !strings.HasPrefix(r.body, "id\tUInt64") {
		t.Errorf("DESCRIBE: status %d, %q", r.status, r.body)
	}
	if r := post(t, dir, chdb.Reader, "", "EXPLAIN SELECT id FROM events"); r.status != http.StatusOK || r.body == "" {
		t.Errorf("EXPLAIN: status %d, %q", r.status, r.body)
	}
}

// TestReaderRefused holds a reader to reading records. Some of these the
// engine lets through with readonly = 1.
func TestReaderRefused(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	if err := insert(t, db, 0, 10, "a"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO events (id) VALUES (77)",
		"INSERT INTO events (id) SELECT 77",
		"INSERT INTO FUNCTION file('/tmp/chdb_test_out', 'TSV', 'a UInt8') SELECT 1",
		"ALTER TABLE events DELETE WHERE 1",
		"DROP TABLE events", "TRUNCATE TABLE events", "OPTIMIZE TABLE events FINAL",
		"CREATE TABLE audit.x (a UInt8) ENGINE = Memory", "CREATE TEMPORARY TABLE x (a UInt8)",
		"SELECT 1 INTO OUTFILE '/tmp/chdb_test_out'",
		"SYSTEM STOP MERGES", "KILL QUERY WHERE 1", "SET readonly = 0", "USE default",
		"SELECT 1; SELECT 2", "SELECT 1; DROP TABLE events",
		"SELECT * FROM file('/etc/hosts', 'LineAsString')",
		"SELECT * FROM (SELECT * FROM file('/etc/hosts', 'LineAsString') SETTINGS readonly = 0)",
		"SELECT 1 SETTINGS max_execution_time = 1000",
		"SELECT file('/etc/hosts')", "SELECT `file`('/etc/hosts')", "SELECT \"fi\\x6ce\"/* */('/etc/hosts')", "SELECT `fi\\x6ce`('/etc/hosts')",
		"SELECT `\\x66ile`('/etc/hosts')", "SELECT file -- a\n (/* b */'/etc/hosts')",
		"SELECT COLUMNS('args') APPLY(file) FROM events", "SELECT COLUMNS('args') APPLY file FROM events", "SELECT COLUMNS('args') APPLY(x -> file(x)) FROM events",
		"SELECT COLUMNS('args') APPLY(`fi\\x6ce`) FROM events",
		"EXPLAIN QUERY TREE SELECT file('/etc/hosts')",
		"DESCRIBE TABLE file('/etc/hosts', 'LineAsString')", "DESCRIBE TABLE file('/etc/hosts')", "DESC (SELECT file('/etc/hosts'))",
		"SELECT * FROM default.`/etc/hosts`", "EXISTS TABLE default.`/etc/hosts`",
		"SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", "SELECT * FROM remote('127.0.0.1:1', 'system.one')",
		"SELECT * FROM executable('id', 'TSV', 'a String')", "SELECT * FROM sqlite('/tmp/x', 'y')",
		"SELECT * FROM s3('http://127.0.0.1:1/bucket/x', 'LineAsString')",
		"SELECT * FROM eval('SELECT 1')",
		"SELECT * FROM {d:Identifier}.{t:Identifier}",
	} {
		if r := post(t, dir, chdb.Reader, "", sql); r.status == http.StatusOK || r.header.Get("X-ClickHouse-Exception-Code") == "" {
			t.Errorf("%s: status %d, %q", sql, r.status, r.body)
		}
		link := http.Client{Transport: transport(dir, chdb.Writer)}
		resp, err := link.Get("http://engine/?query=" + url.QueryEscape(sql))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		link.CloseIdleConnections()
		if resp.StatusCode == http.StatusOK {
			t.Errorf("GET of %s at the writer's socket: status %d", sql, resp.StatusCode)
		}
	}
	for _, query := range []string{"async_insert=1", "allow_experimental_eval_table_function=1", "max_memory_usage=0", "output_format_schema=/tmp/x", "log_comment=x", "session_id=x", "no-name=1", "nosuch=1"} {
		if r := post(t, dir, chdb.Reader, query, "SELECT 1"); r.status == http.StatusOK {
			t.Errorf("setting %s: status %d, %q", query, r.status, r.body)
		}
	}
	if got := count(t, db, "SELECT count() FROM audit.events"); got != 10 {
		t.Errorf("%d rows are left, want 10", got)
	}
}

// TestReaderDeadLetters: a reader may count dead letters and see their places,
// not what producers sent: nothing redacted that.
func TestReaderDeadLetters(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	for _, sql := range []string{
		"CREATE TABLE audit.dead_letters (seen_at DateTime, kafka_topic String, kafka_key String, reason String, error String, raw String, payload_hash String, replayed_at DateTime) " +
			"ENGINE = ReplacingMergeTree ORDER BY (kafka_topic, payload_hash)",
		"INSERT INTO audit.dead_letters SELECT now(), 't', 's3cret', 'not_json', 's3cret', 's3cret', 's3cret', 0",
	} {
		if err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]string{
		"SELECT count() FROM dead_letters FINAL WHERE replayed_at = 0":                                       "1\n",
		"SELECT reason, kafka_topic, count(), countIf(replayed_at = 0) FROM audit.dead_letters GROUP BY ALL": "not_json\tt\t1\t1\n",
	} {
		if r := post(t, dir, chdb.Reader, "", sql); r.status != http.StatusOK || r.body != want {
			t.Errorf("%s: status %d, %q, want %q", sql, r.status, r.body, want)
		}
	}
	for _, sql := range []string{
		"SELECT raw FROM dead_letters", "SELECT * FROM audit.dead_letters", "SELECT d.* FROM `dead_letters` AS d", "SELECT * EXCEPT (seen_at) FROM dead_letters",
		"SELECT `ra\\x77` FROM dead_letters", "SELECT error FROM audit.`dead_lett\\x65rs`", "SELECT kafka_key FROM dead_letters", "SELECT hex(payload_hash) FROM dead_letters",
		"SELECT COLUMNS('ra') FROM dead_letters", "SELECT columns('.*') FROM dead_letters", "SELECT d.COLUMNS('r.w') FROM dead_letters AS d", "SELECT dead_letters.raw FROM dead_letters",
		"WITH d AS (SELECT * FROM dead_letters) SELECT raw FROM d", "SELECT x FROM (SELECT raw AS x FROM dead_letters)", "SELECT count() FROM dead_letters WHERE raw LIKE 's%'",
		"SELECT count() FROM dead_letters WHERE 's3cret' = raw", "SELECT raw.size FROM dead_letters", "SELECT count() FROM events JOIN dead_letters ON raw = 's3cret'",
		"SELECT 1 FROM events AS a JOIN dead_letters AS b USING (raw)", "SELECT formatRow('TSV', *) FROM dead_letters", "SELECT untuple(tuple(*)) FROM dead_letters",
		"(SELECT * FROM dead_letters)", "SELECT 's3cret' IN (SELECT raw FROM dead_letters)", "SELECT 's3cret' IN audit.dead_letters", "SELECT (SELECT any(raw) FROM dead_letters)",
		"SELECT * FROM merge('audit', 'dead_letter.')", "SELECT raw FROM merge('dead_letter.')", "SELECT raw FROM merge(REGEXP('au.*'), 'dead_letter.')", "SELECT * FROM mergeTreeIndex('audit', 'dead_letters')",
		"SELECT * FROM mergeTreeIndex(audit, dead_letters)", "SELECT raw FROM remote('localhost', 'audit', 'dead_letters')", "SELECT raw FROM remote('127.0.0.1', audit.dead_letters)",
		"SELECT raw FROM cluster('default', 'audit', 'dead_letters')", "SELECT raw FROM clusterAllReplicas('default', 'audit', 'dead_letters')", "SELECT raw FROM loop('audit', 'dead_letters') LIMIT 1",
		"SELECT raw FROM loop(audit.dead_letters) LIMIT 1", "SELECT raw FROM Merge('audit', 'dead_letter.')", "SELECT raw FROM `merge`('audit', 'dead_letter.')", "SELECT raw FROM view(SELECT * FROM dead_letters)", "SELECT raw FROM mergeTreeProjection('audit', 'dead_letters', 'p')",
		"SELECT raw FROM viewIfPermitted(SELECT raw FROM dead_letters ELSE null('raw String'))", "SELECT raw FROM mergeTreeAnalyzeIndexes('audit', 'dead_letters')",
		"FROM dead_letters SELECT raw", "TABLE dead_letters", "EXPLAIN ESTIMATE SELECT raw FROM dead_letters",
		"SELECT raw FROM {t:Identifier}", "SELECT {c:Identifier} FROM dead_letters", "SELECT * FROM {d:Identifier}.{t:Identifier}",
		"SELECT arrayJoin([d]) FROM dead_letters AS d", "SELECT dead_letters FROM dead_letters", "SELECT tupleElement(dead_letters, 'raw') FROM dead_letters",
		"SELECT dictGet('audit.dead_letters', 'raw', 't')", "SELECT joinGet('audit.dead_letters', 'raw', 't')", "SELECT raw FROM dictionary('audit.dead_letters')",
		"SELECT x FROM dead_letters AS d (a, b, x)", "WITH d (a, b, c, e, f, x, y, z) AS (SELECT * FROM dead_letters) SELECT x FROM d",
		"SELECT raw FROM system.parts_columns, dead_letters", "SELECT raw FROM sqlite('/x', 'dead_letters')",
	} {
		r := post(t, dir, chdb.Reader, "param_t=dead_letters&param_d=audit&param_c=raw", sql)
		if r.status == http.StatusOK || strings.Contains(r.body, "s3cret") && !strings.Contains(sql, "s3cret") {
			t.Errorf("%s: status %d, %q", sql, r.status, r.body)
		}
	}
}

func TestPort(t *testing.T) {
	dir := shortDir(t)
	addr := dev.FreeAddr(t)
	startEngine(t, dir, "CHDB_TEST_LISTEN="+addr)
	events(t, open(t, dir, chdb.Writer, clickhouse.CompressionNone))
	for _, tt := range []struct {
		name, password, sql string
		want                int
	}{
		{"the password", "reader's password", "SELECT 1", http.StatusOK},
		{"another", "password", "SELECT 1", http.StatusUnauthorized},
		{"none", "", "SELECT 1", http.StatusUnauthorized},
		{"no writing", "reader's password", "TRUNCATE TABLE events", http.StatusForbidden},
		{"another one later", "rotated", "SELECT 1", http.StatusOK},
		{"the one before", "reader's password", "SELECT 1", http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.password == "rotated" {
				if err := os.WriteFile(filepath.Join(dir, "password"), []byte(tt.password), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/", strings.NewReader(tt.sql))
			if err != nil {
				t.Fatal(err)
			}
			if tt.password != "" {
				req.SetBasicAuth("grafana", tt.password)
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
		})
	}
	db, err := clickhouse.Open(&clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{addr}, Auth: clickhouse.Auth{Database: "audit", Username: "grafana", Password: "rotated"}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := count(t, db, "SELECT count() FROM events"); got != 0 {
		t.Errorf("got %d rows, want 0", got)
	}
	// Who has no password can connect all the same, and must not keep files and memory.
	var conns []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("answer %v, %v, want 401", resp, err)
		}
		conns = append(conns, conn)
	}
	if err := conns[0].SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conns[0]); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("300 connections without the password are held open")
	}
}

// TestReaderMistyped: an error speaks of what the reader wrote, not of the
// statement with which the engine was asked what it is.
func TestReaderMistyped(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	for _, sql := range []string{"SELEC 1", "SELECT 'a", "", "SELECT f(')')) FROM"} {
		r := post(t, dir, chdb.Reader, "", sql)
		if r.header.Get("X-ClickHouse-Exception-Code") != "62" || strings.Contains(r.body, "formatQuery") || !strings.HasSuffix(strings.TrimSpace(r.body), "(SYNTAX_ERROR)") {
			t.Errorf("%s: code %s, %q", sql, r.header.Get("X-ClickHouse-Exception-Code"), r.body)
		}
	}
}

package chdb_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"auditproxy/sink/clickhouse/chdb"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"
)

// insert sends rows [from, to) as one batch with a deduplication token.
func insert(t testing.TB, db driver.Conn, from, to int, token string) error {
	t.Helper()
	ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": token, "insert_deduplicate": 1}))
	batch, err := db.PrepareBatch(ctx, "INSERT INTO audit.events")
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if err := batch.Append(rowOf(i)...); err != nil {
			return err
		}
	}
	return batch.Send()
}

func rowOf(i int) []any {
	var bytes *uint64
	if i%3 == 0 {
		n := uint64(i) << 40
		bytes = &n
	}
	return []any{
		uint64(i), time.Unix(1790000000+int64(i), 123456000).UTC(), fmt.Sprintf("tool_%d", i%5), fmt.Sprintf("{\"n\":%d,\"s\":\"é\\u0000'\\n\"}", i),
		map[string]string{"n": fmt.Sprint(i)}, bytes, [][]any{{"", "a"}, {"operations[0]", fmt.Sprint(i)}},
	}
}

func TestRoundTrip(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	for _, method := range []clickhouse.CompressionMethod{clickhouse.CompressionNone, clickhouse.CompressionLZ4, clickhouse.CompressionZSTD} {
		t.Run(method.String(), func(t *testing.T) {
			db := open(t, dir, chdb.Writer, method)
			exec1(t, db, "DROP TABLE IF EXISTS audit.events")
			events(t, db)
			const rows = 70_000 // more than a block of an answer
			if err := insert(t, db, 0, rows, "a"); err != nil {
				t.Fatal(err)
			}
			got, err := db.Query(t.Context(), "SELECT id, ts, tool, args, labels, bytes FROM audit.events ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			n := 0
			for ; got.Next(); n++ {
				var (
					id         uint64
					ts         time.Time
					tool, args string
					labels     map[string]string
					bytes      *uint64
				)
				if err := got.Scan(&id, &ts, &tool, &args, &labels, &bytes); err != nil {
					t.Fatal(err)
				}
				if n%1000 == 0 {
					if diff := cmp.Diff(rowOf(n)[:6], []any{id, ts, tool, args, labels, bytes}); diff != "" {
						t.Fatalf("row %d (-want +got):\n%s", n, diff)
					}
				}
			}
			if err := got.Err(); err != nil || n != rows {
				t.Errorf("got %d rows, %v, want %d", n, err, rows)
			}
		})
	}
}

func TestToken(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionLZ4)
	events(t, db)
	for _, token := range []string{"first", "first", "second"} {
		if err := insert(t, db, 0, 1000, token); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, db, "SELECT count() FROM audit.events"); got != 2000 {
		t.Errorf("the same batch twice with one token and once with another left %d rows, want 2000", got)
	}
	if got := count(t, db, "SELECT count() FROM audit.events FINAL"); got != 1000 {
		t.Errorf("FINAL sees %d rows, want 1000", got)
	}
}

func TestInsertRefused(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	events(t, db)
	for _, tt := range []struct {
		name, query, body string
		code              string
	}{
		{"no table", "query=INSERT+INTO+audit.nowhere+FORMAT+TSV", "1\n", "60"},
		{"no column", "query=INSERT+INTO+audit.events+(nothing)+FORMAT+TSV", "1\n", "16"},
		{"a value that does not fit", "query=INSERT+INTO+audit.events+(id)+FORMAT+TSV", "1\n2\nx\n", "27"},
		{"a block that is cut", "query=INSERT+INTO+audit.events+(id)+FORMAT+Native", "\x01\x02\x02id\x06UInt64\x01\x00\x00\x00", "33"},
		{"what is no frame", "decompress=1&query=INSERT+INTO+audit.events+(id)+FORMAT+Native", "no frame", "36"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, dir, chdb.Writer, tt.query, tt.body)
			if got := r.header.Get("X-ClickHouse-Exception-Code"); r.status == 200 || got != tt.code {
				t.Errorf("status %d, code %s, %s, want code %s", r.status, got, r.body, tt.code)
			}
		})
	}
	if got := count(t, db, "SELECT count() FROM audit.events"); got != 0 {
		t.Errorf("inserts that failed left %d rows", got)
	}
	// What was refused has left nothing behind: the next insert passes.
	if r := post(t, dir, chdb.Writer, "query=INSERT+INTO+audit.events+(id)+FORMAT+TSV", "1\n"); r.status != 200 {
		t.Errorf("status %d, %s", r.status, r.body)
	}
}

// TestInsertsLeaveMemory: beside as many large inserts as the engine has memory
// for, another waits, and what is small does not.
func TestInsertsLeaveMemory(t *testing.T) {
	const large = 8 << 20
	dir := shortDir(t)
	startEngine(t, dir) // with memory for two
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	exec1(t, db, "CREATE DATABASE audit")
	exec1(t, db, "CREATE TABLE audit.texts (id UInt64, args String) ENGINE = MergeTree ORDER BY id")
	row := "1\t" + strings.Repeat("x", 1<<10) + "\n"
	stored := func(body io.Reader) <-chan int {
		status := make(chan int, 1)
		go func() {
			defer close(status)
			client := http.Client{Transport: transport(dir, chdb.Writer)}
			defer client.CloseIdleConnections()
			resp, err := client.Post("http://engine/?async_insert=0&query=INSERT+INTO+audit.texts+(id,args)+FORMAT+TSV", "text/plain", body)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}()
		return status
	}
	var ends []io.Closer
	var waiting []<-chan int
	for range 2 {
		r, w := io.Pipe()
		waiting = append(waiting, stored(r))
		// Once this is read, the insert has its place.
		if _, err := io.WriteString(w, strings.Repeat(row, large/len(row))); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, w)
	}
	third := stored(strings.NewReader(strings.Repeat(row, large/len(row))))
	for i := range 20 {
		if r := post(t, dir, chdb.Writer, "query=INSERT+INTO+audit.texts+(id)+FORMAT+TSV", fmt.Sprintln(i)); r.status != http.StatusOK {
			t.Fatalf("a small insert: status %d, %s", r.status, r.body)
		}
		if r := post(t, dir, chdb.Reader, "", "SELECT countIf(args != '') FROM audit.texts"); r.body != "0\n" {
			t.Fatalf("beside large inserts a reader sees %q, status %d", r.body, r.status)
		}
	}
	select {
	case status := <-third:
		t.Errorf("a third large insert does not wait, and has status %d", status)
	default:
	}
	for i, w := range ends {
		w.Close()
		if status := <-waiting[i]; status != http.StatusOK {
			t.Errorf("a large insert has status %d", status)
		}
	}
	if status := <-third; status != http.StatusOK {
		t.Errorf("the one that waited has status %d", status)
	}
	if got, want := count(t, db, "SELECT count() FROM audit.texts WHERE args != ''"), uint64(3*(large/len(row))); got != want {
		t.Errorf("%d rows are stored, want %d", got, want)
	}
}

// TestInsertsLimit: an insert has a limit of its own, and reports that one.
func TestInsertsLimit(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	db := open(t, dir, chdb.Writer, clickhouse.CompressionNone)
	exec1(t, db, "CREATE DATABASE audit")
	exec1(t, db, "CREATE TABLE audit.n (n UInt64) ENGINE = MergeTree ORDER BY n")
	exec1(t, db, "CREATE MATERIALIZED VIEW audit.v ENGINE = MergeTree ORDER BY n AS SELECT arraySum(arrayMap(x -> x + n, range(n))) AS n FROM audit.n")
	r := post(t, dir, chdb.Writer, "query=INSERT+INTO+audit.n+FORMAT+TSV", "20000000\n")
	if code := r.header.Get("X-ClickHouse-Exception-Code"); code != "241" || strings.Contains(r.body, "(total)") {
		t.Errorf("code %s, %s, want the insert's own limit", code, r.body)
	}
}

func TestErrorKeepsItsCode(t *testing.T) {
	dir := shortDir(t)
	startEngine(t, dir)
	for _, method := range []clickhouse.CompressionMethod{clickhouse.CompressionNone, clickhouse.CompressionLZ4} {
		db := open(t, dir, chdb.Writer, method)
		for _, tt := range []struct {
			name, sql string
			code      int32
		}{
			{"before the answer", "SELECT * FROM nowhere", 60},
			{"wrong text", "SELEC 1", 62},
			{"two statements", "SELECT 1; SELECT 2", 62},
			{"nothing", "-- nothing", 62},
			{"within the answer", "SELECT number, throwIf(number = 3000000) FROM numbers(4000000) SETTINGS max_block_size = 65536", 395},
		} {
			t.Run(method.String()+" "+tt.name, func(t *testing.T) {
				err := drain(t, db, tt.sql)
				var got *clickhouse.Exception
				if !errors.As(err, &got) || got.Code != tt.code {
					t.Errorf("error %v, want code %d", err, tt.code)
				}
			})
		}
	}
}

// drain runs a query to its end.
func drain(t testing.TB, db driver.Conn, sql string) error {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

package clickhouse_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
)

func TestMain(m *testing.M) {
	chdbtest.IfEngine()
	goleak.VerifyTestMain(m)
}

// keep is long: the golden records have the date of their writing.
var keep = clickhouse.Retention{Events: 9000 * 24 * time.Hour, DeadLetters: 30 * 24 * time.Hour}

func open(t *testing.T, dir string) *clickhouse.Store {
	t.Helper()
	s, err := clickhouse.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// query returns the rows of a question, each as its columns' text.
func query(t *testing.T, dir, sql string) (rows []string) {
	t.Helper()
	return queryFormat(t, dir, "TSVRaw", sql)
}

func queryFormat(t *testing.T, dir, format, sql string) (rows []string) {
	t.Helper()
	conn, err := ch.Open(&ch.Options{Protocol: ch.HTTP, Addr: []string{"engine:0"}, DialContext: chdb.Dialer(dir, chdb.Writer)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := conn.QueryFormat(t.Context(), format, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for line := range strings.Lines(string(b)) {
		rows = append(rows, strings.TrimSuffix(line, "\n"))
	}
	return rows
}

func want(t *testing.T, dir, sql string, rows ...string) {
	t.Helper()
	if diff := cmp.Diff(rows, query(t, dir, sql)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", sql, diff)
	}
}

// row makes what the collector makes of a record.
func row(t *testing.T, r audit.Record, offset uint64) ingest.Row {
	t.Helper()
	return rowOf(t, audit.AppendRecord(nil, &r), offset)
}

func rowOf(t *testing.T, line []byte, offset uint64) ingest.Row {
	t.Helper()
	raw := line[:len(line)-1]
	r, err := audit.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: string(raw), Hash: [16]byte(sum[:]), Source: ingest.Source{Topic: "t", Partition: 3, Offset: offset}}
}

var start = time.Now().UTC().Truncate(time.Hour)

func call(no int, tool string) audit.Record {
	return audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(start), SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab",
		Seq: uint64(no), CallNo: uint64(no), TS: start.Add(time.Duration(no) * time.Second),
		Method: "tools/call", Tool: tool, Outcome: audit.OutcomeOK, Duration: time.Millisecond, Tenant: "acme",
	}
}

func TestEngine(t *testing.T) {
	dir := chdbtest.Start(t)
	s := open(t, dir)
	applied, err := s.Migrate(t.Context(), keep)
	if err != nil || len(applied.Migrations) == 0 || applied.Users {
		t.Fatalf("Migrate = %+v, %v, want migrations and no users", applied, err)
	}
	t.Run("migrations", func(t *testing.T) { testMigrate(t, s, dir) })
	t.Run("members", func(t *testing.T) { testMembers(t, s, dir) })
	t.Run("duplicates", func(t *testing.T) { testDuplicates(t, s, dir) })
	t.Run("views", func(t *testing.T) { testViews(t, s, dir) })
	t.Run("alerts", func(t *testing.T) { testAlerts(t, s, dir) })
	t.Run("arrived", func(t *testing.T) { testArrived(t, s, dir) })
	t.Run("letters", func(t *testing.T) { testLetters(t, s, dir) })
	t.Run("classes", func(t *testing.T) { testClasses(t, s, dir) })
	t.Run("newer", func(t *testing.T) { testNewer(t, s, dir) })
}

func testMigrate(t *testing.T, s *clickhouse.Store, dir string) {
	applied, err := s.Migrate(t.Context(), keep)
	if err != nil || len(applied.Migrations) != 0 {
		t.Errorf("the second Migrate = %+v, %v, want nothing to do", applied, err)
	}
	ttl := "SELECT extract(create_table_query, 'toIntervalDay\\\\((\\\\d+)\\\\)') FROM system.tables WHERE database = 'audit' AND name IN ('events', 'dead_letters') ORDER BY name"
	want(t, dir, ttl, "30", "9000")
	shorter := keep
	shorter.Events = 100 * 24 * time.Hour
	if _, err := s.Migrate(t.Context(), shorter); err != nil {
		t.Fatal(err)
	}
	want(t, dir, ttl, "30", "100")
	// A crash after the statements and before they are recorded.
	query(t, dir, "TRUNCATE TABLE audit.migrations")
	all, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	if applied, err := s.Migrate(t.Context(), keep); err != nil || len(applied.Migrations) != len(all) {
		t.Errorf("Migrate of what is there but not recorded = %+v, %v, want all again", applied, err)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

const members = "SELECT * EXCEPT (raw, ingested_at, payload_hash) FROM audit.events WHERE kind = '"

// testMembers stores one record of each kind with all members, and looks at
// every column.
func testMembers(t *testing.T, s *clickhouse.Store, dir string) {
	arch, err := txtar.ParseFile("../../schemas/audit/testdata/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var rows []ingest.Row
	for i, f := range arch.Files {
		if f.Name == "anomaly" || f.Name == "gap" || f.Name == "call" {
			rows = append(rows, rowOf(t, f.Data, uint64(i)))
		}
	}
	if err := s.InsertRows(t.Context(), rows, start); err != nil {
		t.Fatal(err)
	}
	golden, err := txtar.ParseFile("testdata/columns.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		for i, f := range golden.Files {
			got := queryFormat(t, dir, "PrettyJSONEachRow", members+f.Name+"'")
			golden.Files[i].Data = []byte(strings.Join(got, "\n") + "\n")
		}
		if err := os.WriteFile("testdata/columns.txtar", txtar.Format(golden), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range golden.Files {
		got := queryFormat(t, dir, "PrettyJSONEachRow", members+f.Name+"'")
		if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	for i := range rows {
		want(t, dir, fmt.Sprintf("SELECT hex(payload_hash), hex(raw) FROM audit.events WHERE kind = '%s'", rows[i].Record.Kind),
			fmt.Sprintf("%X\t%X", rows[i].Hash, rows[i].Raw))
	}
	query(t, dir, "TRUNCATE TABLE audit.events")
	query(t, dir, "TRUNCATE TABLE audit.hourly_states")
}

// testDuplicates stores records in every way in which they come twice.
func testDuplicates(t *testing.T, s *clickhouse.Store, dir string) {
	var rows []ingest.Row
	for i := range 100 {
		rows = append(rows, row(t, call(i+1, "list_panes"), uint64(i)))
	}
	insert := func(rows []ingest.Row) {
		t.Helper()
		if err := s.InsertRows(t.Context(), rows, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	insert(rows[:60])
	insert(rows[:60])
	want(t, dir, "SELECT count() FROM audit.events", "60") // the token alone
	// The server died between the table and the rollup: the next attempt, which
	// the table knows already, still feeds the rollup.
	query(t, dir, "TRUNCATE TABLE audit.hourly_states")
	insert(rows[:60])
	want(t, dir, "SELECT count() FROM audit.events", "60")
	want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.hourly", "60\t0")
	insert(rows[40:]) // after a crash, with other boundaries
	again := append([]ingest.Row(nil), rows[:10]...)
	for i := range again {
		again[i].Source.Offset += 1000 // the producer wrote it twice
	}
	insert(again)
	want(t, dir, "SELECT count() FROM audit.events FINAL", "100")
	want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.hourly", "100\t0")
	want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.daily", "100\t0")
	query(t, dir, "OPTIMIZE TABLE audit.events FINAL")
	want(t, dir, "SELECT count() FROM audit.events", "100")
	want(t, dir, "SELECT count() FROM audit.conflicts", "0")
	// A changed copy is another record, and shows.
	forged := rows[7].Record
	forged.Tool = "pipe_pane"
	insert([]ingest.Row{row(t, forged, 7)})
	want(t, dir, "SELECT count() FROM audit.events FINAL", "101")
	want(t, dir, "SELECT identity, value, versions FROM audit.conflicts ORDER BY identity",
		"record_id\t"+forged.RecordID+"\t2", "seq\t"+forged.SessionID+" 8\t2")
	query(t, dir, "TRUNCATE TABLE audit.events")
	query(t, dir, "TRUNCATE TABLE audit.hourly_states")
}

func testViews(t *testing.T, s *clickhouse.Store, dir string) {
	first, batch, last := call(1, "pipe_pane"), call(2, "batch"), call(4, "list_panes")
	first.Args = `{"output_path":"/tmp/a"}`
	batch.Args = `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"pipe_pane","arguments":{"output_path":{"len":5000,"head":"/tmp/b"}}}]}`
	batch.Candidates = []audit.Candidate{{Method: "tools/call", Tool: "kill_server"}}
	last.Outcome, last.ErrorType = audit.OutcomeError, "PaneNotFound"
	begin := audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(start), SessionID: first.SessionID, TS: start, Duration: -1}
	if err := s.InsertRows(t.Context(), []ingest.Row{row(t, begin, 0), row(t, first, 1), row(t, batch, 2), row(t, last, 4)}, start); err != nil {
		t.Fatal(err)
	}
	want(t, dir, "SELECT call_no, operation, path, candidate FROM audit.operations ORDER BY call_no, path, candidate",
		"1\tpipe_pane\t\tfalse",
		"2\tbatch\t\tfalse",
		"2\tkill_server\t\ttrue",
		"2\tlist_panes\toperations[0]\tfalse",
		"2\tpipe_pane\toperations[1]\tfalse",
		"4\tlist_panes\t\tfalse")
	want(t, dir, "SELECT call_no, path, destination FROM audit.pipe_destinations ORDER BY call_no",
		"1\t\t/tmp/a", `2`+"\t"+`operations[1]`+"\t"+`{"len":5000,"head":"/tmp/b"}`)
	want(t, dir, "SELECT missing FROM audit.seq_gaps", "1")
	want(t, dir, "SELECT records, calls, errors, missing_records, missing_calls, ended, died FROM audit.sessions", "4\t3\t1\t1\t1\tfalse\tfalse")
	got, err := s.Completeness(t.Context())
	if err != nil || got != (clickhouse.Completeness{Missing: 1, Silent: 1}) && start.Before(time.Now().Add(-5*time.Minute)) {
		t.Errorf("Completeness = %+v, %v, want 1 missing, 1 silent", got, err)
	}
	query(t, dir, "TRUNCATE TABLE audit.events")
}

func testLetters(t *testing.T, s *clickhouse.Store, dir string) {
	letter := func(offset uint64, reason string) ingest.DeadLetter {
		return ingest.DeadLetter{
			Source: ingest.Source{Topic: "t", Partition: 1, Offset: offset}, Time: start, Key: "k\x00\xff",
			Raw: []byte("not JSON \x00\xff"), Reason: reason, Error: "the value is not JSON", Seen: start,
		}
	}
	letters := []ingest.DeadLetter{letter(1, "not_json"), letter(2, "tenant"), letter(3, "not_json")}
	for range 2 { // what comes twice is one
		if err := s.InsertDeadLetters(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	read := func(f clickhouse.LetterFilter) (list []ingest.DeadLetter) {
		t.Helper()
		f.Limit = 2
		for {
			page, err := s.Letters(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return list
			}
			for _, l := range page {
				list = append(list, l.DeadLetter)
			}
			f.After = &page[len(page)-1].Cursor
		}
	}
	if diff := cmp.Diff(letters, read(clickhouse.LetterFilter{})); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(letters[1:2], read(clickhouse.LetterFilter{Reason: "tenant"})); diff != "" {
		t.Errorf("by reason (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(letters[2:], read(clickhouse.LetterFilter{Source: &letters[2].Source})); diff != "" {
		t.Errorf("by place (-want +got):\n%s", diff)
	}
	if err := s.MarkReplayed(t.Context(), letters[:1], time.Now()); err != nil {
		t.Fatal(err)
	}
	// The topic is read from its start again: the mark stays.
	if err := s.InsertDeadLetters(t.Context(), append(letters[:1:1], letter(9, "ts"))); err != nil {
		t.Fatal(err)
	}
	if got := read(clickhouse.LetterFilter{}); len(got) != 3 {
		t.Errorf("after a replay %d letters wait, want 3", len(got))
	}
	if got := read(clickhouse.LetterFilter{Replayed: true}); len(got) != 4 {
		t.Errorf("after a replay there are %d letters, want 4", len(got))
	}
	gap := ingest.Gap{Topic: "t", Partition: 1, From: 5, To: 8, Reason: "removed", Seen: start}
	for range 2 {
		if err := s.InsertGaps(t.Context(), []ingest.Gap{gap}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, dir, "SELECT kafka_topic, kafka_partition, from_offset, to_offset, reason FROM audit.gaps FINAL", "t\t1\t5\t8\tremoved")
}

func testClasses(t *testing.T, s *clickhouse.Store, dir string) {
	rows := []ingest.Row{row(t, call(1, "x"), 1)}
	insert := func() ingest.Class {
		err := s.InsertRows(t.Context(), rows, start)
		if err == nil {
			t.Error("the insert succeeded")
		}
		return ingest.ClassOf(err)
	}
	query(t, dir, "ALTER TABLE audit.events ADD CONSTRAINT c CHECK tool != 'x'")
	if got := insert(); got != ingest.Poison {
		t.Errorf("a row that breaks a constraint: %v, want poison", got)
	}
	query(t, dir, "ALTER TABLE audit.events DROP CONSTRAINT c")
	query(t, dir, "RENAME TABLE audit.events TO audit.away")
	if got := insert(); got != ingest.Configuration {
		t.Errorf("without the table: %v, want configuration", got)
	}
	query(t, dir, "RENAME TABLE audit.away TO audit.events")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.InsertRows(ctx, rows, start); ingest.ClassOf(err) != ingest.Retry || err == nil {
		t.Errorf("without time: %v, want retry", err)
	}
	if err := s.InsertRows(t.Context(), rows, start); err != nil {
		t.Error(err)
	}
}

func testNewer(t *testing.T, s *clickhouse.Store, dir string) {
	query(t, dir, "INSERT INTO audit.migrations VALUES (1000, '1000_future', 'x', now64(3))")
	if _, err := s.Migrate(t.Context(), keep); !errors.Is(err, clickhouse.ErrNewer) {
		t.Errorf("Migrate = %v, want %v", err, clickhouse.ErrNewer)
	}
}

func TestOpen(t *testing.T) {
	for name, c := range map[string]clickhouse.Config{
		"no address":          {Database: "audit"},
		"no identifier":       {Addrs: []string{"a:1"}, Database: "audit; DROP TABLE x"},
		"no cluster name":     {Addrs: []string{"a:1"}, Database: "audit", Cluster: "a b"},
		"everything is wrong": {},
	} {
		if _, err := clickhouse.Open(c); err == nil {
			t.Errorf("%s: Open succeeded", name)
		}
	}
}

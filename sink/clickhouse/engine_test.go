package clickhouse_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
	"auditproxy/sink/clickhouse/chdb/servertest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func TestMain(m *testing.M) {
	servertest.IfServer()
	chdbtest.Main(m)
}

// keep is long: the golden records have the date of their writing.
var keep = clickhouse.Retention{Events: 9000 * 24 * time.Hour, DeadLetters: 30 * 24 * time.Hour}

func open(t *testing.T, dir string) *clickhouse.DB {
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

// migrated starts an engine with the tables, and returns its directory.
func migrated(t *testing.T) (dir string) {
	t.Helper()
	dir = migratedDir(t)
	chdbtest.StartIn(t, dir)
	return dir
}

// migratedDir returns the directory of such an engine, which does not run.
func migratedDir(t *testing.T) string {
	t.Helper()
	return chdbtest.DirWith(t, "tables", func(dir string) {
		if _, err := open(t, dir).Migrate(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
	})
}

// row makes what the collector makes of a record.
func row(t *testing.T, r audit.Record, offset uint64) ingest.Row {
	t.Helper()
	return ingesttest.Row(t, r, ingest.Source{Topic: "t", Partition: 3, Offset: offset})
}

var start = time.Now().UTC().Truncate(time.Hour)

func call(no int, tool string) audit.Record { return ingesttest.Call(no, tool, start) }

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
	t.Run("classes", func(t *testing.T) { testClasses(t, s, dir) })
	t.Run("at once", func(t *testing.T) { testMigrateAtOnce(t, dir) })
	t.Run("dropped", func(t *testing.T) { testDropped(t, s, dir) })
	t.Run("newer", func(t *testing.T) { testNewer(t, s, dir) })
}

// testDropped drops a table and the view that fills another. A migration names them,
// and passes once they are there again, as the page on operations says.
func testDropped(t *testing.T, s *clickhouse.DB, dir string) {
	if err := s.Dropped(t.Context()); err != nil {
		t.Fatal(err)
	}
	create := chdbtest.QueryFormat(t, dir, "TSVRaw", "SELECT create_table_query FROM system.tables WHERE database = 'audit' AND name = 'arrival_feed'")
	chdbtest.Query(t, dir, "CREATE TABLE audit.spare AS audit.gaps")
	chdbtest.Query(t, dir, "DROP TABLE audit.gaps")
	chdbtest.Query(t, dir, "DROP VIEW audit.arrival_feed")
	_, err := s.Migrate(t.Context(), keep)
	if ingest.ClassOf(err) != ingest.Configuration || !strings.Contains(err.Error(), `"arrival_feed", "gaps" of database "audit" are not there: run UNDROP TABLE`) {
		t.Errorf("Migrate without two tables: %v", err)
	}
	chdbtest.Query(t, dir, "RENAME TABLE audit.spare TO audit.gaps")
	if err := s.Dropped(t.Context()); err == nil || strings.Contains(err.Error(), "gaps") {
		t.Errorf("without a view: %v", err)
	}
	chdbtest.Query(t, dir, strings.Join(create, "\n"))
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Errorf("with both again: %v", err)
	}
	testAltered(t, s, dir)
	testRewritten(t, s, dir)
	testRedefined(t, s, dir)
}

// testRewritten gives each view of the program another query. All are named, and none once
// what it says was run. A start does not wait for that, and a newer program's are others.
func testRewritten(t *testing.T, s *clickhouse.DB, dir string) {
	chdbtest.Query(t, dir, "CREATE VIEW audit.mine AS SELECT 1")
	if err := s.Changed(t.Context()); err != nil {
		t.Errorf("as they were made: %v", err)
	}
	var names []string
	for _, line := range chdbtest.QueryFormat(t, dir, "TSVRaw", "SELECT name, engine, formatQuerySingleLine(as_select) FROM system.tables WHERE database = 'audit' AND engine LIKE '%View' AND name != 'mine' ORDER BY name") {
		f := strings.Split(line, "\t")
		names = append(names, f[0])
		if f[1] == "View" {
			chdbtest.Query(t, dir, "CREATE OR REPLACE VIEW audit."+f[0]+" AS "+f[2]+" LIMIT 1")
		} else {
			chdbtest.Query(t, dir, "ALTER TABLE audit."+f[0]+" MODIFY QUERY "+f[2]+" LIMIT 1")
		}
	}
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Errorf("a start: %v", err)
	}
	err := s.Changed(t.Context())
	if ingest.ClassOf(err) != ingest.Configuration || !errors.Is(err, clickhouse.ErrRewritten) || len(names) < 17 {
		t.Fatalf("with %d views that were changed: %v", len(names), err)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q since %s", name, time.Now().UTC().Format(time.DateOnly))) {
			t.Errorf("%q was changed, and is not named", name)
		}
	}
	chdbtest.Query(t, dir, "INSERT INTO audit.migrations (number, name, needs) VALUES (9999, 'newer', 1)")
	if err := s.Changed(t.Context()); err != nil {
		t.Errorf("beside a newer program: %v", err)
	}
	chdbtest.Query(t, dir, "DELETE FROM audit.migrations WHERE number = 9999")
	_, remedies, _ := strings.Cut(err.Error(), ": run ")
	for remedy := range strings.SplitSeq(remedies, "; ") {
		chdbtest.Query(t, dir, remedy)
	}
	if err := s.Changed(t.Context()); err != nil {
		t.Errorf("with its own queries again: %v", err)
	}
	chdbtest.Query(t, dir, "DROP VIEW audit.mine")
}

// testAltered drops a column of a table that views fill, narrows another one, and drops one
// of a table that statements fill. A migration names them, and passes once what it says was
// run. A column that an administrator adds, and how values are kept, are theirs to choose.
func testAltered(t *testing.T, s *clickhouse.DB, dir string) {
	chdbtest.Query(t, dir, "ALTER TABLE audit.session_states ADD COLUMN mine String")
	chdbtest.Query(t, dir, "ALTER TABLE audit.session_states MODIFY COLUMN user SimpleAggregateFunction(max, String) CODEC(ZSTD(9))")
	chdbtest.Query(t, dir, "ALTER TABLE audit.alerts MODIFY COLUMN severity String")
	if err := s.Dropped(t.Context()); err != nil {
		t.Errorf("with what changes nothing: %v", err)
	}
	for _, change := range []string{"session_states DROP COLUMN died", "session_states MODIFY COLUMN max_seq SimpleAggregateFunction(max, UInt8)", "alert_events DROP COLUMN comment"} {
		chdbtest.Query(t, dir, "ALTER TABLE audit."+change)
	}
	_, err := s.Migrate(t.Context(), keep)
	if ingest.ClassOf(err) != ingest.Configuration || !errors.Is(err, clickhouse.ErrDropped) || !strings.Contains(err.Error(), `columns alert_events.comment, session_states.max_seq, session_states.died of database "audit" are not there`) {
		t.Fatalf("Migrate with tables that were altered: %v", err)
	}
	_, remedies, _ := strings.Cut(err.Error(), ": run ")
	for remedy := range strings.SplitSeq(remedies, "; ") {
		chdbtest.Query(t, dir, remedy)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.session_states DROP COLUMN mine")
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Errorf("with its own columns again: %v", err)
	}
}

// testRedefined changes defaults of columns, and gives columns and a table a TTL. What would
// lose or alter something is named, also beside views, and not once what it says was run. A
// start does not wait for that. Codecs, and a TTL that removes nothing, are an
// administrator's to choose.
func testRedefined(t *testing.T, s *clickhouse.DB, dir string) {
	chdbtest.Query(t, dir, "ALTER TABLE audit.events MODIFY COLUMN raw String CODEC(ZSTD(9))")
	chdbtest.Query(t, dir, "ALTER TABLE audit.gaps MODIFY TTL toDateTime(seen_at) + INTERVAL 30 DAY RECOMPRESS CODEC(ZSTD(9))")
	if err := s.Changed(t.Context()); err != nil {
		t.Errorf("with what changes nothing: %v", err)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.gaps REMOVE TTL")
	for _, change := range []string{
		"dead_letters MODIFY COLUMN replayed_at DateTime64(3, 'UTC') DEFAULT 5", "export_late MODIFY COLUMN upto REMOVE DEFAULT", "alerts MODIFY COLUMN tenant String DEFAULT 'x'",
		"events MODIFY COLUMN user String TTL toDateTime(ts) + INTERVAL 5 DAY", "events MODIFY COLUMN precedence MATERIALIZED 7",
	} {
		chdbtest.Query(t, dir, "ALTER TABLE audit."+change)
	}
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Errorf("a start: %v", err)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.leaves MODIFY TTL toDateTime(kept_at) + INTERVAL 5 DAY") // that start would remove it
	err := s.Changed(t.Context())
	if ingest.ClassOf(err) != ingest.Configuration || !errors.Is(err, clickhouse.ErrRewritten) ||
		!strings.Contains(err.Error(), "default of alerts.tenant, default of dead_letters.replayed_at, default of events.precedence, TTL of events.user, default of export_late.upto, TTL of leaves of database") {
		t.Fatalf("with other defaults and TTLs: %v", err)
	}
	_, remedies, _ := strings.Cut(err.Error(), ": run ")
	for remedy := range strings.SplitSeq(remedies, "; ") {
		chdbtest.Query(t, dir, remedy)
	}
	if err := s.Changed(t.Context()); err != nil {
		t.Errorf("with its own definitions again: %v", err)
	}
}

func testMigrate(t *testing.T, s *clickhouse.DB, dir string) {
	applied, err := s.Migrate(t.Context(), keep)
	if err != nil || len(applied.Migrations) != 0 {
		t.Errorf("the second Migrate = %+v, %v, want nothing to do", applied, err)
	}
	// The engine has 512 MiB. A bound of another memory is replaced.
	const bound = 64 << 20
	chdbtest.Want(t, dir, "SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'", fmt.Sprint(8*bound))
	for _, before := range []string{"SELECT 1", "ALTER TABLE audit.events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1000000", "ALTER TABLE audit.events RESET SETTING max_bytes_to_merge_at_max_space_in_pool"} {
		chdbtest.Query(t, dir, before)
		if _, err := s.Migrate(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		chdbtest.Want(t, dir, "SELECT extract(create_table_query, 'max_bytes_to_merge_at_max_space_in_pool = (\\d+)') FROM system.tables WHERE database = 'audit' AND name = 'events'", fmt.Sprint(bound))
	}
	// What older programs set knows no holds.
	chdbtest.Query(t, dir, "ALTER TABLE audit.dead_letters MODIFY TTL toDateTime(seen_at) + INTERVAL 30 DAY")
	var shown []string
	migrating := keep
	migrating.Show = func(statement string) { shown = append(shown, statement) }
	if _, err := s.Migrate(t.Context(), migrating); err != nil {
		t.Fatal(err)
	}
	chdbtest.Want(t, dir, "SELECT name FROM system.tables WHERE database = 'audit' AND create_table_query LIKE '% TTL %'", "retention_looks")
	if len(shown) != 1 || !strings.Contains(shown[0], "dead_letters") || !strings.Contains(shown[0], "REMOVE TTL") {
		t.Errorf("shown: %q, want that a TTL is removed", shown)
	}
	// This engine has no such policy; what would run is shown before.
	for _, tt := range []struct {
		keep clickhouse.Retention
		want string
	}{
		{clickhouse.Retention{StoragePolicy: "tiered", ColdAfter: 30 * 24 * time.Hour, ColdVolume: "cold"}, "ALTER TABLE audit.events  MODIFY SETTING storage_policy = 'tiered'"},
		{clickhouse.Retention{ColdAfter: 30 * 24 * time.Hour, ColdVolume: "cold"}, "ALTER TABLE audit.events  MODIFY TTL toDateTime(ts) + toIntervalDay(30) TO VOLUME 'cold'"},
	} {
		shown = nil
		tt.keep.Show = migrating.Show
		if _, err := s.Migrate(t.Context(), tt.keep); err == nil || len(shown) != 1 || shown[0] != tt.want {
			t.Errorf("Migrate = %v, shown %q, want an error after %q", err, shown, tt.want)
		}
	}
	// A crash after the statements and before they are recorded.
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.migrations")
	all, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	if applied, err := s.Migrate(t.Context(), keep); err != nil || len(applied.Migrations) != len(all) {
		t.Errorf("Migrate of what is there but not recorded = %+v, %v, want all again", applied, err)
	}
}

// testMigrateAtOnce has several collectors migrate at once, also where records
// are counted again: each succeeds, and nothing counts twice.
func testMigrateAtOnce(t *testing.T, dir string) {
	s := open(t, dir)
	pipe := call(1, "pipe_pane")
	pipe.Args = `{"output_path":"/tmp/a"}`
	if err := s.InsertRows(t.Context(), []ingest.Row{row(t, pipe, 1), row(t, call(2, "list_panes"), 2)}, start); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"TRUNCATE TABLE audit.migrations", "DROP DATABASE audit SYNC"} {
		chdbtest.Query(t, dir, before)
		errs := make(chan error)
		for range 4 {
			db := open(t, dir)
			go func() {
				_, err := db.Migrate(t.Context(), keep)
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Errorf("after %s: %v", before, err)
			}
		}
		all, err := schemas.ClickHouse()
		if err != nil {
			t.Fatal(err)
		}
		chdbtest.Want(t, dir, "SELECT count() FROM audit.migrations FINAL", fmt.Sprint(len(all)))
		if before == "TRUNCATE TABLE audit.migrations" {
			chdbtest.Want(t, dir, "SELECT length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states", "1")
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

const members = "SELECT * EXCEPT (raw, ingested_at, payload_hash) FROM audit.events WHERE kind = '"

// testMembers stores one record of each kind with all members, and looks at
// every column.
func testMembers(t *testing.T, s *clickhouse.DB, dir string) {
	arch, err := txtar.ParseFile("../../schemas/audit/testdata/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var rows []ingest.Row
	for i, f := range arch.Files {
		if f.Name == "anomaly" || f.Name == "gap" || f.Name == "call" {
			rows = append(rows, ingesttest.RowOf(t, f.Data, ingest.Source{Topic: "t", Partition: 3, Offset: uint64(i)}))
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
			got := chdbtest.QueryFormat(t, dir, "PrettyJSONEachRow", members+f.Name+"'")
			golden.Files[i].Data = []byte(strings.Join(got, "\n") + "\n")
		}
		if err := os.WriteFile("testdata/columns.txtar", txtar.Format(golden), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range golden.Files {
		got := chdbtest.QueryFormat(t, dir, "PrettyJSONEachRow", members+f.Name+"'")
		if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	for i := range rows {
		chdbtest.Want(t, dir, fmt.Sprintf("SELECT hex(payload_hash), hex(raw) FROM audit.events WHERE kind = '%s'", rows[i].Record.Kind),
			fmt.Sprintf("%X\t%X", rows[i].Hash, rows[i].Raw))
	}
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.events")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.arrivals")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.operation_states")
}

// testDuplicates stores records in every way in which they come twice.
func testDuplicates(t *testing.T, s *clickhouse.DB, dir string) {
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
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events", "60") // the token alone
	// The server died between the table and the rollup: the next attempt, which
	// the table knows already, still feeds the rollup.
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.operation_states")
	insert(rows[:60])
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events", "60")
	chdbtest.Want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.hourly", "60\t0")
	insert(rows[40:]) // after a crash, with other boundaries
	again := append([]ingest.Row(nil), rows[:10]...)
	for i := range again {
		again[i].Source.Offset += 1000 // the producer wrote it twice
	}
	insert(again)
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events FINAL", "100")
	chdbtest.Want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.hourly", "100\t0")
	chdbtest.Want(t, dir, "SELECT sum(calls), sum(errors) FROM audit.daily", "100\t0")
	chdbtest.Query(t, dir, "OPTIMIZE TABLE audit.events FINAL")
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events", "100")
	chdbtest.Want(t, dir, "SELECT count() FROM audit.conflicts", "0")
	// A changed copy is another record, and shows.
	// The first arrival of each stays, with its place, and every place counts once.
	chdbtest.Want(t, dir, "SELECT countIf(kafka_offset >= 1000), max(kafka_offset) FROM audit.events", "0\t99")
	chdbtest.Want(t, dir, "SELECT length(places), count() FROM audit.arrivals FINAL GROUP BY 1 ORDER BY 1", "1\t90", "2\t10")
	forged := rows[7].Record
	forged.Tool = "pipe_pane"
	insert([]ingest.Row{row(t, forged, 7)})
	chdbtest.Want(t, dir, "SELECT count() FROM audit.events FINAL", "101")
	chdbtest.Want(t, dir, "SELECT identity, value, versions FROM audit.conflicts ORDER BY identity",
		"record_id\t"+forged.RecordID+"\t2", "seq\t"+forged.SessionID+" 8\t2")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.events")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.arrivals")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.operation_states")
}

func testViews(t *testing.T, s *clickhouse.DB, dir string) {
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.session_states")
	first, batch, last := call(1, "pipe_pane"), call(2, "batch"), call(4, "list_panes")
	first.Args = `{"output_path":"/tmp/a"}`
	batch.Args = `{"operations":[{"tool":"list_panes","arguments":{}},{"tool":"pipe_pane","arguments":{"output_path":{"len":5000,"head":"/tmp/b"}}}]}`
	batch.Candidates = []audit.Candidate{{Method: "tools/call", Tool: "kill_server"}}
	last.Outcome, last.ErrorType = audit.OutcomeError, "PaneNotFound"
	begin := audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(start), SessionID: first.SessionID, TS: start, Duration: -1, Tenant: first.Tenant}
	if err := s.InsertRows(t.Context(), []ingest.Row{row(t, begin, 0), row(t, first, 1), row(t, batch, 2), row(t, last, 4)}, start); err != nil {
		t.Fatal(err)
	}
	chdbtest.Want(t, dir, "SELECT call_no, operation, path, candidate FROM audit.operations ORDER BY call_no, path, candidate",
		"1\tpipe_pane\t\tfalse",
		"2\tbatch\t\tfalse",
		"2\tkill_server\t\ttrue",
		"2\tlist_panes\toperations[0]\tfalse",
		"2\tpipe_pane\toperations[1]\tfalse",
		"4\tlist_panes\t\tfalse")
	chdbtest.Want(t, dir, "SELECT call_no, path, destination FROM audit.pipe_destinations ORDER BY call_no",
		"1\t\t/tmp/a", `2`+"\t"+`operations[1]`+"\t"+`{"len":5000,"head":"/tmp/b"}`)
	chdbtest.Want(t, dir, "SELECT missing FROM audit.seq_gaps", "1")
	// Another tenant's session with the same id, and with one of its numbers.
	other := call(4, "list_panes")
	other.Tenant = "other"
	if err := s.InsertRows(t.Context(), []ingest.Row{row(t, other, 5)}, start); err != nil {
		t.Fatal(err)
	}
	chdbtest.Want(t, dir, "SELECT tenant, missing FROM audit.seq_gaps ORDER BY tenant", "acme\t1", "other\t4")
	chdbtest.Want(t, dir, "SELECT count() FROM audit.conflicts", "0")
	chdbtest.Query(t, dir, "DELETE FROM audit.events WHERE tenant = 'other'")
	chdbtest.Want(t, dir, "SELECT records, calls, errors, missing_records, missing_calls, ended, died FROM audit.sessions", "4\t3\t1\t1\t1\tfalse\tfalse")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.events")
}

func testClasses(t *testing.T, s *clickhouse.DB, dir string) {
	rows := []ingest.Row{row(t, call(1, "x"), 1)}
	insert := func() ingest.Class {
		err := s.InsertRows(t.Context(), rows, start)
		if err == nil {
			t.Error("the insert succeeded")
		}
		return ingest.ClassOf(err)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.events ADD CONSTRAINT c CHECK tool != 'x'")
	if got := insert(); got != ingest.Poison {
		t.Errorf("a row that breaks a constraint: %v, want poison", got)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.events DROP CONSTRAINT c")
	chdbtest.Query(t, dir, "RENAME TABLE audit.events TO audit.away")
	if got := insert(); got != ingest.Configuration {
		t.Errorf("without the table: %v, want configuration", got)
	}
	chdbtest.Query(t, dir, "RENAME TABLE audit.away TO audit.events")
	// More elements than the engine has memory for, and no constant.
	chdbtest.Query(t, dir, "CREATE MATERIALIZED VIEW audit.greedy ENGINE = Null AS SELECT length(range(toUInt64(100000000) + seq)) AS n FROM audit.events")
	if got := insert(); got != ingest.Oversize {
		t.Errorf("without memory: %v, want oversize", got)
	}
	chdbtest.Query(t, dir, "DROP VIEW audit.greedy")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.InsertRows(ctx, rows, start); ingest.ClassOf(err) != ingest.Retry || err == nil {
		t.Errorf("without time: %v, want retry", err)
	}
	if err := s.InsertRows(t.Context(), rows, start); err != nil {
		t.Error(err)
	}
}

func testNewer(t *testing.T, s *clickhouse.DB, dir string) {
	all, err := schemas.ClickHouse()
	if err != nil {
		t.Fatal(err)
	}
	// One that is not ours, of the same number.
	chdbtest.Query(t, dir, "INSERT INTO audit.migrations (number, name, sha256, needs, applied_at) VALUES (2, '0002_theirs', 'x', 0, now() + 60)")
	if _, err := s.Migrate(t.Context(), keep); ingest.ClassOf(err) != ingest.Configuration || !strings.Contains(err.Error(), "is not the one that was applied") {
		t.Errorf("Migrate = %v, want that a migration is another one", err)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.migrations DELETE WHERE sha256 = 'x' SETTINGS mutations_sync = 2")
	// A newer program's migration that an older one can work with.
	chdbtest.Query(t, dir, fmt.Sprintf("INSERT INTO audit.migrations (number, name, sha256, needs) VALUES (999, '0999_future', 'x', %d)", len(all)))
	if applied, err := s.Migrate(t.Context(), keep); err != nil || applied.Newer != 1 {
		t.Errorf("Migrate = %+v, %v, want one newer migration and no error", applied, err)
	}
	// One that it cannot, and one from before migrations said what they need.
	chdbtest.Query(t, dir, fmt.Sprintf("ALTER TABLE audit.migrations UPDATE needs = %d WHERE number = 999 SETTINGS mutations_sync = 2", len(all)+1))
	if _, err := s.Migrate(t.Context(), keep); !errors.Is(err, clickhouse.ErrNewer) {
		t.Errorf("Migrate = %v, want %v", err, clickhouse.ErrNewer)
	}
	chdbtest.Query(t, dir, "ALTER TABLE audit.migrations DROP COLUMN needs SETTINGS alter_sync = 2")
	if _, err := s.Migrate(t.Context(), keep); !errors.Is(err, clickhouse.ErrNewer) {
		t.Errorf("Migrate = %v, want %v", err, clickhouse.ErrNewer)
	}
}

func TestOpen(t *testing.T) {
	for name, c := range map[string]clickhouse.Config{
		"no address":      {Database: "audit"},
		"no identifier":   {Addrs: []string{"a:1"}, Database: "audit; DROP TABLE x"},
		"no cluster name": {Addrs: []string{"a:1"}, Database: "audit", Cluster: clickhouse.Cluster{Cluster: schemas.Cluster{Name: "a b"}}},
		"no place in Keeper": {Addrs: []string{"a:1"}, Database: "audit", Cluster: clickhouse.Cluster{
			Cluster: schemas.Cluster{Name: "c", ReplicaPath: "/p'", ReplicaName: "{replica}"}}},
		"everything is wrong": {},
	} {
		if _, err := clickhouse.Open(c); err == nil {
			t.Errorf("%s: Open succeeded", name)
		}
	}
}

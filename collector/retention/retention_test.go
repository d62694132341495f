package retention_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/retention"
	"auditproxy/collector/store/storetest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

const day = 24 * time.Hour

// A fixture is an engine with tables, whose rows are as old as a test needs.
type fixture struct {
	t      *testing.T
	db     *clickhouse.DB
	dir    string
	keep   clickhouse.Retention
	offset uint64
}

func newFixture(t *testing.T, keep clickhouse.Retention) *fixture {
	t.Helper()
	s, dir := storetest.Open(t, keep)
	return &fixture{t: t, db: s.DB(), dir: dir, keep: keep}
}

// clear empties the tables, and has retention look a day ago with the same times.
func (f *fixture) clear() {
	f.t.Helper()
	for _, table := range chdbtest.Query(f.t, f.dir, "SELECT name FROM system.tables WHERE database = 'audit' AND engine LIKE '%MergeTree' AND name != 'migrations' AND total_rows > 0") {
		chdbtest.Query(f.t, f.dir, "TRUNCATE TABLE audit."+table)
	}
	f.lookedAt(time.Now().Add(-day - time.Minute))
}

// lookedAt runs a look of a day in the past.
func (f *fixture) lookedAt(at time.Time) {
	f.t.Helper()
	looks := map[string]time.Duration{"'retention.events', ''": f.keep.Events, "'retention.dead_letters', ''": f.keep.DeadLetters}
	for tenant, keep := range f.keep.Tenants {
		looks["'retention.tenants', '"+strings.ReplaceAll(tenant, "'", "''")+"'"] = keep
	}
	var rows []string
	for rule, keep := range looks {
		rows = append(rows, fmt.Sprintf("(%s, fromUnixTimestamp64Milli(%d), fromUnixTimestamp64Milli(%d))", rule, at.UnixMilli(), at.Add(-keep).Truncate(day).UnixMilli()))
	}
	f.values("retention_looks (rule, tenant, at, cutoff)", rows)
}

func (f *fixture) exec(sql string) {
	f.t.Helper()
	chdbtest.Query(f.t, f.dir, sql)
}

// values inserts rows into a table's columns. Each insert is a part on disk, which
// costs, and is deleted from by itself.
func (f *fixture) values(columns string, rows []string) {
	f.t.Helper()
	f.exec("INSERT INTO audit." + columns + " VALUES " + strings.Join(rows, ", "))
}

func (f *fixture) want(sql string, rows ...string) {
	f.t.Helper()
	chdbtest.Want(f.t, f.dir, sql, rows...)
}

// call stores a call of an age, the number no of its session.
func (f *fixture) call(no int, age time.Duration, tenant, session string) audit.Record {
	f.t.Helper()
	r := callOf(no, age, tenant, session)
	f.insert(r.TS, r)
	return r
}

// callOf is such a call.
func callOf(no int, age time.Duration, tenant, session string) audit.Record {
	at := time.Now().UTC().Add(-age).Truncate(time.Microsecond)
	r := ingesttest.Call(no, "list_panes", at)
	r.TS, r.Seq, r.Tenant, r.SessionID = at, uint64(no-1), tenant, session
	return r
}

// insert stores records that arrive together. An insert costs the engine as much as
// ten questions, however many records it has.
func (f *fixture) insert(at time.Time, records ...audit.Record) {
	f.t.Helper()
	var rows []ingest.Row
	for _, r := range records {
		f.offset++
		rows = append(rows, ingesttest.Row(f.t, r, ingest.Source{Topic: "t", Offset: f.offset}))
	}
	if err := f.db.InsertRows(f.t.Context(), rows, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) job() *retention.Job {
	return retention.New(retention.Config{DB: f.db, Keep: f.keep})
}

// once runs the job and returns what it removed from events.
func (f *fixture) once(j *retention.Job) (removed []retention.Removal) {
	f.t.Helper()
	all, err := j.Once(f.t.Context(), false)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range all {
		if r.Table == "events" {
			removed = append(removed, r)
		}
	}
	return removed
}

func TestRetention(t *testing.T) {
	f := newFixture(t, clickhouse.Retention{
		Events: 30 * day, DeadLetters: 10 * day,
		Tenants: map[string]time.Duration{"long": 2000 * day, "short 'q'": 5 * day},
	})
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, f *fixture)
	}{
		{"nothing", testNothing},
		{"tenants", testTenants},
		{"every table", testEveryTable},
		{"rights", testRights},
		{"sessions", testSessions},
		{"first times and counts", testFirstTimes},
		{"holds", testHolds},
		{"holds of sessions", testHoldsOfSessions},
		{"a hold meanwhile", testHoldMeanwhile},
		{"many holds", testManyHolds},
		{"a longer time", testLonger},
		{"two at once", testTwoAtOnce},
		{"leaves", testLeaves},
		{"leaves of nothing", testLeavesGo},
		{"open alerts", testDesk}, // it drops a view
		// The following are about records only, and drop the other views.
		{"whole partitions", recordsOnly(testWholePartitions)},
		{"killed", recordsOnly(testKilled)},
		{"clocks", recordsOnly(testClocks)},
		{"midnight", recordsOnly(testMidnight)},
		{"counted once", recordsOnly(testCountedOnce)},
		{"disk", recordsOnly(testDisk)},
		{"a hold while it is stopped", recordsOnly(testHoldWhileStopped)},
		{"a tenant without a time of its own", recordsOnly(testTenantLosesTime)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := f.t
			f.t = t
			defer func() { f.t = was }()
			f.clear()
			tt.do(t, f)
		})
	}
}

// recordsOnly is a test that wants nothing of the tables that views fill from records, so
// it drops these views: a run that removes a record also removes from six such tables, which
// takes most of its processor time.
func recordsOnly(do func(*testing.T, *fixture)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		for _, view := range chdbtest.Query(t, f.dir, "SELECT name FROM system.tables WHERE database = 'audit' AND engine = 'MaterializedView'") {
			f.exec("DROP VIEW audit." + view + " SYNC")
		}
		do(t, f)
	}
}

const tenants = "SELECT tenant, count() FROM audit.events FINAL GROUP BY tenant ORDER BY tenant"

// testTenants keeps each tenant's records for its time, to the day.
func testTenants(t *testing.T, f *fixture) {
	for no, age := range []time.Duration{time.Hour, 4 * day, 7 * day, 29 * day, 32 * day, 1990 * day, 2002 * day} {
		var records []audit.Record
		for _, tenant := range []string{"", "long", "short 'q'"} {
			records = append(records, callOf(no+1, age, tenant, audit.NewID(time.Now())))
		}
		f.insert(records[0].TS, records...)
	}
	removed := f.once(f.job())
	f.want(tenants, "\t4", "long\t6", "short 'q'\t2")
	f.want("SELECT tenant, sum(row_count), countIf(done_at = 0), max(to_ts) < now() - INTERVAL 5 DAY FROM audit.retention_log FINAL WHERE table_name = 'events' GROUP BY tenant ORDER BY tenant",
		"\t3\t0\t1", "long\t1\t0\t1", "short 'q'\t5\t0\t1")
	f.want("SELECT DISTINCT rule FROM audit.retention_log WHERE table_name = 'events' ORDER BY rule", "retention.events", "retention.tenants")
	if len(removed) == 0 || len(f.once(f.job())) != 0 {
		t.Errorf("removed %+v, and again, want something once", removed)
	}
}

// testNothing alters no table where nothing is to be removed: that rewrites parts, each hour.
func testNothing(t *testing.T, f *fixture) {
	const altered = "SELECT count() FROM system.mutations WHERE database = 'audit'"
	f.values("alerts (alert_id, rule, ts, stored_at)", []string{"('open', 'r', now(), now() - INTERVAL 1 HOUR)"})
	f.call(1, time.Hour, "", audit.NewID(time.Now()))
	before := chdbtest.Query(t, f.dir, altered)
	f.once(f.job())
	f.want(altered, before...)
	f.want("SELECT alert_id FROM audit.open_alerts", "open")
}

// testEveryTable checks that no table is forgotten.
func testEveryTable(t *testing.T, f *fixture) {
	f.want("SELECT name FROM system.tables WHERE database = 'audit' AND engine LIKE '%MergeTree' AND name NOT IN ('migrations', 'retention_log', 'retention_looks', 'export_marks', 'hold_events', 'erasures', 'erased_sessions') AND name NOT IN (" +
		quoted(retention.Tables()) + ")")
}

// testRights: each role may delete from the tables that its work is about, and
// from no other.
func testRights(t *testing.T, f *fixture) {
	erased, err := retention.ErasedTables(t.Context(), f.db)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	var (
		rights = regexp.MustCompile(`(?s)^(GRANT|REVOKE) +(?:ON CLUSTER prod )?(.*) (?:TO|FROM) (\w+)$`)
		right  = regexp.MustCompile(`\bALTER\b.* ON audit\.([\w*]+)`)
	)
	for _, cluster := range []schemas.Cluster{{}, {Name: "prod"}, {Name: "prod", Distributed: true}} {
		may := map[string][]string{}
		for _, s := range schemas.Statements(sql, schemas.Names{Database: "audit", Cluster: cluster}) {
			m := rights.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			for _, item := range strings.Split(m[2], ",") {
				switch table := right.FindStringSubmatch(item); {
				case table == nil:
				case m[1] == "GRANT":
					may[m[3]] = append(may[m[3]], table[1])
				case table[1] == "*": // it takes those of all tables
					may[m[3]] = nil
				}
			}
		}
		for role, tables := range map[string][]string{"audit_retention": slices.Concat(retention.Tables(), erased), "audit_officer": erased} {
			var want []string
			for _, table := range tables {
				want = append(want, table, cluster.Part(table))
			}
			if diff := cmp.Diff(sorted(want), sorted(may[role])); diff != "" {
				t.Errorf("%+v: %s may delete (-want +got):\n%s", cluster, role, diff)
			}
			delete(may, role)
		}
		if len(may) > 0 {
			t.Errorf("these may delete too: %q", may)
		}
	}
}

func sorted(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

func quoted(names []string) (list string) {
	for i, name := range names {
		if i > 0 {
			list += ", "
		}
		list += "'" + name + "'"
	}
	return list
}

// testWholePartitions drops a partition only where nothing can be kept longer.
func testWholePartitions(t *testing.T, f *fixture) {
	f.call(1, 2100*day, "", audit.NewID(time.Now()))
	a, b := callOf(1, 200*day, "", audit.NewID(time.Now())), callOf(1, 200*day, "long", audit.NewID(time.Now()))
	f.insert(a.TS, a, b)
	removed := f.once(f.job())
	if len(removed) != 2 || !removed[0].Whole || removed[1].Whole {
		t.Errorf("removed %+v, want a whole partition and a row", removed)
	}
	f.want(tenants, "long\t1")
	f.want("SELECT action, row_count FROM audit.retention_log FINAL WHERE table_name = 'events' ORDER BY cutoff, action", "partition\t1", "rows\t1")
}

// testSessions tells what retention removed from what was lost.
func testSessions(t *testing.T, f *fixture) {
	// Each insert has a row in the states of its session, which a merge joins later.
	f.exec("ALTER TABLE audit.session_states MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1")
	defer f.exec("ALTER TABLE audit.session_states RESET SETTING max_bytes_to_merge_at_max_space_in_pool, max_bytes_to_merge_at_min_space_in_pool")
	old, lossy, young := audit.NewID(time.Now()), audit.NewID(time.Now()), audit.NewID(time.Now())
	for _, session := range []string{old, lossy} {
		f.call(1, 100*day, "", session)
	}
	f.call(2, time.Hour, "", old)
	f.call(3, time.Hour, "", lossy) // the second never arrived
	f.call(1, 2*time.Hour, "", young)
	f.call(2, time.Hour, "", young)
	f.want("SELECT count() FROM audit.session_states", "6")
	f.once(f.job())
	f.exec("DELETE FROM audit.events WHERE session_id = '" + young + "' AND seq = 0")
	sessions := "SELECT missing_records, missing_calls, removed_records, removed_by_retention FROM audit.sessions WHERE session_id = '"
	f.want(sessions+old+"'", "0\t0\t1\ttrue")
	f.want(sessions+lossy+"'", "1\t1\t1\ttrue")
	f.want(sessions+young+"'", "0\t0\t1\tfalse")
	f.want("SELECT session_id = '"+lossy+"', missing FROM audit.seq_gaps ORDER BY 1", "0\t1", "1\t1")
	f.want("SELECT count() FROM audit.seq_gaps WHERE session_id = '"+young+"'", "1")
}

// testFirstTimes keeps since when, and how often, of what is still seen, although
// its rows are not merged; and removes what a tenant has not seen for its time.
func testFirstTimes(t *testing.T, f *fixture) {
	states := []string{"definition_states", "effect_states", "first_seen"}
	for _, table := range states {
		f.exec("ALTER TABLE audit." + table + " MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1")
		defer f.exec("ALTER TABLE audit." + table + " RESET SETTING max_bytes_to_merge_at_max_space_in_pool, max_bytes_to_merge_at_min_space_in_pool")
	}
	for i, seen := range []struct {
		tenant, path string
		age          time.Duration
	}{
		{"", "/often", 100 * day}, {"", "/often", 50 * day}, {"", "/often", 10 * day}, {"", "/once", 40 * day},
		{"short 'q'", "/often", 20 * day}, {"short 'q'", "/often", 10 * day}, // not like the others
		{"long", "/once", 100 * day}, {"long", "/often", time.Hour},
	} {
		at := time.Now().UTC().Add(-seen.age).Truncate(time.Microsecond)
		r := ingesttest.Call(i+1, "pipe_pane", at)
		r.TS, r.Tenant, r.SessionID, r.Args, r.Tool = at, seen.tenant, audit.NewID(at), audit.JSON(`{"output_path":"`+seen.path+`"}`), "pipe_pane"
		r.Server.Version = seen.path
		f.insert(at, r)
		f.exec(fmt.Sprintf("INSERT INTO audit.first_seen SELECT 'r', '%s', '%s', fromUnixTimestamp64Milli(%d) AS at, at, at", strings.ReplaceAll(seen.tenant, "'", "''"), seen.path, at.UnixMilli()))
	}
	for _, table := range states {
		f.want("SELECT count() FROM audit."+table, "8")
	}
	f.exec("INSERT INTO audit.alert_marks (kind, name, at) VALUES ('rule', 'runs', now64(3)), ('seen', 'runs 0123', now64(3) - INTERVAL 9 YEAR), ('rule', 'gone', now64(3) - INTERVAL 8 YEAR), ('seen', 'gone 0123', now64(3) - INTERVAL 9 YEAR)")
	f.once(f.job())
	f.want("SELECT kind, name FROM audit.alert_marks ORDER BY kind", "rule\truns", "seen\truns 0123")
	want := []string{"\t/often\t100\t10", "long\t/often\t0\t0", "long\t/once\t100\t100"}
	for _, query := range []string{
		"SELECT tenant, server_version AS what, first_ts, last_ts FROM audit.definition_states",
		"SELECT tenant, name AS what, first_ts, last_ts FROM audit.effect_states",
		"SELECT tenant, what, first_arrival AS first_ts, last_arrival AS last_ts FROM audit.first_seen",
	} {
		f.want("SELECT tenant, what, dateDiff('hour', min(first_ts), now()) DIV 24, dateDiff('hour', max(last_ts), now()) DIV 24 FROM ("+query+") GROUP BY tenant, what ORDER BY tenant, what", want...)
	}
	f.want("SELECT tenant, name, length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states GROUP BY tenant, name ORDER BY tenant, name", "\t/often\t3", "long\t/often\t1", "long\t/once\t1")
}

// testClocks removes nothing at once by a clock that jumped, nor by a time that
// was made shorter.
func testClocks(t *testing.T, f *fixture) {
	f.call(1, 40*day, "", audit.NewID(time.Now()))
	j := retention.New(retention.Config{DB: f.db, Keep: f.keep, Now: func() time.Time { return time.Now().AddDate(10, 0, 0) }})
	if _, err := j.Once(t.Context(), false); err == nil {
		t.Error("a clock that is ahead of ClickHouse's was believed")
	}
	// Both clocks were elsewhere a day ago, or the collector did not run.
	f.exec("TRUNCATE TABLE audit.retention_looks")
	for _, ago := range []time.Duration{-20 * day, time.Hour, 23 * time.Hour, 50 * time.Hour} {
		f.lookedAt(time.Now().Add(-ago))
	}
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "1")
	f.exec("TRUNCATE TABLE audit.retention_looks")
	longer := *f
	longer.keep.Events = 60 * day
	longer.lookedAt(time.Now().Add(-30 * time.Hour))
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "1")
	f.lookedAt(time.Now().Add(-25 * time.Hour))
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "0")
}

// testTwoAtOnce has two collectors remove the same.
func testTwoAtOnce(t *testing.T, f *fixture) {
	for no, age := range []time.Duration{2100 * day, 100 * day, 33 * day, time.Hour} {
		f.call(no+1, age, "", audit.NewID(time.Now()))
	}
	errs := make(chan error)
	for range 2 {
		j := f.job()
		go func() {
			_, err := j.Once(t.Context(), false)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	f.want(tenants, "\t1")
	f.want("SELECT sum(row_count), countIf(done_at = 0) FROM audit.retention_log FINAL WHERE table_name = 'events'", "3\t0")
}

// testMidnight has one collector look before midnight and another one after it: both remove
// what the first one does, or two entries of the log would have the same rows.
func testMidnight(t *testing.T, f *fixture) {
	now := time.Now().UTC()
	boundary := now.Truncate(day).Add(-30 * day)
	before, after := *f, *f
	before.keep.Events, after.keep.Events = now.Add(time.Hour).Sub(boundary), now.Add(-time.Second).Sub(boundary)
	for _, ago := range []time.Duration{day + time.Minute, time.Hour} {
		before.lookedAt(now.Add(-ago))
	}
	r := callOf(1, now.Sub(boundary)+12*time.Hour, "", audit.NewID(now))
	f.insert(r.TS, r)
	for _, collector := range []fixture{after, before, after} {
		f.once(collector.job())
	}
	f.want("SELECT count() FROM audit.events", "1")
	hourAgo := *f
	hourAgo.keep.Events = now.Add(-time.Hour).Sub(boundary)
	hourAgo.lookedAt(now.Add(-8 * time.Minute)) // the run before was after midnight
	f.once(after.job())
	f.want("SELECT count() FROM audit.events", "0")
}

// testDisk frees the disk of deleted rows once no rule deletes in their partition, and
// not day by day before; also if another table fails.
func testDisk(t *testing.T, f *fixture) {
	// The middle of a month: then all of the month before is too old, and half of this one.
	now := time.Now().UTC()
	mid := time.Date(now.Year(), now.Month()-3, 15, 0, 0, 0, 0, time.UTC)
	half := *f
	half.keep.Events = now.Sub(mid)
	half.lookedAt(now.Add(-day - time.Minute))
	for _, age := range []time.Duration{now.Sub(mid) + 30*day, now.Sub(mid) + 5*day} {
		a, b := callOf(1, age, "", audit.NewID(now)), callOf(1, age, "long", audit.NewID(now))
		f.insert(a.TS, a, b)
	}
	f.exec("RENAME TABLE audit.gaps TO audit.away")
	_, err := half.job().Once(t.Context(), false)
	f.exec("RENAME TABLE audit.away TO audit.gaps")
	if err == nil || !strings.Contains(err.Error(), `looking for old rows of "gaps"`) {
		t.Errorf("without a table: %v", err)
	}
	for month, want := range map[string]string{mid.AddDate(0, -1, 0).Format("200601"): "1\t0", mid.Format("200601"): "2\t1"} {
		f.want("SELECT sum(rows), countIf(has_lightweight_delete) FROM system.parts WHERE database = 'audit' AND table = 'events' AND active AND partition_id = '"+month+"'", want)
	}
	f.want(tenants, "long\t2")
}

// TestPartitions compares cutoffs with the time of partitions.
func TestPartitions(t *testing.T) {
	for _, tt := range []struct {
		partition, cutoff string
		within, over      bool
	}{
		{"202511", "2025-10-31", false, false},
		{"202511", "2025-11-01", false, false},
		{"202511", "2025-11-02", true, false},
		{"202511", "2025-11-30", true, false},
		{"202511", "2025-12-01", false, true},
		{"20251124", "2025-11-24", false, false},
		{"20251124", "2025-11-25", true, false},
		{"20251124", "2025-12-01", false, true},
		{"all", "2025-11-01", false, false},
		{"all", "2025-11-02", true, false},
		{"202511_1", "2026-11-02", true, false},
	} {
		cutoff, err := time.Parse(time.DateOnly, tt.cutoff)
		if err != nil {
			t.Fatal(err)
		}
		if within, over := retention.Within(tt.partition, cutoff), retention.Over(tt.partition, cutoff); within != tt.within || over != tt.over {
			t.Errorf("%s at %s: within %t, over %t, want %t, %t", tt.partition, tt.cutoff, within, over, tt.within, tt.over)
		}
	}
}

// testKilled stops the job before and after each request that removes events or
// records it. What is gone is always in the log, and the next run completes it.
func testKilled(t *testing.T, f *fixture) {
	const here, logged = "SELECT count() FROM audit.events", "SELECT sum(row_count) FROM audit.retention_log FINAL WHERE table_name = 'events'"
	number := func(sql string) (n int) {
		if _, err := fmt.Sscan(chdbtest.Query(t, f.dir, sql)[0], &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for after := range 16 {
		for _, table := range []string{"events", "leaves", "retention_log"} {
			f.exec("TRUNCATE TABLE audit." + table)
		}
		at := time.Now().UTC()
		var records []audit.Record
		for no, age := range []time.Duration{2100 * day, 100 * day, time.Hour} {
			r := ingesttest.Call(no+1, "list_panes", at.Add(-age))
			r.Tenant, r.Evidence = "", "{}"
			records = append(records, r)
		}
		f.insert(at, records...)
		lost := &losing{dial: chdb.Dialer(f.dir, chdb.Writer), left: after / 2, sends: after%2 == 1}
		db, err := clickhouse.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: lost.connect, Uncompressed: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = retention.New(retention.Config{DB: db, Keep: f.keep}).Once(t.Context(), false)
		db.Close()
		if err == nil {
			t.Errorf("request %d was not reached", after)
		}
		if here, logged := number(here), number(logged); here+logged < 3 {
			t.Errorf("killed at request %d: %d rows are here and %d in the log, want 3", after, here, logged)
		}
		f.want("SELECT uniqExact(hash) FROM (SELECT SHA256(concat(char(0), raw)) AS hash FROM audit.events UNION ALL SELECT toString(hash) FROM audit.leaves)", "3")
		// The next run is one of the next day.
		f.once(f.aDayLater())
		f.want(tenants, "\t1")
		f.want(inLog, "2\t0")
	}
}

// inLog is how many records the log says were removed, and how many entries are not done.
const inLog = "SELECT sum(row_count), countIf(done_at = 0) FROM audit.retention_log FINAL WHERE table_name = 'events'"

// aDayLater returns the job as it is a day later, and not the first one of that day.
func (f *fixture) aDayLater() *retention.Job {
	later := *f
	later.keep.Events -= day
	later.lookedAt(time.Now().Add(-10 * time.Minute))
	return later.job()
}

// testCountedOnce interrupts removals at each of their steps. The log counts each removed
// record once.
func testCountedOnce(t *testing.T, f *fixture) {
	remove := func(db *clickhouse.DB) {
		t.Helper()
		if _, err := retention.New(retention.Config{DB: db, Keep: f.keep}).Once(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	for what, at := range map[string]*regexp.Regexp{
		"before its entry":       regexp.MustCompile(`^POST (?s:.*)INSERT INTO audit.retention_log`),
		"before its statement":   deletes,
		"before its entry's end": regexp.MustCompile(`^POST (?s:.*)INSERT INTO audit.retention_log(?s:.*)done_at(?s:.*)FROM audit.retention_log`),
	} {
		t.Logf("a collector is stopped %s, and another one works until the next day", what)
		f.clear()
		f.call(1, 100*day, "", audit.NewID(time.Now()))
		f.call(2, 2100*day, "", audit.NewID(time.Now()))
		remove(f.intercept(at, func() { f.once(f.aDayLater()) }))
		f.want(inLog, "2\t0")
	}
	t.Log("records come late to what was removed today")
	f.clear()
	for no := range 3 {
		f.call(no+1, 100*day, "", audit.NewID(time.Now()))
		f.once(f.job())
	}
	f.want(inLog, "3\t0")
	t.Log("a part of what was to be removed comes under a hold, and out of it the next day")
	f.clear()
	session := audit.NewID(time.Now())
	f.call(1, 100*day, "", session)
	f.call(2, 100*day, "", audit.NewID(time.Now()))
	f.call(2, day, "long", session)
	var held retention.Hold
	remove(f.intercept(deletes, func() { held = f.hold(retention.HoldSession, session) }))
	f.once(f.aDayLater())
	f.want(inLog, "2\t1")
	release := func(held retention.Hold) {
		t.Helper()
		if err := retention.RemoveHold(t.Context(), f.db, held, retention.Removed{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	release(held)
	f.once(f.aDayLater())
	f.want(inLog, "2\t0")
	for what, next := range map[string]func() *retention.Job{"on that day": f.job, "on the next": f.aDayLater} {
		t.Logf("a part comes under a hold, another one is under one all the time; %s both are released one after the other", what)
		f.clear()
		sessions := []string{audit.NewID(time.Now()), audit.NewID(time.Now()), audit.NewID(time.Now())}
		for i, session := range sessions {
			for no := range i + 1 {
				f.call(no+1, 100*day, "", session)
			}
			f.call(9, day, "long", session)
		}
		always := f.hold(retention.HoldSession, sessions[2])
		f.exec("SELECT sleep(0.01)") // the hold is older than the entry, by the clock
		remove(f.intercept(deletes, func() { held = f.hold(retention.HoldSession, sessions[1]) }))
		f.want(inLog, "3\t1")
		f.once(next())
		f.want(inLog, "3\t1")
		release(held)
		f.once(next())
		f.want(inLog, "3\t0")
		release(always)
		f.once(next())
		f.want(inLog, "6\t0")
	}
}

// testHolds keeps everything of a session, a user or a tenant, and nothing else.
func testHolds(t *testing.T, f *fixture) {
	everywhere := map[string]string{} // table: column of the session
	for _, table := range []string{"events", "operation_states", "session_states", "decision_states", "risk_states", "arrivals", "alerts"} {
		everywhere[table] = "session_id"
	}
	everywhere["dead_letters"] = "kafka_key"
	for _, tt := range []struct {
		kind, value func(held audit.Record) string
	}{
		{func(audit.Record) string { return retention.HoldSession }, func(r audit.Record) string { return r.SessionID }},
		{func(audit.Record) string { return retention.HoldUser }, func(r audit.Record) string { return r.User }},
		{func(audit.Record) string { return retention.HoldTenant }, func(r audit.Record) string { return r.Tenant }},
	} {
		f.clear()
		age := 2100 * day
		at := time.Now().UTC().Add(-age).Truncate(time.Microsecond)
		var records []audit.Record
		var alerts, letters []string
		for i, user := range []string{"ann", "bob"} {
			r := ingesttest.Call(1, "pipe_pane", at)
			r.TS, r.Seq, r.Tenant, r.SessionID, r.User, r.Args = at, 0, "t"+user, audit.NewID(at), user, `{"output_path":"/tmp/a"}`
			r.Policy, r.Risk = `{"decision":"deny","rule":"r"}`, `{"category":"execute","level":"high"}`
			records = append(records, r)
			alerts = append(alerts, fmt.Sprintf("('a%d', 'r', '%s', '%s', '%s', fromUnixTimestamp64Micro(%d))", i, r.Tenant, user, r.SessionID, at.UnixMicro()))
			letters = append(letters, fmt.Sprintf("(fromUnixTimestamp64Micro(%d), 't', %d, '%s', 'x')", at.UnixMicro(), i, r.SessionID))
		}
		f.insert(at, records...)
		held, other := records[0], records[1]
		// About several sessions; of a user's session of which nothing else is here; and
		// what no hold is about.
		for id, of := range map[string][2]string{"several": {"", ""}, "gone": {held.User, "gone"}} {
			alerts = append(alerts, fmt.Sprintf("('%s', 'r', '%s', '%s', '%s', fromUnixTimestamp64Micro(%d))", id, other.Tenant, of[0], of[1], at.UnixMicro()))
		}
		f.values("alerts (alert_id, rule, tenant, user, session_id, ts)", alerts)
		f.values("dead_letters (seen_at, kafka_topic, kafka_offset, kafka_key, raw)", letters)
		f.exec(fmt.Sprintf("INSERT INTO audit.alert_marks (name, kind, upto, at) VALUES ('r', 'run', fromUnixTimestamp64Micro(%[1]d), fromUnixTimestamp64Micro(%[1]d))", at.UnixMicro()))
		h := retention.Hold{ID: uuid.New(), Kind: tt.kind(held), Value: tt.value(held), Who: "eve", Reason: "case 7", At: time.Now()}
		if n, err := h.Records(t.Context(), f.db); n != 1 || err != nil {
			t.Errorf("%v covers %d records, %v, want 1", h, n, err)
		}
		if err := retention.AddHold(t.Context(), f.db, h); err != nil {
			t.Fatal(err)
		}
		f.once(f.job())
		for table, column := range everywhere {
			count := func(r audit.Record) string {
				return "SELECT count() > 0 FROM audit." + table + " WHERE " + column + " = '" + r.SessionID + "'"
			}
			f.want(count(held), "1")
			// Nobody knows whose dead letter it is, unless the hold is on a session.
			kept := "0"
			if table == "dead_letters" && h.Kind != retention.HoldSession {
				kept = "1"
			}
			f.want(count(other), kept)
		}
		f.want("SELECT alert_id FROM audit.alerts WHERE alert_id NOT IN ('a0', 'a1') ORDER BY alert_id", map[string][]string{
			retention.HoldSession: {"several"}, retention.HoldUser: {"gone", "several"}, retention.HoldTenant: nil}[h.Kind]...)
		f.want("SELECT count() FROM audit.alert_marks", "0")
		if err := retention.RemoveHold(t.Context(), f.db, h, retention.Removed{Who: "eve", Reason: "closed", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		f.once(f.job())
		for _, table := range retention.Tables() {
			f.want("SELECT count() FROM audit."+table, "0")
		}
		all, err := retention.Holds(t.Context(), f.db, true)
		if err != nil || len(all) != 1 || all[0].Removed == nil || all[0].Removed.Reason != "closed" {
			t.Errorf("holds %+v, %v, want one that was removed", all, err)
		}
	}
	for _, h := range []retention.Hold{{Kind: retention.HoldSession, Value: "x"}, {Kind: retention.HoldUser, Value: "it's"}} {
		if _, err := h.Records(t.Context(), f.db); !errors.Is(err, retention.ErrNotFound) {
			t.Errorf("%v: %v, want ErrNotFound", h, err)
		}
	}
}

// hold adds a hold.
func (f *fixture) hold(kind, value string) retention.Hold {
	f.t.Helper()
	h := retention.Hold{ID: uuid.New(), Kind: kind, Value: value, Who: "eve", Reason: "case 7", At: time.Now()}
	if err := retention.AddHold(f.t.Context(), f.db, h); err != nil {
		f.t.Fatal(err)
	}
	return h
}

// testHoldsOfSessions keeps of a held user's session also the records that do not
// say the user, as one that took the place of another does.
func testHoldsOfSessions(t *testing.T, f *fixture) {
	held, other := audit.NewID(time.Now()), audit.NewID(time.Now().Add(time.Minute))
	for no, age := range []time.Duration{2100 * day, 100 * day, 33 * day} {
		var records []audit.Record
		for _, session := range []string{held, other} {
			r := callOf(no+1, age, "", session)
			r.User = ""
			if no == 1 {
				r.User = map[string]string{held: "ann", other: "annabel"}[session]
			}
			records = append(records, r)
		}
		f.insert(records[0].TS, records...)
	}
	f.hold(retention.HoldUser, "ann")
	f.once(f.job())
	f.want("SELECT session_id, count() FROM audit.events GROUP BY session_id", held+"\t3")
}

// testHoldMeanwhile adds a hold while the first of three partitions is removed.
func testHoldMeanwhile(t *testing.T, f *fixture) {
	session := audit.NewID(time.Now())
	for no, age := range []time.Duration{2200 * day, 2100 * day, 100 * day, 10 * day} {
		f.call(no+1, age, "", session)
	}
	db := f.intercept(deletes, func() { f.hold(retention.HoldSession, session) })
	if _, err := retention.New(retention.Config{DB: db, Keep: f.keep}).Once(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	f.want("SELECT count() FROM audit.events", "3")
	f.want("SELECT uniqExact(session_id) FROM audit.session_states", "1")
}

// testHoldWhileStopped adds a hold while a run is stopped between its look at the holds and
// a statement that removes: the rows stay, and the entry is not done. The next run removes
// them once the hold is gone.
func testHoldWhileStopped(t *testing.T, f *fixture) {
	for what, tt := range map[string]struct {
		age time.Duration
		at  *regexp.Regexp
	}{
		"before it looks":   {100 * day, regexp.MustCompile(`_partition_id AS p(?s:.*)FROM audit.events`)},
		"before its entry":  {100 * day, regexp.MustCompile(`groupUniqArray\(planned_at\)`)},
		"a whole partition": {2200 * day, regexp.MustCompile("INSERT INTO audit.leaves")},
		"some rows":         {100 * day, regexp.MustCompile("DELETE FROM audit.events")},
	} {
		f.clear()
		session := audit.NewID(time.Now())
		f.call(1, tt.age, "", session)
		f.call(2, day, "long", session)
		var held retention.Hold
		db := f.intercept(tt.at, func() { held = f.hold(retention.HoldSession, session) })
		run := func(want string, removals int) {
			t.Helper()
			if removed := f.once(retention.New(retention.Config{DB: db, Keep: f.keep})); len(removed) != removals {
				t.Errorf("%s: removed %+v, want %d", what, removed, removals)
			}
			f.want("SELECT '"+what+"', count(), (SELECT countIf(done_at > 0) FROM audit.retention_log FINAL WHERE table_name = 'events') FROM audit.events", what+want)
		}
		run("\t2\t0", 0)
		run("\t2\t0", 0)
		if err := retention.RemoveHold(t.Context(), f.db, held, retention.Removed{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		run("\t1\t1", 1)
	}
}

// testManyHolds has more holds than ClickHouse's functions take texts.
func testManyHolds(t *testing.T, f *fixture) {
	var values []string
	var held string
	for i := range 300 {
		held = audit.NewID(time.Now())
		values = append(values, fmt.Sprintf("(generateUUIDv4(), now(), 'added', 'session', '%s', 'eve', 'case %d', generateUUIDv4())", held, i))
	}
	f.exec("INSERT INTO audit.hold_events (hold_id, at, action, kind, value, who, reason, event_id) VALUES " + strings.Join(values, ", "))
	for i, session := range []string{held, audit.NewID(time.Now().Add(time.Hour))} {
		f.call(1, 100*day, "", session)
		f.exec(fmt.Sprintf("INSERT INTO audit.dead_letters (seen_at, kafka_topic, kafka_offset, raw) VALUES (now() - INTERVAL 100 DAY, 't', %d, '%s')", i, session))
	}
	f.once(f.job())
	f.want("SELECT session_id FROM audit.events", held)
	f.want("SELECT raw FROM audit.dead_letters", held)
	f.erase(erasure(retention.HoldSession, f.ended(audit.Record{Tenant: "acme"})[0].SessionID))
	f.want("SELECT session_id FROM audit.events", held)
}

// testTenantLosesTime removes nothing of a tenant at once whose longer time is
// configured no more, as when its name is mistyped.
func testTenantLosesTime(t *testing.T, f *fixture) {
	a, b := callOf(1, 100*day, "long", audit.NewID(time.Now())), callOf(1, 100*day, "", audit.NewID(time.Now()))
	f.insert(a.TS, a, b)
	f.call(1, 2050*day, "long", audit.NewID(time.Now()))
	mistyped := f.keep
	mistyped.Tenants = map[string]time.Duration{"lnog": 2000 * day, "short 'q'": 5 * day}
	j := retention.New(retention.Config{DB: f.db, Keep: mistyped})
	f.once(j)
	f.want(tenants, "long\t1")
	// It is as configured once that is so for two days.
	f.exec("TRUNCATE TABLE audit.retention_looks")
	correct := *f
	correct.keep = mistyped
	correct.lookedAt(time.Now().Add(-day - time.Minute))
	f.once(j)
	f.want("SELECT count() FROM audit.events", "0")
}

// testLonger has a tenant's time made longer in one of two collectors: what that one keeps
// stays, until it has not run for more than an hour.
func testLonger(t *testing.T, f *fixture) {
	a, b := callOf(1, 28*day, "short 'q'", audit.NewID(time.Now())), callOf(1, 100*day, "", audit.NewID(time.Now()))
	f.insert(a.TS, a, b)
	longer := *f
	longer.keep.Tenants = map[string]time.Duration{"long": 2000 * day, "short 'q'": 29 * day}
	f.once(longer.job())
	f.once(f.job())
	f.want(tenants, "short 'q'\t1")
	f.exec("TRUNCATE TABLE audit.retention_looks")
	f.lookedAt(time.Now().Add(-day - time.Minute))
	longer.lookedAt(time.Now().Add(-70 * time.Minute))
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "0")
}

package store_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/store/storetest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var hour = time.Now().UTC().Truncate(time.Hour)

func call(no int, tool string) audit.Record { return ingesttest.Call(no, tool, hour) }

// TestTables writes and reads the tables that the collector has besides records.
func TestTables(t *testing.T) {
	dir := storetest.Start(t)
	s := open(t, dir)
	if _, err := s.Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	t.Run("letters", func(t *testing.T) { testLetters(t, s, dir) })
	t.Run("deliveries", func(t *testing.T) { testDeliveries(t, s, dir) })
	t.Run("flood", func(t *testing.T) { testFlood(t, s, dir) })
	t.Run("still", func(t *testing.T) { testStill(t, s, dir) })
	t.Run("lasting", func(t *testing.T) { testLasting(t, s, openReader(t, dir)) })
	t.Run("years of sessions", func(t *testing.T) { testYearsOfSessions(t, s, dir) })
	t.Run("years of alerts", func(t *testing.T) { testYearsOfAlerts(t, dir) })
	t.Run("arrived", func(t *testing.T) { testArrived(t, s, dir) })
	t.Run("arrivals", func(t *testing.T) { testArrivals(t, s, openReader(t, dir)) })
	t.Run("verifications", func(t *testing.T) { testVerifications(t, openReader(t, dir), dir) })
	t.Run("completeness", func(t *testing.T) { testCompleteness(t, s, openReader(t, dir), dir) })
}

// testVerifications reads what was found last, and that a session was tampered with
// before.
func testVerifications(t *testing.T, r *store.Reader, dir string) {
	for _, row := range []string{"'a', 'tampered', '2026-11-20 09:00:00', 30, 11, '[1]', 0", "'a', 'ok', '2026-11-20 09:10:00', 31, 31, '[]', 7", "'b', 'incomplete', '2026-11-20 09:10:00', 5, 4, '[]', 0",
		"'b', 'incomplete', '2026-11-20 09:20:00', 6, 5, '[2]', 0", "'c', 'ok', '2026-11-20 09:20:00', 6, 6, '[]', 0"} {
		chdbtest.Query(t, dir, "INSERT INTO audit.verifications (session_id, state, at, records, verified, findings, log_size) VALUES ("+row+")")
	}
	got, err := r.Verifications(t.Context(), []string{"a", "b", "none"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	want := map[string]store.Verification{
		"a": {SessionID: "a", State: "ok", At: at.Add(10 * time.Minute), Records: 31, Verified: 31, LogSize: 7, Unclear: "[]", Tampered: at, Findings: "[1]"},
		"b": {SessionID: "b", State: "incomplete", At: at.Add(20 * time.Minute), Records: 6, Verified: 5, Unclear: "[2]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verifications (-want +got):\n%s", diff)
	}
	if none, err := r.Verifications(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("of no session: %v, %v", none, err)
	}
}

// testCompleteness counts the missing records of a silent session.
func testCompleteness(t *testing.T, s *store.Store, r *store.Reader, dir string) {
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.events")
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.session_states")
	ended := audit.Record{Kind: audit.KindSessionEnd, RecordID: audit.NewID(hour), SessionID: audit.NewID(hour), TS: hour}
	rows := []ingest.Row{row(t, call(1, "list_panes"), 1), row(t, call(3, "list_panes"), 3), row(t, ended, 4)}
	if err := s.InsertRows(t.Context(), rows, hour.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	// The first, 0, is missing too.
	if got, err := s.Completeness(t.Context()); err != nil || got != (store.Completeness{Missing: 2, Silent: 1}) {
		t.Errorf("Completeness = %+v, %v, want 2 missing, 1 silent", got, err)
	}
	// Producers choose numbers whose sum would be the 2 again.
	for _, seq := range []uint64{1 << 63, 1<<63 - 2, math.MaxUint64} {
		hostile := call(1, "list_panes")
		hostile.SessionID, hostile.Seq = audit.NewID(hour), seq
		if err := s.InsertRows(t.Context(), []ingest.Row{row(t, hostile, 9)}, hour); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Completeness(t.Context()); err != nil || got.Missing < 1e6 {
			t.Errorf("with the number %d, Completeness = %+v, %v, want far more missing", seq, got, err)
		}
	}
	list, err := r.Sessions(t.Context(), store.SessionFilter{Window: store.Window{From: hour.Add(-24 * time.Hour), To: hour.Add(24 * time.Hour)}, Problem: "missing"}, 10)
	if err != nil || len(list) != 4 {
		t.Errorf("%d sessions miss records, %v, want 4", len(list), err)
	}
}

// testYearsOfSessions reads what the page of a day asks about sessions, of which a year is
// stored: those that were active on that day, also if they began long before.
func testYearsOfSessions(t *testing.T, s *store.Store, dir string) {
	for _, table := range []string{"session_states", "alerts", "alert_desk"} {
		chdbtest.Query(t, dir, "TRUNCATE TABLE audit."+table)
	}
	chdbtest.Query(t, dir, "SYSTEM STOP MERGES audit.session_states")
	defer chdbtest.Query(t, dir, "SYSTEM START MERGES audit.session_states")
	insert := func(count int, id, first, last string, ended, seq int) {
		chdbtest.Query(t, dir, fmt.Sprintf("INSERT INTO audit.session_states (session_id, first_ts, last_ts, last_ingested, ended, max_seq, seqs) SELECT %s, %s AS first, %s AS last, last, %d, %d AS seq, bitmapBuild([toUInt64(seq)]) FROM numbers(%d)",
			id, first, last, ended, seq, count))
	}
	const begun = "concat(substring(lower(leftPad(hex(toUnixTimestamp64Milli(first)), 12, '0')) AS ms, 1, 8), '-', substring(ms, 9), '-7000-8000-000000000000')"
	insert(60_000, begun, "now64(6) - toIntervalMinute(9 * number)", "first + toIntervalMinute(5)", 1, 0)
	// Of one that began a year ago, a record came then and one just now; two are missing.
	insert(1, begun, "now64(6) - INTERVAL 360 DAY", "first", 0, 0)
	old := chdbtest.Query(t, dir, "SELECT session_id FROM audit.session_states WHERE ended = 0")[0]
	insert(1, "'"+old+"'", "now64(6)", "first", 0, 3)
	for _, id := range []string{"an id of another producer", "0"} {
		insert(1, "'"+id+"'", "now64(6) - INTERVAL 300 DAY", "now64(6)", 1, 0)
	}
	r, err := store.OpenReader(engine(dir, chdb.Writer)) // a reader must not set limits
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	bounded := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"max_rows_to_read": 40_000}))
	now := time.Now()
	day := store.Window{From: now.Add(-24 * time.Hour), To: now.Add(time.Hour)}
	for name, reader := range map[string]struct {
		*store.Reader
		ctx context.Context
	}{"bounded": {r, bounded}, "as a reader": {openReader(t, dir), t.Context()}} {
		list, err := reader.Sessions(reader.ctx, store.SessionFilter{Window: day}, 1000)
		found := map[string]store.Session{}
		for _, s := range list {
			found[s.SessionID] = s
		}
		one := found[old]
		if err != nil || len(list) < 160 || len(list) > 180 || found["0"].SessionID == "" || found["an id of another producer"].SessionID == "" ||
			now.Sub(one.FirstTS) < 300*24*time.Hour || one.Records != 2 || one.Missing != 2 {
			t.Errorf("%s: %d sessions of a day, %+v, %v, want 163 or so, with the old one whole", name, len(list), one, err)
		}
		state, err := reader.Attention(reader.ctx, day)
		if err != nil || len(state.Failed) > 0 || state.Sessions.Sessions < 160 || state.Sessions.Sessions > 190 || state.Sessions.Running != 1 || state.Sessions.Missing != 2 || now.Sub(state.Arrival.Newest) > time.Minute {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
		if _, err := reader.Calls(reader.ctx, store.Filter{Window: day}, store.Page{Limit: 10}); err != nil {
			t.Error(name, err)
		}
	}
	if got, err := s.Completeness(bounded); err != nil || got.Missing != 2 {
		t.Errorf("Completeness = %+v, %v, want 2 missing", got, err)
	}
}

// testArrivals stores a record from two places, one of them twice, and looks at
// where it came from first.
func testArrivals(t *testing.T, s *store.Store, r *store.Reader) {
	record := call(5077, "list_panes")
	for i, offset := range []uint64{5, 9, 5} {
		other := row(t, call(5078+i, "list_panes"), 0) // or the token would be the same
		if err := s.InsertRows(t.Context(), []ingest.Row{row(t, record, offset), other}, hour.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Record(t.Context(), uuid.MustParse(record.RecordID))
	if err != nil || len(got) != 1 || got[0].Offset != 5 || !got[0].Ingested.Equal(hour) || got[0].Arrivals != 2 {
		t.Errorf("Record = %+v, %v, want one, of offset 5 and %s, with 2 arrivals", got, err, hour)
	}
	var again []ingest.Row
	for offset := range uint64(1500) {
		again = append(again, row(t, record, 10+offset))
	}
	if err := s.InsertRows(t.Context(), again, hour.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Record(t.Context(), uuid.MustParse(record.RecordID)); err != nil || len(got) != 1 || got[0].Arrivals != 1000 {
		t.Errorf("Record = %+v, %v, want one with 1000 arrivals", got, err)
	}
}

package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
)

// testFlood stores many alerts of one session: those of one suppression key first, of
// which one is sent.
func testFlood(t *testing.T, s *store.Store, dir string) {
	alerts := make([]alert.Alert, 300)
	for i := range alerts {
		alerts[i] = alert.Alert{
			ID: fmt.Sprintf("f%031x", i), Rule: "flood", Severity: alert.Critical, Tenant: "acme", Host: "h", User: "u", SessionID: "s",
			RecordID: audit.NewID(hour), TS: hour, Details: "{}",
		}
		if i < 150 {
			alerts[i].SuppressKey = "flood"
		}
	}
	for range 2 { // the second time none is new
		for chunk := range slices.Chunk(alerts, 70) {
			if _, err := s.InsertAlerts(t.Context(), chunk); err != nil {
				t.Fatal(err)
			}
		}
	}
	chdbtest.Want(t, dir, "SELECT suppress_key, suppressed, count(), countIf(details LIKE '%not_sent%') FROM audit.alerts WHERE rule = 'flood' GROUP BY ALL ORDER BY ALL",
		"\tfalse\t99\t1", "\ttrue\t51\t0", "flood\tfalse\t1\t0", "flood\ttrue\t149\t0")
}

// testStill stores alerts of a host with a frozen clock, which all have the same suppression
// key. One alert was sent 61 minutes ago, another 59 minutes ago.
func testStill(t *testing.T, s *store.Store, dir string) {
	chdbtest.Query(t, dir, `INSERT INTO audit.alerts (alert_id, rule, ts, stored_at, suppress_key) VALUES
		('e0', 'still', now64(3) - INTERVAL 61 MINUTE, now64(3) - INTERVAL 61 MINUTE, 'long ago'), ('e1', 'still', now64(3) - INTERVAL 61 MINUTE, now64(3) - INTERVAL 59 MINUTE, 'lately')`)
	for i, key := range []string{"long ago", "long ago", "lately", "", "lately"} {
		a := alert.Alert{
			ID: fmt.Sprintf("e%031x", i), Rule: "still", Severity: alert.Critical, Tenant: "acme", RecordID: audit.NewID(hour), CallNo: uint64(i + 1),
			TS: hour, Details: "{}", SuppressKey: key, SuppressFor: time.Hour,
		}
		if i == 4 {
			a.SuppressFor = time.Minute
		}
		if _, err := s.InsertAlerts(t.Context(), []alert.Alert{a}); err != nil {
			t.Fatal(err)
		}
	}
	chdbtest.Want(t, dir, "SELECT call_no, suppressed FROM audit.alerts WHERE rule = 'still' AND call_no > 0 ORDER BY call_no",
		"1\tfalse", "2\ttrue", "3\ttrue", "4\tfalse", "5\tfalse")
}

// testTakeOver changes the address of a receiver that has one alert, and then removes it for
// a start.
func testTakeOver(t *testing.T, s *store.Store, dir string, alerts []alert.Alert) {
	started := func(names ...string) {
		t.Helper()
		for _, name := range append([]string{"log"}, names...) {
			if err := s.InsertDeliveries(t.Context(), name, []string{""}, "started"); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting := func(name string, current []string, want int) {
		t.Helper()
		since, err := s.RegisterReceiver(t.Context(), name, "webhook h ", append([]string{"log", name}, current...))
		if err != nil {
			t.Fatal(err)
		}
		if due, err := s.Undelivered(t.Context(), name, alert.Alert{StoredAt: since.Add(-time.Millisecond)}, 9); err != nil || len(due) != want {
			t.Errorf("for %q %d alerts wait, %v, want %d", name, len(due), err, want)
		}
	}
	first, err := s.RegisterReceiver(t.Context(), "r", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"webhook h up", "webhook h behind", "webhook other behind"} {
		chdbtest.Query(t, dir, fmt.Sprintf("INSERT INTO audit.alert_deliveries VALUES ('', '%s', fromUnixTimestamp64Milli(%d), 'registered')", name, first.UnixMilli()))
	}
	for name, have := range map[string][]alert.Alert{"webhook h up": alerts, "webhook h behind": alerts[:1]} {
		for _, a := range have {
			if err := s.InsertDeliveries(t.Context(), name, []string{a.ID}, "delivered"); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting("webhook h early", nil, 0) // before any start was noted
	started("webhook h up", "webhook h behind", "webhook other behind")
	waiting("webhook h more", []string{"webhook h up", "webhook h behind"}, 0) // one more
	waiting("webhook h new", []string{"webhook h up"}, 3)
	waiting("webhook h new", []string{"webhook h up"}, 3) // another collector, or the next start
	started("webhook h up")
	waiting("webhook h later", []string{"webhook h up"}, 0) // the other one was given up
}

// testDeliveries stores alerts more than once, acknowledges one, and queries the
// due ones.
func testDeliveries(t *testing.T, s *store.Store, dir string) {
	since, err := s.RegisterReceiver(t.Context(), "r", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.RegisterReceiver(t.Context(), "r", "", nil); err != nil || !again.Equal(since) {
		t.Errorf("registered again since %v, %v, want %v", again, err, since)
	}
	chdbtest.Query(t, dir, "INSERT INTO audit.alert_deliveries (receiver, alert_id, at) VALUES ('other', '', now() - INTERVAL 1 YEAR), ('late', 'delivered', now() - INTERVAL 1 YEAR)")
	if late, err := s.RegisterReceiver(t.Context(), "late", "", nil); err != nil || late.Before(since) {
		t.Errorf("another receiver is registered since %v, %v, want now", late, err)
	}
	var alerts []alert.Alert
	for i := range 6 {
		a := alert.Alert{
			ID: fmt.Sprintf("%032x", i), Rule: "r", Severity: alert.Warning, Title: "T", Reason: "R", Tenant: "acme", Host: "h", User: "u",
			SessionID: "s", RecordID: audit.NewID(hour), CallNo: uint64(i), Operation: "pipe_pane", Path: "operations[0]",
			TS: hour.Add(time.Duration(i) * time.Second), Details: `{"a":"'\\"}`,
		}
		if i%2 == 1 {
			a.SuppressKey, a.WindowTo, a.RecordID = "k", hour.Add(time.Hour), ""
		}
		alerts = append(alerts, a)
	}
	insert := func(list []alert.Alert, want ...int) {
		t.Helper()
		stored, err := s.InsertAlerts(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, a := range stored {
			got = append(got, int(a.CallNo))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("newly stored (-want +got):\n%s", diff)
		}
	}
	insert(alerts[:4], 0, 1, 2, 3)
	insert(append(alerts[2:6:6], alerts[4:]...), 4, 5)
	insert(alerts)
	chdbtest.Want(t, dir, "SELECT call_no, suppressed FROM audit.alerts ORDER BY call_no", "0\tfalse", "1\tfalse", "2\tfalse", "3\ttrue", "4\tfalse", "5\ttrue")

	due := func(after alert.Alert, limit int, want ...alert.Alert) []alert.Alert {
		t.Helper()
		got, err := s.Undelivered(t.Context(), "r", after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(alert.Alert{}, "StoredAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
		return got
	}
	first := alert.Alert{StoredAt: since.Add(-time.Millisecond)}
	page := due(first, 2, alerts[0], alerts[1])
	due(page[1], 9, alerts[2], alerts[4])
	if err := s.InsertDeliveries(t.Context(), "r", []string{alerts[1].ID}, "delivered"); err != nil {
		t.Fatal(err)
	}
	if err := s.InsertDeliveries(t.Context(), "other", []string{alerts[2].ID}, "delivered"); err != nil {
		t.Fatal(err)
	}
	due(first, 9, alerts[0], alerts[2], alerts[4])

	testTakeOver(t, s, dir, alerts)

	// A year of others, read by each round of each receiver, would cost more every day.
	chdbtest.Query(t, dir, "INSERT INTO audit.alerts (alert_id, rule, ts, stored_at) SELECT lower(hex(MD5(toString(number)))), 'old', toDateTime64('2025-01-01 00:00:00', 6, 'UTC') + number * 100 AS at, at FROM numbers(300000)")
	chdbtest.Query(t, dir, "INSERT INTO audit.alert_deliveries SELECT alert_id, 'r', stored_at, 'delivered' FROM audit.alerts WHERE rule = 'old'")
	ctx := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"max_rows_to_read": 100_000}))
	if got, err := s.Undelivered(ctx, "r", first, 9); err != nil || len(got) != 3 {
		t.Errorf("after a year: %d alerts are due, %v", len(got), err)
	}
	for _, table := range []string{"alerts", "alert_desk"} {
		chdbtest.Query(t, dir, "DELETE FROM audit."+table+" WHERE rule = 'old'")
	}

	for i, action := range []string{"acknowledged", "reopened", "acknowledged"} {
		for _, a := range alerts[:2] {
			if a.CallNo == 1 && i == 2 {
				continue
			}
			event := store.AlertEvent{ID: uuid.New(), AlertID: a.ID, At: time.Now().Add(time.Duration(i) * time.Second), Action: action, Who: "ann", Tenant: "acme"}
			if err := s.AddAlertEvent(t.Context(), a, event); err != nil {
				t.Fatal(err)
			}
		}
	}
	chdbtest.Want(t, dir, "SELECT call_no FROM audit.open_alerts ORDER BY call_no", "1", "2", "4")

	// A mark is moved, another closed.
	now := time.Now().UTC().Truncate(time.Millisecond)
	marks := []alert.Mark{
		{Name: "a", Kind: alert.MarkRun, Upto: now, At: now},
		{Name: "b", Kind: alert.MarkRun, Upto: now, At: now},
		{Name: "a", Kind: alert.MarkRule, Upto: now, At: now},
	}
	later := marks[0]
	later.Upto, later.At = now.Add(time.Second), now.Add(time.Second)
	closed := marks[1]
	closed.Closed, closed.At = true, now.Add(time.Second)
	for _, list := range [][]alert.Mark{marks, {later, closed}} {
		if err := s.SetMarks(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Marks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]alert.Mark{marks[2], later}, got, cmpopts.SortSlices(func(a, b alert.Mark) bool { return a.Kind < b.Kind })); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// testArrived reads records by the time of their arrival.
func testArrived(t *testing.T, s *store.Store, dir string) {
	chdbtest.Query(t, dir, "TRUNCATE TABLE audit.events")
	at := hour.Add(time.Hour)
	for i := range 3 {
		var rows []ingest.Row
		for n := range 600 {
			rows = append(rows, row(t, call(1000*i+n+1, "list_panes"), uint64(1000*i+n)))
		}
		if err := s.InsertRows(t.Context(), rows, at.Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		after, upto time.Duration
		want        int
	}{{-time.Hour, time.Hour, 1800}, {0, time.Hour, 1200}, {-1, time.Millisecond, 1200}, {0, time.Millisecond, 600}, {2 * time.Millisecond, time.Hour, 0}} {
		got := 0
		err := s.Arrived(t.Context(), at.Add(tt.after), at.Add(tt.upto), func(rows []ingest.Row) error {
			got += len(rows)
			if rows[0].Record.Tool != "list_panes" || len(rows[0].Operations) != 1 {
				t.Errorf("read %+v", rows[0])
			}
			return nil
		})
		n, countErr := s.CountArrived(t.Context(), at.Add(tt.after), at.Add(tt.upto))
		if err != nil || countErr != nil || got != tt.want || int(n) != tt.want {
			t.Errorf("after %v up to %v: %d records, counted %d, %v, %v, want %d", tt.after, tt.upto, got, n, err, countErr, tt.want)
		}
	}
}

// testLasting stores the alerts of a rule about lasting conditions: at first, again,
// grown, shrunk, ended and returned, each repeated as after a crash.
func testLasting(t *testing.T, s *store.Store, r *store.Reader) {
	condition := func(extent uint64) alert.Alert {
		return alert.Alert{
			ID: fmt.Sprintf("%032x", 0xa000+extent), Rule: "gap", Severity: alert.Critical, Title: "T", Tenant: "acme", TS: hour, Details: "{}",
			Lasting: fmt.Sprintf("%032x", 0xb), Extent: extent,
		}
	}
	states := func() (list []string) {
		t.Helper()
		alerts, err := r.Alerts(t.Context(), store.AlertFilter{Rule: "gap"}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			what := fmt.Sprint(a.Extent)
			if a.Closes != "" {
				what = "end of " + what
			}
			list = append(list, what+" "+a.State)
		}
		slices.Sort(list)
		return list
	}
	for _, step := range []struct {
		what   string
		extent uint64 // 0: it has ended
		told   string // the title of the alert that is new
		open   string
		states []string
	}{
		{"an end without a beginning", 0, "", "", nil},
		{"it begins", 3, "T", "3", []string{"3 open"}},
		{"the same", 3, "", "3", []string{"3 open"}},
		{"it grows", 7, "T", "7", []string{"3 closed", "7 open"}},
		{"it shrinks", 3, "", "7", []string{"3 closed", "7 open"}},
		{"it ends", 0, "Closed: T", "", []string{"3 closed", "7 closed", "end of 7 closed"}},
		{"it comes again", 9, "T", "9", []string{"3 closed", "7 closed", "9 open", "end of 7 closed"}},
	} {
		for i := range 2 {
			fresh, err := s.InsertAlerts(t.Context(), []alert.Alert{condition(step.extent)})
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, a := range fresh {
				told += a.Title
			}
			if want := step.told; i == 0 && told != want || i > 0 && told != "" {
				t.Errorf("%s, time %d: told %q, want %q once", step.what, i+1, told, want)
			}
		}
		if diff := cmp.Diff(step.states, states()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	// One that was stored before identities had the tenant is known, of the same
	// tenant only.
	before := condition(0)
	before.ID, before.Lasting, before.Rule = fmt.Sprintf("%032x", 0xc), "", "old"
	for _, tt := range []struct {
		id, old, tenant string
		want            int
	}{{before.ID, "", "acme", 1}, {"1" + before.ID[1:], before.ID, "acme", 0}, {"2" + before.ID[1:], before.ID, "other", 1}} {
		a := before
		a.ID, a.OldID, a.Tenant = tt.id, tt.old, tt.tenant
		if fresh, err := s.InsertAlerts(t.Context(), []alert.Alert{a}); err != nil || len(fresh) != tt.want {
			t.Errorf("alert %+v: %d are new, %v, want %d", tt, len(fresh), err, tt.want)
		}
	}
}

// testYearsOfAlerts reads pages of a long list: those of the newest alerts read few
// rows, and those of a state that few have leave none out.
func testYearsOfAlerts(t *testing.T, dir string) {
	for _, table := range []string{"alerts", "alert_events", "alert_desk"} {
		chdbtest.Query(t, dir, "TRUNCATE TABLE audit."+table)
	}
	const all = 36_500
	chdbtest.Query(t, dir, fmt.Sprintf(`INSERT INTO audit.alerts (alert_id, rule, ts, stored_at, suppressed, lasting, extent)
		SELECT lower(hex(MD5(toString(number)))), 'old', now64(6) - toIntervalMinute(15 * number), now64(3), number %% 10 = 1, if(number %% 10 = 2, toString(intDiv(number, 20)), ''), number
		FROM numbers(%d)`, all))
	r, err := store.OpenReader(engine(dir, chdb.Writer)) // a reader must not set limits
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	bounded := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"max_rows_to_read": 20_000}))
	for _, state := range []string{"open", "suppressed", "closed", ""} {
		f := store.AlertFilter{State: state}
		for page := range 3 {
			list, err := r.Alerts(bounded, f, 20)
			if err != nil || len(list) != 20 {
				t.Fatalf("page %d of state %q: %d alerts, %v", page, state, len(list), err)
			}
			if _, _, err := r.Alert(bounded, list[0].ID); err != nil {
				t.Error(err)
			}
			f.Before = &store.AlertPlace{TS: list[19].TS, ID: list[19].ID}
		}
	}
	// 1000 of the newest are acknowledged, and a few older ones.
	chdbtest.Query(t, dir, "INSERT INTO audit.alert_events (event_id, alert_id, at, action) SELECT generateUUIDv4(), alert_id, now64(3), 'acknowledged' FROM audit.alerts WHERE extent < 1000 OR extent % 1000 = 0")
	chdbtest.Query(t, dir, "INSERT INTO audit.alert_desk (event_id, alert_id, ts, action) SELECT event_id, alert_id, at, action FROM audit.alert_events")
	count := map[string]int{}
	for _, state := range []string{"open", "acknowledged", "suppressed", "closed", ""} {
		seen := map[string]bool{}
		for f := (store.AlertFilter{State: state}); ; {
			list, err := r.Alerts(t.Context(), f, 5000)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if state != "" && a.State != state {
					t.Fatalf("of state %q: %+v", state, a)
				}
				seen[a.ID] = true
				f.Before = &store.AlertPlace{TS: a.TS, ID: a.ID}
			}
			count[state] += len(list)
			if len(list) < 5000 {
				break
			}
		}
		if len(seen) != count[state] {
			t.Errorf("of state %q, %d alerts were listed %d times", state, len(seen), count[state])
		}
	}
	// One of ten is suppressed. Another of ten lasts, and of two with one condition one is closed.
	const acknowledged = 1000/10*9 - 1000/20 + all/1000
	want := map[string]int{"open": all/10*9 - all/20 - acknowledged, "acknowledged": acknowledged, "suppressed": all / 10, "closed": all / 20, "": all}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("alerts by state (-want +got):\n%s", diff)
	}
}

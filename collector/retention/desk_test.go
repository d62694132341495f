package retention_test

import (
	"fmt"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
)

// testDesk finds the open ones among the alerts of years by reading few others, after kills
// and after people acknowledged and reopened some.
func testDesk(t *testing.T, f *fixture) {
	config := clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(f.dir, chdb.Writer), Uncompressed: true}
	s, err := store.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := store.OpenReader(config) // a reader must not set limits
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f.exec("ALTER TABLE audit.alert_desk MODIFY SETTING non_replicated_deduplication_window = 1000") // as on a cluster
	tend := func() {
		t.Helper()
		for range 2 { // what is left for another run
			if err := f.job().Tend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// 36 500 alerts from before there was a desk. One in a hundred is suppressed. One in a
	// hundred lasts, and of each ten with one condition the last is the latest. All others
	// but five are acknowledged.
	const all = 36_500
	f.exec(fmt.Sprintf(`INSERT INTO audit.alerts (alert_id, rule, tenant, severity, ts, stored_at, suppressed, lasting, extent)
		SELECT toString(number), 'old', 'acme', 'critical', now64(6) - toIntervalMinute(number), now64(3) - toIntervalMinute(number), number %% 100 = 1,
			if(number %% 100 = 2, toString(intDiv(number, 1000)), ''), number FROM numbers(%d)`, all))
	f.exec("INSERT INTO audit.alert_events (event_id, alert_id, at, action, tenant) SELECT generateUUIDv4(), alert_id, now64(3) - INTERVAL 1 HOUR, 'acknowledged', 'acme' FROM audit.alerts WHERE extent % 9000 != 5")
	f.exec("TRUNCATE TABLE audit.alert_desk")

	bounded := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"max_rows_to_read": 100}))
	open := func(what string, want ...string) {
		t.Helper()
		list, err := r.Alerts(bounded, store.AlertFilter{State: "open"}, 20)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, a := range list {
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("%s, open are (-want +got):\n%s", what, diff)
		}
		at, err := r.Attention(bounded, store.Window{From: time.Now().Add(-time.Hour), To: time.Now()})
		if err != nil || !at.Has(store.PartAlerts) || int(at.Alerts.All()) != len(want) {
			t.Errorf("%s, %+v, %v are counted, want %d", what, at.Alerts, at.Failed, len(want))
		}
	}
	old := []string{"5", "9005", "18005", "27005", "36005"}
	tend()
	open("filled", old...)

	act := func(id, action string) {
		t.Helper()
		a, _, err := r.Alert(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		err = s.AddAlertEvent(t.Context(), a.Alert, store.AlertEvent{ID: uuid.New(), AlertID: id, At: time.Now().UTC(), Action: action, Who: "ann", Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time it was on the desk before
		act("77", store.Reopened)
		open("reopened", append(old, "77")...)
		tend()
		open("reopened, later", append(old, "77")...)
		act("77", store.Acknowledged)
		open("acknowledged", old...)
		f.aged()
		tend()
		open("acknowledged, later", old...)
	}

	// Of a condition that lasts, the desk has the latest alert, and older ones go first.
	lasting := alert.Alert{Rule: "gap", Severity: alert.Critical, Tenant: "acme", TS: time.Now().UTC(), Details: "{}", Lasting: "condition"}
	insert := func(id string, extent uint64) {
		t.Helper()
		lasting.ID, lasting.Extent = id, extent
		if _, err := s.InsertAlerts(t.Context(), []alert.Alert{lasting}); err != nil {
			t.Fatal(err)
		}
		f.aged()
	}
	insert("first", 1)
	insert("second", 2)
	act("second", store.Acknowledged)
	for _, left := range [][]string{{"second"}, nil, nil} {
		f.aged()
		open("acknowledged while it lasts", old...)
		if err := f.job().Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.want("SELECT alert_id FROM audit.alert_desk FINAL WHERE lasting = 'condition'", left...)
	}
	insert("third", 3)
	open("grown", append(old, "third")...)
	insert("", 0)
	open("ended", old...)
	tend()
	f.want("SELECT count() < 20 FROM audit.alert_desk", "1")

	// Killed between two tables.
	a := alert.Alert{ID: "new", Rule: "r", Severity: alert.Critical, Tenant: "acme", TS: time.Now().UTC(), Details: "{}"}
	f.exec("DROP VIEW audit.alert_feed SYNC")
	if _, err := s.InsertAlerts(t.Context(), []alert.Alert{a}); err != nil {
		t.Fatal(err)
	}
	open("stored", append(old, "new")...)
	f.exec("DELETE FROM audit.alerts WHERE alert_id = 'new'")
	if fresh, err := s.InsertAlerts(t.Context(), []alert.Alert{a}); err != nil || len(fresh) != 1 {
		t.Errorf("found again: %d, %v", len(fresh), err)
	}
	open("found again", append(old, "new")...)
	f.exec("INSERT INTO audit.alert_events (event_id, alert_id, at, action) SELECT generateUUIDv4(), 'new', now64(3), 'acknowledged'")
	open("acknowledged, not copied", append(old, "new")...)
	tend()
	open("copied later", old...)

	// What is not among alerts any more goes from the desk too.
	f.exec("DELETE FROM audit.alerts WHERE alert_id = '5'")
	tend()
	open("gone", "9005", "18005", "27005", "36005")
	f.want("SELECT count() FROM audit.alert_desk WHERE alert_id IN ('5', '1', '2', '77')", "0")
}

// aged makes what is on the desk old enough to leave it.
func (f *fixture) aged() {
	f.t.Helper()
	f.exec("CREATE TABLE audit.older ENGINE = Memory AS SELECT * REPLACE (stored_at - INTERVAL 1 HOUR AS stored_at) FROM audit.alert_desk")
	f.exec("ALTER TABLE audit.alert_desk DELETE WHERE 1 SETTINGS mutations_sync = 2") // TRUNCATE would forget tokens
	f.exec("INSERT INTO audit.alert_desk SELECT * FROM audit.older SETTINGS insert_deduplicate = 0")
	f.exec("DROP TABLE audit.older SYNC")
}

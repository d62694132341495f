package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// An Alert is a stored alert.
type Alert struct {
	alert.Alert
	State string // open, acknowledged, closed, suppressed
}

// An AlertEvent is an action on an alert.
type AlertEvent struct {
	ID      uuid.UUID `ch:"event_id"`
	AlertID string    `ch:"alert_id"`
	At      time.Time `ch:"at"`
	Action  string    `ch:"action"` // Acknowledged or Reopened
	Who     string    `ch:"who"`
	Comment string    `ch:"comment"`
	Tenant  string    `ch:"tenant"`
}

// The actions on an alert.
const (
	Acknowledged = "acknowledged"
	Reopened     = "reopened"
)

// An AlertFilter chooses alerts; zero values choose all.
type AlertFilter struct {
	State    string // open, acknowledged, closed, suppressed
	Severity string
	Rule     string
	Record   uuid.UUID // only alerts on this record
	Before   *AlertPlace
}

// An AlertPlace is a place in the list of alerts.
type AlertPlace struct {
	TS time.Time
	ID string
}

// InsertAlerts stores new alerts and returns them. The first alert with a
// suppression key is stored unchanged, later ones as suppressed until SuppressFor has
// passed here: records may have any time. So are those of a flood. Two programs that store alerts with one key concurrently may both store a
// first one: then two are delivered instead of one. Of a condition that lasts, alerts
// are new if it has grown, and its end if it has an alert.
func (s *Store) InsertAlerts(ctx context.Context, alerts []alert.Alert) ([]alert.Alert, error) {
	alerts, err := s.progress(ctx, alerts)
	if err != nil {
		return nil, clickhouse.Classify("looking for conditions", err)
	}
	ids, keys, old := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, a := range alerts {
		ids[a.ID] = true
		if a.OldID != "" {
			old[a.OldID] = true
		}
		if a.SuppressKey != "" {
			keys[a.SuppressKey] = true
		}
	}
	known, err := s.present(ctx, "alert_id", "alert_id", ids, "1")
	if err != nil {
		return nil, clickhouse.Classify("looking for alerts", err)
	}
	// Alerts from before identities had the tenant are not sent again. One of
	// another tenant is another alert.
	knownOld, err := s.present(ctx, "concat(alert_id, tenant)", "alert_id", old, "1")
	if err != nil {
		return nil, clickhouse.Classify("looking for alerts", err)
	}
	told, err := s.present(ctx, "suppress_key", "suppress_key", keys, "NOT suppressed")
	if err != nil {
		return nil, clickhouse.Classify("looking for alerts", err)
	}
	var fresh []alert.Alert
	now := time.Now()
	for _, a := range alerts {
		if !known[a.ID].IsZero() || a.OldID != "" && !knownOld[a.OldID+a.Tenant].IsZero() {
			continue
		}
		known[a.ID] = now
		if last, ok := told[a.SuppressKey]; ok {
			a.Suppressed = a.SuppressFor == 0 || now.Sub(last) < a.SuppressFor
		}
		if !a.Suppressed {
			s.flood.Bound(&a, now)
		}
		if a.SuppressKey != "" && !a.Suppressed {
			told[a.SuppressKey] = now
		}
		a.StoredAt = now
		fresh = append(fresh, a)
	}
	// After a crash between the two, the alerts are found again.
	for _, table := range []string{"alert_desk", "alerts"} {
		if err == nil && len(fresh) > 0 {
			err = s.insertAlerts(ctx, table, fresh, "")
		}
	}
	return fresh, clickhouse.Classify(fmt.Sprintf("inserting %d alerts", len(fresh)), err)
}

// questionTexts is the most texts in one query.
const questionTexts = 1000

// progress returns the alerts that are news: those without a lasting condition,
// those whose condition has grown, and a closing alert for each condition that
// has ended.
func (s *Store) progress(ctx context.Context, alerts []alert.Alert) (news []alert.Alert, err error) {
	lasting := map[string]bool{}
	for _, a := range alerts {
		if a.Lasting != "" {
			lasting[a.Lasting] = true
		}
	}
	if len(lasting) == 0 {
		return alerts, nil
	}
	type last struct {
		Lasting string `ch:"lasting"`
		ID      string `ch:"id"`
		Extent  uint64 `ch:"most"`
		Closed  bool   `ch:"closed"`
	}
	known := map[string]last{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(lasting)), questionTexts) {
		var rows []last
		ctx, cancel := s.db.Limited(ctx)
		err := s.db.Conn().Select(ctx, &rows, "SELECT lasting, "+lastOf+" AS id, max(extent) AS most, argMax(closes, (extent, closes != '', alert_id)) != '' AS closed FROM "+
			s.db.Name()+".alerts WHERE lasting IN (?) GROUP BY lasting", chunk)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			known[row.Lasting] = row
		}
	}
	for _, a := range alerts {
		was, found := known[a.Lasting]
		switch {
		case a.Lasting == "", !a.Ended() && (!found || a.Extent > was.Extent):
			news = append(news, a)
		case a.Ended() && found && !was.Closed:
			news = append(news, a.Closing(was.ID, was.Extent))
		}
	}
	return news, nil
}

// lastOf is the latest alert of a condition that lasts, in rows grouped by it. It
// does not depend on clocks.
const lastOf = "argMax(alert_id, (extent, closes != '', alert_id))"

// present returns the values of an expression in those rows of alerts that have
// one of texts in a column and meet a condition, and when the last was stored.
func (s *Store) present(ctx context.Context, value, column string, texts map[string]bool, condition string) (map[string]time.Time, error) {
	found := map[string]time.Time{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(texts)), questionTexts) {
		var rows []struct {
			Text string    `ch:"text"`
			Last time.Time `ch:"last"`
		}
		ctx, cancel := s.db.Limited(ctx)
		err := s.db.Conn().Select(ctx, &rows, "SELECT "+value+" AS text, max(stored_at) AS last FROM "+s.db.Name()+".alerts FINAL WHERE "+
			column+" IN (?) AND "+condition+" GROUP BY text", chunk)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[row.Text] = row.Last
		}
	}
	return found, nil
}

// insertAlerts stores alerts in a table. The same ones are stored again for another cause.
func (s *Store) insertAlerts(ctx context.Context, table string, alerts []alert.Alert, cause string) error {
	sum := sha256.New()
	for _, a := range alerts {
		fmt.Fprint(sum, cause, a.ID, a.Suppressed)
	}
	return s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+"."+table+" ("+alertColumns+")", sum.Sum(nil), each(alerts, func(a alert.Alert) []any {
		return []any{a.ID, a.Rule, string(a.Severity), a.Title, a.Reason, a.Tenant, a.Host, a.User, a.SessionID, recordUUID(a.RecordID), a.CallNo,
			a.Operation, a.Path, a.TS, orNull(a.WindowTo), a.Details, a.Suppressed, a.SuppressKey, a.Lasting, a.Extent, a.Closes, a.StoredAt}
	}))
}

// recordUUID reads the id of a record; without a record it returns the nil
// UUID.
func recordUUID(s string) uuid.UUID {
	if u, err := uuid.Parse(s); err == nil {
		return u
	}
	return uuid.Nil
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// An alertKey is what finds an alert and its state.
type alertKey struct {
	TS      time.Time `ch:"ts"`
	ID      string    `ch:"alert_id"`
	Lasting string    `ch:"lasting"`
}

// Alerts returns up to limit alerts, the newest first.
func (r *Reader) Alerts(ctx context.Context, f AlertFilter, limit int) ([]Alert, error) {
	chosen, a := "1", args{}
	and := func(given bool, name string, v any, condition string) {
		if given {
			chosen += " AND " + condition
			a[name] = v
		}
	}
	and(f.Severity != "", "severity", f.Severity, "severity = {severity:String}")
	and(f.Rule != "", "rule", f.Rule, "rule = {rule:String}")
	and(f.Record != uuid.Nil, "record", f.Record.String(), "record_id = {record:UUID}")
	before := *cmp.Or(f.Before, &AlertPlace{TS: maxTime})
	if f.State == "open" {
		const few = 5000 // rows, which a page reads all: where more are open, most of the newest alerts are
		desk, err := askOne[struct{ N uint64 }](ctx, r, "alerts", "SELECT ifNull(total_rows, 0) AS N FROM system.tables WHERE database = currentDatabase() AND name = 'alert_desk'", args{})
		if err != nil || desk.N < few {
			a["at"], a["at_id"], a["limit"] = micros(before.TS), before.ID, limit
			return r.alertRows(ctx, "'open' AS state FROM open_alerts WHERE (ts, alert_id) < (fromUnixTimestamp64Micro({at:Int64}, 'UTC'), {at_id:String}) AND "+chosen+" ORDER BY ts DESC, alert_id DESC LIMIT {limit:UInt32}", a)
		}
	}
	// What an alert of this state has in its own row.
	and(f.State != "", "state", f.State, `suppressed = ({state:String} = 'suppressed') AND multiIf({state:String} = 'closed', closes != '' OR lasting != '',
		{state:String} IN ('open', 'acknowledged'), closes = '', true)`)
	// What people did is found by the ids of alerts. So the newest are looked at first:
	// the states of all are asked for only if a few of these have the one that is wanted.
	n := limit
	if f.State != "" {
		n = 4 * limit
	}
	var newest []alertKey
	now, w := time.Now(), Window{To: before.TS.Add(time.Microsecond)}
	for span := 24 * time.Hour; len(newest) < n && w.To.After(minTime); span *= 8 { // as in Calls
		w.From = later(earlier(w.To, now).Add(-span), minTime)
		part, err := r.alertKeys(ctx, w, before, chosen, a, n-len(newest))
		if err != nil {
			return nil, err
		}
		newest, w.To = append(newest, part...), w.From
	}
	list, err := r.alerts(ctx, newest, "")
	list = slices.DeleteFunc(list, func(a Alert) bool { return f.State != "" && a.State != f.State })
	if err != nil || len(list) >= limit || len(newest) < n {
		return list[:min(len(list), limit)], err
	}
	last := newest[len(newest)-1]
	older, err := r.alertKeys(ctx, Window{minTime, last.TS.Add(time.Microsecond)}, AlertPlace{last.TS, last.ID}, chosen+" AND "+alertState("1", "1")+" = {state:String}", a, limit-len(list))
	if err != nil {
		return nil, err
	}
	more, err := r.alerts(ctx, older, f.State)
	return append(list, more...), err
}

// alertKeys returns up to limit chosen alerts of a window, the newest before a place.
func (r *Reader) alertKeys(ctx context.Context, w Window, before AlertPlace, chosen string, a args, limit int) ([]alertKey, error) {
	a["from"], a["to"], a["at"], a["at_id"], a["limit"] = micros(w.From), micros(w.To), micros(before.TS), before.ID, limit
	return ask[alertKey](ctx, r, "alerts", `SELECT ts, alert_id, lasting FROM alerts FINAL
		PREWHERE ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({to:Int64}, 'UTC')
		WHERE (ts, alert_id) < (fromUnixTimestamp64Micro({at:Int64}, 'UTC'), {at_id:String}) AND `+chosen+`
		ORDER BY ts DESC, alert_id DESC LIMIT {limit:UInt32}`, a)
}

// Alert returns one alert and its events, oldest first, or ErrNotFound.
func (r *Reader) Alert(ctx context.Context, id string) (Alert, []AlertEvent, error) {
	found, err := ask[alertKey](ctx, r, "an alert", "SELECT ts, alert_id, lasting FROM alerts FINAL WHERE alert_id = {id:String} LIMIT 1", args{"id": id})
	list, failed := r.alerts(ctx, found, "")
	if err := cmp.Or(err, failed); err != nil || len(list) == 0 {
		return Alert{}, nil, cmp.Or(err, ErrNotFound)
	}
	events, err := ask[AlertEvent](ctx, r, "what was done about an alert", `
		SELECT event_id, alert_id, at, action, who, comment, tenant FROM alert_events FINAL WHERE alert_id = {id:String}
		ORDER BY at, event_id LIMIT 1000`, args{"id": id})
	return list[0], events, err
}

// alerts reads the alerts at keys, the newest first. They have the given state; if it is
// empty, theirs is read.
func (r *Reader) alerts(ctx context.Context, keys []alertKey, state string) ([]Alert, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	times, ids, lasting := make([]int64, len(keys)), make([]string, len(keys)), []string{}
	for i, k := range keys {
		times[i], ids[i] = micros(k.TS), k.ID
		if k.Lasting != "" {
			lasting = append(lasting, k.Lasting)
		}
	}
	of := "{state:String}"
	if state == "" {
		of = alertState("lasting IN {lasting:Array(String)}", "alert_id IN {ids:Array(String)}")
	}
	return r.alertRows(ctx, of+` AS state FROM alerts FINAL
		PREWHERE ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Micro({to:Int64}, 'UTC') AND alert_id IN {ids:Array(String)}
		ORDER BY ts DESC, alert_id DESC`,
		args{"ids": ids, "lasting": lasting, "state": state, "from": slices.Min(times), "to": slices.Max(times)})
}

// alertRows reads alerts and their state; sql goes on after their columns.
func (r *Reader) alertRows(ctx context.Context, sql string, a args) ([]Alert, error) {
	rows, err := ask[alertRow](ctx, r, "alerts", "SELECT "+alertColumns+", "+sql, a)
	list := make([]Alert, len(rows))
	for i := range rows {
		list[i] = Alert{rows[i].alert(), rows[i].State}
	}
	return list, err
}

// AddAlertEvent stores e, which is about a. After an error it may or may not be stored;
// the same event may be added again.
func (s *Store) AddAlertEvent(ctx context.Context, a alert.Alert, e AlertEvent) error {
	token := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %q %q", e.ID, e.AlertID, e.Action, e.Who, e.Comment))
	add := func(columns string, row ...any) error {
		return s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+"."+columns, token[:], func(b driver.Batch) error { return b.Append(row...) })
	}
	err := add("alert_events (event_id, alert_id, at, action, who, comment, tenant)", e.ID, e.AlertID, e.At, e.Action, e.Who, e.Comment, e.Tenant)
	if err == nil && e.Action == Reopened {
		a.StoredAt = time.Now() // it is new on the desk
		err = s.insertAlerts(ctx, "alert_desk", []alert.Alert{a}, e.ID.String())
	}
	if err == nil {
		err = add("alert_desk (event_id, alert_id, ts, action, tenant)", e.ID, e.AlertID, e.At, e.Action, e.Tenant)
	}
	return clickhouse.Classify("recording what was done about an alert", err)
}

const alertColumns = "alert_id, rule, severity, title, reason, tenant, host, user, session_id, record_id, call_no, operation, path, ts, window_to, details, suppressed, suppress_key, lasting, extent, closes, stored_at"

// alertState returns an expression for the state of an alert. Only rows of alerts that
// last, and of events, that meet the conditions are read for it: all of them are as many
// as years of alerts.
func alertState(lasts, events string) string {
	return `multiIf(suppressed, 'suppressed', closes != '' OR lasting != '' AND alert_id NOT IN (
		SELECT ` + lastOf + ` FROM alerts WHERE lasting != '' AND ` + lasts + ` GROUP BY tenant, lasting), 'closed', alert_id IN (
		SELECT alert_id FROM alert_events WHERE ` + events + ` GROUP BY alert_id HAVING argMax(action, (at, event_id)) = 'acknowledged'), 'acknowledged', 'open')`
}

// An alertRow is a row of alerts.
type alertRow struct {
	ID          string     `ch:"alert_id"`
	Rule        string     `ch:"rule"`
	Severity    string     `ch:"severity"`
	Title       string     `ch:"title"`
	Reason      string     `ch:"reason"`
	Tenant      string     `ch:"tenant"`
	Host        string     `ch:"host"`
	User        string     `ch:"user"`
	SessionID   string     `ch:"session_id"`
	RecordID    uuid.UUID  `ch:"record_id"` // nil UUID: several records
	CallNo      uint64     `ch:"call_no"`
	Operation   string     `ch:"operation"`
	Path        string     `ch:"path"`
	TS          time.Time  `ch:"ts"`
	WindowTo    *time.Time `ch:"window_to"`
	Details     string     `ch:"details"`
	Suppressed  bool       `ch:"suppressed"`
	SuppressKey string     `ch:"suppress_key"`
	Lasting     string     `ch:"lasting"`
	Extent      uint64     `ch:"extent"`
	Closes      string     `ch:"closes"`
	StoredAt    time.Time  `ch:"stored_at"`
	State       string     `ch:"state"` // of alertState
}

func (r *alertRow) alert() alert.Alert {
	a := alert.Alert{
		ID: r.ID, Rule: r.Rule, Severity: alert.Severity(r.Severity), Title: r.Title, Reason: r.Reason, Tenant: r.Tenant, Host: r.Host, User: r.User,
		SessionID: r.SessionID, CallNo: r.CallNo, Operation: r.Operation, Path: r.Path, TS: r.TS, Details: r.Details,
		Suppressed: r.Suppressed, SuppressKey: r.SuppressKey, Lasting: r.Lasting, Extent: r.Extent, Closes: r.Closes, StoredAt: r.StoredAt,
	}
	if r.RecordID != uuid.Nil {
		a.RecordID = r.RecordID.String()
	}
	if r.WindowTo != nil {
		a.WindowTo = *r.WindowTo
	}
	return a
}

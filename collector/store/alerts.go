package store

import (
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
// suppression key is stored unchanged, later ones as suppressed, and so are those of
// a flood. Two programs that store alerts with one key concurrently may both store a
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
		if known[a.ID] || a.OldID != "" && knownOld[a.OldID+a.Tenant] {
			continue
		}
		known[a.ID] = true
		if a.SuppressKey != "" {
			a.Suppressed = told[a.SuppressKey]
		}
		if !a.Suppressed {
			s.flood.Bound(&a, now)
		}
		if a.SuppressKey != "" && !a.Suppressed {
			told[a.SuppressKey] = true
		}
		fresh = append(fresh, a)
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, clickhouse.Classify(fmt.Sprintf("inserting %d alerts", len(fresh)), s.insertAlerts(ctx, fresh))
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
// one of texts in a column and meet a condition.
func (s *Store) present(ctx context.Context, value, column string, texts map[string]bool, condition string) (map[string]bool, error) {
	found := map[string]bool{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(texts)), questionTexts) {
		ctx, cancel := s.db.Limited(ctx)
		defer cancel()
		rows, err := s.db.Conn().Query(ctx, "SELECT DISTINCT "+value+" FROM "+s.db.Name()+".alerts FINAL WHERE "+column+" IN (?) AND "+condition, chunk)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			found[text] = true
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *Store) insertAlerts(ctx context.Context, alerts []alert.Alert) error {
	sum := sha256.New()
	for i := range alerts {
		fmt.Fprint(sum, alerts[i].ID, alerts[i].Suppressed)
	}
	now := time.Now()
	return s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+".alerts ("+alertColumns+")", sum.Sum(nil), func(b driver.Batch) error {
		for i := range alerts {
			a := &alerts[i]
			a.StoredAt = now
			if err := b.Append(a.ID, a.Rule, string(a.Severity), a.Title, a.Reason, a.Tenant, a.Host, a.User, a.SessionID, recordUUID(a.RecordID), a.CallNo,
				a.Operation, a.Path, a.TS, orNull(a.WindowTo), a.Details, a.Suppressed, a.SuppressKey, a.Lasting, a.Extent, a.Closes, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordUUID reads the id of a record; without a record it returns the nil
// UUID.
func recordUUID(s string) uuid.UUID {
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil
	}
	return u
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Alerts returns up to limit alerts, the newest first.
func (r *Reader) Alerts(ctx context.Context, f AlertFilter, limit int) ([]Alert, error) {
	where, a := "1", args{"limit": limit}
	and := func(given bool, name string, v any, condition string) {
		if given {
			where += " AND " + condition
			a[name] = v
		}
	}
	and(f.State != "", "state", f.State, "state = {state:String}")
	and(f.Severity != "", "severity", f.Severity, "severity = {severity:String}")
	and(f.Rule != "", "rule", f.Rule, "rule = {rule:String}")
	and(f.Record != uuid.Nil, "record", f.Record.String(), "record_id = {record:UUID}")
	if f.Before != nil {
		and(true, "at", micros(f.Before.TS), "(ts, alert_id) < (fromUnixTimestamp64Micro({at:Int64}, 'UTC'), {at_id:String})")
		a["at_id"] = f.Before.ID
	}
	return r.alerts(ctx, "alerts", where+" ORDER BY ts DESC, alert_id DESC LIMIT {limit:UInt32}", a)
}

// Alert returns one alert and its events, oldest first, or ErrNotFound.
func (r *Reader) Alert(ctx context.Context, id string) (Alert, []AlertEvent, error) {
	list, err := r.alerts(ctx, "an alert", "alert_id = {id:String} LIMIT 1", args{"id": id})
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Alert{}, nil, err
	}
	events, err := ask[AlertEvent](ctx, r, "what was done about an alert", `
		SELECT event_id, alert_id, at, action, who, comment, tenant FROM alert_events FINAL WHERE alert_id = {id:String}
		ORDER BY at, event_id LIMIT 1000`, args{"id": id})
	return list[0], events, err
}

func (r *Reader) alerts(ctx context.Context, what, where string, a args) ([]Alert, error) {
	rows, err := ask[alertRow](ctx, r, what, "SELECT "+alertColumns+", "+alertState+" FROM alerts FINAL WHERE "+where, a)
	list := make([]Alert, len(rows))
	for i := range rows {
		list[i] = Alert{rows[i].alert(), rows[i].State}
	}
	return list, err
}

// AddAlertEvent stores e. After an error it may or may not be stored; the
// same event may be added again.
func (s *Store) AddAlertEvent(ctx context.Context, e AlertEvent) error {
	token := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %q %q", e.ID, e.AlertID, e.Action, e.Who, e.Comment))
	statement := "INSERT INTO " + s.db.Name() + ".alert_events (event_id, alert_id, at, action, who, comment, tenant)"
	err := s.db.Insert(ctx, statement, token[:], func(b driver.Batch) error {
		return b.Append(e.ID, e.AlertID, e.At, e.Action, e.Who, e.Comment, e.Tenant)
	})
	return clickhouse.Classify("recording what was done about an alert", err)
}

const (
	alertColumns = "alert_id, rule, severity, title, reason, tenant, host, user, session_id, record_id, call_no, operation, path, ts, window_to, details, suppressed, suppress_key, lasting, extent, closes, stored_at"

	alertState = `multiIf(suppressed, 'suppressed', closes != '' OR lasting != '' AND alert_id NOT IN (
		SELECT ` + lastOf + ` FROM alerts WHERE lasting != '' GROUP BY tenant, lasting), 'closed', alert_id IN (
		SELECT alert_id FROM alert_events GROUP BY alert_id HAVING argMax(action, (at, event_id)) = 'acknowledged'), 'acknowledged', 'open') AS state`
)

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

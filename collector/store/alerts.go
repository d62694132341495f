package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// An Alert is a finding of a rule.
type Alert struct {
	ID        string     `ch:"alert_id"`
	Rule      string     `ch:"rule"`
	Severity  string     `ch:"severity"`
	Title     string     `ch:"title"`
	Reason    string     `ch:"reason"`
	Tenant    string     `ch:"tenant"`
	Host      string     `ch:"host"`
	User      string     `ch:"user"`
	SessionID string     `ch:"session_id"`
	RecordID  uuid.UUID  `ch:"record_id"` // nil UUID: several records
	CallNo    uint64     `ch:"call_no"`
	Operation string     `ch:"operation"`
	Path      string     `ch:"path"`
	TS        time.Time  `ch:"ts"`
	WindowTo  *time.Time `ch:"window_to"`
	Details   string     `ch:"details"` // JSON
	State     string     `ch:"state"`   // open, acknowledged, suppressed
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
	State    string // open, acknowledged, suppressed
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

const alertColumns = `alert_id, rule, severity, title, reason, tenant, host, user, session_id, record_id, call_no, operation, path, ts, window_to, details,
	multiIf(suppressed, 'suppressed', alert_id IN (
		SELECT alert_id FROM alert_events GROUP BY alert_id HAVING argMax(action, (at, event_id)) = 'acknowledged'), 'acknowledged', 'open') AS state`

// Alerts returns up to limit alerts, the newest first.
func (s *Store) Alerts(ctx context.Context, f AlertFilter, limit int) ([]Alert, error) {
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
	return ask[Alert](ctx, s, "alerts", "SELECT "+alertColumns+" FROM alerts FINAL WHERE "+where+" ORDER BY ts DESC, alert_id DESC LIMIT {limit:UInt32}", a)
}

// Alert returns one alert and its events, oldest first, or ErrNotFound.
func (s *Store) Alert(ctx context.Context, id string) (Alert, []AlertEvent, error) {
	list, err := ask[Alert](ctx, s, "an alert", "SELECT "+alertColumns+" FROM alerts FINAL WHERE alert_id = {id:String} LIMIT 1", args{"id": id})
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Alert{}, nil, err
	}
	events, err := ask[AlertEvent](ctx, s, "what was done about an alert", `
		SELECT event_id, alert_id, at, action, who, comment, tenant FROM alert_events FINAL WHERE alert_id = {id:String}
		ORDER BY at, event_id LIMIT 1000`, args{"id": id})
	return list[0], events, err
}

// ErrReadOnly means that the store has no Writer.
var ErrReadOnly = errors.New("this page may not write: alerts cannot be acknowledged")

// AddAlertEvent stores e. After an error it may or may not be stored; the
// same event may be added again.
func (s *Store) AddAlertEvent(ctx context.Context, e AlertEvent) error {
	if s.c.Writer == nil {
		return ErrReadOnly
	}
	ctx, done := s.limited(ctx)
	defer done()
	b, err := s.c.Writer.PrepareBatch(ctx, "INSERT INTO "+s.c.Database+".alert_events (event_id, alert_id, at, action, who, comment, tenant)")
	if err != nil {
		return fmt.Errorf("recording what was done about an alert: %w", err)
	}
	if err := b.Append(e.ID, e.AlertID, e.At, e.Action, e.Who, e.Comment, e.Tenant); err != nil {
		return fmt.Errorf("recording what was done about an alert: %w", errors.Join(err, b.Abort()))
	}
	if err := b.Send(); err != nil {
		return fmt.Errorf("recording what was done about an alert: %w", err)
	}
	return nil
}

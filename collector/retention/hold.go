package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/schemas/jsontext"
	"auditproxy/sink/clickhouse"

	"github.com/google/uuid"
)

// The kinds of holds.
const (
	HoldTenant  = "tenant"
	HoldSession = "session"
	HoldUser    = "user"
)

// A Hold keeps all records of a tenant, a session or a user.
type Hold struct {
	ID     uuid.UUID `json:"id"`
	Kind   string    `json:"kind"` // HoldTenant, HoldSession, HoldUser
	Value  string    `json:"value"`
	Who    string    `json:"who"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`

	Removed *Removed `json:"removed,omitempty"` // nil: in force
}

// A Removed is the end of a hold.
type Removed struct {
	Who    string    `json:"who"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// String names the hold in messages.
func (h Hold) String() string { return fmt.Sprintf("%s %q", h.Kind, h.Value) }

// ErrNotFound means that there is no such hold, session or user.
var ErrNotFound = errors.New("not found")

// Holds returns the holds in force, or all, in the order of their times.
func Holds(ctx context.Context, db *clickhouse.DB, all bool) ([]Hold, error) {
	list, _, err := holdsNow(ctx, db, all)
	return list, err
}

// holdsNow is Holds, with the condition that no hold was added or removed since.
// Statements that remove rows have it, since what is before them may take long, and a
// process may be stopped between looking at holds and removing: then they remove nothing.
func holdsNow(ctx context.Context, db *clickhouse.DB, all bool) (list []Hold, same string, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	var events []struct {
		ID     uuid.UUID `ch:"hold_id"`
		At     time.Time `ch:"at"`
		Action string    `ch:"action"`
		Kind   string    `ch:"kind"`
		Value  string    `ch:"value"`
		Who    string    `ch:"who"`
		Reason string    `ch:"reason"`
		Event  uuid.UUID `ch:"event_id"`
	}
	err = db.Conn().Select(ctx, &events, "SELECT hold_id, at, action, kind, value, who, reason, event_id FROM "+db.Name()+".hold_events FINAL ORDER BY action, at, event_id")
	if err != nil {
		return nil, "", clickhouse.Classify("reading holds", err)
	}
	known := map[uuid.UUID]bool{}
	for _, e := range events {
		known[e.Event] = true
		i := slices.IndexFunc(list, func(h Hold) bool { return h.ID == e.ID })
		switch { // added comes before removed, whatever the clocks were
		case i < 0 && e.Action == "added":
			list = append(list, Hold{ID: e.ID, Kind: e.Kind, Value: e.Value, Who: e.Who, Reason: e.Reason, At: e.At})
		case i >= 0 && e.Action == "removed" && list[i].Removed == nil:
			list[i].Removed = &Removed{e.Who, e.Reason, e.At}
		}
	}
	if !all {
		list = slices.DeleteFunc(list, func(h Hold) bool { return h.Removed != nil })
	}
	return list, fmt.Sprintf("(SELECT uniqExact(event_id) FROM %s.hold_events) = %d", db.Name(), len(known)), nil
}

// still reports whether a condition of holdsNow is true.
func still(ctx context.Context, db *clickhouse.DB, condition string) (bool, error) {
	_, now, err := holdsNow(ctx, db, false)
	return now == condition, err
}

// AddHold stores a new hold. Two that are added at once may be about the same;
// then both are in force until they are removed.
func AddHold(ctx context.Context, db *clickhouse.DB, h Hold) error {
	return writeHold(ctx, db, h, "added", h.Who, h.Reason, h.At)
}

// RemoveHold ends a hold.
func RemoveHold(ctx context.Context, db *clickhouse.DB, h Hold, by Removed) error {
	return writeHold(ctx, db, h, "removed", by.Who, by.Reason, by.At)
}

func writeHold(ctx context.Context, db *clickhouse.DB, h Hold, action, who, reason string, at time.Time) error {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	return db.Exec(ctx, "writing a hold", "INSERT INTO ${database}.hold_events (hold_id, at, action, kind, value, who, reason, event_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
		quote(h.ID.String()), literal(at), quote(action), quote(h.Kind), quote(h.Value), quote(who), quote(reason), quote(uuid.NewString()))
}

// Records returns how many records a hold covers now. It returns ErrNotFound if
// nothing is known of a session or a user: the name may be mistyped.
func (h Hold) Records(ctx context.Context, db *clickhouse.DB) (uint64, error) {
	ctx, cancel := db.Long(ctx)
	defer cancel()
	column := map[string]string{HoldTenant: "tenant", HoldSession: "session_id", HoldUser: "user"}[h.Kind]
	var records, others uint64
	condition := column + " = " + quote(h.Value)
	sql := fmt.Sprintf("SELECT (SELECT count() FROM %[1]s.events WHERE %[2]s), (SELECT count() FROM %[1]s.session_states WHERE %[2]s)", db.Name(), condition)
	if h.Kind == HoldSession {
		sql += fmt.Sprintf(" + (SELECT count() FROM %s.dead_letters WHERE kafka_key = %s)", db.Name(), quote(h.Value))
	}
	if err := db.Conn().QueryRow(ctx, sql).Scan(&records, &others); err != nil {
		return 0, clickhouse.Classify("looking for records", err)
	}
	if records+others == 0 && h.Kind != HoldTenant {
		return 0, fmt.Errorf("there are no records of %v: %w", h, ErrNotFound)
	}
	return records, nil
}

// The conditions of an erasure on what is under a hold as well. An erasure knows
// whose rows it is about, so only what a row says counts. They are "" without one.

// heldAlerts is the one on alerts, which may be about several sessions.
func heldAlerts(database string, holds []Hold) string {
	held := table{tenant: "tenant", session: "session_id", user: "user"}.held(database, holds)
	if sessions := heldBy(holds, HoldSession); len(sessions) > 0 {
		held += " OR " + mentions("details", sessions)
	}
	return held
}

// heldLetters is the one on dead letters, as far as these can be read.
func heldLetters(holds []Hold) string {
	var list []string
	if tenants := heldBy(holds, HoldTenant); len(tenants) > 0 {
		list = append(list, "JSONExtractString(raw, 'tenant') IN ("+quoted(tenants)+")")
	}
	if sessions := heldBy(holds, HoldSession); len(sessions) > 0 {
		list = append(list, "kafka_key IN ("+quoted(sessions)+")", mentions("raw", sessions))
	}
	if users := heldBy(holds, HoldUser); len(users) > 0 {
		list = append(list, letterOf(users))
	}
	return strings.Join(list, " OR ")
}

// unheld is the clause for rows of erased_sessions that no hold is on; "" without
// a hold.
func unheld(database string, holds []Hold) string {
	held := table{tenant: "tenant", session: "session_id", user: "user"}.held(database, holds)
	if held == "" {
		return ""
	}
	// A row has one of its session's tenants.
	held = fmt.Sprintf("session_id IN (SELECT session_id FROM %s.session_states WHERE %s)", database, held)
	if sessions := heldBy(holds, HoldSession); len(sessions) > 0 {
		held += " OR session_id IN (" + quoted(sessions) + ")"
	}
	if tenants := heldBy(holds, HoldTenant); len(tenants) > 0 {
		held += " OR tenant IN (" + quoted(tenants) + ")"
	}
	if users := heldBy(holds, HoldUser); len(users) > 0 {
		held += fmt.Sprintf(" OR erasure_id IN (SELECT erasure_id FROM %s.erasures WHERE kind = %s AND value IN (%s))", database, quote(HoldUser), quoted(users))
	}
	return " WHERE NOT (" + held + ")"
}

// notAlso is the condition that rows are not held.
func notAlso(held string) string {
	if held == "" {
		return ""
	}
	return " AND NOT (" + held + ")"
}

// mentions is the condition that a column has one of texts. multiSearchAny takes
// 255 at most.
func mentions(column string, texts []string) string {
	return "arrayExists(text -> position(" + column + ", text) > 0, [" + quoted(texts) + "])"
}

// letterOf is the condition on dead letters that name one of users as a record's
// user.
func letterOf(users []string) string {
	var texts []string
	for _, u := range users {
		texts = append(texts, string(jsontext.AppendQuote([]byte(`"user":`), u)))
	}
	return "JSONExtractString(raw, 'user') IN (" + quoted(users) + ") OR " + mentions("raw", texts)
}

// heldBy returns what is under the holds of a kind.
func heldBy(holds []Hold, kind string) (values []string) {
	for _, h := range holds {
		if h.Kind == kind {
			values = append(values, h.Value)
		}
	}
	return values
}

// everything is the condition that holds all rows.
const everything = "1"

// held is the condition on rows under a hold, "" without one. A row that does not
// say whose it is may be about what is held, so it is held too.
func (t table) held(database string, holds []Hold) string {
	if len(holds) == 0 || t.own {
		return ""
	}
	values := map[string][]string{}
	for _, kind := range []string{HoldTenant, HoldSession, HoldUser} {
		values[kind] = heldBy(holds, kind)
	}
	in := func(column, kind string) string { return column + " IN (" + quoted(values[kind]) + ")" }
	var list []string
	if len(values[HoldTenant]) > 0 {
		if t.tenant == "" {
			return everything
		}
		list = append(list, in(t.tenant, HoldTenant))
	}
	if len(values[HoldSession]) > 0 {
		if t.session == "" {
			return everything
		}
		list = append(list, in(t.session, HoldSession))
	}
	if len(values[HoldUser]) > 0 {
		if t.session == "" || t.letters {
			return everything
		}
		if t.user != "" {
			list = append(list, in(t.user, HoldUser))
		}
		// A row that says no user is its session's.
		list = append(list, fmt.Sprintf("%s IN (SELECT session_id FROM %s.session_states WHERE %s)", t.session, database, in("user", HoldUser)))
	}
	if len(values[HoldSession]) > 0 && t.letters {
		// What is not a record may name its session only in its text.
		list = append(list, mentions("raw", values[HoldSession]))
	}
	if len(values[HoldSession])+len(values[HoldUser]) > 0 && (t.name == "alerts" || t.name == "alert_desk") {
		list = append(list, t.session+" = ''") // about several sessions
	}
	return strings.Join(list, " OR ")
}

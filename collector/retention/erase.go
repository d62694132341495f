package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// silentFor is how long a session without an end must have sent nothing to count
// as over, by the collector's clock: its host may be gone.
const silentFor = 24 * time.Hour

// PlanErasure completes e with what it would erase. It returns ErrNotFound if
// nothing is known of the session or user, ErrHeld, ErrTenants or ErrRuns.
func PlanErasure(ctx context.Context, db *clickhouse.DB, e Erasure) (Erasure, error) {
	x := &eraser{db: db, e: e}
	if err := x.find(ctx); err != nil {
		return e, err
	}
	if err := x.checkHolds(ctx); err != nil {
		return e, err
	}
	if err := x.checkEnded(ctx); err != nil {
		return e, err
	}
	if err := x.places(ctx); err != nil {
		return e, err
	}
	steps, err := x.steps(ctx)
	if err != nil {
		return e, err
	}
	if x.e.Rows, err = x.count(ctx, steps); err != nil {
		return e, err
	}
	return x.e, x.resume(ctx)
}

// resume makes the erasure the one of the same that was interrupted, if there is
// one: that knew more.
func (x *eraser) resume(ctx context.Context) error {
	var was []struct {
		ID     uuid.UUID         `ch:"erasure_id"`
		At     time.Time         `ch:"at"`
		Who    string            `ch:"who"`
		Reason string            `ch:"reason"`
		Rows   map[string]uint64 `ch:"rows"`
		Places string            `ch:"places"`
	}
	err := x.query(ctx, "looking for an interrupted erasure", &was, "SELECT erasure_id, at, who, reason, rows, places FROM ${database}.erasures FINAL WHERE kind = %s AND value = %s AND tenant = %s AND "+undone+" ORDER BY at LIMIT 1",
		quote(x.e.Kind), quote(x.e.Value), quote(x.e.Tenant))
	if err != nil || len(was) == 0 {
		return err
	}
	x.e.ID, x.e.At, x.e.Who, x.e.Reason = was[0].ID, was[0].At, was[0].Who, was[0].Reason
	for table, n := range was[0].Rows {
		x.e.Rows[table] = max(x.e.Rows[table], n)
	}
	return json.Unmarshal([]byte(was[0].Places), &x.e.Places)
}

// Erase erases what PlanErasure found, and calls progress after each of its
// parts with their number. settle is how long it waits for records that
// collectors, which do not know of it yet, still store.
//
// The sessions are in erased_sessions first, so collectors refuse what arrives
// again. After a crash the erasure is not done: erasing the same again completes
// it.
func Erase(ctx context.Context, db *clickhouse.DB, e Erasure, settle time.Duration, progress func(of int)) (Erasure, error) {
	x := &eraser{db: db, e: e}
	if err := x.checkHolds(ctx); err != nil {
		return e, err
	}
	if err := x.record(ctx, time.Time{}); err != nil {
		return e, err
	}
	for chunk := range slices.Chunk(e.Sessions, 1000) {
		var values []string
		for _, s := range chunk {
			values = append(values, fmt.Sprintf("(%s, %s, %s, %s)", quote(s.ID), quote(s.Tenant), quote(e.ID.String()), literal(e.At)))
		}
		if err := x.exec(ctx, "writing which sessions are erased", "INSERT INTO ${database}.erased_sessions (session_id, tenant, erasure_id, at) VALUES %s", strings.Join(values, ", ")); err != nil {
			return e, err
		}
	}
	x.written = true
	steps, err := x.steps(ctx)
	if err != nil {
		return e, err
	}
	for range passes {
		for i := range steps {
			before := x.holds
			if err := x.checkHolds(ctx); err != nil {
				return e, fmt.Errorf("stopping before table %q: %w", steps[i].table, err)
			}
			if x.holds != before { // rows that are also about something else may be held now
				if steps, err = x.steps(ctx); err != nil {
					return e, err
				}
			}
			if err := x.step(ctx, steps[i]); err != nil {
				return e, err
			}
			progress(len(steps))
		}
		if err := wait.For(ctx, settle); err != nil {
			return e, err
		}
		left, err := x.count(ctx, steps)
		if err != nil {
			return e, err
		}
		if len(left) == 0 {
			x.e.Done = true
			return x.e, x.record(ctx, time.Now())
		}
	}
	return e, errors.New("records arrive while they are erased: erase again when all collectors run this version")
}

// passes is how often rows that arrived meanwhile are erased again.
const passes = 3

// find finds the sessions.
func (x *eraser) find(ctx context.Context) error {
	x.e.Sessions = nil
	if err := x.query(ctx, "looking for sessions", &x.e.Sessions, "%s", x.found()+" ORDER BY session_id, tenant"); err != nil {
		return err
	}
	if err := x.findOthers(ctx); err != nil {
		return err
	}
	if len(x.e.Sessions) == 0 {
		letters, err := x.count(ctx, []step{{table: "dead_letters", where: x.letters(nil)}})
		if err == nil && len(letters) == 0 && x.e.Unseen {
			return x.addUnseen()
		}
		if err == nil && len(letters) == 0 {
			err = fmt.Errorf("there are no records of %s %q%s: %w", x.e.Kind, x.e.Value, x.elsewhere(), ErrNotFound)
		}
		return err
	}
	if tenants := x.tenants(); x.e.Kind == HoldUser && len(tenants) > 1 {
		return fmt.Errorf("user %q is %w, %s: name one with --tenant", x.e.Value, ErrTenants, few(tenants))
	}
	if x.e.Kind == HoldUser {
		if err := x.findShared(ctx); err != nil {
			return err
		}
	}
	if x.e.Kind == HoldSession && !x.oneTenant() {
		return nil
	}
	// Who writes to a topic can claim the session of another tenant.
	var others []Session
	err := x.query(ctx, "looking for tenants", &others, "SELECT DISTINCT session_id, tenant FROM ${database}.session_states WHERE tenant NOT IN (%s) AND session_id IN (%s) ORDER BY session_id LIMIT 1", quoted(x.tenants()), x.sessions())
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("session %q is %w, also %q: erase it first, with --session and without --tenant, if it is to be erased in all", others[0].ID, ErrTenants, others[0].Tenant)
	}
	return err
}

// findShared finds one of the user's sessions that has records of another user.
func (x *eraser) findShared(ctx context.Context) error {
	var shared []SharedSession
	where := fmt.Sprintf("WHERE session_id IN (%s) AND user NOT IN ('', %s)", x.sessions(), quote(x.e.Value))
	err := x.query(ctx, "looking for other users", &shared, "SELECT session_id, user FROM (SELECT session_id, user FROM ${database}.events %[1]s UNION ALL SELECT session_id, user FROM ${database}.session_states %[1]s) ORDER BY session_id, user LIMIT 1", where)
	if x.e.Shared = nil; len(shared) > 0 {
		x.e.Shared = &shared[0]
	}
	return err
}

// few writes the first of a list that a producer can make as long as it likes.
func few(list []string) string {
	const most = 20
	if len(list) <= most {
		return fmt.Sprintf("%q", list)
	}
	return fmt.Sprintf("%q and %d more", list[:most], len(list)-most)
}

// findOthers finds the other tenants of the user.
func (x *eraser) findOthers(ctx context.Context) error {
	x.e.Others = nil
	if x.e.Kind != HoldUser || !x.oneTenant() {
		return nil
	}
	all := *x
	all.e.Tenant, all.e.NoTenant = "", false
	var others []struct {
		Tenant string `ch:"tenant"`
	}
	err := x.query(ctx, "looking for other tenants of the user", &others, "SELECT DISTINCT tenant FROM (%s) WHERE tenant != %s ORDER BY tenant", all.found(), quote(x.e.Tenant))
	for _, o := range others {
		x.e.Others = append(x.e.Others, o.Tenant)
	}
	return err
}

// elsewhere says in which tenants the user has sessions.
func (x *eraser) elsewhere() string {
	if len(x.e.Others) == 0 {
		return ""
	}
	return fmt.Sprintf(" in tenant %q, only in %s", x.e.Tenant, few(x.e.Others))
}

// addUnseen makes a session that never arrived the one that is erased: its records are
// refused when they arrive. It must have begun long enough ago to be over, as far as
// that can be known.
func (x *eraser) addUnseen() error {
	id := x.e.Value
	began := audit.TimeOfID(id)
	parsed, err := uuid.Parse(id)
	switch {
	case x.e.Kind != HoldSession || err != nil || parsed.String() != id || began.IsZero():
		return fmt.Errorf("%q is not the id of a session: %w", id, ErrNotFound)
	case x.e.At.Sub(began) < silentFor:
		return fmt.Errorf("session %q began at %s and may be %w, and what it does later would be refused too: wait until a day has passed", id, began.UTC().Format(time.DateTime), ErrRuns)
	}
	x.unseen, x.e.Sessions = true, []Session{{id, x.e.Tenant}}
	return nil
}

// checkEnded returns ErrRuns if one of the sessions goes on.
func (x *eraser) checkEnded(ctx context.Context) error {
	var running []Session
	err := x.query(ctx, "looking for running sessions", &running, "SELECT session_id, tenant FROM ${database}.session_states WHERE session_id IN (%s) GROUP BY session_id, tenant HAVING max(ended) = 0 AND max(last_ingested) > %s ORDER BY session_id LIMIT 1",
		x.sessions(), literal(x.e.At.Add(-silentFor)))
	if err == nil && len(running) > 0 {
		err = fmt.Errorf("session %q is %w, and what it does later would be refused too: end it first, or wait until it has sent nothing for a day", running[0].ID, ErrRuns)
	}
	return err
}

// checkHolds returns ErrHeld if a hold is on any of the sessions, or on a tenant
// or a user of theirs.
func (x *eraser) checkHolds(ctx context.Context) error {
	holds, same, err := holdsNow(ctx, x.db, false)
	if err != nil {
		return err
	}
	x.holds = same
	if len(holds) == 0 {
		return nil
	}
	if x.users == nil {
		// Later their records are gone.
		var users []struct {
			User string `ch:"user"`
		}
		in := "session_id IN (" + x.sessions() + ")"
		err := x.query(ctx, "looking for users", &users, "%s", "SELECT DISTINCT user FROM "+x.db.Name()+".events WHERE "+in+" UNION DISTINCT SELECT DISTINCT user FROM "+x.db.Name()+".session_states WHERE "+in)
		if err != nil {
			return err
		}
		x.users = []string{}
		for _, u := range users {
			x.users = append(x.users, u.User)
		}
	}
	tenants := x.tenants()
	for _, h := range holds {
		held := false
		switch h.Kind {
		case HoldTenant:
			held = slices.Contains(tenants, h.Value)
		case HoldSession:
			held = slices.ContainsFunc(x.e.Sessions, func(s Session) bool { return s.ID == h.Value })
		default:
			held = x.e.Kind == HoldUser && x.e.Value == h.Value || slices.Contains(x.users, h.Value)
		}
		if x.unseen && h.Kind != HoldSession {
			return fmt.Errorf("session %q may be %w, on %v: whose it is cannot be known before it arrives: wait for that", x.e.Value, ErrHeld, h)
		}
		if held {
			return fmt.Errorf("%v is %w of %q since %s: %s: remove it first", h, ErrHeld, h.Who, h.At.Format(time.DateTime), h.ID)
		}
	}
	return nil
}

// places finds where the records came from.
func (x *eraser) places(ctx context.Context) error {
	const doing = "looking where records came from"
	db, sessions := x.db.Name(), x.sessions()
	err := x.query(ctx, doing, &x.e.Places.Kafka, "%s", "SELECT kafka_topic, kafka_partition, min(kafka_offset) AS first, max(kafka_offset) AS last, count() AS n FROM ("+
		"SELECT toString(kafka_topic) AS kafka_topic, kafka_partition, kafka_offset FROM "+db+".events WHERE session_id IN ("+sessions+")"+
		" UNION ALL SELECT kafka_topic, kafka_partition, kafka_offset FROM "+db+".dead_letters WHERE kafka_key IN ("+sessions+")"+
		") WHERE kafka_topic != "+quote(ingest.SpoolTopic)+" GROUP BY kafka_topic, kafka_partition ORDER BY kafka_topic, kafka_partition")
	if err != nil {
		return err
	}
	return x.query(ctx, doing, &x.e.Places.Spools, "%s", "SELECT DISTINCT host, session_id FROM "+db+".session_states WHERE session_id IN ("+sessions+") ORDER BY host, session_id")
}

// record writes the erasure itself.
func (x *eraser) record(ctx context.Context, done time.Time) error {
	places, err := json.Marshal(x.e.Places)
	if err != nil {
		return err
	}
	var counts []string
	for table, n := range x.e.Rows {
		counts = append(counts, fmt.Sprintf("%s, %d", quote(table), n))
	}
	slices.Sort(counts)
	return x.exec(ctx, "recording the erasure", "INSERT INTO ${database}.erasures (erasure_id, at, kind, value, tenant, who, reason, rows, places, done_at) VALUES (%s, %s, %s, %s, %s, %s, %s, map(%s), %s, %s)",
		quote(x.e.ID.String()), literal(x.e.At), quote(x.e.Kind), quote(x.e.Value), quote(x.e.Tenant), quote(x.e.Who), quote(x.e.Reason), strings.Join(counts, ", "), quote(string(places)), literal(done))
}

// eraseAgain erases what arrived of erased sessions in spite of that, as through
// a collector that did not know of it, but for those that a hold is on meanwhile.
func (c Config) eraseAgain(ctx context.Context) error {
	holds, same, err := holdsNow(ctx, c.DB, false)
	if err != nil {
		return err
	}
	x := &eraser{db: c.DB, unheld: unheld(c.DB.Name(), holds), holds: same}
	left := map[string]string{"session_states": "1", "alerts": "1" + notAlso(heldAlerts(c.DB.Name(), holds)), "dead_letters": "raw != ''" + notAlso(heldLetters(holds))}
	var found uint64
	for _, table := range slices.Sorted(maps.Keys(left)) {
		column := "session_id"
		if table == "dead_letters" {
			column = "kafka_key"
		}
		rows, err := x.count(ctx, []step{{table: table, where: column + " IN (" + x.sessions() + ") AND " + left[table]}})
		if err != nil {
			return err
		}
		found += rows[table]
	}
	if found == 0 {
		return nil
	}
	c.Log.Warn("rows of erased sessions arrived and are erased again", zap.Uint64("rows", found))
	steps, err := x.steps(ctx)
	if err != nil {
		return err
	}
	for _, s := range steps {
		// What a new hold is not on is erased by the next run.
		if now, err := still(ctx, c.DB, same); err != nil || !now {
			return err
		}
		if err := x.step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

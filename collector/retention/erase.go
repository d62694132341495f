package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// An Erasure is what is to be erased: a session, or all sessions of a user.
type Erasure struct {
	ID       uuid.UUID `json:"id"`
	Kind     string    `json:"kind"` // HoldSession, HoldUser
	Value    string    `json:"value"`
	Tenant   string    `json:"tenant,omitempty"` // only this tenant's; "" for all
	NoTenant bool      `json:"-"`                // only what has no tenant; Tenant is ""
	Who      string    `json:"who"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`

	Sessions []Session         `json:"sessions"`
	Rows     map[string]uint64 `json:"rows"` // by table
	Places   Places            `json:"places"`
	Done     bool              `json:"done"`
}

// A Session is one that is erased.
type Session struct {
	ID     string `json:"id" ch:"session_id"`
	Tenant string `json:"tenant,omitempty" ch:"tenant"`
}

// Places are where the records of an erasure came from. These may have them still.
type Places struct {
	Kafka  []KafkaPlace `json:"kafka,omitempty"`
	Spools []SpoolPlace `json:"spools,omitempty"`
}

// A KafkaPlace is a part of a topic.
type KafkaPlace struct {
	Topic     string `json:"topic" ch:"kafka_topic"`
	Partition uint32 `json:"partition" ch:"kafka_partition"`
	From      uint64 `json:"from" ch:"first"`
	To        uint64 `json:"to" ch:"last"`
	Records   uint64 `json:"records" ch:"n"`
}

// A SpoolPlace is a session in the spool of a host.
type SpoolPlace struct {
	Host    string `json:"host" ch:"host"`
	Session string `json:"session" ch:"session_id"`
}

// ErrHeld means that a hold is on what is to be erased.
var ErrHeld = errors.New("under a hold")

// ErrTenants means that a user or a session has records in several tenants.
var ErrTenants = errors.New("in several tenants")

// ErrRuns means that a session goes on: what its agent does later would be
// refused as well, and so go unseen.
var ErrRuns = errors.New("still running")

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

// undone is the condition on an erasure that was interrupted.
const undone = "done_at = toDateTime64(0, 3, 'UTC')"

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
		for _, s := range steps {
			if err := x.checkHolds(ctx); err != nil {
				return e, fmt.Errorf("stopping before table %q: %w", s.table, err)
			}
			if err := x.step(ctx, s); err != nil {
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

// An eraser erases one erasure, or with the nil id everything that was ever
// erased and is there again.
type eraser struct {
	db      *clickhouse.DB
	e       Erasure
	written bool // the sessions are in erased_sessions

	users  []string // of the sessions; nil: not known
	unheld string   // with the nil id, the clause for sessions that no hold is on
}

func (x *eraser) exec(ctx context.Context, doing, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return x.db.Exec(ctx, doing, format, args...)
}

func (x *eraser) query(ctx context.Context, doing string, to any, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	sql := strings.ReplaceAll(format, "${database}", x.db.Name())
	return clickhouse.Classify(doing, x.db.Conn().Select(ctx, to, fmt.Sprintf(sql, args...)))
}

// oneTenant reports whether only one tenant's records are to be erased.
func (x *eraser) oneTenant() bool { return x.e.Tenant != "" || x.e.NoTenant }

// found is the query for the sessions.
func (x *eraser) found() string {
	db, column := x.db.Name(), map[string]string{HoldSession: "session_id", HoldUser: "user"}[x.e.Kind]
	tenant := ""
	if x.oneTenant() {
		tenant = " AND tenant = " + quote(x.e.Tenant)
	}
	where := " WHERE " + column + " = " + quote(x.e.Value) + tenant
	var parts []string
	for _, table := range []string{"events", "session_states", "alerts"} {
		parts = append(parts, "SELECT session_id, tenant FROM "+db+"."+table+where+" AND session_id != ''")
	}
	if x.e.Kind == HoldSession {
		parts = append(parts, "SELECT session_id, tenant FROM "+db+".erased_sessions"+where,
			"SELECT kafka_key AS session_id, "+quote(x.e.Tenant)+" AS tenant FROM "+db+".dead_letters WHERE kafka_key = "+quote(x.e.Value)+" AND kafka_key NOT IN (SELECT session_id FROM "+db+".session_states"+where+")")
	}
	parts = append(parts, "SELECT session_id, tenant FROM "+db+".erased_sessions WHERE erasure_id IN (SELECT erasure_id FROM "+db+".erasures FINAL WHERE kind = "+
		quote(x.e.Kind)+" AND value = "+quote(x.e.Value)+" AND tenant = "+quote(x.e.Tenant)+" AND "+undone+")"+tenant)
	return "SELECT DISTINCT session_id, tenant FROM (" + strings.Join(parts, " UNION ALL ") + ")"
}

// find finds the sessions.
func (x *eraser) find(ctx context.Context) error {
	x.e.Sessions = nil
	if err := x.query(ctx, "looking for sessions", &x.e.Sessions, "%s", x.found()+" ORDER BY session_id, tenant"); err != nil {
		return err
	}
	if len(x.e.Sessions) == 0 {
		letters, err := x.count(ctx, []step{{table: "dead_letters", where: x.letters(nil)}})
		if err == nil && len(letters) == 0 {
			err = fmt.Errorf("there are no records of %s %q: %w", x.e.Kind, x.e.Value, ErrNotFound)
		}
		return err
	}
	if tenants := x.tenants(); x.e.Kind == HoldUser && len(tenants) > 1 {
		return fmt.Errorf("user %q is %w, %q: name one with --tenant", x.e.Value, ErrTenants, tenants)
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

func (x *eraser) tenants() (list []string) {
	for _, s := range x.e.Sessions {
		list = append(list, s.Tenant)
	}
	slices.Sort(list)
	return slices.Compact(list)
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
	holds, err := Holds(ctx, x.db, false)
	if err != nil || len(holds) == 0 {
		return err
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

// A step erases from one table.
type step struct {
	table string
	where string

	// Of a table that keeps what several sessions have in common: the statement
	// that fills it again with what the others say.
	again string

	before string // a statement for before

	// The collector fills it again from what is left, so there may be rows after.
	refilled bool
}

// sessions is a subquery for the sessions.
func (x *eraser) sessions() string {
	switch {
	case x.e.ID == uuid.Nil:
		return "SELECT session_id FROM " + x.db.Name() + ".erased_sessions" + x.unheld
	case x.written:
		return "SELECT session_id FROM " + x.db.Name() + ".erased_sessions WHERE erasure_id = " + quote(x.e.ID.String())
	}
	return "SELECT session_id FROM (" + x.found() + ")"
}

// steps returns how to erase, in the order in which a crash leaves what a
// repetition needs: what is found by other rows comes before these, and what is
// filled from records after them.
func (x *eraser) steps(ctx context.Context) ([]step, error) {
	holds, err := Holds(ctx, x.db, false)
	if err != nil {
		return nil, err
	}
	db, in := x.db.Name(), "session_id IN ("+x.sessions()+")"
	letters := step{table: "dead_letters", where: x.letters(holds)}
	if len(x.e.Sessions) == 0 && x.e.ID != uuid.Nil {
		return []step{letters}, nil
	}
	user := ""
	if x.e.Kind == HoldUser {
		user = " OR user = " + quote(x.e.Value) + " AND tenant IN (" + quoted(x.tenants()) + ")"
	}
	alerts := "(" + in + " OR arrayExists(s -> position(details, s) > 0, " + x.ids() + ")" + user + ")" + notAlso(heldAlerts(db, holds))
	list := []step{
		{table: "alert_events", where: "alert_id IN (SELECT alert_id FROM " + db + ".alerts WHERE " + alerts + ")"},
		{table: "alert_deliveries", where: "alert_id IN (SELECT alert_id FROM " + db + ".alerts WHERE " + alerts + ")"},
		{table: "alerts", where: alerts},
		letters,
	}
	shared, err := x.shared(ctx, in, user)
	if err != nil {
		return nil, err
	}
	list = append(list, shared...)
	own, err := x.ownTables(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range own {
		s := step{table: table, where: in}
		if table == "events" {
			s.before = keepLeaves(db, in)
		}
		list = append(list, s)
	}
	// What rules have seen they see again in what is left, as a new rule does.
	tenants := "tenant IN (SELECT tenant FROM " + db + ".erased_sessions)"
	return append(list, step{table: "first_seen", where: tenants, refilled: true}, step{table: "alert_marks", where: "kind = 'seen'", refilled: true}), nil
}

// ids is an array of the sessions.
func (x *eraser) ids() string {
	return "(SELECT groupUniqArray(session_id) FROM (" + x.sessions() + "))"
}

// letters is the condition on dead letters of the sessions or the user. One
// without a text was refused because its session is erased.
func (x *eraser) letters(holds []Hold) string {
	of := "kafka_key IN (" + x.sessions() + ") OR arrayExists(s -> position(raw, s) > 0, " + x.ids() + ")"
	if x.e.Kind == HoldUser {
		named := "(" + letterOf([]string{x.e.Value}) + ")"
		if x.oneTenant() {
			// What is not JSON has no tenant that can be read.
			named += " AND (NOT isValidJSON(raw) OR JSONExtractString(raw, 'tenant') = " + quote(x.e.Tenant) + ")"
		}
		of += " OR " + named
	}
	return "raw != '' AND (" + of + ")" + notAlso(heldLetters(holds))
}

// ownTables returns the tables in which a row is of one session, but for those
// that need more, and those without content.
func (x *eraser) ownTables(ctx context.Context) (list []string, err error) {
	var tables []struct {
		Name string `ch:"name"`
	}
	err = x.query(ctx, "looking for tables", &tables, `SELECT name FROM system.tables WHERE database = %[1]s AND engine LIKE '%%MergeTree'
		AND name NOT IN ('alerts', 'gaps', 'erased_sessions', 'leaves', 'leaves_local')
		AND name IN (SELECT table FROM system.columns WHERE database = %[1]s AND name = 'session_id') ORDER BY name`, quote(x.db.Name()))
	for _, t := range tables {
		list = append(list, strings.TrimSuffix(t.Name, "_local"))
	}
	// It says that there is something left.
	if i := slices.Index(list, "session_states"); i >= 0 {
		list = append(slices.Delete(list, i, i+1), "session_states")
	}
	return list, err
}

// reads finds the table that a view reads, as the server prints it.
var reads = regexp.MustCompile(`FROM \w+\.(events|review_intake)(?:_local)?\b`)

// shared returns the steps for the tables that views fill with what sessions have
// in common. A row of the same key as an erased record is deleted, and filled again
// from the records that stay. of is the condition on erased records, user another
// one on rows.
func (x *eraser) shared(ctx context.Context, of, user string) (list []step, err error) {
	var views []struct {
		Name   string `ch:"name"`
		Select string `ch:"as_select"`
		Create string `ch:"create_table_query"`
	}
	err = x.query(ctx, "looking for views", &views, "SELECT name, as_select, create_table_query FROM system.tables WHERE database = %s AND engine = 'MaterializedView' ORDER BY name", quote(x.db.Name()))
	if err != nil {
		return nil, err
	}
	intake := ""
	for _, v := range views {
		if v.Name == "review_feed" {
			intake = v.Select
		}
	}
	from := func(query, condition string) string {
		records := "FROM (SELECT * FROM " + x.db.Name() + ".events WHERE " + condition + ")"
		return reads.ReplaceAllStringFunc(query, func(read string) string {
			if strings.Contains(read, "review_intake") {
				return "FROM (" + reads.ReplaceAllLiteralString(intake, records) + ")"
			}
			return records
		})
	}
	for _, v := range views {
		target := targetOf(v.Create)
		columns, err := x.columns(ctx, v.Name, target)
		if err != nil {
			return nil, err
		}
		if len(columns.keys) == 0 || slices.Contains(columns.of, "session_id") {
			continue
		}
		keys, erased := "("+strings.Join(columns.keys, ", ")+")", from(v.Select, of)
		where := keys + " IN (SELECT " + keys + " FROM (" + erased + "))"
		common := "tenant IN (" + quoted(x.tenants()) + ") AND hasAny(ops, (SELECT groupUniqArrayArray(ops) FROM " + x.db.Name() + ".events WHERE " + of + "))"
		if x.e.ID == uuid.Nil {
			common = "hasAny(ops, (SELECT groupUniqArrayArray(ops) FROM " + x.db.Name() + ".events WHERE " + of + "))"
		}
		s := step{table: target, where: where, again: fmt.Sprintf("INSERT INTO %s.%s (%s) SELECT %[3]s FROM (%[4]s) WHERE %[5]s", x.db.Name(), target,
			strings.Join(columns.view, ", "), from(v.Select, "NOT ("+of+") AND "+common), where)}
		if slices.Contains(columns.of, "user") {
			s.where += user
		}
		list = append(list, s)
	}
	return list, nil
}

// targetOf returns the table that a view fills.
func targetOf(create string) string {
	_, rest, _ := strings.Cut(create, " TO ")
	name, _, _ := strings.Cut(rest, " ")
	_, table, _ := strings.Cut(name, ".")
	return strings.TrimSuffix(table, "_local")
}

// A columns is the columns of a view, and of the table it fills.
type columns struct{ view, of, keys []string }

func (x *eraser) columns(ctx context.Context, view, table string) (c columns, err error) {
	var rows []struct {
		Table string `ch:"table"`
		Name  string `ch:"name"`
		Key   uint8  `ch:"key"`
	}
	err = x.query(ctx, "looking for columns", &rows, "SELECT table, name, is_in_sorting_key AS key FROM system.columns WHERE database = %s AND table IN (%s, %s) ORDER BY table, position",
		quote(x.db.Name()), quote(view), quote(table))
	for _, r := range rows {
		switch {
		case r.Table == view:
			c.view = append(c.view, r.Name)
		case r.Key == 1:
			c.keys = append(c.keys, r.Name)
			fallthrough
		default:
			c.of = append(c.of, r.Name)
		}
	}
	return c, err
}

// step erases from one table. ALTER DELETE, not DELETE: it rewrites the parts
// that have such rows, so their bytes leave the disk, with the parts before, within
// minutes.
func (x *eraser) step(ctx context.Context, s step) error {
	doing := fmt.Sprintf("erasing from %q", s.table)
	if s.before != "" {
		if err := x.exec(ctx, doing, "%s", s.before); err != nil {
			return err
		}
	}
	err := x.exec(ctx, doing, "ALTER TABLE ${database}.%s ${on_cluster} DELETE WHERE %s SETTINGS mutations_sync = 2, allow_nondeterministic_mutations = 1", x.db.Part(s.table), s.where)
	if err != nil || s.again == "" {
		return err
	}
	return x.exec(ctx, doing, "%s", s.again)
}

// count returns the rows that are still to be erased, by table.
func (x *eraser) count(ctx context.Context, steps []step) (map[string]uint64, error) {
	left := map[string]uint64{}
	for _, s := range steps {
		if s.refilled {
			continue
		}
		var n []struct {
			N uint64 `ch:"n"`
		}
		if err := x.query(ctx, fmt.Sprintf("counting rows of %q", s.table), &n, "SELECT count() AS n FROM ${database}.%s WHERE %s", s.table, s.where); err != nil {
			return nil, err
		}
		if n[0].N > 0 {
			left[s.table] += n[0].N
		}
	}
	return left, nil
}

// eraseAgain erases what arrived of erased sessions in spite of that, as through
// a collector that did not know of it, but for those that a hold is on meanwhile.
func (c Config) eraseAgain(ctx context.Context) error {
	holds, err := Holds(ctx, c.DB, false)
	if err != nil {
		return err
	}
	x := &eraser{db: c.DB, unheld: unheld(c.DB.Name(), holds)}
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
		if err := x.step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

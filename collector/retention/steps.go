package retention

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

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

// A step erases from one table.
type step struct {
	table string
	where string

	// Of a table that keeps what several sessions have in common: the statement
	// that fills it again with what the others say.
	again string

	// Of such a table: the condition on rows that are still to be erased, where what it
	// fills again fits the other one. "": the same.
	left string

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
	user, aboutUser := "", ""
	if x.e.Kind == HoldUser {
		user = "user = " + quote(x.e.Value) + " AND tenant IN (" + quoted(x.tenants()) + ")"
		aboutUser = " OR " + user + " AND session_id = ''" // another session began meanwhile
	}
	alerts := "(" + in + " OR arrayExists(s -> position(details, s) > 0, " + x.ids() + ")" + aboutUser + ")" + notAlso(heldAlerts(db, holds))
	list := []step{
		{table: "alert_events", where: "alert_id IN (SELECT alert_id FROM " + db + ".alerts WHERE " + alerts + ")"},
		{table: "alert_deliveries", where: "alert_id IN (SELECT alert_id FROM " + db + ".alerts WHERE " + alerts + ")"},
		{table: "alert_desk", where: "alert_id IN (SELECT alert_id FROM " + db + ".alert_desk WHERE " + alerts + ")"},
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
		AND name NOT IN ('alerts', 'alert_desk', 'gaps', 'erased_sessions', 'leaves', 'leaves_local')
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
// from the records that stay. of is the condition on erased records. user is another
// one on rows, "" for none: also those of records that are here no more. Sessions of the
// user that began meanwhile fill such rows too.
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
	all, err := x.columns(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		target := targetOf(v.Create)
		columns, filled := all[target], all[v.Name].of
		if len(columns.keys) == 0 || slices.Contains(columns.of, "session_id") {
			continue
		}
		keys, erased := "("+strings.Join(columns.keys, ", ")+")", from(v.Select, of)
		where := keys + " IN (SELECT " + keys + " FROM (" + erased + "))"
		common := "tenant IN (" + quoted(x.tenants()) + ") AND hasAny(ops, (SELECT groupUniqArrayArray(ops) FROM " + x.db.Name() + ".events WHERE " + of + "))"
		if x.e.ID == uuid.Nil {
			common = "hasAny(ops, (SELECT groupUniqArrayArray(ops) FROM " + x.db.Name() + ".events WHERE " + of + "))"
		}
		s := step{table: target, where: where}
		if user != "" && slices.Contains(columns.of, "user") {
			s.where += " OR " + user
			s.left = where + " OR " + user + " AND " + keys + " NOT IN (SELECT " + keys + " FROM (" + from(v.Select, "NOT ("+of+") AND "+user) + "))"
			common += " OR " + user
		}
		s.again = fmt.Sprintf("INSERT INTO %s.%s (%s) SELECT %[3]s FROM (%[4]s) WHERE %[5]s", x.db.Name(), target,
			strings.Join(filled, ", "), from(v.Select, "NOT ("+of+") AND ("+common+")"), s.where)
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

// A columns is the columns of a table, or of a view.
type columns struct{ of, keys []string }

// columns returns the columns by table.
func (x *eraser) columns(ctx context.Context) (map[string]columns, error) {
	var rows []struct {
		Table string `ch:"table"`
		Name  string `ch:"name"`
		Key   uint8  `ch:"key"`
	}
	err := x.query(ctx, "looking for columns", &rows, "SELECT table, name, is_in_sorting_key AS key FROM system.columns WHERE database = %s ORDER BY table, position", quote(x.db.Name()))
	all := map[string]columns{}
	for _, r := range rows {
		c := all[r.Table]
		if c.of = append(c.of, r.Name); r.Key == 1 {
			c.keys = append(c.keys, r.Name)
		}
		all[r.Table] = c
	}
	return all, err
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
	where := s.where
	if x.holds != "" && s.again == "" { // what is filled again must have been deleted
		where = "(" + where + ") AND " + x.holds
	}
	err := x.exec(ctx, doing, "ALTER TABLE ${database}.%s ${on_cluster} DELETE WHERE %s SETTINGS mutations_sync = 2, allow_nondeterministic_mutations = 1", x.db.Part(s.table), where)
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
		if err := x.query(ctx, fmt.Sprintf("counting rows of %q", s.table), &n, "SELECT count() AS n FROM ${database}.%s WHERE %s", s.table, cmp.Or(s.left, s.where)); err != nil {
			return nil, err
		}
		if n[0].N > 0 {
			left[s.table] += n[0].N
		}
	}
	return left, nil
}

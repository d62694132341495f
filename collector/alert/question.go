package alert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// operations selects one row for each operation, with the columns of its record, and
// for each of its copies. place is its number in the record.
const operations = "events ARRAY JOIN ops AS operation, ops_args AS operation_args, ops_path AS path, ops_candidate AS candidate, arrayEnumerate(ops) AS place"

// columns are those that rules may group operations by.
var columns = []string{
	"approval_outcome", "call_no", "client_id", "client_name", "client_version", "error_type", "host", "kind", "method", "operation", "operation_args", "outcome",
	"path", "policy_decision", "policy_rule", "risk_category", "risk_level", "server_command", "server_name", "server_version", "session_id", "target", "tenant", "tier", "tool", "tool_hash", "user",
}

var argument = regexp.MustCompile(`^args\.([A-Za-z_][A-Za-z0-9_]*)$`)

// column returns the SQL of a name in a rule: a column, or args.NAME for an
// argument of the operation. It returns "" for another.
func column(name string) string {
	if slices.Contains(columns, name) {
		return name
	}
	if m := argument.FindStringSubmatch(name); m != nil {
		return fmt.Sprintf("if(JSONType(operation_args, '%[1]s') = 'String', JSONExtractString(operation_args, '%[1]s'), JSONExtractRaw(operation_args, '%[1]s'))", m[1])
	}
	return ""
}

// alias returns the column name of a rule's name in a result.
func alias(name string) string {
	return strings.Replace(name, "args.", "args_", 1)
}

// named returns "SQL AS alias" for each name. Every query groups by the
// tenant too, so that tenants do not affect each other.
func named(names []string) string {
	list := []string{"tenant"}
	for _, name := range names {
		if name != "tenant" {
			list = append(list, column(name)+" AS `g_"+alias(name)+"`")
		}
	}
	return strings.Join(list, ", ")
}

// group returns the aliases of names.
func group(names []string) string {
	list := []string{"tenant"}
	for _, name := range names {
		if name != "tenant" {
			list = append(list, "`g_"+alias(name)+"`")
		}
	}
	return strings.Join(list, ", ")
}

// A Question is the query of a rule. Its parameter {since:DateTime64(3)} is the
// arrival time up to which it ran before. The result has the columns of an alert,
// `key` for its identity, and any others, which are details. With `extent` the
// finding is a condition that lasts, see Alert.
type Question struct {
	SQL    string
	Copies bool // it is to see the copies of records, and collapses them where they matter
}

// question returns the query of a rule.
func (r *Rule) question() Question {
	switch {
	case r.Threshold != nil:
		return Question{r.Threshold.question(r.filter(r.Threshold.Where)), true}
	case r.FirstSeen != nil:
		return Question{r.FirstSeen.question(r.filter(r.FirstSeen.Where)), true}
	}
	return Question{r.Query, r.Copies}
}

// filter returns the condition on the operations of r.
func (r *Rule) filter(where string) string {
	kinds := make([]string, len(r.Kinds))
	for i, kind := range r.Kinds {
		kinds[i] = quote(string(kind))
	}
	sql := "kind IN (" + strings.Join(kinds, ", ") + ")"
	if len(r.Operations) > 0 && !slices.Contains(r.Operations, "*") {
		names := make([]string, len(r.Operations))
		for i, name := range r.Operations {
			names[i] = quote(name)
		}
		sql += " AND operation IN (" + strings.Join(names, ", ") + ")"
	}
	if where != "" {
		sql += " AND (" + where + ")"
	}
	return sql
}

var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

func quote(s string) string { return "'" + escapes.Replace(s) + "'" }

// subjects are the columns of an alert that stay if all rows agree on them.
var subjects = []string{"host", "user", "session_id", "operation"}

func agreed() string {
	list := make([]string, len(subjects))
	for i, name := range subjects {
		list[i] = fmt.Sprintf("if(uniqExact(%[1]s) = 1, any(%[1]s), '') AS `%[1]s`", "o."+name)
		list[i] = strings.Replace(list[i], "AS `o.", "AS `", 1)
	}
	return strings.Join(list, ", ")
}

// question counts in the windows in which anything arrived. Of a fleet most groups are
// of few rows, and there are millions of them: they are counted by a hash first, with
// copies, which only make the count larger, and only the rows of those that reach the
// threshold are read whole. Then an operation counts once, by its place in its session.
// FINAL would take most of the time, and memory for each part of the table.
func (t *Threshold) question(filter string) string {
	seconds := int64(t.Within / time.Second)
	window := fmt.Sprintf("toStartOfInterval(ts, INTERVAL %d SECOND, 'UTC')", seconds)
	rows := fmt.Sprintf(`
    SELECT %[1]s, %[2]s AS window, host, user, session_id, operation, bitShiftLeft(seq, 16) + least(place, 65535) AS number
    FROM %[3]s
    WHERE %[4]s AND ts >= (SELECT min(%[2]s) FROM events WHERE ingested_at > {since:DateTime64(3)})
      AND (tenant, %[2]s) IN (SELECT DISTINCT tenant, %[2]s FROM events WHERE ingested_at > {since:DateTime64(3)})`,
		named(t.By), window, operations, filter)
	return fmt.Sprintf(`
WITH (
    SELECT tuple(groupArray(hash), if(count() = 0, toDateTime64('2262-01-01 00:00:00', 6, 'UTC'), toDateTime64(min(began), 6, 'UTC')))
    FROM (SELECT cityHash64(%[1]s, window) AS hash, min(window) AS began FROM (%[2]s) GROUP BY hash HAVING count() >= %[3]d)
) AS reached
SELECT %[1]s, window AS ts, window + INTERVAL %[4]d SECOND AS window_to, sum(o.operations) AS count, %[5]s,
       toString(tuple(%[1]s, toUnixTimestamp(window))) AS key
FROM (
    SELECT %[1]s, window, host, user, session_id, operation, groupBitmap(number) AS operations
    FROM (%[2]s AND ts >= reached.2)
    WHERE cityHash64(%[1]s, window) IN (SELECT arrayJoin(reached.1))
    GROUP BY %[1]s, window, host, user, session_id, operation) AS o
GROUP BY %[1]s, window
HAVING count >= %[3]d`,
		group(t.By), rows, t.Count, seconds, agreed())
}

// question finds combinations that arrived recently and not before. It needs
// no FINAL: a copy is not earlier than its original.
//
// Learning ends by the records' times, because old ones may arrive all at once, or by their
// arrivals: with the time that its producer chose, a record could pass for an early one.
func (f *FirstSeen) question(filter string) string {
	among := group(f.Among)
	both := slices.Concat(f.Among, f.By)
	return fmt.Sprintf(`
WITH recent AS (SELECT DISTINCT %[1]s FROM (SELECT %[2]s FROM %[3]s WHERE ingested_at > {since:DateTime64(3)} AND %[4]s))
SELECT %[5]s, s.ts AS ts, s.subject.1 AS host, s.subject.2 AS user, s.subject.3 AS session_id, s.subject.4 AS record_id,
       s.subject.5 AS call_no, s.subject.6 AS operation, s.subject.7 AS path, toString(tuple(%[5]s)) AS key
FROM (
    SELECT %[1]s, min(o.ts) AS ts, min(ingested_at) AS arrived,
           argMin(tuple(host, user, session_id, record_id, call_no, operation, path), (o.ts, record_id, path)) AS subject
    FROM (SELECT %[2]s, ts, ingested_at, host, user, session_id, record_id, call_no, operation, path FROM %[3]s WHERE %[4]s) AS o
    WHERE (%[1]s) IN recent
    GROUP BY %[1]s) AS s
INNER JOIN (
    SELECT %[6]s, min(ts) AS began, min(ingested_at) AS came
    FROM (SELECT %[7]s, ts, ingested_at FROM %[3]s WHERE %[4]s)
    WHERE (%[6]s) IN (SELECT %[6]s FROM recent)
    GROUP BY %[6]s) AS g USING (%[6]s)
WHERE s.arrived > {since:DateTime64(3)} AND (s.ts > g.began + INTERVAL %[8]d SECOND OR s.arrived > g.came + INTERVAL %[8]d SECOND)`,
		group(both), named(both), operations, filter, prefixed("s.", both), among, named(f.Among), int64(f.Learn/time.Second))
}

func prefixed(prefix string, names []string) string {
	return prefix + strings.ReplaceAll(group(names), ", ", ", "+prefix)
}

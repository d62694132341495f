package alert

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// farAhead is later than any record arrives: another collector's clock may be
// ahead.
const farAhead = 10 * 365 * 24 * time.Hour

// AskSeen is Ask for a rule with FirstSeen, whose cost follows what arrived
// since: it keeps what it has seen in the store. remembers: the store has what
// arrived up to since; otherwise all records are read once, and SeenMark is to
// be set.
func AskSeen(ctx context.Context, k Keeper, asker Asker, r *Rule, since time.Time, remembers bool, do func(Alert) error) error {
	if !remembers {
		if err := k.Remember(ctx, r.remember(), time.Time{}, since); err != nil {
			return err
		}
	}
	// A crash after this finds the same: only what arrived up to since is old.
	if err := k.Remember(ctx, r.remember(), since, since.Add(farAhead)); err != nil {
		return err
	}
	return asker.Ask(ctx, r.unseen(), since, func(row map[string]any) error {
		a, err := r.found(row)
		if err != nil {
			return err
		}
		return do(a)
	})
}

// SeenMark is the mark that the store has all that r has seen before.
func SeenMark(r *Rule, upto, now time.Time) Mark {
	return Mark{Name: r.seenName(), Kind: MarkSeen, Upto: upto, At: now}
}

// seenName names what r sees: another condition has seen other things.
func (r *Rule) seenName() string {
	f := r.FirstSeen
	return r.Name + " " + hash(named(f.By), named(f.Among), r.filter(f.Where))[:8]
}

// remember returns the statement that stores what arrived between two times, the
// parameters after and upto. It needs no FINAL: a copy is not earlier than its
// original. Texts are made of combinations, which are fewer than records.
func (r *Rule) remember() string {
	f := r.FirstSeen
	both := slices.Concat(f.Among, f.By)
	return fmt.Sprintf(`
INSERT INTO ${database}.first_seen (rule, tenant, what, first_ts, first_arrival, last_arrival)
SELECT %[1]s, tenant, arrayJoin([%[2]s, %[3]s]) AS what, min(began), min(first), max(last)
FROM (
    SELECT %[4]s, min(ts) AS began, min(ingested_at) AS first, max(ingested_at) AS last
    FROM (SELECT %[5]s, ts, ingested_at FROM ${database}.%[6]s
          WHERE ingested_at > {after:DateTime64(3)} AND ingested_at <= {upto:DateTime64(3)} AND %[7]s)
    GROUP BY %[4]s)
GROUP BY tenant, what`,
		quote(r.seenName()), keyOf(both), amongOf(f.Among), group(both), named(both), operations, r.filter(f.Where))
}

// unseen returns the question for what arrived since a time and not before, once the
// store remembers it. That is seldom anything, and then no record is read. All
// records of such a combination arrived since, so the earliest is among them.
func (r *Rule) unseen() Question {
	f := r.FirstSeen
	both := slices.Concat(f.Among, f.By)
	return Question{fmt.Sprintf(`
WITH fresh AS (
    SELECT tenant, what FROM first_seen
    WHERE rule = %[8]s AND startsWith(what, '(')
      AND (tenant, what) IN (SELECT tenant, what FROM first_seen WHERE rule = %[8]s AND last_arrival > {since:DateTime64(3)})
    GROUP BY tenant, what HAVING min(first_arrival) > {since:DateTime64(3)}),
(SELECT count() FROM fresh) > 0 AS news
SELECT %[7]s, s.ts AS ts, s.subject.1 AS host, s.subject.2 AS user, s.subject.3 AS session_id, s.subject.4 AS record_id,
       s.subject.5 AS call_no, s.subject.6 AS operation, s.subject.7 AS path, s.key AS key
FROM (
    SELECT %[1]s, %[2]s AS key, %[3]s AS within, min(o.ts) AS ts, min(ingested_at) AS arrived,
           argMin(tuple(host, user, session_id, record_id, call_no, operation, path), (o.ts, record_id, path)) AS subject
    FROM (SELECT %[4]s, ts, ingested_at, host, user, session_id, record_id, call_no, operation, path FROM %[5]s
          WHERE ingested_at > if(news, {since:DateTime64(3)}, toDateTime64('2262-01-01 00:00:00', 3, 'UTC')) AND %[6]s) AS o
    WHERE (tenant, %[2]s) IN fresh
    GROUP BY %[1]s) AS s
INNER JOIN (
    SELECT tenant, what, min(first_ts) AS began, min(first_arrival) AS came FROM first_seen
    WHERE news AND rule = %[8]s AND startsWith(what, 'among ')
    GROUP BY tenant, what) AS g ON s.tenant = g.tenant AND s.within = g.what
WHERE s.ts > g.began + INTERVAL %[9]d SECOND OR s.arrived > g.came + INTERVAL %[9]d SECOND`,
		group(both), keyOf(both), amongOf(f.Among), named(both), operations, r.filter(f.Where), prefixed("s.", both), quote(r.seenName()), int64(f.Learn/time.Second)), true}
}

// keyOf is the text of a combination, the same as in the question of all records.
func keyOf(names []string) string { return "toString(tuple(" + group(names) + "))" }

func amongOf(names []string) string { return "concat('among ', " + keyOf(names) + ")" }

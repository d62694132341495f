package retention

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"auditproxy/sink/clickhouse"
)

// undone is the condition on what was interrupted: an entry of retention_log, or an erasure.
const undone = "done_at = toDateTime64(0, 3, 'UTC')"

const logColumns = "(table_name, tenant, cutoff, partition, action, rule, row_count, from_ts, to_ts, planned_at, done_at, collector)"

// plan writes to retention_log what is to be removed from a table's partition: the rows
// with a condition. The statement counts them, so what another collector removed since
// this one looked is not in it. Nor are rows that an interrupted entry has: each row is
// counted once, by the first entry.
func (c Config) plan(ctx context.Context, t table, at cutoffs, partition, action, where string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	counted := "1"
	plans, err := c.plans(ctx, t, partition)
	if err == nil && len(plans) > 0 {
		counted, err = c.counted(ctx, t, plans[0])
	}
	if err != nil {
		return err
	}
	entries := fmt.Sprintf("%s.retention_log FINAL WHERE table_name = %s AND partition = %s", c.DB.Name(), quote(t.name), quote(partition))
	return c.exec(ctx, "recording what is removed", `INSERT INTO ${database}.retention_log `+logColumns+`
WITH (SELECT mapFromArrays(groupArray(tenant), groupArray((upto, counted))) FROM
    (SELECT tenant, max(cutoff) AS upto, sum(row_count) AS counted FROM %[1]s AND `+undone+` GROUP BY tenant)) AS open
SELECT %[2]s, old.whose, old.cut, %[3]s, %[4]s, old.why, this.row_count + old.n - least(old.counted, open[old.whose].2), old.first, old.last, %[5]s, 0, %[6]s
FROM (SELECT toString(%[7]s) AS whose, %[8]s AS cut, %[9]s AS why, count() AS n, countIf(%[10]s < open[whose].1 AND %[13]s) AS counted,
        toDateTime64(min(%[10]s), 6, 'UTC') AS first, toDateTime64(max(%[10]s), 6, 'UTC') AS last
    FROM ${database}.%[11]s WHERE %[12]s GROUP BY whose, cut, why) AS old
LEFT JOIN (SELECT tenant, cutoff, rule, row_count FROM %[1]s AND action = %[4]s) AS this ON this.tenant = old.whose AND this.cutoff = old.cut AND this.rule = old.why`,
		entries, quote(t.name), quote(partition), quote(action), literal(c.Now()), quote(host),
		t.whose(), t.cutoff(at), t.rule(at), t.at, t.name, where, counted)
}

// plans returns when the interrupted entries of a partition were written.
func (c Config) plans(ctx context.Context, t table, partition string) (list []time.Time, err error) {
	limited, cancel := c.DB.Limited(ctx)
	defer cancel()
	row := c.DB.Conn().QueryRow(limited, "SELECT arraySort(groupUniqArray(planned_at)) FROM "+c.DB.Name()+".retention_log FINAL WHERE table_name = ? AND partition = ? AND "+undone, t.name, partition)
	return list, clickhouse.Classify("looking for removals that were interrupted", row.Scan(&list))
}

// counted returns the condition on rows that entries of a time may have counted: they
// were under no hold then. Others are counted when their hold is gone.
func (c Config) counted(ctx context.Context, t table, at time.Time) (string, error) {
	then, err := Holds(ctx, c.DB, true)
	then = slices.DeleteFunc(then, func(h Hold) bool {
		return !h.At.Before(at) || h.Removed != nil && h.Removed.At.Before(at)
	})
	return "1" + notAlso(t.held(c.DB.Name(), then)), err
}

// finish notes that entries of a partition are done: those of which no row is left that
// they counted, since all with a condition were to be removed, and those before whose
// cutoff nothing is left.
func (c Config) finish(ctx context.Context, t table, at cutoffs, partition, where string) error {
	plans, err := c.plans(ctx, t, partition)
	for _, plan := range plans {
		counted, err := c.counted(ctx, t, plan)
		if err != nil {
			return err
		}
		err = c.exec(ctx, "recording what was removed", `INSERT INTO ${database}.retention_log `+logColumns+`
WITH (SELECT (mapFromArrays(groupArray(whose), groupArray(first)), mapFromArrays(groupArray(whose), groupArray(first_counted))) FROM
    (SELECT toString(%[1]s) AS whose, toDateTime64(min(%[2]s), 6, 'UTC') AS first,
        ifNull(toDateTime64(minOrNullIf(%[2]s, %[7]s AND %[8]s), 6, 'UTC'), toDateTime64('2200-01-01 00:00:00', 6, 'UTC')) AS first_counted
     FROM ${database}.%[3]s WHERE _partition_id = %[4]s GROUP BY whose)) AS kept
SELECT table_name, tenant, cutoff, partition, action, rule, row_count, from_ts, to_ts, planned_at, %[5]s, collector
FROM ${database}.retention_log FINAL WHERE table_name = %[6]s AND partition = %[4]s AND planned_at = %[10]s AND `+undone+`
    AND (NOT mapContains(kept.1, tenant) OR cutoff <= kept.1[tenant] OR cutoff <= %[9]s AND cutoff <= kept.2[tenant])`,
			t.whose(), t.at, t.name, quote(partition), literal(c.Now()), quote(t.name), where, counted, t.cutoff(at), literal(plan))
		if err != nil {
			return err
		}
	}
	return err
}

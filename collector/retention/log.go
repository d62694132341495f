package retention

import (
	"context"
	"fmt"
	"os"
	"slices"

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
	entries := fmt.Sprintf("%s.retention_log FINAL WHERE table_name = %s AND partition = %s", c.DB.Name(), quote(t.name), quote(partition))
	return c.exec(ctx, "recording what is removed", `INSERT INTO ${database}.retention_log `+logColumns+`
WITH (SELECT mapFromArrays(groupArray(tenant), groupArray((upto, counted))) FROM
    (SELECT tenant, max(cutoff) AS upto, sum(row_count) AS counted FROM %[1]s AND `+undone+` GROUP BY tenant)) AS open
SELECT %[2]s, old.whose, old.cut, %[3]s, %[4]s, old.why, this.row_count + old.n - least(old.counted, open[old.whose].2), old.first, old.last, %[5]s, 0, %[6]s
FROM (SELECT toString(%[7]s) AS whose, %[8]s AS cut, %[9]s AS why, count() AS n, countIf(%[10]s < open[whose].1) AS counted,
        toDateTime64(min(%[10]s), 6, 'UTC') AS first, toDateTime64(max(%[10]s), 6, 'UTC') AS last
    FROM ${database}.%[11]s WHERE %[12]s GROUP BY whose, cut, why) AS old
LEFT JOIN (SELECT tenant, cutoff, rule, row_count FROM %[1]s AND action = %[4]s) AS this ON this.tenant = old.whose AND this.cutoff = old.cut AND this.rule = old.why`,
		entries, quote(t.name), quote(partition), quote(action), literal(c.Now()), quote(host),
		t.whose(), t.cutoff(at), t.rule(at), t.at, t.name, where)
}

// finish notes that entries of a partition are done: those with a condition, "" for
// none, and those of which nothing is left.
func (c Config) finish(ctx context.Context, t table, partition, condition string) error {
	if condition != "" {
		condition += " OR "
	}
	return c.exec(ctx, "recording what was removed", `INSERT INTO ${database}.retention_log `+logColumns+`
WITH (SELECT mapFromArrays(groupArray(whose), groupArray(first)) FROM
    (SELECT toString(%[1]s) AS whose, toDateTime64(min(%[2]s), 6, 'UTC') AS first FROM ${database}.%[3]s WHERE _partition_id = %[4]s GROUP BY whose)) AS kept
SELECT table_name, tenant, cutoff, partition, action, rule, row_count, from_ts, to_ts, planned_at, %[5]s, collector
FROM ${database}.retention_log FINAL WHERE table_name = %[6]s AND partition = %[4]s AND `+undone+`
    AND (%[7]sNOT mapContains(kept, tenant) OR cutoff <= kept[tenant])`,
		t.whose(), t.at, t.name, quote(partition), literal(c.Now()), quote(t.name), condition)
}

// finishAll does so for all entries: a run that was interrupted may have left nothing
// for the next one to remove.
func (c Config) finishAll(ctx context.Context) error {
	var open []struct {
		Table     string `ch:"table_name"`
		Partition string `ch:"partition"`
	}
	limited, cancel := c.DB.Limited(ctx)
	defer cancel()
	err := c.DB.Conn().Select(limited, &open, "SELECT DISTINCT table_name, partition FROM "+c.DB.Name()+".retention_log FINAL WHERE "+undone+" ORDER BY table_name, partition")
	if err != nil {
		return clickhouse.Classify("looking for removals that were interrupted", err)
	}
	all := tables()
	for _, o := range open {
		if i := slices.IndexFunc(all, func(t table) bool { return t.name == o.Table }); i >= 0 {
			if err := c.finish(ctx, all[i], o.Partition, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

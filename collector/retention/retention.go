// Package retention removes rows from the collector's tables: those that are too
// old, and those that are to be erased.
//
// A table's TTL knows neither tenants nor holds, so a Job does it. What is under
// a Hold stays. What it removes is in retention_log before it is gone. A statement
// that removes can be repeated, so a crash at any point, or two collectors that do
// it at once, only repeat work.
//
// Of records with evidence it keeps the leaves, so that what stays can be proved.
//
// The files, from the top: retention, desk, erase, steps, erasure, leaves, log, look,
// hold, table, erased, config.
package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A Job removes what is too old.
type Job struct {
	c       Config
	rows    *prometheus.CounterVec
	success prometheus.Gauge
}

// New returns a job. It does not connect.
func New(c Config) *Job {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	j := &Job{
		c: c,
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "auditcollector", Name: "retention_rows_total", Help: "Rows removed because they were too old, by table.",
		}, []string{"table"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "auditcollector", Name: "retention_success_timestamp_seconds", Help: "When all that is too old was last removed, in seconds since 1970.",
		}),
	}
	c.Metrics.MustRegister(j.rows, j.success)
	return j
}

// Run removes what is too old, now and every hour, until ctx ends.
func (j *Job) Run(ctx context.Context) error {
	for {
		_, err := j.Once(ctx, false)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			j.c.Log.Error("retention failed; what is too old stays", zap.Error(err))
		}
		if wait.For(ctx, every) != nil {
			return nil
		}
	}
}

// A Removal is what is removed from one partition of a table for one tenant.
type Removal struct {
	Table     string    `json:"table"`
	Partition string    `json:"partition"`
	Tenant    string    `json:"tenant,omitempty"`
	Rule      string    `json:"rule"` // the key whose time it is
	Cutoff    time.Time `json:"cutoff"`
	Rows      uint64    `json:"rows"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Whole     bool      `json:"whole"` // the partition is dropped
}

// Once removes what is too old now, and returns it; with dry it only returns it.
func (j *Job) Once(ctx context.Context, dry bool) ([]Removal, error) {
	var tended error
	if !dry {
		tended = j.c.tend(ctx)
	}
	now, err := j.c.clock(ctx)
	if err != nil {
		return nil, err
	}
	c, err := j.c.look(ctx, now)
	if err != nil {
		return nil, err
	}
	if !dry {
		if err := j.c.remember(ctx, now); err != nil {
			return nil, err
		}
	}
	if !dry {
		if err := j.c.eraseAgain(ctx); err != nil {
			return nil, err
		}
	}
	holds, same, err := holdsNow(ctx, j.c.DB, false)
	if err != nil {
		return nil, err
	}
	var all []Removal
	for _, t := range tables() {
		s := j.due(t, c, holds, same)
		partitions, err := j.find(ctx, t, s)
		switch {
		case err != nil:
		case dry:
			for _, p := range partitions {
				if err := j.decide(ctx, t, s, p); err != nil {
					return all, err
				}
			}
			all = append(all, slices.Concat(partitions...)...)
		case len(partitions) > 0:
			var removed []Removal
			removed, err = j.removeAll(ctx, t, s, partitions)
			all = append(all, removed...)
		}
		if err != nil && !dry {
			err = errors.Join(err, j.purge(ctx, c)) // of the tables before
		}
		if err != nil {
			return all, err
		}
	}
	if dry {
		return all, nil
	}
	if err := errors.Join(tended, j.finishAll(ctx, c), j.purge(ctx, c)); err != nil {
		return all, err
	}
	j.success.Set(float64(now.Unix()))
	return all, nil
}

// A selection is what is to be removed from a table now.
type selection struct {
	cutoffs
	old   string // the condition on rows that are too old
	where string // that on those of them that no hold is on
	held  string // that on those under a hold; "" without one
	holds string // that the holds are those that where knows
}

// due returns what is to be removed from a table, but for what is under holds of holdsNow.
func (j *Job) due(t table, c cutoffs, holds []Hold, same string) selection {
	s := selection{cutoffs: c, old: t.due(c), held: t.held(j.c.DB.Name(), holds), holds: same}
	if alone := t.alone(j.c.DB.Name(), c); alone != "" {
		s.old += " AND " + alone
	}
	if t.name == "alert_marks" {
		// That a rule's first_seen is filled is written once. Without it, a rule that
		// still runs would read all records again, for which the other rules wait.
		s.old += fmt.Sprintf(" AND NOT (kind = 'seen' AND splitByChar(' ', name)[1] IN (SELECT name FROM %s.alert_marks WHERE kind = 'rule' AND NOT (%s)))", j.c.DB.Name(), t.due(c))
	}
	if t.name == "leaves" {
		s.old += " AND " + unneeded(j.c.DB.Name())
	}
	s.where = s.old + notAlso(s.held)
	return s
}

// removeAll removes what is due in partitions of a table, one after the other. Holds are
// read again for each, so what comes under one while a run is long stays.
func (j *Job) removeAll(ctx context.Context, t table, s selection, partitions [][]Removal) (removed []Removal, err error) {
	for i := 0; i < len(partitions); i++ {
		holds, same, err := holdsNow(ctx, j.c.DB, false)
		if err != nil {
			return removed, err
		}
		if same != s.holds {
			if s = j.due(t, s.cutoffs, holds, same); i == 0 {
				if partitions, err = j.find(ctx, t, s); err != nil || len(partitions) == 0 {
					return removed, err
				}
			}
		}
		p := partitions[i]
		if err := j.decide(ctx, t, s, p); err != nil {
			return removed, err
		}
		done, err := j.remove(ctx, t, s, p)
		if err != nil {
			return removed, err
		}
		if done {
			removed = append(removed, p...)
		}
	}
	return removed, nil
}

// find returns what is due in a table, by partition.
func (j *Job) find(ctx context.Context, t table, s selection) ([][]Removal, error) {
	ctx, cancel := j.c.DB.Long(ctx)
	defer cancel()
	var found []struct {
		Partition string    `ch:"p"`
		Tenant    string    `ch:"whose"`
		Rows      uint64    `ch:"n"`
		From      time.Time `ch:"first"`
		To        time.Time `ch:"last"`
	}
	sql := fmt.Sprintf("SELECT _partition_id AS p, toString(%s) AS whose, count() AS n, toDateTime64(min(%s), 6, 'UTC') AS first, toDateTime64(max(%[2]s), 6, 'UTC') AS last FROM %s.%s WHERE %s GROUP BY p, whose ORDER BY p, whose",
		t.whose(), t.at, j.c.DB.Name(), t.name, s.where)
	if err := j.c.DB.Conn().Select(ctx, &found, sql); err != nil {
		return nil, clickhouse.Classify(fmt.Sprintf("looking for old rows of %q", t.name), err)
	}
	var list [][]Removal
	for i, f := range found {
		cutoff, key := t.cutoffOf(s.cutoffs, f.Tenant)
		r := Removal{t.name, f.Partition, f.Tenant, key, cutoff, f.Rows, f.From, f.To, false}
		if i > 0 && found[i-1].Partition == f.Partition {
			list[len(list)-1] = append(list[len(list)-1], r)
		} else {
			list = append(list, []Removal{r})
		}
	}
	return list, nil
}

// decide notes whether a partition can be dropped whole: nothing in it can be
// kept, and nothing in it is held.
func (j *Job) decide(ctx context.Context, t table, s selection, p []Removal) error {
	whole := t.over(p[0].Partition, s.cutoffs)
	if whole && s.held != "" {
		var held uint64
		row := j.c.DB.Conn().QueryRow(ctx, fmt.Sprintf("SELECT count() FROM %s.%s WHERE _partition_id = %s AND (%s)", j.c.DB.Name(), t.name, quote(p[0].Partition), s.held))
		if err := row.Scan(&held); err != nil {
			return clickhouse.Classify(fmt.Sprintf("looking for held rows of %q", t.name), err)
		}
		whole = held == 0
	}
	for i := range p {
		p[i].Whole = whole
	}
	return nil
}

// remove removes what is due in one partition. A crash before the statement, or
// in it, leaves entries that are not done; the next run finds what is left and
// removes it. So does a hold that is added meanwhile: then it is not done.
func (j *Job) remove(ctx context.Context, t table, s selection, p []Removal) (done bool, err error) {
	condition, action := "_partition_id = "+quote(p[0].Partition), "partition"
	if !p[0].Whole {
		condition, action = condition+" AND "+s.where, "rows"
	}
	if err := j.c.plan(ctx, t, s.cutoffs, p[0].Partition, action, condition+" AND "+s.holds); err != nil {
		return false, err
	}
	// Lightweight: rows are gone at once and nothing is rewritten, each day for a
	// month. Their bytes go with the partition, or when purge rewrites it.
	doing, partition := fmt.Sprintf("removing old rows of %q", t.name), quote(p[0].Partition)
	if t.name == "events" {
		// A crash after it leaves rows and their leaves, which say the same.
		if err := j.c.exec(ctx, "keeping the leaves of old records", "%s", keepLeaves(j.c.DB.Name(), condition)); err != nil {
			return false, err
		}
	}
	same := true
	if p[0].Whole {
		if same, err = still(ctx, j.c.DB, s.holds); err != nil || !same {
			return false, err
		}
		err = j.c.exec(ctx, doing, "ALTER TABLE ${database}.%s ${on_cluster} DROP PARTITION ID %s SETTINGS max_partition_size_to_drop = 0", j.c.DB.Part(t.name), partition)
	} else {
		// A hold on a user asks for sessions, so replicas must be allowed to.
		err = j.c.exec(ctx, doing, "DELETE FROM ${database}.%s ${on_cluster} IN PARTITION ID %s WHERE %s AND %s SETTINGS lightweight_deletes_sync = 2, allow_nondeterministic_mutations = 1",
			j.c.DB.Part(t.name), partition, s.where, s.holds)
		if err == nil {
			same, err = still(ctx, j.c.DB, s.holds)
		}
	}
	if err != nil || !same {
		return false, err
	}
	for _, r := range p {
		j.rows.WithLabelValues(t.name).Add(float64(r.Rows))
		j.c.Log.Info("old rows removed", zap.String("table", t.name), zap.String("partition", r.Partition), zap.String("tenant", r.Tenant),
			zap.String("rule", r.Rule), zap.Time("before", r.Cutoff), zap.Uint64("rows", r.Rows))
	}
	return true, j.c.finish(ctx, t, s.cutoffs, p[0].Partition, s.old)
}

// finishAll notes of all entries that are done that they are: a run that was interrupted
// may have left nothing for the next one to remove.
func (j *Job) finishAll(ctx context.Context, at cutoffs) error {
	var open []struct {
		Table     string `ch:"table_name"`
		Partition string `ch:"partition"`
	}
	limited, cancel := j.c.DB.Limited(ctx)
	defer cancel()
	err := j.c.DB.Conn().Select(limited, &open, "SELECT DISTINCT table_name, partition FROM "+j.c.DB.Name()+".retention_log FINAL WHERE "+undone+" ORDER BY table_name, partition")
	if err != nil {
		return clickhouse.Classify("looking for removals that were interrupted", err)
	}
	all := tables()
	for _, o := range open {
		if i := slices.IndexFunc(all, func(t table) bool { return t.name == o.Table }); i >= 0 {
			if err := j.c.finish(ctx, all[i], at, o.Partition, j.due(all[i], at, nil, "").old); err != nil {
				return err
			}
		}
	}
	return nil
}

// purge frees the disk of deleted rows, once for each partition and rule: when no
// cutoff is within the partition's time, as it is while rows are deleted day by
// day. What merges rewrote has no such rows.
func (j *Job) purge(ctx context.Context, c cutoffs) error {
	var parts []struct {
		Table     string `ch:"table"`
		Partition string `ch:"partition_id"`
	}
	limited, cancel := j.c.DB.Limited(ctx)
	defer cancel()
	err := j.c.DB.Conn().Select(limited, &parts, "SELECT DISTINCT table, partition_id FROM system.parts WHERE database = "+quote(j.c.DB.Name())+" AND active AND has_lightweight_delete ORDER BY table, partition_id")
	if err != nil {
		return clickhouse.Classify("looking for deleted rows", err)
	}
	all := tables()
	for _, p := range parts {
		i := slices.IndexFunc(all, func(t table) bool { return j.c.DB.Part(t.name) == p.Table })
		if i < 0 || all[i].within(p.Partition, c) {
			continue
		}
		t := all[i]
		err := j.c.exec(ctx, fmt.Sprintf("freeing the disk of old rows of %q", t.name),
			"ALTER TABLE ${database}.%s ${on_cluster} APPLY DELETED MASK IN PARTITION ID %s SETTINGS mutations_sync = 2", j.c.DB.Part(t.name), quote(p.Partition))
		if err != nil {
			return err
		}
	}
	return nil
}

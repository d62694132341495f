package retention

import (
	"context"
	"fmt"
	"time"

	"auditproxy/sink/clickhouse"

	"go.uber.org/zap"
)

// maxSkew is the most that the clocks of a collector and of ClickHouse may
// differ.
const maxSkew = time.Hour

// clock returns the time by which rows are too old: the earlier one of this
// clock and that of ClickHouse. It returns an error if these disagree.
func (c Config) clock(ctx context.Context) (time.Time, error) {
	server, err := c.DB.Clock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := c.Now()
	if d := now.Sub(server).Abs(); d > maxSkew {
		return time.Time{}, fmt.Errorf("the clocks of this machine and of ClickHouse differ by %v, nothing is removed: correct them", d.Round(time.Second))
	}
	if server.Before(now) {
		return server, nil
	}
	return now, nil
}

// settled is the age of a look whose cutoff all collectors have: one that looks at
// midnight and another a moment later would else count rows twice in retention_log. It is
// no whole minute, as times between runs are that cron starts.
const settled = 7*time.Minute + 30*time.Second

// every is the time between two runs.
const every = time.Hour

// look returns the cutoffs at a time. A cutoff counts as far as an earlier look had it,
// and it is at most two days later than the one of a look that is one or two days old.
// A clock that jumps ahead, or a time of retention that is too short by mistake, thus removes
// nothing for a day. Clocks that are set back leave looks in the future, which do not count.
//
// What another collector keeps longer is not removed: of a longer time, one collector learns
// before the others, and a shorter one is no hurry. Looks of collectors that agree may
// differ by a day.
func (c Config) look(ctx context.Context, now time.Time) (cutoffs, error) {
	ctx, cancel := c.DB.Limited(ctx)
	defer cancel()
	var earlier []struct {
		Rule   string    `ch:"rule"`
		Tenant string    `ch:"tenant"`
		Cutoff time.Time `ch:"latest"`
		Kept   int64     `ch:"kept"` // days, of the latest looks
	}
	sql := fmt.Sprintf(`SELECT rule, tenant, least(maxIf(cutoff, at <= %[4]s), maxIf(cutoff, at <= %[2]s) + INTERVAL 2 DAY) AS latest, maxIf(dateDiff('day', cutoff, at), at >= %[5]s) AS kept
FROM %[1]s.retention_looks WHERE at >= %[3]s AND at <= %[6]s GROUP BY rule, tenant HAVING min(at) <= %[2]s`,
		c.DB.Name(), literal(now.Add(-day)), literal(now.Add(-2*day)), literal(now.Add(-settled)), literal(now.Add(-every-settled)), literal(now))
	if err := c.DB.Conn().Select(ctx, &earlier, sql); err != nil {
		return cutoffs{}, clickhouse.Classify("reading when retention looked", err)
	}
	confirmed, kept := map[[2]string]time.Time{}, map[[2]string]time.Duration{}
	for _, e := range earlier {
		of := [2]string{e.Rule, e.Tenant}
		confirmed[of], kept[of] = e.Cutoff, time.Duration(e.Kept)*day
	}
	at := cutoffs{tenants: map[string]time.Time{}}
	for _, r := range rules(c.Keep) {
		keep := r.keep
		if longer := kept[[2]string{r.key, r.tenant}]; longer > keep+day {
			c.Log.Warn("another collector keeps records longer, so they stay: give all the same times", zap.String("key", r.key), zap.String("tenant", r.tenant), zap.Duration("here", keep), zap.Duration("there", longer))
			keep = longer + day
		}
		// Whole days: one round of deletes a day.
		cutoff := now.Add(-keep).UTC().Truncate(day)
		if most := confirmed[[2]string{r.key, r.tenant}]; most.Before(cutoff) {
			cutoff = most
		}
		switch r.key {
		case ruleEvents:
			at.events = cutoff
		case ruleLetters:
			at.letters = cutoff
		default:
			at.tenants[r.tenant] = cutoff
		}
	}
	// A tenant that has lost its own time, perhaps by a mistyped name, keeps it as
	// long as any other that was made shorter.
	for of, cutoff := range confirmed {
		if _, has := c.Keep.Tenants[of[1]]; of[0] == ruleTenants && !has && cutoff.Before(at.events) {
			at.tenants[of[1]] = cutoff
		}
	}
	return at, nil
}

// remember stores the cutoffs that the clock and the configuration say.
func (c Config) remember(ctx context.Context, now time.Time) error {
	values := ""
	for i, r := range rules(c.Keep) {
		if i > 0 {
			values += ", "
		}
		values += fmt.Sprintf("(%s, %s, %s, %s)", quote(r.key), quote(r.tenant), literal(now), literal(now.Add(-r.keep).UTC().Truncate(day)))
	}
	return c.DB.Exec(ctx, "writing when retention looked", "INSERT INTO ${database}.retention_looks (rule, tenant, at, cutoff) VALUES %s", values)
}

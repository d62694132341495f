package retention

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A table is one whose rows become too old. Columns that it does not have are "".
type table struct {
	name    string
	at      string // column of the time that counts
	tenant  string // column
	session string // column
	user    string // column
	letters bool   // as retention.dead_letters says; else as retention.events does
	own     bool   // of the collector's own working: no hold is about it

	// The sorting key of a table that says of each key when it was first seen, or how
	// often: inserts write rows of their own, which a merge joins some time. None is
	// removed while another of the same key is kept. "": each row stands alone.
	key string
}

// tables returns all tables with rows that become too old.
func tables() []table {
	return []table{
		{name: "events", at: "ts", tenant: "tenant", session: "session_id", user: "user"},
		{name: "operation_states", at: "hour", tenant: "tenant", session: "session_id"},
		{name: "session_states", at: "last_ts", tenant: "tenant", session: "session_id", user: "user", key: "tenant, session_id"},
		{name: "definition_states", at: "last_ts", tenant: "tenant", key: "tenant, server_name, server_version, tool, part, tool_hash, tier, annotations"},
		{name: "effect_states", at: "last_ts", tenant: "tenant", user: "user", key: "tenant, effect, name, scope, tool, server_name, host, user, client_id"},
		{name: "decision_states", at: "hour", tenant: "tenant", session: "session_id", user: "user"},
		{name: "risk_states", at: "hour", tenant: "tenant", session: "session_id"},
		{name: "arrivals", at: "last_arrival", tenant: "tenant", session: "session_id"},
		{name: "first_seen", at: "last_arrival", tenant: "tenant", key: "rule, tenant, what"},
		{name: "gaps", at: "seen_at"},
		{name: "alert_events", at: "at", tenant: "tenant"},
		{name: "alert_deliveries", at: "at"},
		{name: "alert_desk", at: "ts", tenant: "tenant", session: "session_id", user: "user"},
		{name: "alerts", at: "ts", tenant: "tenant", session: "session_id", user: "user"},
		{name: "alert_marks", at: "at", own: true},
		{name: "verifications", at: "at", tenant: "tenant", session: "session_id", user: "user"},
		{name: "export_refused", at: "refused_at", tenant: "tenant", session: "session_id", user: "user"},
		{name: "export_late", at: "at", own: true},
		// After session_states, which says of which sessions there is something left.
		{name: "leaves", at: "kept_at", tenant: "tenant", session: "session_id"},
		{name: "dead_letters", at: "seen_at", session: "kafka_key", letters: true},
	}
}

// due is the condition on rows that are too old.
func (t table) due(c cutoffs) string {
	if !t.hasOwn(c) {
		return t.at + " < " + t.cutoff(c)
	}
	latest := c.events
	for _, cutoff := range c.tenants {
		if latest.Before(cutoff) {
			latest = cutoff
		}
	}
	// The second condition is for partitions and indexes.
	return fmt.Sprintf("%[1]s < %s AND %[1]s < %s", t.at, t.cutoff(c), literal(latest))
}

// hasOwn reports whether tenants may have a cutoff of their own.
func (t table) hasOwn(c cutoffs) bool { return !t.letters && t.tenant != "" && len(c.tenants) > 0 }

// whose is the expression of a row's tenant.
func (t table) whose() string {
	if t.tenant == "" {
		return "''"
	}
	return t.tenant
}

// cutoff is the expression of the cutoff of a row, or of an entry of retention_log.
func (t table) cutoff(c cutoffs) string {
	if !t.hasOwn(c) {
		return literal(t.lastCutoff(c))
	}
	branches := ""
	for _, name := range slices.Sorted(maps.Keys(c.tenants)) {
		branches += fmt.Sprintf("%s = %s, %s, ", t.tenant, quote(name), literal(c.tenants[name]))
	}
	return "multiIf(" + branches + literal(c.events) + ")"
}

// rule is the expression of the key that has the cutoff.
func (t table) rule(c cutoffs) string {
	switch {
	case t.letters:
		return quote(ruleLetters)
	case !t.hasOwn(c):
		return quote(ruleEvents)
	}
	return fmt.Sprintf("if(%s IN (%s), %s, %s)", t.tenant, quoted(slices.Sorted(maps.Keys(c.tenants))), quote(ruleTenants), quote(ruleEvents))
}

// alone is the condition that no row of the same key is kept; "" without a key. It
// compares hashes: an agent makes keys, long ones too. Of two with one hash, both
// stay longer.
func (t table) alone(database string, c cutoffs) string {
	if t.key == "" {
		return ""
	}
	return fmt.Sprintf("sipHash64(%[1]s) NOT IN (SELECT sipHash64(%[1]s) FROM %[2]s.%[3]s WHERE NOT (%[4]s))", t.key, database, t.name, t.due(c))
}

// cutoffOf returns the cutoff of a tenant's rows, and the key that has its time.
func (t table) cutoffOf(c cutoffs, tenant string) (time.Time, string) {
	switch own, found := c.tenants[tenant]; {
	case t.letters:
		return c.letters, ruleLetters
	case t.tenant == "":
		return c.earliest(), ruleEvents
	case found:
		return own, ruleTenants
	default:
		return c.events, ruleEvents
	}
}

// lastCutoff returns the earliest cutoff of any row that may be in the table.
func (t table) lastCutoff(c cutoffs) time.Time {
	if t.letters {
		return c.letters
	}
	return c.earliest()
}

// cutoffs are the times before which rows are too old. The zero time: none is.
type cutoffs struct {
	events  time.Time
	tenants map[string]time.Time // of those with a time of their own
	letters time.Time
}

func (c cutoffs) earliest() time.Time {
	first := c.events
	for _, t := range c.tenants {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

// all returns all cutoffs of a table.
func (t table) all(c cutoffs) []time.Time {
	if t.letters {
		return []time.Time{c.letters}
	}
	return append(slices.Collect(maps.Values(c.tenants)), c.events)
}

// literal is a time in SQL. Its type is finer than that of any column of hours.
func literal(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(%d, 'UTC')", max(t.UnixMilli(), 0))
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func quoted(list []string) string {
	quotes := make([]string, len(list))
	for i, s := range list {
		quotes[i] = quote(s)
	}
	return strings.Join(quotes, ", ")
}

// spanOf returns the time of a partition by its name: a month (202511), or a week
// or day (20251124), which counts as a week. ok: the name tells.
func spanOf(partition string) (from, to time.Time, ok bool) {
	if month, err := time.Parse("200601", partition); err == nil {
		return month, month.AddDate(0, 1, 0), true
	}
	day, err := time.Parse("20060102", partition)
	return day, day.AddDate(0, 0, 7), err == nil
}

// over reports whether nothing in a partition can be kept: all of its time is
// before the cutoff of every tenant. Where a partition only happens to hold
// nothing that is kept longer, that may arrive at any time.
func (t table) over(partition string, c cutoffs) bool {
	_, end, ok := spanOf(partition)
	return ok && !end.After(t.lastCutoff(c))
}

// within reports whether a cutoff is within a partition's time. One of all times
// has none on the first day of a month.
func (t table) within(partition string, c cutoffs) bool {
	from, to, ok := spanOf(partition)
	return slices.ContainsFunc(t.all(c), func(cutoff time.Time) bool {
		if !ok {
			return cutoff.Day() != 1
		}
		return from.Before(cutoff) && cutoff.Before(to)
	})
}

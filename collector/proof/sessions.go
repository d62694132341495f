package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// A Session is one that has records or leaves.
type Session struct {
	ID       string
	Tenant   string
	Tenants  []string // all that its records and leaves name, as far as they are fewer than mostTenants
	Host     string
	User     string
	First    time.Time // of its records' times
	Last     time.Time
	Ingested time.Time // when its last record arrived
	Ended    bool      // a record says so
	Rows     uint64    // and leaves; a record that is there twice counts twice
	Here     uint64    // of them, those with the record
}

// mostTenants is how many tenants of a session are looked at. It has one.
const mostTenants = 8

// Started returns when the session started, by its id, which is a UUIDv7. It is the
// zero time for another id.
func (s Session) Started() time.Time {
	id, err := uuid.Parse(s.ID)
	if err != nil || id.Version() != 7 {
		return time.Time{}
	}
	seconds, nanos := id.Time().UnixTime()
	return time.Unix(seconds, nanos)
}

// before reports whether a session began before a cutoff, or not much later. Nothing
// did before none.
func (s Session) before(cutoff time.Time, later time.Duration) bool {
	at := cutoff.Add(later)
	return !cutoff.IsZero() && (s.First.Before(at) || s.Started().Before(at))
}

// A Selection chooses sessions. The zero value chooses all.
type Selection struct {
	ID    string    // one session
	IDs   []string  // these sessions
	Since time.Time // those that started since then, or of which a record arrived since then
}

// A session is verified from its beginning. One that goes on for millions of records
// would cost that each time, so a long one waits until it has grown by half: then each
// record is read three times at most, however long the session is. It is not to wait
// for records that never come, so it is due when it has ended, was silent for an hour,
// or was not verified for a day.
const (
	longSession = 10_000 // records
	longSilent  = time.Hour
	longWaits   = 24 * time.Hour
)

// Count returns how many rows there are, as far as ClickHouse knows without reading
// them.
func (s *Source) Count(ctx context.Context) (n int64, err error) {
	sql := strings.ReplaceAll("SELECT toInt64((SELECT count() FROM ${database}.events) + (SELECT count() FROM ${database}.leaves))", "${database}", s.DB.Name())
	err = s.query(ctx, "counting records", sql, func(rows driver.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Due returns the sessions that are to be verified: records arrived after their last
// verification looked at them, and not too few for so long a session. The states of
// sessions are of what arrived, and small. Of a session without one no record arrived
// since. Its writer can make a session look longer than it is, not shorter: then it is
// verified each time.
func (s *Source) Due(ctx context.Context, now time.Time) (ids []string, err error) {
	sql := strings.NewReplacer("${database}", s.DB.Name(), "${long}", fmt.Sprint(longSession), "${silent}", millis(now.Add(-longSilent)), "${waits}", millis(now.Add(-longWaits))).Replace(`
SELECT s.session_id FROM (
    SELECT session_id, max(last_ingested) AS arrived, max(max_seq) AS last, max(ended) AS has_end FROM ${database}.session_states GROUP BY session_id) AS s
LEFT JOIN (SELECT session_id, max(ingested) AS seen, max(at) AS seen_at, max(records) AS seen_records FROM ${database}.verifications GROUP BY session_id) AS v
ON v.session_id = s.session_id
WHERE s.arrived > v.seen AND (
    s.last < ${long} OR s.last >= v.seen_records + intDiv(v.seen_records, 2) OR s.has_end OR s.arrived < ${silent} OR v.seen_at < ${waits})`)
	err = s.query(ctx, "looking for sessions to verify", sql, func(rows driver.Rows) error {
		ids = append(ids, "")
		return rows.Scan(&ids[len(ids)-1])
	})
	slices.Sort(ids)
	return ids, err
}

// Sessions calls do with the sessions, in pages, ordered by their ids. It finds
// them by their records themselves: the table of sessions could lack one.
func (s *Source) Sessions(ctx context.Context, sel Selection, do func([]Session) error) error {
	size := s.Sizes.orDefault().Page
	after := "true" // a writer of the tables can store a record of session ''
	for {
		parts, err := s.parts(ctx, sel, after)
		if err != nil {
			return err
		}
		for _, upto := range parts {
			for full := true; full; {
				page, err := s.page(ctx, sel, after, upto)
				if err != nil {
					return err
				}
				if full = len(page) >= size; full {
					after = "session_id > " + quote(page[size-1].ID)
				}
				if len(page) > 0 {
					if err := do(page); err != nil {
						return err
					}
				}
			}
			if upto == "" {
				return nil
			}
			after = "session_id > " + quote(upto)
		}
	}
}

// partsAtOnce is of how many pages the last ids are read together.
const partsAtOnce = 50

// parts returns the last ids of the next pages, of sessions that the condition after holds
// for, by the table of sessions; the last page of all has "", which is no bound. Without
// bounds each page would group all the records of the pages after it. Sessions that the
// table lacks make a page longer.
func (s *Source) parts(ctx context.Context, sel Selection, after string) (last []string, err error) {
	if sel.ID != "" || len(sel.IDs) > 0 {
		return []string{""}, nil
	}
	where, size := after, s.Sizes.orDefault().Page
	if !sel.Since.IsZero() {
		where += " AND (session_id >= " + quote(firstID(sel.Since)) + " OR last_ingested >= " + millis(sel.Since) + ")"
	}
	n := 0
	err = s.query(ctx, "looking for sessions to verify", fmt.Sprintf("SELECT session_id FROM %s.session_states WHERE %s ORDER BY session_id LIMIT %d", s.DB.Name(), where, partsAtOnce*size), func(rows driver.Rows) error {
		var id string
		err := rows.Scan(&id)
		if n++; n%size == 0 {
			last = append(last, id)
		}
		return err
	})
	if n < partsAtOnce*size {
		last = append(last, "")
	}
	return last, err
}

// page returns the first sessions that the condition after holds for, up to one, "" for no
// end.
func (s *Source) page(ctx context.Context, sel Selection, after, upto string) (list []Session, err error) {
	where := after
	if upto != "" {
		where += " AND session_id <= " + quote(upto)
	}
	within := where
	if sel.ID != "" {
		where += " AND session_id = " + quote(sel.ID)
	}
	if len(sel.IDs) > 0 {
		list := make([]string, len(sel.IDs))
		for i, id := range sel.IDs {
			list[i] = quote(id)
		}
		where += " AND session_id IN (" + strings.Join(list, ", ") + ")"
	}
	if !sel.Since.IsZero() {
		// What retention or an erasure removed of a session that started since has not
		// arrived since: it is here all the same.
		where += " AND (session_id >= " + quote(firstID(sel.Since)) + " OR session_id IN (SELECT session_id FROM ${database}.events WHERE " + within + " AND ingested_at >= " + millis(sel.Since) + "))"
	}
	sql := strings.NewReplacer("${where}", where, "${tenants}", fmt.Sprint(mostTenants), "${never}", never).Replace(`
SELECT session_id, max(tenant), groupUniqArrayArray(${tenants})(tenants), max(host), max(user), min(first), max(last), max(ingested), max(ended), sum(n), sum(here) FROM (
    SELECT session_id, max(tenant) AS tenant, groupUniqArray(${tenants})(events.tenant) AS tenants, max(host) AS host, max(user) AS user, min(toUnixTimestamp64Micro(ts)) AS first, max(toUnixTimestamp64Micro(ts)) AS last,
           max(ingested_at) AS ingested, max(kind = 'session_end') AS ended, count() AS n, count() AS here
    FROM ${database}.events WHERE ${where} GROUP BY session_id
    UNION ALL
    SELECT session_id, max(tenant), groupUniqArray(${tenants})(tenant), '', '', ${never}, toInt64(0),
           toDateTime64(0, 3, 'UTC'), 0, count(), 0
    FROM ${database}.leaves WHERE ${where} GROUP BY session_id
    UNION ALL -- a record that came again counts as arrived, but is not kept
    SELECT session_id, '', groupUniqArray(${tenants})(tenant), '', '', ${never}, toInt64(0),
           max(last_ingested), 0, 0, 0
    FROM ${database}.session_states WHERE ${where} GROUP BY session_id)
GROUP BY session_id HAVING sum(n) > 0 ORDER BY session_id LIMIT `) + fmt.Sprint(s.Sizes.orDefault().Page)
	err = s.query(ctx, "looking for sessions to verify", strings.ReplaceAll(sql, "${database}", s.DB.Name()), func(rows driver.Rows) error {
		var one Session
		var ended uint8
		var first, last int64
		if err := rows.Scan(&one.ID, &one.Tenant, &one.Tenants, &one.Host, &one.User, &first, &last, &one.Ingested, &ended, &one.Rows, &one.Here); err != nil {
			return err
		}
		one.First, one.Last, one.Ended = time.UnixMicro(first), time.UnixMicro(last), ended > 0
		list = append(list, one)
		return nil
	})
	return list, err
}

// firstID is before the ids of all sessions that started later.
func firstID(at time.Time) string {
	digits := fmt.Sprintf("%012x", max(at.UnixMilli(), 0))
	return digits[:8] + "-" + digits[8:]
}

// An Erasure is who erased a session, and when.
type Erasure struct {
	Who string
	At  time.Time
}

// Erasures returns the sessions that were erased.
func (s *Source) Erasures(ctx context.Context) (map[string]Erasure, error) {
	erased := map[string]Erasure{}
	sql := strings.ReplaceAll(`
SELECT s.session_id, e.who, s.at FROM ${database}.erased_sessions AS s
LEFT JOIN (SELECT erasure_id, who FROM ${database}.erasures FINAL) AS e ON e.erasure_id = s.erasure_id
ORDER BY s.at DESC`, "${database}", s.DB.Name())
	err := s.query(ctx, "reading which sessions were erased", sql, func(rows driver.Rows) error {
		var id string
		var e Erasure
		if err := rows.Scan(&id, &e.Who, &e.At); err != nil {
			return err
		}
		erased[id] = e
		return nil
	})
	return erased, err
}

// never is the first time, in microseconds, of no record. Times are compared as numbers:
// ClickHouse finds that one before 1970 is the last of all.
const never = "toInt64(7258118400000000)"

// millis is a time in SQL.
func millis(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(%d, 'UTC')", t.UnixMilli())
}

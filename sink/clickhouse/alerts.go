package clickhouse

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// InsertAlerts stores new alerts and returns them. The first alert with a
// suppression key is stored unchanged, later ones as suppressed. Two programs
// that store alerts with one key concurrently may both store a first one:
// then two are delivered instead of one.
func (s *Store) InsertAlerts(ctx context.Context, alerts []alert.Alert) ([]alert.Alert, error) {
	ids, keys := map[string]bool{}, map[string]bool{}
	for _, a := range alerts {
		ids[a.ID] = true
		if a.SuppressKey != "" {
			keys[a.SuppressKey] = true
		}
	}
	known, err := s.present(ctx, "alert_id", ids, "1")
	if err != nil {
		return nil, classify("looking for alerts", err)
	}
	told, err := s.present(ctx, "suppress_key", keys, "NOT suppressed")
	if err != nil {
		return nil, classify("looking for alerts", err)
	}
	var fresh []alert.Alert
	for _, a := range alerts {
		if known[a.ID] {
			continue
		}
		known[a.ID] = true
		if a.SuppressKey != "" {
			a.Suppressed = told[a.SuppressKey]
			told[a.SuppressKey] = true
		}
		fresh = append(fresh, a)
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, classify(fmt.Sprintf("inserting %d alerts", len(fresh)), s.insertAlerts(ctx, fresh))
}

const alertColumns = "alert_id, rule, severity, title, reason, tenant, host, user, session_id, record_id, call_no, operation, path, ts, window_to, details, suppressed, suppress_key, stored_at"

func (s *Store) insertAlerts(ctx context.Context, alerts []alert.Alert) error {
	sum := sha256.New()
	for i := range alerts {
		fmt.Fprint(sum, alerts[i].ID, alerts[i].Suppressed)
	}
	now := time.Now()
	return s.insert(ctx, "INSERT INTO "+s.c.Database+".alerts ("+alertColumns+")", sum.Sum(nil), func(b driver.Batch) error {
		for i := range alerts {
			a := &alerts[i]
			a.StoredAt = now
			if err := b.Append(a.ID, a.Rule, string(a.Severity), a.Title, a.Reason, a.Tenant, a.Host, a.User, a.SessionID, recordUUID(a.RecordID), a.CallNo,
				a.Operation, a.Path, a.TS, orNull(a.WindowTo), a.Details, a.Suppressed, a.SuppressKey, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordUUID reads the id of a record; without a record it returns the nil
// UUID.
func recordUUID(s string) uuid.UUID {
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil
	}
	return u
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// questionTexts is the most texts in one query.
const questionTexts = 1000

// present returns those of texts that are in a column of alerts, in rows that
// meet a condition.
func (s *Store) present(ctx context.Context, column string, texts map[string]bool, condition string) (map[string]bool, error) {
	found := map[string]bool{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(texts)), questionTexts) {
		ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
		defer cancel()
		rows, err := s.conn.Query(ctx, "SELECT DISTINCT "+column+" FROM "+s.c.Database+".alerts FINAL WHERE "+column+" IN (?) AND "+condition, chunk)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			found[text] = true
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// arrived is the condition on when a record was stored.
const arrived = "ingested_at > fromUnixTimestamp64Milli(?, 'UTC') AND ingested_at <= fromUnixTimestamp64Milli(?, 'UTC')"

// arrivedPage is the number of records that Arrived reads before it calls do.
const arrivedPage = 1000

// Arrived calls do with the records that arrived after one time and up to
// another, in pages. A duplicate may be passed twice. It ends with the first
// error of do.
func (s *Store) Arrived(ctx context.Context, after, upto time.Time, do func([]ingest.Row) error) error {
	rows, err := s.conn.Query(ctx, "SELECT raw FROM "+s.c.Database+".events WHERE "+arrived,
		after.UnixMilli(), upto.UnixMilli())
	if err != nil {
		return classify("reading records", err)
	}
	defer rows.Close()
	page := make([]ingest.Row, 0, arrivedPage)
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return classify("reading records", err)
		}
		record, err := audit.Parse([]byte(raw))
		if err != nil {
			return fmt.Errorf("reading records: %w", err) // it was one when it was stored
		}
		page = append(page, ingest.Row{Record: record, Operations: audit.Operations(&record)})
		if len(page) == arrivedPage {
			if err := do(page); err != nil {
				return err
			}
			page = make([]ingest.Row, 0, arrivedPage)
		}
	}
	if err := rows.Err(); err != nil {
		return classify("reading records", err)
	}
	if len(page) == 0 {
		return nil
	}
	return do(page)
}

// CountArrived returns the number of records that Arrived would read.
func (s *Store) CountArrived(ctx context.Context, after, upto time.Time) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	row := s.conn.QueryRow(ctx, "SELECT count() FROM "+s.c.Database+".events WHERE "+arrived, after.UnixMilli(), upto.UnixMilli())
	return n, classify("counting records", row.Scan(&n))
}

// Marks returns the marks of evaluation.
func (s *Store) Marks(ctx context.Context) ([]alert.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	rows, err := s.conn.Query(ctx, "SELECT name, kind, upto, closed, at FROM "+s.c.Database+".alert_marks FINAL WHERE NOT closed")
	if err != nil {
		return nil, classify("reading marks", err)
	}
	defer rows.Close()
	var marks []alert.Mark
	for rows.Next() {
		var m alert.Mark
		if err := rows.Scan(&m.Name, &m.Kind, &m.Upto, &m.Closed, &m.At); err != nil {
			return nil, classify("reading marks", err)
		}
		marks = append(marks, m)
	}
	return marks, classify("reading marks", rows.Err())
}

// SetMarks stores marks.
func (s *Store) SetMarks(ctx context.Context, marks []alert.Mark) error {
	sum := sha256.New()
	for _, m := range marks {
		fmt.Fprint(sum, m.Name, m.Kind, m.Upto.UnixNano(), m.Closed, m.At.UnixNano())
	}
	err := s.insert(ctx, "INSERT INTO "+s.c.Database+".alert_marks (name, kind, upto, closed, at)", sum.Sum(nil), func(b driver.Batch) error {
		for _, m := range marks {
			if err := b.Append(m.Name, m.Kind, m.Upto, m.Closed, m.At); err != nil {
				return err
			}
		}
		return nil
	})
	return classify("writing marks", err)
}

// RegisterReceiver returns the time since which a receiver gets alerts: now,
// if it is new. It does not get older ones.
func (s *Store) RegisterReceiver(ctx context.Context, receiver string) (since time.Time, err error) {
	qctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	row := s.conn.QueryRow(qctx, "SELECT min(at) FROM "+s.c.Database+".alert_deliveries WHERE receiver = ? AND alert_id = ''", receiver)
	if err := row.Scan(&since); err != nil {
		return since, classify("looking for a receiver", err)
	}
	if since = zeroTime(since); !since.IsZero() {
		return since, nil
	}
	since = time.Now()
	return since, s.InsertDeliveries(ctx, receiver, []string{""}, "registered")
}

// InsertDeliveries stores the results of deliveries.
func (s *Store) InsertDeliveries(ctx context.Context, receiver string, ids []string, state string) error {
	sum := sha256.New()
	fmt.Fprint(sum, receiver, "\x00", state, strings.Join(ids, " "))
	now := time.Now()
	err := s.insert(ctx, "INSERT INTO "+s.c.Database+".alert_deliveries (alert_id, receiver, at, state)", sum.Sum(nil), func(b driver.Batch) error {
		for _, id := range ids {
			if err := b.Append(id, receiver, now, state); err != nil {
				return err
			}
		}
		return nil
	})
	return classify("noting deliveries", err)
}

// Undelivered returns up to limit alerts that were not delivered to a
// receiver, in the order in which they were stored, after one of them or
// after a time.
func (s *Store) Undelivered(ctx context.Context, receiver string, after alert.Alert, limit int) ([]alert.Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	sql := "SELECT " + alertColumns + " FROM " + s.c.Database + ".alerts FINAL WHERE NOT suppressed" +
		" AND (stored_at, alert_id) > (fromUnixTimestamp64Milli(?, 'UTC'), ?)" +
		" AND alert_id NOT IN (SELECT alert_id FROM " + s.c.Database + ".alert_deliveries WHERE receiver = ?) ORDER BY stored_at, alert_id LIMIT ?"
	rows, err := s.conn.Query(ctx, sql, after.StoredAt.UnixMilli(), after.ID, receiver, limit)
	if err != nil {
		return nil, classify("reading alerts", err)
	}
	defer rows.Close()
	var list []alert.Alert
	for rows.Next() {
		var a alert.Alert
		var severity string
		var record uuid.UUID
		var to *time.Time
		if err := rows.Scan(&a.ID, &a.Rule, &severity, &a.Title, &a.Reason, &a.Tenant, &a.Host, &a.User, &a.SessionID, &record, &a.CallNo,
			&a.Operation, &a.Path, &a.TS, &to, &a.Details, &a.Suppressed, &a.SuppressKey, &a.StoredAt); err != nil {
			return nil, classify("reading alerts", err)
		}
		a.Severity = alert.Severity(severity)
		if record != uuid.Nil {
			a.RecordID = record.String()
		}
		if to != nil {
			a.WindowTo = *to
		}
		list = append(list, a)
	}
	return list, classify("reading alerts", rows.Err())
}

// Ask calls do with each row of the result of sql, which has the parameter
// since. It ends with the first error of do.
func Ask(ctx context.Context, db driver.Conn, sql string, since time.Time, do func(map[string]any) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"since": since.UTC().Format("2006-01-02 15:04:05.000")}))
	rows, err := db.Query(ctx, sql)
	if err != nil {
		return classify("asking", err)
	}
	defer rows.Close()
	names, types := rows.Columns(), rows.ColumnTypes()
	for rows.Next() {
		values := make([]any, len(types))
		for i, t := range types {
			values[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(values...); err != nil {
			return classify("asking", err)
		}
		row := make(map[string]any, len(names))
		for i, name := range names {
			row[name] = reflect.ValueOf(values[i]).Elem().Interface()
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return classify("asking", rows.Err())
}

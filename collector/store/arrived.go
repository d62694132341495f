package store

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// arrived is the condition on when a record was stored.
const arrived = "ingested_at > fromUnixTimestamp64Milli(?, 'UTC') AND ingested_at <= fromUnixTimestamp64Milli(?, 'UTC')"

// arrivedPage is the number of records that Arrived reads before it calls do.
const arrivedPage = 1000

// Arrived calls do with the records that arrived after one time and up to
// another, in pages. A duplicate may be passed twice. It ends with the first
// error of do.
func (s *Store) Arrived(ctx context.Context, after, upto time.Time, do func([]ingest.Row) error) error {
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	rows, err := conn.Query(ctx, "SELECT raw FROM "+s.db.Name()+".events WHERE "+arrived,
		after.UnixMilli(), upto.UnixMilli())
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	defer rows.Close()
	page := make([]ingest.Row, 0, arrivedPage)
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return clickhouse.Classify("reading records", err)
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
		return clickhouse.Classify("reading records", err)
	}
	if len(page) == 0 {
		return nil
	}
	return do(page)
}

// CountArrived returns the number of records that Arrived would read.
func (s *Store) CountArrived(ctx context.Context, after, upto time.Time) (n uint64, err error) {
	err = s.one(ctx, "counting records", "SELECT count() FROM "+s.db.Name()+".events WHERE "+arrived, []any{after.UnixMilli(), upto.UnixMilli()}, &n)
	return n, err
}

// rememberTimeout is for what a rule has seen in all records, once.
const rememberTimeout = time.Hour

// Remember runs a statement that stores what rules have seen, of records that
// arrived after one time and up to another. It may be repeated.
func (s *Store) Remember(ctx context.Context, sql string, after, upto time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, rememberTimeout)
	defer cancel()
	// The local engine gives an INSERT no parameters.
	sql = strings.NewReplacer("${database}", s.db.Name(), "{after:DateTime64(3)}", fromMillis(after), "{upto:DateTime64(3)}", fromMillis(upto)).Replace(sql)
	ctx, conn, err := s.db.Settled(ctx)
	if err == nil {
		err = conn.Exec(ctx, sql)
	}
	return clickhouse.Classify("remembering what rules have seen", err)
}

// fromMillis is a time in SQL.
func fromMillis(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(%d, 'UTC')", max(t.UnixMilli(), 0))
}

// Ask calls do with each row of the result of q. It ends with the first error of do.
func (r *Reader) Ask(ctx context.Context, q alert.Question, since time.Time, do func(map[string]any) error) error {
	ctx = ch.Context(ctx, ch.WithParameters(ch.Parameters{"since": since.UTC().Format("2006-01-02 15:04:05.000")}))
	if q.Copies {
		ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"final": 0}))
	}
	ctx, conn, err := r.settled.Conn(ctx)
	if err != nil {
		return clickhouse.Classify("asking", err)
	}
	var rows driver.Rows
	err = patiently(ctx, func() (err error) {
		rows, err = conn.Query(ctx, q.SQL)
		return err
	})
	if err != nil {
		return clickhouse.Classify("asking", err)
	}
	defer rows.Close()
	names, types := rows.Columns(), rows.ColumnTypes()
	for rows.Next() {
		values := make([]any, len(types))
		for i, t := range types {
			values[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(values...); err != nil {
			return clickhouse.Classify("asking", err)
		}
		row := make(map[string]any, len(names))
		for i, name := range names {
			row[name] = reflect.ValueOf(values[i]).Elem().Interface()
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return clickhouse.Classify("asking", rows.Err())
}

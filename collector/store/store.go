// Package store keeps the collector's tables in ClickHouse and asks them.
//
// A Store has a writer's rights: it inserts, so that a repeated insert changes
// nothing, and reads what the collector needs to continue. A Reader has a reader's
// rights: it runs the queries of the review page and of rules.
//
// Every value is a query parameter; only the set of conditions in the SQL
// varies. A record that is stored twice counts once: queries on events use
// FINAL, and those on the tables of 0005_review.sql read columns that
// duplicates do not change.
//
// The files, from the top: attention, overview, decisions, record, sessions,
// calls, filter, line, inventory, tenant, replay, deliveries, alerts, letters,
// gaps, marks, arrived, window, reader, store.
package store

import (
	"context"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Store is the tables, for the collector. Its methods may be called
// concurrently.
type Store struct {
	db    *clickhouse.DB
	flood alert.Flood
}

// Open checks c and returns a store. It does not connect.
func Open(c clickhouse.Config) (*Store, error) {
	db, err := clickhouse.Open(c)
	if err != nil {
		return nil, err
	}
	return &Store{db: db}, nil
}

// DB returns the tables' database.
func (s *Store) DB() *clickhouse.DB { return s.db }

// Close closes the connections.
func (s *Store) Close() error { return s.db.Close() }

// Ping checks that ClickHouse answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Migrate applies missing migrations, see clickhouse.DB.
func (s *Store) Migrate(ctx context.Context, keep clickhouse.Retention) (clickhouse.Applied, error) {
	return s.db.Migrate(ctx, keep)
}

// InsertRows implements collector.Inserter.
func (s *Store) InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	return s.db.InsertRows(ctx, rows, at)
}

// one asks for one row once what was stored is visible, and scans it.
func (s *Store) one(ctx context.Context, doing, sql string, args []any, to ...any) error {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err == nil {
		err = conn.QueryRow(ctx, sql, args...).Scan(to...)
	}
	return clickhouse.Classify(doing, err)
}

// each returns a function that appends the row of each element of list to a batch.
func each[T any](list []T, row func(T) []any) func(driver.Batch) error {
	return func(b driver.Batch) error {
		for _, of := range list {
			if err := b.Append(row(of)...); err != nil {
				return err
			}
		}
		return nil
	}
}

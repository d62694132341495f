// Package store runs the review page's queries.
//
// Every value is a query parameter; only the set of conditions in the SQL
// varies. A record that is stored twice counts once: queries on events use
// FINAL, and those on the tables of 0005_review.sql read columns that
// duplicates do not change.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Config configures a Store.
type Config struct {
	// Reader queries the database of the records with a reader's rights and
	// final = 1. Required.
	Reader driver.Conn

	// Writer may insert into alert_events of the same database. Nil: alerts cannot
	// be acknowledged.
	Writer driver.Conn

	Database string        // an identifier. Required.
	Timeout  time.Duration // of one query; zero: 10 s
}

// A Store runs queries. Its methods may be called concurrently.
type Store struct {
	c Config
}

// New checks c. It does not connect.
func New(c Config) (*Store, error) {
	if c.Reader == nil || c.Database == "" {
		return nil, errors.New("configuring the store: want a connection and a database")
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	return &Store{c}, nil
}

// ErrNotFound means that the object does not exist, or that this reader may
// not see it.
var ErrNotFound = errors.New("not found")

// errTooLong ends a query that takes too long.
var errTooLong = errors.New("the question took too long: choose a shorter time or fewer conditions")

// A Window is a time from From up to, and without, To.
type Window struct{ From, To time.Time }

// args are the parameters of a query by name.
type args map[string]any

func (a args) named() []any {
	list := make([]any, 0, len(a))
	for name, v := range a {
		list = append(list, clickhouse.Named(name, v))
	}
	return list
}

// micros formats a time as a parameter, for fromUnixTimestamp64Micro: text
// would have to be in the right time zone, and ClickHouse's numbers end in
// 2299.
func micros(t time.Time) int64 { return t.UnixMicro() }

// limited returns a context that ends after the store's timeout. It has no
// deadline: the driver would send one as a setting, which a user who may only
// read must not set.
func (s *Store) limited(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(s.c.Timeout, func() { cancel(errTooLong) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// ask returns the rows of a query, each in a struct whose fields name their
// columns. what names the object in errors.
func ask[T any](ctx context.Context, s *Store, what, sql string, a args) ([]T, error) {
	ctx, done := s.limited(ctx)
	defer done()
	var list []T
	if err := s.c.Reader.Select(ctx, &list, sql, a.named()...); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	return list, nil
}

// askOne is ask for one row; without any it is the zero value.
func askOne[T any](ctx context.Context, s *Store, what, sql string, a args) (row T, err error) {
	list, err := ask[T](ctx, s, what, sql, a)
	if len(list) > 0 {
		row = list[0]
	}
	return row, err
}

// accessDenied is the server's code for a user who may not see a table.
const accessDenied = 497

// denied reports whether err means that this user may not see the table.
func denied(err error) bool {
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == accessDenied
}

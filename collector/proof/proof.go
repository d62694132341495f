// Package proof reads the records that ClickHouse has for their verification, and
// verifies those that arrive.
//
// It reads without FINAL, so that a second version of a record shows, and
// compares the columns of each row with its raw bytes. Of records that retention
// removed or that were erased it has the leaves.
//
// The files, from the top: prove, job, check, read, span, sessions, proof.
package proof

import (
	"cmp"
	"context"
	"strings"

	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Source is the records of a database. Its methods are not for concurrent use.
type Source struct {
	DB    *clickhouse.DB
	Sizes Sizes

	typed *clickhouse.Typed
	line  []byte // Raw of a row, reused
}

// NewSource returns the source. It does not connect.
func NewSource(db *clickhouse.DB) *Source {
	return &Source{DB: db, typed: clickhouse.NewTyped()}
}

// Sizes bound the memory of this program and of ClickHouse, which sorts the rows of
// a query. What is 0 has its default.
type Sizes struct {
	Rows     int // of one query; 20000
	Sessions int // of one query; 1000
	Page     int // sessions whose numbers of rows are known at a time; 20000
}

func (s Sizes) orDefault() Sizes {
	return Sizes{cmp.Or(s.Rows, 20_000), cmp.Or(s.Sessions, 1000), cmp.Or(s.Page, 20_000)}
}

// settings bound memory and time: ClickHouse makes a text of each row to hash it,
// and a verification that uses all cores would disturb what is stored meanwhile.
func settings() ch.Settings {
	return ch.Settings{"max_block_size": 2048, "max_threads": 1, "max_bytes_before_external_sort": 128 << 20}
}

// query calls do for each row of a result.
func (s *Source) query(ctx context.Context, doing, sql string, do func(driver.Rows) error) error {
	return s.queryWith(ctx, settings(), doing, sql, do)
}

func (s *Source) queryWith(ctx context.Context, settings ch.Settings, doing, sql string, do func(driver.Rows) error) error {
	ctx, cancel := s.DB.Long(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return clickhouse.Classify(doing, err)
	}
	rows, err := conn.Query(ch.Context(ctx, ch.WithSettings(settings)), sql)
	if err != nil {
		return clickhouse.Classify(doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return clickhouse.Classify(doing, rows.Err())
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

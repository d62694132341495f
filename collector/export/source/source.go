// Package source reads stored records in the order of their arrival.
package source

import (
	"context"
	"fmt"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

const (
	page   = 1000   // records that Read gives at once
	window = 50_000 // records that one query reads, more if more arrived in one millisecond
	times  = 10_000 // milliseconds with arrivals that are counted at once

	// A hostile record has 256 KiB, so a window is sorted on the disk beyond this.
	sortMemory = 64 << 20 // bytes

	// abandoned is the age of a mark that holds back nothing: what that run still
	// stores is marked as late, see alert.Engine.
	abandoned = 3 * time.Minute
)

// A Source is the table of records. Its methods may be called concurrently.
type Source struct{ DB *clickhouse.DB }

// A Position is a place in the order of arrival. The zero value is before all
// records.
type Position struct {
	Arrived time.Time // in milliseconds
	Session string    // "": before the records that arrived then
	Seq     uint64
	Hash    [16]byte // of the record's bytes, see ingest.Row
}

// After returns the position of a record.
func After(r *receiver.Record) Position {
	return Position{r.Arrived, r.Record.SessionID, r.Record.Seq, r.Hash}
}

// Upto returns the position after all records that arrived until a time.
func Upto(t time.Time) Position {
	return Position{Arrived: t.Truncate(time.Millisecond).Add(time.Millisecond)}
}

// Settled returns the time until which everything that arrived can be read:
// nothing that arrives later gets an earlier time, of any running collector.
func (s Source) Settled(ctx context.Context, now time.Time) (time.Time, error) {
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return time.Time{}, clickhouse.Classify("reading how far records are stored", err)
	}
	rows, err := conn.Query(ctx, "SELECT upto, at FROM "+s.DB.Name()+".alert_marks FINAL WHERE kind = ? AND NOT closed", alert.MarkRun)
	if err != nil {
		return time.Time{}, clickhouse.Classify("reading how far records are stored", err)
	}
	defer rows.Close()
	settled := now
	for rows.Next() {
		var upto, at time.Time
		if err := rows.Scan(&upto, &at); err != nil {
			return time.Time{}, clickhouse.Classify("reading how far records are stored", err)
		}
		if now.Sub(at) < abandoned && upto.Before(settled) {
			settled = upto
		}
	}
	return settled.Truncate(time.Millisecond), clickhouse.Classify("reading how far records are stored", rows.Err())
}

// Count returns the number of records after a position that arrived until a time,
// and when the first of them did. Duplicates are counted.
func (s Source) Count(ctx context.Context, after Position, upto time.Time) (n uint64, first time.Time, err error) {
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err == nil {
		where, args := after.condition(upto)
		err = conn.QueryRow(ctx, "SELECT count(), min(ingested_at) FROM "+s.DB.Name()+".events WHERE "+where, args...).Scan(&n, &first)
	}
	if n == 0 {
		first = time.Time{}
	}
	return n, first, clickhouse.Classify("counting records", err)
}

// Read calls do with the records after a position that arrived until a time, in
// the order of arrival and, among those that arrived together, by session and
// number. They are valid until do returns. A record that is stored twice may be
// passed twice. Read ends with the first error of do, and can be continued after
// the last record that do took. Its memory does not depend on how many there are.
func (s Source) Read(ctx context.Context, after Position, upto time.Time, do func([]receiver.Record) error) error {
	for {
		until, more, err := s.window(ctx, after, upto)
		if err != nil || until.IsZero() {
			return err
		}
		if err := s.read(ctx, after, until, do); err != nil {
			return err
		}
		if !more {
			return nil
		}
		after = Upto(until)
	}
}

// window returns the time until which the next records are read with one query,
// zero if there are none, and whether there are more after it.
func (s Source) window(ctx context.Context, after Position, upto time.Time) (until time.Time, more bool, err error) {
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return until, false, clickhouse.Classify("counting records", err)
	}
	where, args := after.condition(upto)
	rows, err := conn.Query(ctx, "SELECT ingested_at, count() FROM "+s.DB.Name()+".events WHERE "+where+
		fmt.Sprintf(" GROUP BY ingested_at ORDER BY ingested_at LIMIT %d", times), args...)
	if err != nil {
		return until, false, clickhouse.Classify("counting records", err)
	}
	defer rows.Close()
	var total, lines uint64
	for rows.Next() {
		var at time.Time
		var n uint64
		if err := rows.Scan(&at, &n); err != nil {
			return until, false, clickhouse.Classify("counting records", err)
		}
		if total > 0 && total+n > window {
			return until, true, nil
		}
		until, total = at, total+n
		lines++
	}
	return until, lines == times, clickhouse.Classify("counting records", rows.Err())
}

// read reads the records of one window.
func (s Source) read(ctx context.Context, after Position, until time.Time, do func([]receiver.Record) error) error {
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"max_threads": 1, "max_bytes_before_external_sort": sortMemory}))
	where, args := after.condition(until)
	rows, err := conn.Query(ctx, "SELECT raw, payload_hash, ingested_at FROM "+s.DB.Name()+".events WHERE "+where+
		" ORDER BY ingested_at, session_id, seq, payload_hash", args...)
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	defer rows.Close()
	records := make([]receiver.Record, 0, page)
	for rows.Next() {
		var hash string
		var r receiver.Record
		if err := rows.Scan(&r.Raw, &hash, &r.Arrived); err != nil {
			return clickhouse.Classify("reading records", err)
		}
		if r.Record, err = audit.Parse([]byte(r.Raw)); err != nil {
			return fmt.Errorf("reading records: %w", err) // it was one when it was stored
		}
		copy(r.Hash[:], hash)
		r.Operations = audit.Operations(&r.Record)
		if records = append(records, r); len(records) == page {
			if err := do(records); err != nil {
				return err
			}
			clear(records)
			records = records[:0]
		}
	}
	if err := rows.Err(); err != nil {
		return clickhouse.Classify("reading records", err)
	}
	if len(records) == 0 {
		return nil
	}
	return do(records)
}

// condition returns the condition on records after p that arrived until a time.
func (p Position) condition(upto time.Time) (sql string, args []any) {
	sql = "ingested_at <= fromUnixTimestamp64Milli(?, 'UTC')"
	args = append(args, upto.UnixMilli())
	switch {
	case p.Arrived.IsZero():
	case p.Session == "":
		sql += " AND ingested_at >= fromUnixTimestamp64Milli(?, 'UTC')"
		args = append(args, p.Arrived.UnixMilli())
	default:
		// The first condition alone finds the parts to read.
		sql += " AND ingested_at >= fromUnixTimestamp64Milli(?, 'UTC')" +
			" AND (ingested_at > fromUnixTimestamp64Milli(?, 'UTC') OR (session_id, seq, payload_hash) > (?, ?, unhex(?)))"
		args = append(args, p.Arrived.UnixMilli(), p.Arrived.UnixMilli(), p.Session, p.Seq, fmt.Sprintf("%x", p.Hash))
	}
	return sql, args
}

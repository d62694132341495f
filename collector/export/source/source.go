// Package source reads stored records in the order of their arrival.
package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// Page is the most records that Read gives at once.
	Page = 1000

	// A hostile record has 256 KiB. So a page ends when it has so many bytes, the
	// driver gets few records at once, and a window is sorted on the disk beyond.
	pageBytes  = 4 << 20
	blockRows  = 128
	sortMemory = 64 << 20

	window = 50_000 // records that one query reads, more if more arrived in one millisecond
	times  = 10_000 // milliseconds with arrivals that are counted at once

	// abandoned is the age of a mark that holds back nothing without Run.
	abandoned = 3 * time.Minute
)

// ErrDamaged means that a row is not the record any more that it was when it was
// stored.
var ErrDamaged = errors.New("the stored record is damaged")

// A Source is the table of records. Its methods may be called concurrently.
type Source struct {
	DB *clickhouse.DB

	// Run is the run of a collector in this process, whose engine closes the marks
	// of dead runs: an open mark is waited for until then. "": there is none, and a
	// mark that is old holds back nothing.
	Run string

	// Grace is how long an insert of a dead run may still become visible, after
	// its mark was closed. Zero: the database ends with the run.
	Grace time.Duration

	// Unreadable is called for a row that is not the record it was when it was
	// stored, which Read passes over if it returns nil. nil: Read ends with an error.
	Unreadable func(at Position, err error) error
}

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
// nothing that arrives later gets an earlier time, of any running collector, or it
// is reported as late, see alert.Engine. With Run it is never after the mark of some
// run, so that a run which starts can see how far readers are.
func (s Source) Settled(ctx context.Context, now time.Time) (time.Time, error) {
	const doing = "reading how far records are stored"
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return time.Time{}, clickhouse.Classify(doing, err)
	}
	rows, err := conn.Query(ctx, "SELECT upto, closed, at FROM "+s.DB.Name()+".alert_marks FINAL WHERE kind = ? AND (NOT closed OR at > fromUnixTimestamp64Milli(?, 'UTC'))", alert.MarkRun, now.Add(-s.Grace).UnixMilli())
	if err != nil {
		return time.Time{}, clickhouse.Classify(doing, err)
	}
	defer rows.Close()
	settled, held := now, false
	for rows.Next() {
		var upto, at time.Time
		var closed bool
		if err := rows.Scan(&upto, &closed, &at); err != nil {
			return time.Time{}, clickhouse.Classify(doing, err)
		}
		switch {
		case closed && !upto.Before(at): // by the run itself: nothing is after it
			continue
		case !closed && s.Run == "" && now.Sub(at) >= abandoned:
			continue
		case closed && at.After(now) && now.Sub(upto) > abandoned+s.Grace:
			continue // by a clock that was ahead, and was set back since: when is not known, but by then
		}
		held = true
		if upto.Before(settled) {
			settled = upto
		}
	}
	if err := rows.Err(); err != nil {
		return time.Time{}, clickhouse.Classify(doing, err)
	}
	if !held && s.Run != "" {
		return time.Time{}, errors.New("this collector's mark is not there, so how far records are stored is not known")
	}
	return settled.Truncate(time.Millisecond), nil
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
		next, more, err := s.ReadSome(ctx, after, upto, window, do)
		if err != nil || !more {
			return err
		}
		after = next
	}
}

// ReadSome is Read for at most so many records, with one query. It returns the
// position after those that were read, and whether there can be more.
func (s Source) ReadSome(ctx context.Context, after Position, upto time.Time, limit int, do func([]receiver.Record) error) (next Position, more bool, err error) {
	until, more, err := s.window(ctx, after, upto, limit)
	if err != nil || until.IsZero() {
		return Upto(upto), false, err
	}
	last, n := after, 0
	tell := s.Unreadable
	s.Unreadable = func(at Position, err error) error {
		if tell == nil {
			return err
		}
		last = at
		n++
		return tell(at, err)
	}
	err = s.read(ctx, after, until, limit, func(records []receiver.Record) error {
		if err := do(records); err != nil {
			return err
		}
		last = After(&records[len(records)-1])
		n += len(records)
		return nil
	})
	switch {
	case err != nil:
		return last, true, err
	case n >= limit:
		return last, true, nil
	case more:
		return Upto(until), true, nil
	}
	return Upto(upto), false, nil
}

// window returns the time until which the next records are read with one query,
// zero if there are none, and whether there are more after it. There are at most so
// many, unless more arrived together: all are read and sorted for the first of them.
func (s Source) window(ctx context.Context, after Position, upto time.Time, most int) (until time.Time, more bool, err error) {
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
		if total > 0 && total+n > uint64(most) {
			return until, true, nil
		}
		until, total = at, total+n
		lines++
	}
	return until, lines == times, clickhouse.Classify("counting records", rows.Err())
}

// read reads at most so many records of one window.
func (s Source) read(ctx context.Context, after Position, until time.Time, limit int, do func([]receiver.Record) error) error {
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"max_threads": 1, "max_block_size": blockRows, "max_bytes_before_external_sort": sortMemory}))
	where, args := after.condition(until)
	rows, err := conn.Query(ctx, "SELECT "+columns+" FROM "+s.DB.Name()+".events WHERE "+where+
		fmt.Sprintf(" ORDER BY ingested_at, session_id, seq, payload_hash LIMIT %d", limit), args...)
	if err != nil {
		return clickhouse.Classify("reading records", err)
	}
	defer rows.Close()
	records, size := make([]receiver.Record, 0, min(Page, limit)), 0
	flush := func() error {
		if len(records) == 0 {
			return nil
		}
		if err := do(records); err != nil {
			return err
		}
		clear(records)
		records, size = records[:0], 0
		return nil
	}
	var text []byte
	for rows.Next() {
		records = records[:len(records)+1] // in place: a record is large
		r := &records[len(records)-1]
		at, problem, err := scan(rows, r, &text)
		if err != nil {
			return clickhouse.Classify("reading records", err)
		}
		if problem != nil {
			*r = receiver.Record{}
			records = records[:len(records)-1]
			// Those before it come first, so that the position after it is true.
			if err := flush(); err != nil {
				return err
			}
			if err := s.Unreadable(at, problem); err != nil {
				return err
			}
			continue
		}
		if size += len(r.Raw); len(records) == cap(records) || size >= pageBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return clickhouse.Classify("reading records", err)
	}
	return flush()
}

// columns are those that scan reads.
const columns = "raw, session_id, seq, payload_hash, ingested_at"

// scan reads the record of a row into r, which is empty, or returns the problem of one
// that is not the record any more that it was when it was stored. The memory of text
// is used.
func scan(row driver.Rows, r *receiver.Record, text *[]byte) (at Position, problem, err error) {
	var hash string
	if err := row.Scan(&r.Raw, &at.Session, &at.Seq, &hash, &at.Arrived); err != nil {
		return at, nil, err
	}
	copy(at.Hash[:], hash)
	r.Arrived, r.Hash = at.Arrived, at.Hash
	*text = append((*text)[:0], r.Raw...)
	err = r.Record.ParseCopied(*text, r.Raw)
	if err == nil && After(r) != at {
		err = errors.New("its columns are not those of its bytes")
	}
	if err != nil {
		return at, fmt.Errorf("reading a record of session %q: %w", at.Session, err), nil
	}
	r.Operations = audit.Operations(&r.Record)
	return at, nil, nil
}

// Find returns the record of a tenant, "" for any, at a position, nil if it is not
// stored any more, and ErrDamaged for a row that Read would pass over.
// Its arrival may be another now: of two copies the first stays.
func (s Source) Find(ctx context.Context, tenant string, at Position) (*receiver.Record, error) {
	const doing = "looking for a record"
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return nil, clickhouse.Classify(doing, err)
	}
	rows, err := conn.Query(ctx, "SELECT "+columns+" FROM "+s.DB.Name()+".events WHERE (tenant = ? OR ? = '') AND session_id = ? AND seq = ? AND payload_hash = toFixedString(unhex(?), 16) LIMIT 1",
		tenant, tenant, at.Session, at.Seq, Hex(at.Hash))
	if err != nil {
		return nil, clickhouse.Classify(doing, err)
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, clickhouse.Classify(doing, rows.Err())
	}
	var r receiver.Record
	_, problem, err := scan(rows, &r, new([]byte))
	if err != nil {
		return nil, clickhouse.Classify(doing, err)
	}
	if problem != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, problem)
	}
	return &r, nil
}

// Hex returns a hash for SQL.
func Hex(hash [16]byte) string { return fmt.Sprintf("%x", hash) }

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
			" AND (ingested_at > fromUnixTimestamp64Milli(?, 'UTC') OR (session_id, seq, payload_hash) > (?, ?, toFixedString(unhex(?), 16)))"
		args = append(args, p.Arrived.UnixMilli(), p.Arrived.UnixMilli(), p.Session, p.Seq, Hex(p.Hash))
	}
	return sql, args
}

package proof

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Row is a stored record, or the leaf of one that is here no more.
type Row struct {
	Session string
	Seq     uint64 // as the column has it

	Raw     []byte    // nil: only the leaf is here
	Arrived time.Time // if Raw is not nil

	Leaf     evidence.Hash // if Raw is nil
	Evidence audit.JSON    // of a leaf

	// Unreadable is why Raw is not a record.
	Unreadable error
	// Differs has the columns that are not what Raw says.
	Differs []string
	differs bool
}

// Read calls do with the rows of sessions, ordered by session and number; of one
// number, the leaves come last. A row that is there twice with equal bytes is passed
// twice. A row is valid until do returns. It ends with the first error of do.
func (s *Source) Read(ctx context.Context, sessions []Session, do func(*Row) error) error {
	size := s.Sizes.orDefault()
	for len(sessions) > 0 {
		n, rows := 0, uint64(0)
		for n < len(sessions) && n < size.Sessions && (n == 0 || rows+sessions[n].Rows <= uint64(size.Rows)) {
			rows += sessions[n].Rows
			n++
		}
		spans := []span{{}}
		if rows > uint64(size.Rows) {
			var err error
			width := uint64(max(1, size.Rows-1)) // a page that is full has another one after it
			if spans, err = s.spans(ctx, sessions[0].ID, width); err != nil {
				return err
			}
		}
		for _, part := range spans {
			if err := s.read(ctx, sessions[:n], part, do); err != nil {
				return err
			}
		}
		sessions = sessions[n:]
	}
	return nil
}

// read reads a span of the rows of sessions, page by page: copies of a row may be any
// number.
func (s *Source) read(ctx context.Context, sessions []Session, part span, do func(*Row) error) error {
	limit := s.Sizes.orDefault().Rows
	ids := make([]string, len(sessions))
	first, last := sessions[0].First, sessions[0].Last
	for i, one := range sessions {
		ids[i] = quote(one.ID)
		if one.First.Before(first) {
			first = one.First
		}
		if one.Last.After(last) {
			last = one.Last
		}
	}
	in, from, leavesFrom := strings.Join(ids, ", "), part.ofEvents(), part.ofLeaves()
	for {
		sql := strings.NewReplacer("${database}", s.DB.Name(), "${in}", in, "${from}", from, "${leaves_from}", leavesFrom, "${columns}", s.typed.SQL(), "${between}", between(first, last), "${limit}", fmt.Sprint(limit)).Replace(`
SELECT session_id, seq, here, raw, hash, kept, arrived FROM (
    SELECT session_id, seq, true AS here, raw, ${columns} AS hash, '' AS kept, toUnixTimestamp64Milli(ingested_at) AS arrived FROM ${database}.events
    WHERE session_id IN (${in})${between}${from}
    UNION ALL
    SELECT session_id, seq, false, '', hash, evidence, 0 FROM ${database}.leaves FINAL
    WHERE session_id IN (${in})${leaves_from})
ORDER BY session_id, seq, here DESC LIMIT ${limit} WITH TIES`)
		n, row, err := 0, Row{}, error(nil)
		err = s.query(ctx, "reading records to verify", sql, func(rows driver.Rows) error {
			n++
			if err = s.scan(rows, &row); err != nil {
				return err
			}
			if row.differs {
				if row.Differs, err = s.differing(ctx, &row); err != nil {
					return err
				}
			}
			return do(&row)
		})
		if err != nil || n < limit {
			return err
		}
		last := fmt.Sprintf("(%s, %d)", quote(row.Session), row.Seq)
		after := " AND (session_id, seq) > " + last
		from, leavesFrom = part.ofEvents()+after, part.ofLeaves()+after
		if row.Raw != nil {
			leavesFrom = part.ofLeaves() + " AND (session_id, seq) >= " + last
		}
	}
}

// scan reads a row and compares its columns with its raw bytes.
func (s *Source) scan(rows driver.Rows, row *Row) error {
	*row = Row{}
	var raw, hash, kept string
	var here bool
	var arrived int64
	if err := rows.Scan(&row.Session, &row.Seq, &here, &raw, &hash, &kept, &arrived); err != nil {
		return clickhouse.Classify("reading records to verify", err)
	}
	if !here {
		row.Leaf, row.Evidence = evidence.Hash([]byte(hash)), audit.JSON(kept)
		return nil
	}
	s.line = append(s.line[:0], raw...)
	row.Raw, row.Arrived = s.line, time.UnixMilli(arrived)
	stored := s.typed.Row()
	*stored = ingest.Row{Raw: raw}
	if row.Unreadable = stored.Record.ParseBounded(row.Raw, raw); row.Unreadable != nil {
		return nil
	}
	sum := sha256.Sum256(row.Raw)
	stored.Operations, stored.Hash = audit.Operations(&stored.Record), [16]byte(sum[:])
	row.differs = !s.typed.Agrees(hash)
	return nil
}

// differing names the columns in which any stored version of a row differs from
// its raw bytes.
func (s *Source) differing(ctx context.Context, row *Row) (names []string, err error) {
	sql := "SELECT raw, " + s.typed.ColumnSQL() + " FROM " + s.DB.Name() + ".events WHERE session_id = " + quote(row.Session) + fmt.Sprintf(" AND seq = %d LIMIT 8", row.Seq)
	err = s.query(ctx, "comparing the columns of a record", sql, func(rows driver.Rows) error {
		var raw string
		var values []string
		if err := rows.Scan(&raw, &values); err != nil {
			return err
		}
		if raw == string(row.Raw) {
			names = append(names, s.typed.Differing(func(i int) string { return values[i] })...)
		}
		return nil
	})
	if len(names) == 0 {
		names = []string{"some, which were changed again meanwhile"}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

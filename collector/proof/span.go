package proof

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A span is the rows of a session with some numbers, few enough for one query. The zero
// value is all of them.
//
// Rows of a session lie by their time. A query for the first rows by number reads all
// that are left: for a session of a million records, each of them a hundred times.
type span struct {
	from, to uint64 // numbers, without to; 0: all from from on

	// The times of the records, to look nowhere else, if each number is there: zero if
	// not, since a record that arrives while others are read may have another time.
	first, last time.Time
}

// spans divides a session into spans of at most so many rows, in order. Of one that is
// short there is one.
func (s *Source) spans(ctx context.Context, session string, width uint64) (list []span, err error) {
	sql := strings.NewReplacer("${database}", s.DB.Name(), "${session}", quote(session), "${width}", fmt.Sprint(width)).Replace(`
SELECT intDiv(seq, ${width}) AS part, count(), groupBitmap(seq), min(first), max(last) FROM (
    SELECT seq, ts AS first, ts AS last FROM ${database}.events WHERE session_id = ${session}
    UNION ALL
    SELECT seq, toDateTime64('2200-01-01 00:00:00', 6, 'UTC'), toDateTime64(0, 6, 'UTC') FROM ${database}.leaves WHERE session_id = ${session})
GROUP BY part ORDER BY part`)
	var rows uint64 // of the last span
	err = s.query(ctx, "dividing a session", sql, func(r driver.Rows) error {
		var part, n, numbers uint64
		next := span{}
		if err := r.Scan(&part, &n, &numbers, &next.first, &next.last); err != nil {
			return err
		}
		next.to = part*width + width // of the highest numbers too small, but the last span has no end
		if i := len(list) - 1; i >= 0 {
			next.from = list[i].to
			if rows+n <= width {
				list[i], rows = span{from: list[i].from, to: next.to}, rows+n
				return nil
			}
		}
		if numbers < next.to-next.from {
			next.first, next.last = time.Time{}, time.Time{}
		}
		list, rows = append(list, next), n
		return nil
	})
	if err != nil || len(list) == 0 {
		return []span{{}}, err
	}
	last := &list[len(list)-1]
	*last = span{from: last.from} // what arrives meanwhile is read too
	return list, nil
}

// ofEvents returns the condition for the span's records.
func (p span) ofEvents() string {
	if p.last.IsZero() {
		return p.ofLeaves()
	}
	return p.ofLeaves() + fmt.Sprintf(" AND ts >= fromUnixTimestamp64Micro(%d, 'UTC') AND ts <= fromUnixTimestamp64Micro(%d, 'UTC')", p.first.UnixMicro(), p.last.UnixMicro())
}

// ofLeaves returns the condition for its leaves, which have no time.
func (p span) ofLeaves() string {
	text := ""
	if p.from > 0 {
		text += fmt.Sprintf(" AND seq >= %d", p.from)
	}
	if p.to > 0 {
		text += fmt.Sprintf(" AND seq < %d", p.to)
	}
	return text
}

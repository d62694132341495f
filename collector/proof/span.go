package proof

import (
	"context"
	"fmt"
	"math"
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
	sql := strings.NewReplacer("${database}", s.DB.Name(), "${session}", quote(session), "${width}", fmt.Sprint(width), "${never}", never).Replace(`
SELECT intDiv(seq, ${width}) AS part, count(), groupBitmap(seq), min(first), max(last) FROM (
    SELECT seq, toUnixTimestamp64Micro(ts) AS first, toUnixTimestamp64Micro(ts) AS last FROM ${database}.events WHERE session_id = ${session}
    UNION ALL
    SELECT seq, ${never}, toInt64(0) FROM ${database}.leaves WHERE session_id = ${session})
GROUP BY part ORDER BY part`)
	var rows uint64 // of the last span
	err = s.query(ctx, "dividing a session", sql, func(r driver.Rows) error {
		var part, n, numbers uint64
		var first, last int64
		if err := r.Scan(&part, &n, &numbers, &first, &last); err != nil {
			return err
		}
		next := span{first: time.UnixMicro(first), last: time.UnixMicro(last)}
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
	return p.ofLeaves() + between(p.first, p.last)
}

// between returns the condition for records of a time. Their index has the hour in 32 bits,
// which is another one before 1970 and after 2106: who writes a row with such a time would
// have it passed over.
func between(first, last time.Time) string {
	if first.Unix() < 0 || last.Unix() > math.MaxUint32 {
		return ""
	}
	return fmt.Sprintf(" AND ts >= fromUnixTimestamp64Micro(%d, 'UTC') AND ts <= fromUnixTimestamp64Micro(%d, 'UTC')", first.UnixMicro(), last.UnixMicro())
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

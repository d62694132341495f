package export

import (
	"context"
	"time"

	"auditproxy/collector/export/source"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Status is what is known of a receiver.
type Status struct {
	Mark
	Known   bool      // it has a mark
	Waiting uint64    // records that arrived after its position, also those that its filter leaves out
	First   time.Time // when the first of them did; zero: none
	Refused uint64    // records that it refused and has not taken since
	Asked   uint64    // those of them that are to be sent again
}

// Status returns what is known of receivers, in the order of their names: those of
// names, and with none all that have a mark.
func (t Tables) Status(ctx context.Context, names []string, now time.Time) ([]Status, error) {
	marks, err := t.Marks(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Status, 0, len(names))
	index := map[string]int{}
	add := func(name string) *Status {
		i, found := index[name]
		if !found {
			i = len(list)
			index[name] = i
			list = append(list, Status{Mark: Mark{Receiver: name}})
		}
		return &list[i]
	}
	for _, name := range names {
		add(name)
	}
	for _, m := range marks {
		s := add(m.Receiver)
		s.Mark, s.Known = m, true
		if s.Waiting, s.First, err = t.Count(ctx, m.Position, now); err != nil {
			return nil, err
		}
	}
	sql := "SELECT receiver, count(), countIf(asked_at != toDateTime64(0, 3, 'UTC')) FROM " + t.DB.Name() + ".export_refused FINAL WHERE sent_at = toDateTime64(0, 3, 'UTC') GROUP BY receiver"
	err = t.query(ctx, "counting refused records", sql, nil, func(r driver.Rows) error {
		var name string
		var refused, asked uint64
		err := r.Scan(&name, &refused, &asked)
		s := add(name)
		s.Refused, s.Asked = refused, asked
		return err
	})
	return list, err
}

// RefusedBy returns records that a receiver refused and has not taken since, in the
// order of their arrival, after one of them.
func (t Tables) RefusedBy(ctx context.Context, name string, after *Refused, limit int) ([]Refused, error) {
	if after == nil {
		return t.refused(ctx, "receiver = ?", []any{name}, limit)
	}
	return t.refused(ctx, "receiver = ? AND (arrived, session_id, seq, hash) > (fromUnixTimestamp64Milli(?, 'UTC'), ?, ?, toFixedString(unhex(?), 16))",
		[]any{name, after.Arrived.UnixMilli(), after.SessionID, after.Seq, source.Hex(after.Hash)}, limit)
}

// Ask has refused records sent again, those with a record id, or all for "", and
// returns how many. The collector that sends to the receiver does it.
func (t Tables) Ask(ctx context.Context, name, record string, now time.Time) (asked int, err error) {
	const page = 1000
	for after := (*Refused)(nil); ; {
		list, err := t.RefusedBy(ctx, name, after, page)
		if err != nil || len(list) == 0 {
			return asked, err
		}
		after = &list[len(list)-1]
		var ask []Refused
		for _, r := range list {
			if record == "" || r.RecordID == record {
				r.AskedAt, r.At = now, now
				ask = append(ask, r)
			}
		}
		if err := t.SetRefused(ctx, ask); err != nil {
			return asked, err
		}
		asked += len(ask)
	}
}

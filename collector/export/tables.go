package export

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Tables are the tables in ClickHouse. They implement Store, and their methods may be
// called concurrently.
type Tables struct{ source.Source }

// askedAtOnce is how many refused records are read at once.
const askedAtOnce = 100

// query runs a query that must not miss what was stored, and calls do for each row.
func (t Tables) query(ctx context.Context, doing, sql string, args []any, do func(driver.Rows) error) error {
	ctx, cancel := t.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := t.DB.Settled(ctx)
	if err != nil {
		return clickhouse.Classify(doing, err)
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return clickhouse.Classify(doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return clickhouse.Classify(doing, err)
		}
	}
	return clickhouse.Classify(doing, rows.Err())
}

// News implements Store. Its cost does not grow with the records: only what arrived
// last is read.
func (t Tables) News(ctx context.Context, after, upto time.Time) (n News, err error) {
	some, args := "1", []any(nil)
	switch {
	case after.IsZero():
	case !upto.After(after):
		some = "0"
	default:
		some = "(SELECT count() FROM (SELECT 1 FROM " + t.DB.Name() + ".events WHERE ingested_at > fromUnixTimestamp64Milli(?, 'UTC') AND ingested_at <= fromUnixTimestamp64Milli(?, 'UTC') LIMIT 1))"
		args = []any{after.UnixMilli(), upto.UnixMilli()}
	}
	sql := "SELECT toUInt64(" + some + "), (SELECT count() FROM " + t.DB.Name() + ".export_late WHERE receiver = ''), (SELECT toUInt64(sum(toUnixTimestamp64Milli(asked_at))) FROM " + t.DB.Name() + ".export_refused FINAL)"
	err = t.query(ctx, "looking for new records", sql, args, func(r driver.Rows) error {
		var records uint64
		err := r.Scan(&records, &n.Late, &n.Asked)
		n.Records = records > 0
		return err
	})
	return n, err
}

// ReadSome implements Store.
func (t Tables) ReadSome(ctx context.Context, after source.Position, upto time.Time, limit int, do func([]receiver.Record) error, unreadable func(source.Position, error) error) (source.Position, bool, error) {
	s := t.Source
	s.Unreadable = unreadable
	return s.ReadSome(ctx, after, upto, limit, do)
}

// Marks implements Store.
func (t Tables) Marks(ctx context.Context) (list []Mark, err error) {
	sql := "SELECT receiver, format, since, arrived, session, seq, hash, owner, sent, failing, error, at FROM " + t.DB.Name() + ".export_marks FINAL ORDER BY receiver"
	err = t.query(ctx, "reading the marks of receivers", sql, nil, func(r driver.Rows) error {
		var m Mark
		var hash string
		err := r.Scan(&m.Receiver, &m.Format, &m.Since, &m.Position.Arrived, &m.Position.Session, &m.Position.Seq, &hash, &m.Owner, &m.Sent, &m.Failing, &m.Error, &m.At)
		copy(m.Position.Hash[:], hash)
		m.Failing = zeroTime(m.Failing)
		list = append(list, m)
		return err
	})
	return list, err
}

// SetMarks implements Store. Of marks of one receiver, the latest counts.
func (t Tables) SetMarks(ctx context.Context, marks []Mark) error {
	sum := sha256.Sum256(fmt.Append(nil, marks))
	err := t.DB.Insert(ctx, "INSERT INTO "+t.DB.Name()+".export_marks (receiver, format, since, arrived, session, seq, hash, owner, sent, failing, error, at)", sum[:], func(b driver.Batch) error {
		for _, m := range marks {
			if err := b.Append(m.Receiver, m.Format, unixTime(m.Since), unixTime(m.Position.Arrived), m.Position.Session, m.Position.Seq, string(m.Position.Hash[:]),
				m.Owner, m.Sent, unixTime(m.Failing), m.Error, m.At); err != nil {
				return err
			}
		}
		return nil
	})
	return clickhouse.Classify("storing the marks of receivers", err)
}

// Late implements Store.
func (t Tables) Late(ctx context.Context, to string) (list []Late, err error) {
	table := t.DB.Name() + ".export_late FINAL"
	sql := "SELECT l.id, l.arrived, l.upto, s.upto FROM (SELECT id, arrived, upto FROM " + table + " WHERE receiver = '') AS l " +
		"LEFT JOIN (SELECT id, upto FROM " + table + " WHERE receiver = ?) AS s ON l.id = s.id WHERE s.id = '' OR s.upto < l.upto ORDER BY l.arrived, l.id"
	err = t.query(ctx, "reading late arrivals", sql, []any{to}, func(r driver.Rows) error {
		var l Late
		err := r.Scan(&l.ID, &l.From, &l.Upto, &l.Sent)
		l.Sent = zeroTime(l.Sent)
		list = append(list, l)
		return err
	})
	return list, err
}

// LateSent implements Store.
func (t Tables) LateSent(ctx context.Context, to string, list []Late, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	sum := sha256.Sum256(fmt.Append(nil, to, list))
	err := t.DB.Insert(ctx, "INSERT INTO "+t.DB.Name()+".export_late (id, receiver, arrived, upto, at)", sum[:], func(b driver.Batch) error {
		for _, l := range list {
			if err := b.Append(l.ID, to, l.From, l.Sent, now); err != nil {
				return err
			}
		}
		return nil
	})
	return clickhouse.Classify("noting that late arrivals were sent", err)
}

// SetRefused implements Store.
func (t Tables) SetRefused(ctx context.Context, list []Refused) error {
	if len(list) == 0 {
		return nil
	}
	sum := sha256.Sum256(fmt.Append(nil, list))
	err := t.DB.Insert(ctx, "INSERT INTO "+t.DB.Name()+".export_refused (receiver, tenant, session_id, seq, hash, record_id, user, arrived, reason, refused_at, asked_at, sent_at, at)", sum[:], func(b driver.Batch) error {
		for _, r := range list {
			if err := b.Append(r.Receiver, r.Tenant, r.SessionID, r.Seq, string(r.Hash[:]), r.RecordID, r.User, r.Arrived, r.Reason,
				r.RefusedAt, unixTime(r.AskedAt), unixTime(r.SentAt), r.At); err != nil {
				return err
			}
		}
		return nil
	})
	return clickhouse.Classify("storing refused records", err)
}

// Asked implements Store.
func (t Tables) Asked(ctx context.Context, to string) ([]Refused, error) {
	return t.refused(ctx, "receiver = ? AND asked_at != toDateTime64(0, 3, 'UTC')", []any{to}, askedAtOnce)
}

// refused returns refused records that were not sent, in the order of their arrival.
func (t Tables) refused(ctx context.Context, where string, args []any, limit int) (list []Refused, err error) {
	sql := "SELECT receiver, tenant, session_id, seq, hash, record_id, user, arrived, reason, refused_at, asked_at, at FROM " + t.DB.Name() +
		".export_refused FINAL WHERE sent_at = toDateTime64(0, 3, 'UTC') AND " + where + fmt.Sprintf(" ORDER BY receiver, arrived, session_id, seq, hash LIMIT %d", limit)
	err = t.query(ctx, "reading refused records", sql, args, func(rows driver.Rows) error {
		var r Refused
		var hash string
		err := rows.Scan(&r.Receiver, &r.Tenant, &r.SessionID, &r.Seq, &hash, &r.RecordID, &r.User, &r.Arrived, &r.Reason, &r.RefusedAt, &r.AskedAt, &r.At)
		copy(r.Hash[:], hash)
		r.AskedAt = zeroTime(r.AskedAt)
		list = append(list, r)
		return err
	})
	return list, err
}

// Find implements Store.
func (t Tables) Find(ctx context.Context, refused Refused) (*receiver.Record, error) {
	return t.Source.Find(ctx, refused.Tenant, source.Position{Arrived: refused.Arrived, Session: refused.SessionID, Seq: refused.Seq, Hash: refused.Hash})
}

// unixTime returns t, or 1970 for none: the column has no other zero.
func unixTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0)
	}
	return t
}

func zeroTime(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

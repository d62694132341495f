package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/sink/clickhouse"
)

// RegisterReceiver returns the time since which a receiver gets alerts: now, if it is new.
// It gets no older alerts. One with a place, in which its name begins, takes over from
// another one of that place that the last start had, and this one of current has not:
// its address was changed. Of several it is the one that is behind most.
func (s *Store) RegisterReceiver(ctx context.Context, receiver, place string, current []string) (since time.Time, err error) {
	qctx, cancel := s.db.Limited(ctx)
	defer cancel()
	const doing = "looking for a receiver"
	table := s.db.Name() + ".alert_deliveries"
	for _, takeOver := range []bool{false, place != ""} {
		if takeOver {
			err = s.db.Conn().Exec(qctx, "INSERT INTO "+table+" (alert_id, receiver, at, state) SELECT alert_id, $1, at, state FROM "+table+` FINAL WHERE state != 'started' AND receiver IN (
				SELECT receiver FROM `+table+` WHERE startsWith(receiver, $2) AND receiver NOT IN ($3) GROUP BY receiver
				HAVING maxIf(at, state = 'started') >= (SELECT maxOrNull(at) FROM `+table+` WHERE state = 'started' AND receiver = 'log') ORDER BY uniqExact(alert_id) LIMIT 1)`, receiver, place, current)
		}
		if err == nil {
			err = s.db.Conn().QueryRow(qctx, "SELECT min(at) FROM "+table+" WHERE receiver = ? AND alert_id = '' AND state != 'started'", receiver).Scan(&since)
		}
		if since = zeroTime(since); err != nil || !since.IsZero() {
			return since, clickhouse.Classify(doing, err)
		}
	}
	since = time.Now().Truncate(time.Millisecond) // as it is stored
	return since, s.insertDeliveries(ctx, receiver, []string{""}, "registered", since)
}

// InsertDeliveries stores the results of deliveries.
func (s *Store) InsertDeliveries(ctx context.Context, receiver string, ids []string, state string) error {
	return s.insertDeliveries(ctx, receiver, ids, state, time.Now())
}

func (s *Store) insertDeliveries(ctx context.Context, receiver string, ids []string, state string, at time.Time) error {
	sum := sha256.New()
	fmt.Fprint(sum, receiver, "\x00", state, at.UnixMilli(), strings.Join(ids, " "))
	err := s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+".alert_deliveries (alert_id, receiver, at, state)", sum.Sum(nil), each(ids, func(id string) []any {
		return []any{id, receiver, at, state}
	}))
	return clickhouse.Classify("noting deliveries", err)
}

// Undelivered returns up to limit alerts that were not delivered to a
// receiver, in the order in which they were stored, after one of them or
// after a time. What it reads depends on the alerts after that, not on the history: both
// conditions are for indexes.
func (s *Store) Undelivered(ctx context.Context, receiver string, after alert.Alert, limit int) ([]alert.Alert, error) {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	newer := "stored_at >= fromUnixTimestamp64Milli($1, 'UTC') AND (stored_at, alert_id) > (fromUnixTimestamp64Milli($1, 'UTC'), $2)"
	sql := "SELECT " + alertColumns + " FROM " + s.db.Name() + ".alerts FINAL WHERE NOT suppressed AND " + newer +
		" AND alert_id NOT IN (SELECT alert_id FROM " + s.db.Name() + ".alert_deliveries WHERE receiver = $3 AND alert_id IN (SELECT alert_id FROM " + s.db.Name() + ".alerts WHERE " + newer + "))" +
		" ORDER BY stored_at, alert_id LIMIT $4"
	var rows []alertRow
	if err := s.db.Conn().Select(ctx, &rows, sql, after.StoredAt.UnixMilli(), after.ID, receiver, limit); err != nil {
		return nil, clickhouse.Classify("reading alerts", err)
	}
	list := make([]alert.Alert, len(rows))
	for i := range rows {
		list[i] = rows[i].alert()
	}
	return list, nil
}

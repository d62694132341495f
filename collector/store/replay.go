package store

import (
	"context"
	"time"

	"auditproxy/sink/clickhouse"
)

// An Hour is an hour with calls.
type Hour struct {
	Start time.Time `ch:"hour"`
	Calls uint64    `ch:"calls"`
}

const replayed = `FROM events FINAL WHERE kind = 'call' AND ts >= fromUnixTimestamp64Micro({from:Int64}) AND ts < fromUnixTimestamp64Micro({to:Int64})`

// CallHours returns the hours of w that have calls, in order. It has no time
// limit: it is for commands.
func (r *Reader) CallHours(ctx context.Context, w Window) (list []Hour, err error) {
	err = r.conn.Select(ctx, &list, "SELECT toDateTime(toStartOfHour(ts), 'UTC') AS hour, count() AS calls "+replayed+" GROUP BY hour ORDER BY hour",
		args{"from": micros(w.From), "to": micros(w.To)}.named()...)
	return list, clickhouse.Classify("counting calls", err)
}

// EachCall calls do with the bytes of each call's record in w, in the order of
// their times, until it returns an error. ClickHouse sorts all of w in memory.
func (r *Reader) EachCall(ctx context.Context, w Window, do func(raw []byte) error) error {
	rows, err := r.conn.Query(ctx, "SELECT raw "+replayed+" ORDER BY ts, session_id, call_no, record_id, payload_hash",
		args{"from": micros(w.From), "to": micros(w.To)}.named()...)
	if err != nil {
		return clickhouse.Classify("reading calls", err)
	}
	defer rows.Close()
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return clickhouse.Classify("reading calls", err)
		}
		if err := do([]byte(raw)); err != nil {
			return err
		}
	}
	return clickhouse.Classify("reading calls", rows.Err())
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"auditproxy/sink/clickhouse"
)

// withEvidence is the condition on records that a central log has.
const withEvidence = "kind IN ('session_start', 'checkpoint') AND evidence != ''"

// Evidence calls do with the session_starts and checkpoints that have evidence and
// arrived in [from, to), in the order of their arrival; raw is valid until do
// returns. A duplicate may be passed twice. It ends with the first error of do.
func (s *Store) Evidence(ctx context.Context, from, to time.Time, do func(raw []byte) error) error {
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return clickhouse.Classify("reading evidence", err)
	}
	rows, err := conn.Query(ctx, "SELECT raw FROM "+s.db.Name()+".events WHERE "+withEvidence+
		" AND ingested_at >= fromUnixTimestamp64Milli(?, 'UTC') AND ingested_at < fromUnixTimestamp64Milli(?, 'UTC') ORDER BY ingested_at, session_id, seq",
		from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return clickhouse.Classify("reading evidence", err)
	}
	defer rows.Close()
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return clickhouse.Classify("reading evidence", err)
		}
		if err := do([]byte(raw)); err != nil {
			return err
		}
	}
	return clickhouse.Classify("reading evidence", rows.Err())
}

// SessionStart returns the line of a session's session_start, "" for none.
func (s *Store) SessionStart(ctx context.Context, session string) (string, error) {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return "", clickhouse.Classify("reading the start of a session", err)
	}
	var raw string
	err = conn.QueryRow(ctx, "SELECT raw FROM "+s.db.Name()+".events WHERE session_id = ? AND seq = 0 AND "+withEvidence+" ORDER BY ingested_at LIMIT 1", session).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return raw, clickhouse.Classify("reading the start of a session", err)
}

// FirstEvidence returns when the first record with evidence arrived, zero for none.
func (s *Store) FirstEvidence(ctx context.Context) (time.Time, error) {
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return time.Time{}, clickhouse.Classify("reading evidence", err)
	}
	var n uint64
	var first time.Time
	if err := conn.QueryRow(ctx, "SELECT count(), min(ingested_at) FROM "+s.db.Name()+".events WHERE "+withEvidence).Scan(&n, &first); err != nil || n == 0 {
		return time.Time{}, clickhouse.Classify("reading evidence", err)
	}
	return first, nil
}

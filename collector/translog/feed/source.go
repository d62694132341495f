package feed

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Stored is the evidence in ClickHouse. It implements Source.
type Stored struct{ DB *clickhouse.DB }

// withEvidence is the condition on records that a central log has.
const withEvidence = "kind IN ('session_start', 'checkpoint') AND evidence != ''"

// Evidence calls do with the session_starts and checkpoints that have evidence and
// arrived in [from, to), in the order of their arrival; raw is valid until do
// returns. A duplicate may be passed twice. It ends with the first error of do.
func (s Stored) Evidence(ctx context.Context, from, to time.Time, do func(raw []byte) error) error {
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return clickhouse.Classify("reading evidence", err)
	}
	rows, err := conn.Query(ctx, "SELECT raw FROM "+s.DB.Name()+".events WHERE "+withEvidence+
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
func (s Stored) SessionStart(ctx context.Context, session string) (string, error) {
	ctx, cancel := s.DB.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return "", clickhouse.Classify("reading the start of a session", err)
	}
	var raw string
	err = conn.QueryRow(ctx, "SELECT raw FROM "+s.DB.Name()+".events WHERE session_id = ? AND seq = 0 AND "+withEvidence+" ORDER BY ingested_at LIMIT 1", session).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return raw, clickhouse.Classify("reading the start of a session", err)
}

// FirstEvidence returns when the first record with evidence arrived from a time on,
// zero for none.
func (s Stored) FirstEvidence(ctx context.Context, from time.Time) (time.Time, error) {
	ctx, conn, err := s.DB.Settled(ctx)
	if err != nil {
		return time.Time{}, clickhouse.Classify("reading evidence", err)
	}
	var n uint64
	var first time.Time
	if err := conn.QueryRow(ctx, "SELECT count(), min(ingested_at) FROM "+s.DB.Name()+".events WHERE "+withEvidence+" AND ingested_at >= fromUnixTimestamp64Milli(?, 'UTC')", max(from.UnixMilli(), 0)).Scan(&n, &first); err != nil || n == 0 {
		return time.Time{}, clickhouse.Classify("reading evidence", err)
	}
	return first, nil
}

// Contradicted stores, as the result of a verification by a collector, that a
// session's checkpoints contradict each other. The same may be stored again.
func (s Stored) Contradicted(ctx context.Context, c Contradiction, at time.Time, collector string) error {
	findings, err := json.Marshal([]map[string]any{{"what": c.What, "seq": c.Seq, "to": c.Seq, "detail": c.Detail}})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Append(nil, c.SessionID, "\x00", c.Record.Tenant, "\x00", string(findings)))
	err = s.DB.Insert(ctx, "INSERT INTO "+s.DB.Name()+".verifications (tenant, session_id, state, at, host, user, findings, collector)", sum[:], func(b driver.Batch) error {
		return b.Append(c.Record.Tenant, c.SessionID, "tampered", at, c.Record.Host, c.Record.User, string(findings), collector)
	})
	return clickhouse.Classify("storing a contradiction", err)
}

// A LogState is whether a central log is what its collector signed.
type LogState struct {
	Place  string    // of the log, the same after a restart
	Host   string    // of the collector
	Damage string    // "" for none
	Since  time.Time // of the damage
}

// LogState stores the state of a log next to the results of verifications, where a
// rule finds it.
func (s Stored) LogState(ctx context.Context, l LogState, at time.Time, collector string) error {
	state, findings := "log_ok", "[]"
	if l.Damage != "" {
		b, err := json.Marshal([]map[string]any{{"what": "log_damaged", "detail": l.Damage}})
		if err != nil {
			return err
		}
		state, findings = "log_damaged", string(b)
	}
	sum := sha256.Sum256(fmt.Append(nil, l.Place, "\x00", state, "\x00", at.UnixNano(), "\x00", collector))
	err := s.DB.Insert(ctx, "INSERT INTO "+s.DB.Name()+".verifications (session_id, state, at, host, first_ts, findings, collector)", sum[:], func(b driver.Batch) error {
		return b.Append(l.Place, state, at, l.Host, l.Since, findings, collector)
	})
	return clickhouse.Classify("storing the state of the central log", err)
}

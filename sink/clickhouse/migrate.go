package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
)

// ErrNewer means that the tables were made by a newer program.
var ErrNewer = errors.New("the schema is newer than this program: install the version that made it")

// A Retention is the age at which rows are deleted, in whole days, at most
// MaxRetention.
type Retention struct {
	Events      time.Duration // events, gaps, rollups and alerts. Required.
	DeadLetters time.Duration // Required.
}

// MaxRetention keeps a TTL inside what ClickHouse's DateTime can hold, which
// ends in 2106: beyond, the sum starts at 1970 again, and all rows are too old.
const MaxRetention = 10000 * 24 * time.Hour

// Applied lists the changes of Migrate.
type Applied struct {
	Migrations []string // "0001_tables"; none: the tables were current
	Users      bool     // roles and row policies; not every server has them
}

// Migrate applies missing migrations, in order. After a crash some statements
// may have run without a record; every statement may run again, also
// concurrently. If the tables are current it only reads, so that a user
// without the right to make tables may call it.
func (db *DB) Migrate(ctx context.Context, keep Retention) (Applied, error) {
	var applied Applied
	list, err := schemas.ClickHouse()
	if err != nil {
		return applied, err
	}
	done, err := db.done(ctx)
	if slices.Contains(notThereCodes, codeOf(err)) {
		err = db.exec(ctx, schemas.Statements(migrationsTable, db.names())...)
		if err != nil {
			return applied, Classify("making the table of migrations", err)
		}
	}
	if err != nil {
		return applied, Classify("reading the table of migrations", err)
	}
	for number := range done {
		if number > len(list) {
			return applied, &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("migration %d: %w", number, ErrNewer)}
		}
	}
	for _, m := range list {
		name, sum := fmt.Sprintf("%04d_%s", m.Number, m.Name), checksum(m.SQL)
		if was, ok := done[m.Number]; ok {
			if was != sum {
				return applied, &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf("migration %q is not the one that was applied: install the version of this program that made the tables", name)}
			}
			continue
		}
		if err := db.apply(ctx, schemas.Statements(m.SQL, db.names())); err != nil {
			return applied, Classify(fmt.Sprintf("applying migration %q", name), err)
		}
		err := db.conn.Exec(ctx, "INSERT INTO "+db.c.Database+".migrations (number, name, sha256, applied_at) VALUES (?, ?, ?, now64(3))", m.Number, name, sum)
		if err != nil {
			return applied, Classify(fmt.Sprintf("recording migration %q", name), err)
		}
		applied.Migrations = append(applied.Migrations, name)
	}
	if err := db.keepFirst(ctx, slices.Contains(applied.Migrations, "0001_tables") && len(done) == 0); err != nil {
		return applied, Classify("keeping first arrivals", err)
	}
	if err := db.retain(ctx, keep); err != nil {
		return applied, err
	}
	applied.Users, err = db.users(ctx)
	return applied, err
}

const migrationsTable = `
CREATE DATABASE IF NOT EXISTS ${database} ${on_cluster};
CREATE TABLE IF NOT EXISTS ${database}.migrations ${on_cluster}
(
    number     UInt32,
    name       String,
    sha256     String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (number, sha256)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
`

// done returns the checksums of the migrations that were applied.
func (db *DB) done(ctx context.Context) (map[int]string, error) {
	rows, err := db.conn.Query(ctx, "SELECT number, sha256 FROM "+db.c.Database+".migrations FINAL ORDER BY applied_at")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	done := map[int]string{}
	for rows.Next() {
		var number uint32
		var sum string
		if err := rows.Scan(&number, &sum); err != nil {
			return nil, err
		}
		done[int(number)] = sum
	}
	return done, rows.Err()
}

func checksum(sql string) string {
	sum := sha256.Sum256([]byte(sql))
	return hex.EncodeToString(sum[:])
}

// applyTimeout is for one migration: some read all stored rows.
const applyTimeout = 6 * time.Hour

func (db *DB) apply(ctx context.Context, statements []string) error {
	// A deadline replaces the connection's timeout for reading.
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return db.exec(ctx, statements...)
}

// daysOf finds a TTL in a CREATE TABLE as the server prints it.
var daysOf = regexp.MustCompile(`TTL .*\btoIntervalDay\((\d+)\)`)

// retain gives the tables their TTL. An ALTER rewrites the TTL of every part,
// so it is omitted where nothing changes.
func (db *DB) retain(ctx context.Context, keep Retention) error {
	const day = 24 * time.Hour
	for _, t := range []struct {
		table, column string
		keep          time.Duration
	}{
		{"events", "ts", keep.Events},
		{"hourly_states", "hour", keep.Events},
		{"operation_states", "hour", keep.Events},
		{"session_states", "last_ts", keep.Events},
		{"definition_states", "last_ts", keep.Events},
		{"effect_states", "last_ts", keep.Events},
		{"decision_states", "hour", keep.Events},
		{"risk_states", "hour", keep.Events},
		{"arrivals", "last_arrival", keep.Events},
		{"gaps", "seen_at", keep.Events},
		{"alerts", "ts", keep.Events},
		{"alert_events", "at", keep.Events},
		{"alert_deliveries", "at", keep.Events},
		{"alert_marks", "at", keep.Events},
		{"dead_letters", "seen_at", keep.DeadLetters},
	} {
		days := strconv.Itoa(int(max(min(t.keep, MaxRetention)/day, 1)))
		var create string
		row := db.conn.QueryRow(ctx, "SELECT create_table_query FROM system.tables WHERE database = ? AND name = ?", db.c.Database, t.table)
		if err := row.Scan(&create); err != nil {
			return Classify(fmt.Sprintf("reading the retention of %q", t.table), err)
		}
		if m := daysOf.FindStringSubmatch(create); m != nil && m[1] == days {
			continue
		}
		sql := "ALTER TABLE ${database}." + t.table + " ${on_cluster} MODIFY TTL toDateTime(" + t.column + ") + INTERVAL " + days + " DAY;"
		if err := db.exec(ctx, schemas.Statements(sql, db.names())...); err != nil {
			return Classify(fmt.Sprintf("setting the retention of %q", t.table), err)
		}
	}
	return nil
}

// users makes the roles, and reports whether the server supports them.
func (db *DB) users(ctx context.Context) (bool, error) {
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		return false, err
	}
	err = db.exec(ctx, schemas.Statements(sql, db.names())...)
	if slices.Contains(noUsersCodes, codeOf(err)) {
		return false, nil
	}
	return err == nil, Classify("making roles", err)
}

// Package clickhouse keeps records in ClickHouse: numbered migrations, and
// inserts that may be repeated.
//
// The files, from the top: migrate, keepfirst, servers, altered, queue, reader,
// clickhouse, settled, config, cluster, typed, block, columns, errors, explain.
package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A DB is a database of records in ClickHouse, as a user with a writer's rights
// sees it. Its methods may be called concurrently.
type DB struct {
	c       Config
	conn    driver.Conn
	settled *Settled
	inserts string // the statement for events
}

// Open checks c and returns a database. It does not connect.
func Open(c Config) (*DB, error) {
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.Cluster.Name != "" {
		c.Timeout += c.Cluster.QuorumTimeout
	}
	var problems []error
	if len(c.Addrs) == 0 {
		problems = append(problems, errors.New("there is no address"))
	}
	if !IsIdentifier(c.Database) {
		problems = append(problems, fmt.Errorf("database %q is not an identifier", c.Database))
	}
	if err := c.Cluster.check(); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	conn, err := clickhouse.Open(c.options())
	if err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	var names []string
	for _, col := range columnsAt(time.Time{}) {
		names = append(names, "`"+col.name+"`")
	}
	settled := NewSettled(c, conn, func(c Config) (driver.Conn, error) { return clickhouse.Open(c.options()) })
	return &DB{c, conn, settled, "INSERT INTO " + c.Database + ".events (" + strings.Join(names, ", ") + ")"}, nil
}

// Close closes the connections.
func (db *DB) Close() error {
	db.settled.Close()
	return db.conn.Close()
}

// Settled returns connections for a query that must not miss a record, and the
// context for it, see Settled.
func (db *DB) Settled(ctx context.Context) (context.Context, driver.Conn, error) {
	return db.settled.Conn(ctx)
}

// Ping checks that ClickHouse answers.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.c.Timeout)
	defer cancel()
	return Classify("asking ClickHouse", db.conn.Ping(ctx))
}

// Clock returns the server's time.
func (db *DB) Clock(ctx context.Context) (now time.Time, err error) {
	ctx, cancel := db.Limited(ctx)
	defer cancel()
	err = db.conn.QueryRow(ctx, "SELECT now64(3, 'UTC')").Scan(&now)
	return now, Classify("asking for the time", err)
}

// Name is the database's name, an identifier.
func (db *DB) Name() string { return db.c.Database }

// Conn returns the connections, which Close closes.
func (db *DB) Conn() driver.Conn { return db.conn }

// Limited returns a context that ends after the timeout of the configuration.
func (db *DB) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, db.c.Timeout)
}

// Long returns a context for what may read all stored records: it ends after six
// hours, and its deadline replaces the timeout of a connection.
func (db *DB) Long(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 6*time.Hour)
}

// InsertRows stores the rows of one arrival time, all or none. Its token is a function of the sources
// and contents of rows: the same rows are stored once, and other rows never
// share a token.
func (db *DB) InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	sum := sha256.New()
	var key []byte
	for i := range rows {
		key = append(rows[i].Source.AppendKey(key[:0]), rows[i].Hash[:]...)
		sum.Write(key)
	}
	err := db.insertRows(ctx, rows, at, sum.Sum(nil))
	return Classify(fmt.Sprintf("inserting %d records", len(rows)), err)
}

func (db *DB) insertRows(ctx context.Context, rows []ingest.Row, at time.Time, token []byte) error {
	if !db.c.HTTP {
		return db.InsertKeepingFree(ctx, db.inserts, token, func(b driver.Batch) error { return appendRows(b, rows, at) })
	}
	// As a batch the driver would hold all of it three times.
	settings := db.keepingFree(token)
	if !db.c.Uncompressed {
		settings["decompress"] = 1
	}
	ctx, cancel := context.WithTimeout(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), db.c.Timeout)
	defer cancel()
	return db.conn.InsertFormat(ctx, "Native", db.inserts, newBlockReader(rows, at, !db.c.Uncompressed))
}

// Insert sends one block that is stored once, however often it is sent. token
// identifies its rows.
func (db *DB) Insert(ctx context.Context, statement string, token []byte, fill func(driver.Batch) error) error {
	return db.insert(ctx, statement, withToken(token), fill)
}

// InsertKeepingFree is Insert for what strangers can send any amount of: it leaves
// Config.KeepFree of the disk.
func (db *DB) InsertKeepingFree(ctx context.Context, statement string, token []byte, fill func(driver.Batch) error) error {
	return db.insert(ctx, statement, db.keepingFree(token), fill)
}

func withToken(token []byte) clickhouse.Settings {
	return clickhouse.Settings{"insert_deduplication_token": hex.EncodeToString(token)}
}

func (db *DB) keepingFree(token []byte) clickhouse.Settings {
	s := withToken(token)
	if db.c.KeepFree > 0 {
		s["min_free_disk_bytes_to_perform_insert"] = db.c.KeepFree
	}
	return s
}

func (db *DB) insert(ctx context.Context, statement string, settings clickhouse.Settings, fill func(driver.Batch) error) error {
	ctx, cancel := context.WithTimeout(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), db.c.Timeout)
	defer cancel()
	return db.send(ctx, statement, fill)
}

// send sends one block. A batch cannot be used again after any error, so a
// caller who repeats builds another from the same rows.
func (db *DB) send(ctx context.Context, statement string, fill func(driver.Batch) error) error {
	b, err := db.conn.PrepareBatch(ctx, statement)
	if err != nil {
		return err
	}
	if err := fill(b); err != nil {
		b.Abort()
		return err
	}
	// A crash, a timeout or a lost answer leaves the rows stored or not; the
	// token decides at the next attempt.
	return b.Send()
}

// names are the identifiers in SQL.
func (db *DB) names() schemas.Names {
	return schemas.Names{Database: db.c.Database, Cluster: db.c.Cluster.Cluster}
}

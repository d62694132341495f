// Package clickhouse keeps records in ClickHouse: numbered migrations, and
// inserts that may be repeated.
//
// The files, from the top: migrate, keepfirst, reader, clickhouse, block, columns, errors,
// explain.
package clickhouse

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Config configures a DB. It holds a password, so it must not be printed.
type Config struct {
	Addrs    []string // host:port; with Dial one name for messages. Required.
	HTTP     bool     // use HTTP, else the native protocol
	Database string   // letters, digits, underscores. Required.
	Cluster  string   // for ON CLUSTER; "" for one server
	User     string
	Password string
	TLS      *tls.Config // nil: plain text

	// Dial connects to an address of Addrs; nil for TCP. A Unix socket needs it.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Uncompressed disables compression, which is faster on one machine.
	Uncompressed bool

	// Timeout is for one insert or one query; zero: 20 s. It must be shorter
	// than the time that a consumer group waits for a leaving member.
	Timeout time.Duration
}

// maxConns is the most connections of a DB: two inserts of records, a
// sweep that reads while it stores alerts, deliveries to a few receivers, a
// query, and one that may hang until its timeout. An insert must not wait for
// the others.
const maxConns = 10

// A DB is a database of records in ClickHouse, as a user with a writer's rights
// sees it. Its methods may be called concurrently.
type DB struct {
	c       Config
	conn    driver.Conn
	inserts string // the statement for events
}

// Open checks c and returns a database. It does not connect.
func Open(c Config) (*DB, error) {
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	var problems []error
	if len(c.Addrs) == 0 {
		problems = append(problems, errors.New("there is no address"))
	}
	if !IsIdentifier(c.Database) {
		problems = append(problems, fmt.Errorf("database %q is not an identifier", c.Database))
	}
	if c.Cluster != "" && !IsIdentifier(c.Cluster) {
		problems = append(problems, fmt.Errorf("cluster %q is not an identifier", c.Cluster))
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
	return &DB{c, conn, "INSERT INTO " + c.Database + ".events (" + strings.Join(names, ", ") + ")"}, nil
}

func (c Config) options() *clickhouse.Options {
	o := &clickhouse.Options{
		Addr: c.Addrs,
		// Not c.Database: Migrate may have to create it.
		Auth:         clickhouse.Auth{Database: "default", Username: c.User, Password: c.Password},
		TLS:          c.TLS,
		DialContext:  c.Dial,
		DialTimeout:  min(c.Timeout, 10*time.Second),
		ReadTimeout:  c.Timeout,
		MaxOpenConns: maxConns,
		MaxIdleConns: maxConns,
		Settings: clickhouse.Settings{
			// The server's default since 26.3, which answers before rows are parts.
			"async_insert":       0,
			"insert_deduplicate": 1,
			// The blocks of an insert become one, which its token identifies,
			// at any size; it never has more than 1 048 449 rows, the
			// server's default.
			"min_insert_block_size_bytes": 0,
			// A server that died between the table and the rollup feeds the rollup at
			// the next attempt, although the table has the rows.
			"deduplicate_blocks_in_dependent_materialized_views": 1,
			// Late records may belong to any month of the retention.
			"max_partitions_per_insert_block": 10000,
		},
		ClientInfo: clickhouse.ClientInfo{Products: []struct{ Name, Version string }{{Name: "auditcollector"}}},
	}
	if c.HTTP {
		o.Protocol = clickhouse.HTTP
		o.DialStrategy = dialPlainly
	}
	if !c.Uncompressed {
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	return o
}

// dialPlainly connects without the settings of the caller. The driver sends
// its own query over it, in plain text, and with an insert's "decompress" the
// server cannot read that.
func dialPlainly(ctx context.Context, id int, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{}))
	return clickhouse.DefaultDialStrategy(ctx, id, o, dial)
}

// IsIdentifier reports whether s can be the name of a database or cluster: up to
// 64 letters, digits and underscores.
func IsIdentifier(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && !('0' <= r && r <= '9') && !('a' <= r|0x20 && r|0x20 <= 'z')
	})
}

// Close closes the connections.
func (db *DB) Close() error { return db.conn.Close() }

// Ping checks that ClickHouse answers.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.c.Timeout)
	defer cancel()
	return Classify("asking ClickHouse", db.conn.Ping(ctx))
}

// Name is the database's name, an identifier.
func (db *DB) Name() string { return db.c.Database }

// Conn returns the connections, which Close closes.
func (db *DB) Conn() driver.Conn { return db.conn }

// Limited returns a context that ends after the timeout of the configuration.
func (db *DB) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, db.c.Timeout)
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
		return db.Insert(ctx, db.inserts, token, func(b driver.Batch) error { return appendRows(b, rows, at) })
	}
	// As a batch the driver would hold all of it three times.
	settings := clickhouse.Settings{"insert_deduplication_token": hex.EncodeToString(token)}
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
	ctx, cancel := context.WithTimeout(ctx, db.c.Timeout)
	defer cancel()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": hex.EncodeToString(token)}))
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

func (db *DB) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if err := db.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// names are the identifiers in SQL.
func (db *DB) names() schemas.Names {
	return schemas.Names{Database: db.c.Database, Cluster: db.c.Cluster}
}

// Package clickhouse keeps records in ClickHouse: numbered migrations, and
// inserts that may be repeated.
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

// A Config configures a Store. It holds a password, so it must not be
// printed.
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

// maxConns is the most connections of a Store: two inserts of records, a
// sweep that reads while it stores alerts, deliveries to a few receivers, a
// query, and one that may hang until its timeout. An insert must not wait for
// the others.
const maxConns = 10

// A Store is a collector.Store in ClickHouse.
type Store struct {
	c       Config
	conn    driver.Conn
	inserts string // the statement for events
}

// Open checks c and returns a store. It does not connect.
func Open(c Config) (*Store, error) {
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	var problems []error
	if len(c.Addrs) == 0 {
		problems = append(problems, errors.New("there is no address"))
	}
	if !identifier(c.Database) {
		problems = append(problems, fmt.Errorf("database %q is not an identifier", c.Database))
	}
	if c.Cluster != "" && !identifier(c.Cluster) {
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
	return &Store{c, conn, "INSERT INTO " + c.Database + ".events (" + strings.Join(names, ", ") + ")"}, nil
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

func identifier(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && !('0' <= r && r <= '9') && !('a' <= r|0x20 && r|0x20 <= 'z')
	})
}

// Close closes the connections.
func (s *Store) Close() error { return s.conn.Close() }

// Ping checks that ClickHouse answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	return classify("asking ClickHouse", s.conn.Ping(ctx))
}

// InsertRows implements collector.Store. Its token is a function of the sources
// and contents of rows: the same rows are stored once, and other rows never
// share a token.
func (s *Store) InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	sum := sha256.New()
	for i := range rows {
		writeSource(sum, rows[i].Source)
		sum.Write(rows[i].Hash[:])
	}
	err := s.insertRows(ctx, rows, at, sum.Sum(nil))
	return classify(fmt.Sprintf("inserting %d records", len(rows)), err)
}

func (s *Store) insertRows(ctx context.Context, rows []ingest.Row, at time.Time, token []byte) error {
	if !s.c.HTTP {
		return s.insert(ctx, s.inserts, token, func(b driver.Batch) error { return appendRows(b, rows, at) })
	}
	// As a batch the driver would hold all of it three times.
	settings := clickhouse.Settings{"insert_deduplication_token": hex.EncodeToString(token)}
	if !s.c.Uncompressed {
		settings["decompress"] = 1
	}
	ctx, cancel := context.WithTimeout(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), s.c.Timeout)
	defer cancel()
	return s.conn.InsertFormat(ctx, "Native", s.inserts, newBlockReader(rows, at, !s.c.Uncompressed))
}

// InsertDeadLetters implements collector.Store.
func (s *Store) InsertDeadLetters(ctx context.Context, letters []ingest.DeadLetter) error {
	return s.insertLetters(ctx, letters, time.Time{})
}

func (s *Store) insertLetters(ctx context.Context, letters []ingest.DeadLetter, replayed time.Time) error {
	sum := sha256.New()
	for _, l := range letters {
		writeSource(sum, l.Source)
		hash := letterHash(l)
		sum.Write(hash[:])
	}
	fmt.Fprint(sum, unixTime(replayed).UnixNano())
	statement := "INSERT INTO " + s.c.Database + ".dead_letters (seen_at, kafka_topic, kafka_partition, kafka_offset, kafka_ts, kafka_key, reason, error, raw, payload_hash, collector, replayed_at)"
	err := s.insert(ctx, statement, sum.Sum(nil), func(b driver.Batch) error {
		for _, l := range letters {
			hash := letterHash(l)
			if err := b.Append(l.Seen, l.Topic, l.Partition, l.Offset, unixTime(l.Time), l.Key, l.Reason, l.Error, l.Raw, string(hash[:]), hostname(), unixTime(replayed)); err != nil {
				return err
			}
		}
		return nil
	})
	return classify(fmt.Sprintf("inserting %d dead letters", len(letters)), err)
}

// InsertGaps implements collector.Store.
func (s *Store) InsertGaps(ctx context.Context, gaps []ingest.Gap) error {
	sum := sha256.New()
	for _, g := range gaps {
		writeSource(sum, ingest.Source{Topic: g.Topic, Partition: g.Partition, Offset: g.From})
		fmt.Fprintf(sum, "%d %q", g.To, g.Session)
	}
	statement := "INSERT INTO " + s.c.Database + ".gaps (seen_at, kafka_topic, kafka_partition, from_offset, to_offset, session_id, reason)"
	err := s.insert(ctx, statement, sum.Sum(nil), func(b driver.Batch) error {
		for _, g := range gaps {
			if err := b.Append(g.Seen, g.Topic, g.Partition, g.From, g.To, g.Session, g.Reason); err != nil {
				return err
			}
		}
		return nil
	})
	return classify(fmt.Sprintf("inserting %d gaps", len(gaps)), err)
}

// insert sends one block that is stored once, however often it is sent.
func (s *Store) insert(ctx context.Context, statement string, token []byte, fill func(driver.Batch) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": hex.EncodeToString(token)}))
	return s.send(ctx, statement, fill)
}

// send sends one block. A batch cannot be used again after any error, so a
// caller who repeats builds another from the same rows.
func (s *Store) send(ctx context.Context, statement string, fill func(driver.Batch) error) error {
	b, err := s.conn.PrepareBatch(ctx, statement)
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

// names are the identifiers in the store's SQL.
func (s *Store) names() schemas.Names {
	return schemas.Names{Database: s.c.Database, Cluster: s.c.Cluster}
}

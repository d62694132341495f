package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed generate.sql
var generate string

const (
	block  = 50_000 // records of one insert, as the collector writes it
	repeat = 100    // of every so many blocks one arrives twice

	freshInserts = 60  // a collector makes one each second of a trickle
	freshRecords = 500 // of one of them
)

// fill writes the records, unless the table has some.
func fill(ctx context.Context, c clickhouse.Config, o options, stderr io.Writer) error {
	s, err := clickhouse.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	const keep = 400 * 24 * time.Hour
	if _, err := s.Migrate(ctx, clickhouse.Retention{Events: keep, DeadLetters: keep}); err != nil {
		return err
	}
	conn, err := open(c)
	if err != nil {
		return err
	}
	defer conn.Close()
	var there uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM audit.events").Scan(&there); err != nil || there > 0 {
		return err
	}
	begin := time.Now().Add(-o.span())
	for from := 0; from < o.records; from += block {
		n := min(block, o.records-from)
		if err := insert(ctx, conn, o, begin, from, n); err != nil {
			return fmt.Errorf("writing records: %w", err)
		}
		if from/block%repeat == 0 {
			if err := insert(ctx, conn, o, begin, from, n); err != nil {
				return fmt.Errorf("writing records again: %w", err)
			}
		}
		fmt.Fprintf(stderr, "\r%d of %d records", from+n, o.records)
	}
	fmt.Fprintln(stderr)
	return rest(ctx, conn)
}

func open(c clickhouse.Config) (driver.Conn, error) {
	return ch.Open(&ch.Options{Protocol: ch.HTTP, Addr: c.Addrs, DialContext: c.Dial, ReadTimeout: deadline})
}

// insert writes n records from number from on, the first of all at begin.
func insert(ctx context.Context, conn driver.Conn, o options, begin time.Time, from, n int) error {
	return conn.Exec(ctx, strings.NewReplacer(
		"${begin}", strconv.FormatInt(begin.UnixMicro(), 10),
		"${span}", strconv.FormatInt(o.span().Microseconds(), 10),
		"${count}", strconv.Itoa(o.records),
		"${from}", strconv.Itoa(from),
		"${rows}", strconv.Itoa(n),
	).Replace(generate))
}

// fresh stops all merges and writes the newest records in small inserts. Each
// leaves its own parts, as in the minute after an outage.
func fresh(ctx context.Context, c clickhouse.Config, o options) error {
	conn, err := open(c)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Exec(ctx, "SYSTEM STOP MERGES"); err != nil {
		return fmt.Errorf("stopping merges: %w", err)
	}
	const n = freshInserts * freshRecords
	begin := time.Now().Add(-o.span() - n*o.span()/time.Duration(o.records))
	for i := range freshInserts {
		if err := insert(ctx, conn, o, begin, o.records+i*freshRecords, freshRecords); err != nil {
			return fmt.Errorf("writing fresh records: %w", err)
		}
	}
	return nil
}

// rest does the merges of an idle hour: each past week becomes one part.
func rest(ctx context.Context, conn driver.Conn) error {
	var weeks []string
	rows, err := conn.Query(ctx, `SELECT DISTINCT partition_id FROM system.parts
		WHERE database = 'audit' AND table = 'operation_states' AND active AND partition < toString(toMonday(today()))`)
	if err != nil {
		return fmt.Errorf("listing weeks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var week string
		if err := rows.Scan(&week); err != nil {
			return fmt.Errorf("listing weeks: %w", err)
		}
		weeks = append(weeks, week)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("listing weeks: %w", err)
	}
	for _, week := range weeks {
		for _, table := range []string{"operation_states", "decision_states", "risk_states"} {
			if err := conn.Exec(ctx, "OPTIMIZE TABLE audit."+table+" PARTITION ID '"+week+"' FINAL"); err != nil {
				return fmt.Errorf("merging a week: %w", err)
			}
		}
	}
	return nil
}

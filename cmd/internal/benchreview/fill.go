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
	block  = 50_000 // records of one insert, as the collector has it
	repeat = 100    // of every so many blocks one arrives twice
)

// fill writes the records, unless there are some already.
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
	conn, err := ch.Open(&ch.Options{Protocol: ch.HTTP, Addr: c.Addrs, DialContext: c.Dial, ReadTimeout: deadline})
	if err != nil {
		return err
	}
	defer conn.Close()
	var there uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM audit.events").Scan(&there); err != nil || there > 0 {
		return err
	}
	span := time.Duration(o.days) * 24 * time.Hour
	begin := time.Now().Add(-span)
	insert := func(from int) error {
		return conn.Exec(ctx, strings.NewReplacer(
			"${begin}", strconv.FormatInt(begin.UnixMicro(), 10),
			"${span}", strconv.FormatInt(span.Microseconds(), 10),
			"${count}", strconv.Itoa(o.records),
			"${from}", strconv.Itoa(from),
			"${rows}", strconv.Itoa(min(block, o.records-from)),
		).Replace(generate))
	}
	for from := 0; from < o.records; from += block {
		if err := insert(from); err != nil {
			return fmt.Errorf("writing records: %w", err)
		}
		if from/block%repeat == 0 {
			if err := insert(from); err != nil {
				return fmt.Errorf("writing records again: %w", err)
			}
		}
		fmt.Fprintf(stderr, "\r%d of %d records", from+block, o.records)
	}
	fmt.Fprintln(stderr)
	return rest(ctx, conn)
}

// rest does what an hour of rest does: weeks that are over become one part each.
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
		if err := conn.Exec(ctx, "OPTIMIZE TABLE audit.operation_states PARTITION ID '"+week+"' FINAL"); err != nil {
			return fmt.Errorf("merging a week: %w", err)
		}
	}
	return nil
}

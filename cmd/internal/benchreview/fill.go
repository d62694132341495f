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

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed generate.sql
var generate string

const (
	block  = 50_000 // records of one insert, as the collector writes it
	repeat = 100    // of every so many blocks one arrives twice

	freshPercent = 30 // of the records, that are of the last day
	freshInserts = 60
)

// fill writes the records of all days but the last, unless the table has some.
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
	var there uint64
	if err := s.Conn().QueryRow(ctx, "SELECT count() FROM audit.events").Scan(&there); err != nil || there > 0 {
		return err
	}
	past := o.past()
	for from := 0; from < past.count; from += block {
		n := min(block, past.count-from)
		if err := insert(ctx, s.Conn(), past, from, n); err != nil {
			return fmt.Errorf("writing records: %w", err)
		}
		if from/block%repeat == 0 {
			if err := insert(ctx, s.Conn(), past, from, n); err != nil {
				return fmt.Errorf("writing records again: %w", err)
			}
		}
		fmt.Fprintf(stderr, "\r%d of %d records", from+n, past.count)
	}
	fmt.Fprintln(stderr)
	return nil
}

// A stretch is records with the same time from each to the next.
type stretch struct {
	first, count int // numbers of records
	begin        time.Time
	span         time.Duration
}

// past is the records of all days but the last, fresh those of that.
func (o options) past() stretch {
	return stretch{0, o.records - o.fresh().count, time.Now().Add(-o.span()), o.span() - 24*time.Hour}
}

func (o options) fresh() stretch {
	n := o.records * freshPercent / 100
	return stretch{o.records - n, n, time.Now().Add(-24 * time.Hour), 24 * time.Hour}
}

// insert writes n records from the number from on, as the collector writes them.
func insert(ctx context.Context, conn driver.Conn, s stretch, from, n int) error {
	return conn.Exec(ctx, strings.NewReplacer(
		"${begin}", strconv.FormatInt(s.begin.UnixMicro(), 10),
		"${span}", strconv.FormatInt(s.span.Microseconds(), 10),
		"${count}", strconv.Itoa(s.count),
		"${first}", strconv.Itoa(s.first),
		"${from}", strconv.Itoa(from),
		"${rows}", strconv.Itoa(n),
	).Replace(generate))
}

// fresh stops all merges and writes the records of the last day. Each insert
// leaves its own parts.
func fresh(ctx context.Context, c clickhouse.Config, o options) error {
	s, err := clickhouse.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Conn().Exec(ctx, "SYSTEM STOP MERGES"); err != nil {
		return fmt.Errorf("stopping merges: %w", err)
	}
	last := o.fresh()
	n := max(last.count/freshInserts, 1)
	for from := last.first; from < last.first+last.count; from += n {
		if err := insert(ctx, s.Conn(), last, from, min(n, last.first+last.count-from)); err != nil {
			return fmt.Errorf("writing fresh records: %w", err)
		}
	}
	return nil
}

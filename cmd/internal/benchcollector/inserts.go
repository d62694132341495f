package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/cmd/internal/samples"
	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
)

const (
	insertRows = 50_000 // a full batch of the collector
	insertions = 5
)

// inserts measures the engine's processor time for an insert with all views,
// without the merges that follow.
func (b *bench) inserts(ctx context.Context) error {
	engine, err := b.engine(ctx)
	if err != nil {
		return err
	}
	err = b.insertsInto(ctx, engine.cmd.Process.Pid)
	return errors.Join(err, engine.end())
}

func (b *bench) insertsInto(ctx context.Context, pid int) error {
	db, err := clickhouse.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(filepath.Join(b.dir, "local"), chdb.Writer), Uncompressed: true,
	})
	if err != nil {
		return err
	}
	defer db.Close()
	const keep = 400 * 24 * time.Hour
	if _, err := db.Migrate(ctx, clickhouse.Retention{Events: keep, DeadLetters: keep}); err != nil {
		return err
	}
	if err := db.Conn().Exec(ctx, "SYSTEM STOP MERGES"); err != nil {
		return fmt.Errorf("stopping merges: %w", err)
	}
	for _, m := range []struct {
		sessions int
		target   float64
	}{{20, 12}, {20_000, 20}} {
		var times []time.Duration
		for i := range insertions {
			rows, err := b.batch(m.sessions, uint64(i))
			if err != nil {
				return err
			}
			before, err := process.CPUTime(pid)
			if err != nil {
				return err
			}
			if err := db.InsertRows(ctx, rows, time.Now()); err != nil {
				return err
			}
			after, err := process.CPUTime(pid)
			if err != nil {
				return err
			}
			times = append(times, after-before)
		}
		slices.Sort(times)
		b.rows = append(b.rows, row{
			name: fmt.Sprintf("insert of %d rows of %d sessions, per row", insertRows, m.sessions), unit: "µs",
			value: float64(times[len(times)/2].Nanoseconds()) / 1000 / insertRows, compare: atMost, target: m.target,
		})
	}
	return nil
}

// batch returns rows of new sessions, the records of one after those of another,
// as they are in Kafka.
func (b *bench) batch(sessions int, number uint64) ([]ingest.Row, error) {
	decoder := ingest.Decoder{Keep: 24 * time.Hour}
	rows := make([]ingest.Row, 0, insertRows)
	for left := sessions; left > 0; left-- {
		s := samples.New(b.size)
		for range (insertRows - len(rows)) / left {
			row, err := decoder.Retry(ingest.DeadLetter{
				Source: ingest.Source{Topic: "inserts", Offset: number*insertRows + uint64(len(rows))}, Key: s.ID, Raw: s.Next(nil),
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

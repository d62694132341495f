package store

import (
	"context"
	"crypto/sha256"
	"fmt"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// InsertGaps implements collector.Inserter.
func (s *Store) InsertGaps(ctx context.Context, gaps []ingest.Gap) error {
	sum := sha256.New()
	for _, g := range gaps {
		sum.Write(ingest.Source{Topic: g.Topic, Partition: g.Partition, Offset: g.From}.AppendKey(nil))
		fmt.Fprintf(sum, "%d %q", g.To, g.Session)
	}
	statement := "INSERT INTO " + s.db.Name() + ".gaps (seen_at, kafka_topic, kafka_partition, from_offset, to_offset, session_id, reason)"
	err := s.db.Insert(ctx, statement, sum.Sum(nil), func(b driver.Batch) error {
		for _, g := range gaps {
			if err := b.Append(g.Seen, g.Topic, g.Partition, g.From, g.To, g.Session, g.Reason); err != nil {
				return err
			}
		}
		return nil
	})
	return clickhouse.Classify(fmt.Sprintf("inserting %d gaps", len(gaps)), err)
}

// Completeness counts the gaps in the sessions of the last two days.
type Completeness struct {
	Missing uint64 // sequence numbers never received
	Silent  uint64 // sessions without an end, and without a record for five minutes
}

// missingSQL is how many numbers of a session are missing. Producers choose the
// numbers: a sum of those of sessions must not overflow, or one with huge numbers
// could hide what is missing in others.
const missingSQL = "toUInt64(least(toFloat64(max_seq) + 1 - bitmapCardinality(seqs), 1e12))"

// holedSQL reports whether a session misses numbers.
const holedSQL = "max_seq >= bitmapCardinality(seqs)"

// Completeness checks that everything arrived. It reads the sets of numbers of
// sessions with a record in those days: of all others only the last time.
func (s *Store) Completeness(ctx context.Context) (c Completeness, err error) {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return c, clickhouse.Classify("asking what is missing", err)
	}
	states := s.db.Name() + ".session_states"
	row := conn.QueryRow(ctx, `SELECT sum(`+missingSQL+`), countIf(NOT ended AND last_ingested < now64(3) - INTERVAL 5 MINUTE)
		FROM `+states+` FINAL WHERE (tenant, session_id) IN (SELECT tenant, session_id FROM `+states+` WHERE last_ts >= now() - INTERVAL 2 DAY)`)
	return c, clickhouse.Classify("asking what is missing", row.Scan(&c.Missing, &c.Silent))
}

// Empty reports whether there is no record at all.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return false, clickhouse.Classify("asking whether there are records", err)
	}
	var some uint64
	err = conn.QueryRow(ctx, "SELECT count() FROM (SELECT 1 FROM "+s.db.Name()+".events LIMIT 1)").Scan(&some)
	return some == 0, clickhouse.Classify("asking whether there are records", err)
}

package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"

	"github.com/google/uuid"
)

// InsertGaps implements collector.Inserter.
func (s *Store) InsertGaps(ctx context.Context, gaps []ingest.Gap) error {
	sum := sha256.New()
	for _, g := range gaps {
		sum.Write(ingest.Source{Topic: g.Topic, Partition: g.Partition, Offset: g.From}.AppendKey(nil))
		fmt.Fprintf(sum, "%d %q", g.To, g.Session)
		if g.ReadTo > 0 {
			fmt.Fprintf(sum, " %d", g.ReadTo)
		}
	}
	statement := "INSERT INTO " + s.db.Name() + ".gaps (seen_at, kafka_topic, kafka_partition, from_offset, to_offset, session_id, reason, topic_id, read_to)"
	err := s.db.Insert(ctx, statement, sum.Sum(nil), each(gaps, func(g ingest.Gap) []any {
		return []any{g.Seen, g.Topic, g.Partition, g.From, g.To, g.Session, g.Reason, g.TopicID, g.ReadTo}
	}))
	return clickhouse.Classify(fmt.Sprintf("inserting %d gaps", len(gaps)), err)
}

// Unfilled returns the gaps in topics whose records were in Kafka when they were found, but
// for those that came later. Of a log that was cut, or of one before it, the offsets are
// those of other records now.
func (s *Store) Unfilled(ctx context.Context, topics []string) (gaps []ingest.Gap, err error) {
	ctx, conn, err := s.db.Settled(ctx)
	if err == nil {
		limited, cancel := s.db.Limited(ctx)
		defer cancel()
		err = conn.Select(limited, &gaps, `SELECT * EXCEPT (reason, cut), toString(reason) AS reason
			FROM (SELECT *, maxIf(seen_at, reason IN (?)) OVER (PARTITION BY kafka_topic, kafka_partition) AS cut FROM `+s.db.Name()+`.gaps FINAL WHERE kafka_topic IN (?))
			WHERE reason IN (?) AND topic_id != toUUID(?) AND read_to <= to_offset AND seen_at > cut`,
			[]string{ingest.LogIsAnother, ingest.LogIsShorter}, topics, []string{ingest.OffsetWasSet, ingest.StoreIsOlder}, uuid.UUID{}.String())
	}
	return gaps, clickhouse.Classify("asking for gaps", err)
}

// Reached returns, for each place in Kafka, the offset behind the last one before it of
// which a record, a dead letter or a gap is here; 0 if there is none. Of records that came
// again it knows the first place only, if the place is beyond all offsets of Kafka. It
// reads the places of all records.
func (s *Store) Reached(ctx context.Context, places []ingest.Source) ([]uint64, error) {
	ctx, cancel := s.db.Long(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return nil, clickhouse.Classify("asking what was read", err)
	}
	reached := make([]uint64, len(places))
	for i := 0; i < len(places); i += reachedAtOnce {
		some := places[i:min(i+reachedAtOnce, len(places))]
		sql, args := s.reachedSQL(some)
		var rows []struct {
			Topic     string `ch:"topic"`
			Partition uint32 `ch:"kafka_partition"`
			Next      uint64 `ch:"last_next"`
		}
		if err := conn.Select(ctx, &rows, sql, args...); err != nil {
			return nil, clickhouse.Classify("asking what was read", err)
		}
		for _, row := range rows {
			for j, p := range some {
				if p.Topic == row.Topic && p.Partition == row.Partition {
					reached[i+j] = row.Next
				}
			}
		}
	}
	return reached, nil
}

// reachedAtOnce bounds the length of a statement.
const reachedAtOnce = 500

func (s *Store) reachedSQL(places []ingest.Source) (sql string, args []any) {
	var parts []string
	for _, t := range []struct{ table, last string }{{"events", "kafka_offset"}, {"dead_letters", "kafka_offset"}, {"gaps", "to_offset"}} {
		var before []string
		for _, p := range places {
			before = append(before, fmt.Sprintf("kafka_topic = ? AND kafka_partition = %d AND %s < %d", p.Partition, t.last, p.Offset))
			args = append(args, p.Topic)
		}
		parts = append(parts, fmt.Sprintf("SELECT toString(kafka_topic) AS topic, kafka_partition, max(%s) + 1 AS next FROM %s.%s WHERE %s GROUP BY topic, kafka_partition",
			t.last, s.db.Name(), t.table, strings.Join(before, " OR ")))
	}
	// Of a record that came again, events has the first place only. The others are codes,
	// see 0015_places.sql: what is read of another topic's is a place at random.
	var before, topics []string
	var names []any
	for _, p := range places {
		if p.Offset < codeOffsets {
			first := uint64(p.Partition) * codeOffsets
			before = append(before, fmt.Sprintf("topic = ? AND place >= %d AND place < %d", first, first+p.Offset))
			topics, names = append(topics, "?"), append(names, p.Topic)
		}
	}
	if len(before) > 0 {
		parts = append(parts, fmt.Sprintf(`SELECT topic, toUInt32(intDiv(place, %d)) AS kafka_partition, max(place %% %[1]d) + 1 AS next
			FROM (SELECT topic, bitXor(arrayJoin(bitmapToArray(places)), cityHash64(topic)) AS place FROM %s.session_states ARRAY JOIN arrayDistinct([%s]) AS topic)
			WHERE %s GROUP BY topic, kafka_partition`, uint64(codeOffsets), s.db.Name(), strings.Join(topics, ", "), strings.Join(before, " OR ")))
		args = append(append(args, names...), names...)
	}
	return "SELECT topic, kafka_partition, max(next) AS last_next FROM (" + strings.Join(parts, " UNION ALL ") + ") GROUP BY topic, kafka_partition", args
}

// codeOffsets is how many offsets of a partition the code of a place tells apart.
const codeOffsets = 1 << 48

// Lacks reports of each place of a record whether the record is not here, although it is
// no dead letter, and neither retention nor an erasure removed it. Its time bounds what is
// read.
func (s *Store) Lacks(ctx context.Context, list []ingest.Stored) ([]bool, error) {
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return nil, clickhouse.Classify("asking whether records are stored", err)
	}
	lacks := make([]bool, len(list))
	for i, r := range list {
		db := s.db.Name()
		sql := "SELECT (SELECT count() FROM " + db + `.events WHERE session_id = ? AND seq = ? AND ts = fromUnixTimestamp64Micro(?, 'UTC')) +
			(SELECT count() FROM ` + db + `.dead_letters WHERE kafka_topic = ? AND kafka_partition = ? AND kafka_offset = ?) +
			(SELECT count() FROM ` + db + `.erased_sessions WHERE session_id = ?) +
			(SELECT count() FROM ` + db + ".retention_log WHERE table_name IN ('events', 'dead_letters') AND cutoff > fromUnixTimestamp64Micro(?, 'UTC'))"
		var reasons uint64
		limited, cancel := s.db.Limited(ctx)
		row := conn.QueryRow(limited, sql, r.Session, r.Seq, r.TS.UnixMicro(), r.Topic, r.Partition, r.Offset, r.Session, r.TS.UnixMicro())
		err := row.Scan(&reasons)
		cancel()
		if err != nil {
			return nil, clickhouse.Classify("asking whether records are stored", err)
		}
		lacks[i] = reasons == 0
	}
	return lacks, nil
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

// Completeness checks that everything arrived. It reads the states of sessions with a
// record in those days.
func (s *Store) Completeness(ctx context.Context) (c Completeness, err error) {
	states := s.db.Name() + ".session_states"
	err = s.one(ctx, "asking what is missing", `SELECT sum(`+missingSQL+`), countIf(NOT ended AND last_ingested < now64(3) - INTERVAL 5 MINUTE)
		FROM `+states+` FINAL WHERE (tenant, session_id) IN (SELECT tenant, session_id FROM `+states+` WHERE bitXor(toUnixTimestamp64Micro(last_ts), 0) >= toUnixTimestamp64Micro(now64(6) - INTERVAL 2 DAY))`,
		nil, &c.Missing, &c.Silent)
	return c, err
}

// Empty reports whether there is no record at all.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	var some uint64
	err := s.one(ctx, "asking whether there are records", "SELECT count() FROM (SELECT 1 FROM "+s.db.Name()+".events LIMIT 1)", nil, &some)
	return some == 0, err
}

package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"os"
	"time"

	"auditproxy/collector/ingest"
)

// A Letter is a stored dead letter.
type Letter struct {
	ingest.DeadLetter
	Replayed time.Time // zero: not yet
	Cursor   Cursor    // its position in the order
}

// A Cursor is a position in the order of dead letters.
type Cursor struct {
	source ingest.Source
	hash   string
}

// A LetterFilter selects dead letters; zero values select all.
type LetterFilter struct {
	Reason   string
	Source   *ingest.Source
	Replayed bool    // also those that were replayed
	After    *Cursor // only those after it
	Limit    int     // 0: 1000
}

// Letters returns dead letters in the order of their sources.
func (s *Store) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	sql := "SELECT seen_at, kafka_topic, kafka_partition, kafka_offset, kafka_ts, kafka_key, reason, error, raw, replayed_at, hex(payload_hash) FROM " +
		s.c.Database + ".dead_letters FINAL WHERE 1"
	var args []any
	and := func(condition string, values ...any) {
		sql += " AND " + condition
		args = append(args, values...)
	}
	if f.Reason != "" {
		and("reason = ?", f.Reason)
	}
	if f.Source != nil {
		and("kafka_topic = ? AND kafka_partition = ? AND kafka_offset = ?", f.Source.Topic, f.Source.Partition, f.Source.Offset)
	}
	if f.After != nil {
		at := f.After.source
		and("(kafka_topic, kafka_partition, kafka_offset, payload_hash) > (?, ?, ?, unhex(?))", at.Topic, at.Partition, at.Offset, f.After.hash)
	}
	if !f.Replayed {
		and("replayed_at = toDateTime64(0, 3, 'UTC')")
	}
	limit := f.Limit
	if limit == 0 {
		limit = 1000
	}
	sql += " ORDER BY kafka_topic, kafka_partition, kafka_offset, payload_hash LIMIT ?"
	rows, err := s.conn.Query(ctx, sql, append(args, limit)...)
	if err != nil {
		return nil, classify("reading dead letters", err)
	}
	defer rows.Close()
	var list []Letter
	for rows.Next() {
		var l Letter
		var raw string
		if err := rows.Scan(&l.Seen, &l.Topic, &l.Partition, &l.Offset, &l.Time, &l.Key, &l.Reason, &l.Error, &raw, &l.Replayed, &l.Cursor.hash); err != nil {
			return nil, classify("reading dead letters", err)
		}
		l.Cursor.source = l.Source
		l.Raw, l.Time, l.Replayed = []byte(raw), zeroTime(l.Time), zeroTime(l.Replayed)
		list = append(list, l)
	}
	return list, classify("reading dead letters", rows.Err())
}

// MarkReplayed records that a letter's record is in events now. The letter
// stays.
func (s *Store) MarkReplayed(ctx context.Context, letters []ingest.DeadLetter, at time.Time) error {
	return s.insertLetters(ctx, letters, at)
}

// letterHash distinguishes letters of one source: after a topic was
// recreated, its offsets start again.
func letterHash(l ingest.DeadLetter) [16]byte {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, uint64(len(l.Key)))
	h.Write([]byte(l.Key))
	h.Write(l.Raw)
	return [16]byte(h.Sum(nil))
}

func writeSource(h hash.Hash, s ingest.Source) {
	var b [20]byte
	binary.LittleEndian.PutUint32(b[:], uint32(len(s.Topic)))
	binary.LittleEndian.PutUint32(b[4:], s.Partition)
	binary.LittleEndian.PutUint64(b[8:], s.Offset)
	h.Write(b[:])
	h.Write([]byte(s.Topic))
}

// unixTime is t, or 1970 for none: the column knows no other zero.
func unixTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0)
	}
	return t
}

func zeroTime(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// Completeness counts what is missing from the sessions of the last two days.
type Completeness struct {
	Missing uint64 // sequence numbers never received
	Silent  uint64 // sessions without an end, and without a record for five minutes
}

// Completeness checks that everything arrived.
func (s *Store) Completeness(ctx context.Context) (c Completeness, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	row := s.conn.QueryRow(ctx, `SELECT sum(missing), countIf(NOT ended AND last < now64(3) - INTERVAL 5 MINUTE) FROM (
		SELECT toUInt64(max(seq) - min(seq) + 1 - uniqExact(seq)) AS missing, countIf(kind = 'session_end') > 0 AS ended, max(ingested_at) AS last
		FROM `+s.c.Database+`.events WHERE ts >= now() - INTERVAL 2 DAY GROUP BY session_id)`)
	return c, classify("asking what is missing", row.Scan(&c.Missing, &c.Silent))
}

package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"
)

// A Letter is a stored dead letter.
type Letter struct {
	ingest.DeadLetter
	Replayed time.Time    // zero: not yet
	Cursor   LetterCursor // its position in the order
}

// A LetterCursor is a position in the order of dead letters.
type LetterCursor struct {
	source ingest.Source
	hash   string
}

// A LetterFilter selects dead letters; zero values select all.
type LetterFilter struct {
	Reason   string
	Source   *ingest.Source
	Replayed bool          // also those that were replayed
	After    *LetterCursor // only those after it
	Limit    int           // 0: 1000
}

// InsertDeadLetters implements collector.Inserter.
func (s *Store) InsertDeadLetters(ctx context.Context, letters []ingest.DeadLetter) error {
	return s.insertLetters(ctx, letters, time.Time{})
}

func (s *Store) insertLetters(ctx context.Context, letters []ingest.DeadLetter, replayed time.Time) error {
	sum := sha256.New()
	for _, l := range letters {
		hash := letterHash(l)
		sum.Write(append(l.Source.AppendKey(nil), hash[:]...))
	}
	fmt.Fprint(sum, unixTime(replayed).UnixNano())
	statement := "INSERT INTO " + s.db.Name() + ".dead_letters (seen_at, kafka_topic, kafka_partition, kafka_offset, kafka_ts, kafka_key, reason, error, raw, payload_hash, collector, replayed_at)"
	err := s.db.InsertKeepingFree(ctx, statement, sum.Sum(nil), each(letters, func(l ingest.DeadLetter) []any {
		hash := letterHash(l)
		return []any{l.Seen, l.Topic, l.Partition, l.Offset, unixTime(l.Time), l.Key, l.Reason, l.Error, l.Raw, string(hash[:]), hostname(), unixTime(replayed)}
	}))
	return clickhouse.Classify(fmt.Sprintf("inserting %d dead letters", len(letters)), err)
}

// Letters returns dead letters in the order of their sources.
func (s *Store) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	sql := "SELECT seen_at, kafka_topic, kafka_partition, kafka_offset, kafka_ts, kafka_key, reason, error, raw, replayed_at, hex(payload_hash) FROM " +
		s.db.Name() + ".dead_letters FINAL WHERE 1"
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
	sql += " ORDER BY kafka_topic, kafka_partition, kafka_offset, payload_hash LIMIT ?"
	rows, err := s.db.Conn().Query(ctx, sql, append(args, cmp.Or(f.Limit, 1000))...)
	if err != nil {
		return nil, clickhouse.Classify("reading dead letters", err)
	}
	defer rows.Close()
	var list []Letter
	for rows.Next() {
		var l Letter
		var raw string
		if err := rows.Scan(&l.Seen, &l.Topic, &l.Partition, &l.Offset, &l.Time, &l.Key, &l.Reason, &l.Error, &raw, &l.Replayed, &l.Cursor.hash); err != nil {
			return nil, clickhouse.Classify("reading dead letters", err)
		}
		l.Cursor.source = l.Source
		l.Raw, l.Time, l.Replayed = []byte(raw), zeroTime(l.Time), zeroTime(l.Replayed)
		list = append(list, l)
	}
	return list, clickhouse.Classify("reading dead letters", rows.Err())
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

// unixTime returns t, or 1970 for none: the column has no other zero.
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
	name, _ := os.Hostname()
	return cmp.Or(name, "unknown")
}

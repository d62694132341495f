package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// A Stored is the bytes of a record as they arrived.
type Stored struct {
	Raw       string    `ch:"raw"`
	Hash      string    `ch:"hash"` // SHA-256 of Raw, the first half, hex
	Topic     string    `ch:"kafka_topic"`
	Partition uint32    `ch:"kafka_partition"`
	Offset    uint64    `ch:"kafka_offset"`
	Ingested  time.Time `ch:"ingested_at"`
	TS        time.Time `ch:"ts"`
	SessionID string    `ch:"session_id"`
	Seq       uint64    `ch:"seq"`
	CallNo    uint64    `ch:"call_no"`
}

// Record returns the versions of a record, or ErrNotFound. There is one,
// unless the record was rewritten.
func (s *Store) Record(ctx context.Context, id uuid.UUID) ([]Stored, error) {
	list, err := ask[Stored](ctx, s, "a record", `
		SELECT raw, lower(hex(payload_hash)) AS hash, kafka_topic, kafka_partition, kafka_offset, ingested_at, ts, session_id, seq, call_no
		FROM events FINAL PREWHERE record_id = {id:UUID} ORDER BY ingested_at, hash LIMIT 16`, args{"id": id.String()})
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	return list, err
}

// around is the number of neighbours on each side.
const around = 4

// Neighbours returns the records before and after r in its session, and those
// about the same call, in their order, r among them.
func (s *Store) Neighbours(ctx context.Context, se Session, r Stored) ([]Line, error) {
	from := r.Seq - min(r.Seq, around)
	return ask[Line](ctx, s, "a record's neighbours", "SELECT "+lineColumns+` FROM events FINAL
		PREWHERE session_id = {session:String} AND `+withinSession+`
		  AND (seq BETWEEN {from:UInt64} AND {to:UInt64} OR call_no = {call:UInt64} AND call_no != 0)
		ORDER BY seq, payload_hash LIMIT 64`, se.args(args{"from": from, "to": r.Seq + around, "call": r.CallNo}))
}

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
	Tenant    string    `ch:"tenant"`
	Arrivals  uint64    // places from which the record's number in its session arrived, at most 1000
}

// Record returns the versions of a record, each as it first arrived, or
// ErrNotFound. A record has one version, unless it was rewritten.
func (r *Reader) Record(ctx context.Context, id uuid.UUID) ([]Stored, error) {
	list, err := ask[Stored](ctx, r, "a record", `
		SELECT raw, lower(hex(payload_hash)) AS hash, kafka_topic, kafka_partition, kafka_offset, ingested_at, ts, session_id, seq, call_no, tenant
		FROM events FINAL PREWHERE record_id = {id:UUID} ORDER BY ingested_at, hash LIMIT 16`, args{"id": id.String()})
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	for i := range list {
		if list[i].Arrivals, err = r.arrivals(ctx, list[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

// arrivals returns how often a record arrived, at least once: those from before
// arrivals were counted have no count. At most 1000 are counted.
func (r *Reader) arrivals(ctx context.Context, one Stored) (uint64, error) {
	count, err := askOne[struct {
		N uint64 `ch:"n"`
	}](ctx, r, "a record's arrivals", `
		SELECT toUInt64(length(groupUniqArrayArray(1000)(places))) AS n FROM arrivals
		WHERE tenant = {tenant:String} AND session_id = {session:String} AND seq = {seq:UInt64}`,
		args{"tenant": one.Tenant, "session": one.SessionID, "seq": one.Seq})
	return max(count.N, 1), err
}

// around is the number of neighbours on each side.
const around = 4

// Neighbours returns the records before and after one in its session, and those
// about the same call, in their order, the one among them.
func (r *Reader) Neighbours(ctx context.Context, se Session, one Stored) ([]Line, error) {
	from := one.Seq - min(one.Seq, around)
	return ask[Line](ctx, r, "a record's neighbours", "SELECT "+lineColumns+` FROM events FINAL
		PREWHERE session_id = {session:String} AND `+withinSession+`
		  AND (seq BETWEEN {from:UInt64} AND {to:UInt64} OR call_no = {call:UInt64} AND call_no != 0)
		ORDER BY seq, payload_hash LIMIT 64`, se.args(args{"from": from, "to": one.Seq + around, "call": one.CallNo}))
}

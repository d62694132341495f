package otlp

import (
	"encoding/hex"
	"math"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
)

// ids are the ids of a call's trace and span, and of its parent.
type ids struct {
	trace      [16]byte
	span       [8]byte
	parent     [8]byte
	fromClient bool // there is a parent
}

// callIDs returns the ids of a call.
func callIDs(r *receiver.Record) (n ids) {
	id, err := uuid.Parse(r.Record.RecordID)
	if err != nil {
		id = r.Hash
	}
	n.trace = id
	copy(n.span[:], id[8:])
	n.span = notZero(n.span)
	if n.trace == [16]byte{} {
		n.trace[15] = 1
	}
	trace, parent, ok := clientSpan(&r.Record)
	if n.fromClient = ok; ok {
		n.trace, n.parent = trace, parent
	}
	return n
}

// clientSpan returns the ids of the client's span, which the client chose.
func clientSpan(r *audit.Record) (trace [16]byte, span [8]byte, ok bool) {
	if len(r.TraceID) != 32 || len(r.SpanID) != 16 {
		return trace, span, false
	}
	_, badTrace := hex.Decode(trace[:], []byte(r.TraceID))
	_, badSpan := hex.Decode(span[:], []byte(r.SpanID))
	// Zeros are no ids, in OTLP as in traceparent.
	return trace, span, badTrace == nil && badSpan == nil && trace != [16]byte{} && span != [8]byte{}
}

func notZero(id [8]byte) [8]byte {
	if id == [8]byte{} {
		id[7] = 1
	}
	return id
}

// nanos returns t in OTLP's nanoseconds since 1970, 0 for earlier times. A record's
// time is its proxy's, and may be any.
func nanos(t time.Time) uint64 {
	switch s := t.Unix(); {
	case s < 0:
		return 0
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return uint64(t.UnixNano())
}

// later returns start plus durations, of which negative ones are unknown.
func later(start uint64, durations ...time.Duration) uint64 {
	for _, d := range durations {
		if d > 0 {
			start = min(start+uint64(d), math.MaxInt64)
		}
	}
	return start
}

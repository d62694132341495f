// Package ingest turns untrusted messages into rows or dead letters. It also
// names the classes of the errors of the store that keeps them.
//
// The files, from the top: decode, stored, ingest, class.
package ingest

import (
	"encoding/binary"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/uuid"
)

// SpoolTopic is the topic of records that were read from a spool. Its
// partition is the segment's number, its offset the line's.
const SpoolTopic = "spool"

// A Source is the place a record was read from. Two records of one source are
// copies.
type Source struct {
	Topic     string
	Partition uint32
	Offset    uint64
}

// AppendKey appends bytes that no other source has.
func (s Source) AppendKey(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Topic)))
	b = binary.LittleEndian.AppendUint32(b, s.Partition)
	b = binary.LittleEndian.AppendUint64(b, s.Offset)
	b = binary.LittleEndian.AppendUint32(b, 0) // unchanged: a repeated insert must have its token after an update
	return append(b, s.Topic...)
}

// A Message is a possible record, as read from its source.
type Message struct {
	Source
	Time  time.Time // when it was produced; zero if that is not known
	Key   []byte    // of a spool the session's id
	Value []byte    // valid only until the message is decoded
}

// A Row is a record as a store keeps it.
type Row struct {
	Record     audit.Record
	Operations []audit.Operation // of Record
	Raw        string            // the record's bytes as they arrived; Record's texts are parts of it
	Hash       [16]byte          // SHA-256 of Raw, its first half
	Source     Source
}

// Size is an upper estimate of the memory of r, in bytes: its raw bytes, as
// much again for texts that had escapes in them, the structure, and the columns of
// its operations, which may repeat the arguments.
func (r *Row) Size() int64 {
	n := 2*len(r.Raw) + 1024
	for i := range r.Operations {
		op := &r.Operations[i]
		n += len(op.Args) + len(op.Path) + 128
	}
	return int64(n)
}

// A DeadLetter is a message that could not become a row, and the reason.
type DeadLetter struct {
	Source
	Time   time.Time // when it was produced; zero if that is not known
	Key    string    // of the message
	Raw    []byte
	Reason string // one of the words in decode.go
	Error  string // a sentence
	Seen   time.Time
}

// A Gap is a range of offsets that were never received, as in the table gaps.
type Gap struct {
	Topic     string    `ch:"kafka_topic"`
	Partition uint32    `ch:"kafka_partition"`
	From      uint64    `ch:"from_offset"`
	To        uint64    `ch:"to_offset"`  // the last one that is missing
	Session   string    `ch:"session_id"` // of a spool
	Reason    string    `ch:"reason"`
	Seen      time.Time `ch:"seen_at"`
	TopicID   uuid.UUID `ch:"topic_id"` // zero: not known
	ReadTo    uint64    `ch:"read_to"`  // records from From up to this offset came later; 0: none did
}

// The reasons of gaps in Kafka that a store decides by.
const (
	OffsetWasSet = "offset was set" // by another program, behind records that were not read
	StoreIsOlder = "store is older" // it lacks the last record before the group's offset, as one that was restored from a backup
	LogIsAnother = "log is another" // the topic was deleted and made again; how many records the old one had is unknown
	LogIsShorter = "log is shorter" // than what was read
)

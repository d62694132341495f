package clickhouse

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/uuid"
)

// A column is a column of events with its encoder for ClickHouse's Native
// format, the prefix of its serialization first. The driver takes values as
// any and inspects them by reflection, which costs more than all other work
// on a record; so it gets encoded columns.
type column struct {
	name string
	typ  proto.ColumnType // as the server spells it
	put  func(to *proto.Buffer, rows []ingest.Row)
}

// values makes a column from the value that put writes for each row.
func values(name string, typ proto.ColumnType, put func(to *proto.Buffer, r *ingest.Row)) column {
	return column{name, typ, func(to *proto.Buffer, rows []ingest.Row) {
		for i := range rows {
			put(to, &rows[i])
		}
	}}
}

func text[T ~string](name string, of func(r *audit.Record) *T) column {
	return texts(name, func(r *ingest.Row) string { return string(*of(&r.Record)) })
}

// texts makes a column of texts. It appends to a local slice: to.PutString
// stores the slice for each text, which costs more than most texts.
func texts(name string, of func(r *ingest.Row) string) column {
	return column{name, proto.ColumnTypeString, func(to *proto.Buffer, rows []ingest.Row) {
		buf := to.Buf
		for i := range rows {
			s := of(&rows[i])
			if len(s) < 0x80 { // most, in one byte
				buf = append(buf, byte(len(s)))
			} else {
				buf = binary.AppendUvarint(buf, uint64(len(s)))
			}
			buf = append(buf, s...)
		}
		to.Buf = buf
	}}
}

// numbers makes a column of 64 bits, as texts makes one of texts.
func numbers(name string, typ proto.ColumnType, of func(r *ingest.Row) uint64) column {
	return column{name, typ, func(to *proto.Buffer, rows []ingest.Row) {
		buf := to.Buf
		for i := range rows {
			buf = binary.LittleEndian.AppendUint64(buf, of(&rows[i]))
		}
		to.Buf = buf
	}}
}

// word is text with few values, mostly equal in adjacent rows: only a value
// that differs from the previous row's is looked up.
func word(name string, of func(r *ingest.Row) string) column {
	return column{name, proto.ColumnTypeLowCardinality.Sub(proto.ColumnTypeString), func(to *proto.Buffer, rows []ingest.Row) {
		dictionary := map[string]uint32{}
		words := make([]string, 0, 8)
		keys := make([]uint32, len(rows))
		for i := range rows {
			w := of(&rows[i])
			if i > 0 && w == words[keys[i-1]] {
				keys[i] = keys[i-1]
				continue
			}
			key, known := dictionary[w]
			if !known {
				key = uint32(len(words))
				dictionary[w] = key
				words = append(words, w)
			}
			keys[i] = key
		}
		putWords(to, words, keys)
	}}
}

// putWords writes a LowCardinality(String): the version of its serialization,
// and for a block with rows a dictionary and the key of each row into it.
func putWords(to *proto.Buffer, words []string, keys []uint32) {
	const (
		version = 1 // shared dictionaries with additional keys
		// The dictionary follows in full, and replaces the previous one.
		additionalKeys, updateDictionary = 1 << 9, 1 << 10
	)
	to.PutInt64(version)
	if len(keys) == 0 {
		return
	}
	width := proto.KeyUInt8
	switch {
	case len(words) > math.MaxUint16+1:
		width = proto.KeyUInt32
	case len(words) > math.MaxUint8+1:
		width = proto.KeyUInt16
	}
	to.PutInt64(additionalKeys | updateDictionary | int64(width))
	to.PutInt64(int64(len(words)))
	for _, w := range words {
		to.PutString(w)
	}
	to.PutInt64(int64(len(keys)))
	buf := to.Buf
	for _, key := range keys {
		switch width {
		case proto.KeyUInt8:
			buf = append(buf, byte(key))
		case proto.KeyUInt16:
			buf = binary.LittleEndian.AppendUint16(buf, uint16(key))
		default:
			buf = binary.LittleEndian.AppendUint32(buf, key)
		}
	}
	to.Buf = buf
}

// nullable makes a column of 64 bits a value, of returns false for none.
func nullable(name string, typ proto.ColumnType, of func(r *audit.Record) (bits uint64, ok bool)) column {
	return column{name, typ, func(to *proto.Buffer, rows []ingest.Row) {
		for i := range rows {
			_, ok := of(&rows[i].Record)
			to.PutBool(!ok)
		}
		buf := to.Buf
		for i := range rows {
			bits, _ := of(&rows[i].Record)
			buf = binary.LittleEndian.AppendUint64(buf, bits)
		}
		to.Buf = buf
	}}
}

// lists makes a column of a list for each row.
func lists[T any](name string, typ proto.ColumnType, of func(r *ingest.Row) []T, put func(to *proto.Buffer, element *T)) column {
	return column{name, proto.ColumnTypeArray.Sub(typ), func(to *proto.Buffer, rows []ingest.Row) {
		end, buf := 0, to.Buf
		for i := range rows {
			end += len(of(&rows[i]))
			buf = binary.LittleEndian.AppendUint64(buf, uint64(end))
		}
		to.Buf = buf
		for i := range rows {
			list := of(&rows[i])
			for j := range list {
				put(to, &list[j])
			}
		}
	}}
}

// operations makes a column of lists, an element for each operation.
func operations(name string, typ proto.ColumnType, put func(to *proto.Buffer, o *audit.Operation)) column {
	return lists(name, typ, func(r *ingest.Row) []audit.Operation { return r.Operations }, put)
}

// millis is the type of a count of milliseconds since 1970.
const millis proto.ColumnType = "DateTime64(3, 'UTC')"

// eventColumns returns the columns of events except ingested_at, in the
// table's order: those of the record's members, and those that a collector
// adds.
func eventColumns() (list []column) {
	for _, m := range audit.RecordMembers() {
		for _, c := range m.Columns() {
			list = append(list, memberColumn(c))
		}
	}
	return append(list,
		operations("ops", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(operationName(o)) }),
		operations("ops_args", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(string(o.Args)) }),
		operations("ops_path", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(o.Path) }),
		operations("ops_candidate", proto.ColumnTypeBool, func(to *proto.Buffer, o *audit.Operation) { to.PutBool(o.Candidate) }),
		texts("raw", func(r *ingest.Row) string { return r.Raw }),
		values("payload_hash", "FixedString(16)", func(to *proto.Buffer, r *ingest.Row) { to.PutRaw(r.Hash[:]) }),
		word("kafka_topic", func(r *ingest.Row) string { return r.Source.Topic }),
		values("kafka_partition", proto.ColumnTypeUInt32, func(to *proto.Buffer, r *ingest.Row) { to.PutUInt32(r.Source.Partition) }),
		numbers("kafka_offset", proto.ColumnTypeUInt64, func(r *ingest.Row) uint64 { return r.Source.Offset }),
	)
}

// memberColumn returns the column that is declared as c. It panics on a type
// that no member had before: TestOneRecord calls it for each member.
func memberColumn(c audit.Column) column {
	typ := proto.ColumnType(c.Type)
	switch of := c.Value.(type) {
	case func(*audit.Record) *string:
		switch {
		case typ == proto.ColumnTypeUUID:
			return values(c.Name, typ, func(to *proto.Buffer, r *ingest.Row) { putID(to, *of(&r.Record)) })
		case strings.HasPrefix(c.Type, "LowCardinality"):
			return word(c.Name, func(r *ingest.Row) string { return *of(&r.Record) })
		}
		return text(c.Name, of)
	case func(*audit.Record) *audit.JSON:
		return text(c.Name, of)
	case func(*audit.Record) string:
		return column{c.Name, typ, texts(c.Name, func(r *ingest.Row) string { return of(&r.Record) }).put}
	case func(*audit.Record) *bool:
		return values(c.Name, typ, func(to *proto.Buffer, r *ingest.Row) { to.PutBool(*of(&r.Record)) })
	case func(*audit.Record) bool:
		return values(c.Name, typ, func(to *proto.Buffer, r *ingest.Row) { to.PutBool(of(&r.Record)) })
	case func(*audit.Record) *int64:
		return numbers(c.Name, typ, func(r *ingest.Row) uint64 { return uint64(*of(&r.Record)) })
	case func(*audit.Record) int64:
		if typ == proto.ColumnTypeUInt8 {
			return values(c.Name, typ, func(to *proto.Buffer, r *ingest.Row) { to.PutUInt8(uint8(of(&r.Record))) })
		}
		return numbers(c.Name, typ, func(r *ingest.Row) uint64 { return uint64(of(&r.Record)) })
	case func(*audit.Record) *uint64:
		return numbers(c.Name, typ, func(r *ingest.Row) uint64 { return *of(&r.Record) })
	case func(*audit.Record) *time.Time:
		return numbers(c.Name, typ, func(r *ingest.Row) uint64 { return uint64(of(&r.Record).UnixMicro()) })
	case func(*audit.Record) *[]string:
		return lists(c.Name, proto.ColumnTypeString, func(r *ingest.Row) []string { return *of(&r.Record) },
			func(to *proto.Buffer, word *string) { to.PutString(*word) })
	case func(*audit.Record) []string:
		return lists(c.Name, proto.ColumnTypeString, func(r *ingest.Row) []string { return of(&r.Record) },
			func(to *proto.Buffer, word *string) { to.PutString(*word) })
	case func(*audit.Record) (uint64, bool):
		return nullable(c.Name, typ, of)
	}
	panic(fmt.Sprintf("column %q has values of type %T", c.Name, c.Value))
}

// columnsAt are all columns of events that arrive at a time.
func columnsAt(at time.Time) []column {
	ingested := values("ingested_at", millis, func(to *proto.Buffer, _ *ingest.Row) { to.PutInt64(at.UnixMilli()) })
	return append(eventColumns(), ingested)
}

// putID writes a UUID. ClickHouse keeps it as two numbers.
func putID(to *proto.Buffer, s string) {
	u := id(s)
	to.PutUInt64(binary.BigEndian.Uint64(u[:8]))
	to.PutUInt64(binary.BigEndian.Uint64(u[8:]))
}

// id reads a UUID that was checked with the row; zero for another text.
func id(s string) uuid.UUID {
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.UUID{}
	}
	return u
}

func operationName(o *audit.Operation) string {
	if o.Tool == "" {
		return o.Method
	}
	return o.Tool
}

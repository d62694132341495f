package clickhouse

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/uuid"
)

// A column of events and how it is written in ClickHouse's Native format, the
// prefix of its serialization first. The driver takes values as any and looks
// at them by reflection, which costs more than all else that is done with a
// record; so it is given columns that are written already.
type column struct {
	name string
	typ  proto.ColumnType // as the server spells it
	put  func(to *proto.Buffer, rows []sink.Row)
}

// values makes a column of what put writes for each row.
func values(name string, typ proto.ColumnType, put func(to *proto.Buffer, r *sink.Row)) column {
	return column{name, typ, func(to *proto.Buffer, rows []sink.Row) {
		for i := range rows {
			put(to, &rows[i])
		}
	}}
}

func text(name string, of func(r *audit.Record) string) column {
	return column{name, proto.ColumnTypeString, func(to *proto.Buffer, rows []sink.Row) {
		for i := range rows {
			to.PutString(of(&rows[i].Record))
		}
	}}
}

// word is text that has few values, which are the same in most rows that stand
// together: only another one than the row's before is looked for among them.
func word(name string, of func(r *sink.Row) string) column {
	return column{name, proto.ColumnTypeLowCardinality.Sub(proto.ColumnTypeString), func(to *proto.Buffer, rows []sink.Row) {
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
		// What follows is all of the dictionary, and replaces what was there.
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
	for _, key := range keys {
		switch width {
		case proto.KeyUInt8:
			to.PutUInt8(uint8(key))
		case proto.KeyUInt16:
			to.PutUInt16(uint16(key))
		default:
			to.PutUInt32(key)
		}
	}
}

func flag(name string, of func(r *audit.Record) bool) column {
	return values(name, proto.ColumnTypeBool, func(to *proto.Buffer, r *sink.Row) { to.PutBool(of(&r.Record)) })
}

func integer(name string, of func(r *audit.Record) int64) column {
	return values(name, proto.ColumnTypeInt64, func(to *proto.Buffer, r *sink.Row) { to.PutInt64(of(&r.Record)) })
}

func natural(name string, of func(r *sink.Row) uint64) column {
	return values(name, proto.ColumnTypeUInt64, func(to *proto.Buffer, r *sink.Row) { to.PutUInt64(of(r)) })
}

// nullable makes a column of 64 bits a value, of returns false for none.
func nullable(name string, typ proto.ColumnType, of func(r *audit.Record) (bits uint64, ok bool)) column {
	return column{name, proto.ColumnTypeNullable.Sub(typ), func(to *proto.Buffer, rows []sink.Row) {
		for i := range rows {
			_, ok := of(&rows[i].Record)
			to.PutBool(!ok)
		}
		for i := range rows {
			bits, _ := of(&rows[i].Record)
			to.PutUInt64(bits)
		}
	}}
}

// lists makes a column of a list for each row.
func lists[T any](name string, typ proto.ColumnType, of func(r *sink.Row) []T, put func(to *proto.Buffer, element *T)) column {
	return column{name, proto.ColumnTypeArray.Sub(typ), func(to *proto.Buffer, rows []sink.Row) {
		end := 0
		for i := range rows {
			end += len(of(&rows[i]))
			to.PutUInt64(uint64(end))
		}
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
	return lists(name, typ, func(r *sink.Row) []audit.Operation { return r.Operations }, put)
}

// The types of times: a count of microseconds or milliseconds since 1970.
const (
	micros proto.ColumnType = "DateTime64(6, 'UTC')"
	millis proto.ColumnType = "DateTime64(3, 'UTC')"
)

// eventColumns are the columns of events but ingested_at, in the table's order.
var eventColumns = []column{
	values("v", proto.ColumnTypeUInt8, func(to *proto.Buffer, _ *sink.Row) { to.PutUInt8(audit.Version) }),
	word("kind", func(r *sink.Row) string { return string(r.Record.Kind) }),
	values("record_id", proto.ColumnTypeUUID, putID),
	text("session_id", func(r *audit.Record) string { return r.SessionID }),
	natural("seq", func(r *sink.Row) uint64 { return r.Record.Seq }),
	natural("call_no", func(r *sink.Row) uint64 { return r.Record.CallNo }),
	values("ts", micros, func(to *proto.Buffer, r *sink.Row) { to.PutInt64(r.Record.TS.UnixMicro()) }),
	text("method", func(r *audit.Record) string { return r.Method }),
	text("tool", func(r *audit.Record) string { return r.Tool }),
	text("target", func(r *audit.Record) string { return r.Target }),
	text("candidates", candidates),
	word("outcome", func(r *sink.Row) string { return string(r.Record.Outcome) }),
	text("error_type", func(r *audit.Record) string { return r.ErrorType }),
	nullable("error_code", proto.ColumnTypeInt64, errorCode),
	text("result_type", func(r *audit.Record) string { return r.ResultType }),
	flag("forwarded", func(r *audit.Record) bool { return r.Forwarded }),
	flag("cancel_requested", func(r *audit.Record) bool { return r.CancelRequested }),
	flag("recovered", func(r *audit.Record) bool { return r.Recovered }),
	nullable("duration_ms", proto.ColumnTypeFloat64, duration),
	text("client_id", func(r *audit.Record) string { return r.ClientID }),
	text("request_id", func(r *audit.Record) string { return r.RequestID }),
	text("request_id_type", func(r *audit.Record) string { return r.RequestIDType }),
	text("client_name", func(r *audit.Record) string { return r.Client.Name }),
	text("client_version", func(r *audit.Record) string { return r.Client.Version }),
	text("server_name", func(r *audit.Record) string { return r.Server.Name }),
	text("server_version", func(r *audit.Record) string { return r.Server.Version }),
	text("protocol_version", func(r *audit.Record) string { return r.ProtocolVersion }),
	text("server_command", func(r *audit.Record) string { return r.ServerCommand.Command }),
	text("server_command_args_digest", func(r *audit.Record) string { return string(r.ServerCommand.ArgsDigest) }),
	text("tier", func(r *audit.Record) string { return r.Tier }),
	text("annotations", func(r *audit.Record) string { return string(r.Annotations) }),
	text("tool_hash", func(r *audit.Record) string { return r.ToolHash }),
	text("args", func(r *audit.Record) string { return string(r.Args) }),
	integer("args_bytes", func(r *audit.Record) int64 { return r.ArgsBytes }),
	integer("result_bytes", func(r *audit.Record) int64 { return r.ResultBytes }),
	text("error_digest", func(r *audit.Record) string { return string(r.ErrorDigest) }),
	text("trace_id", func(r *audit.Record) string { return r.TraceID }),
	text("span_id", func(r *audit.Record) string { return r.SpanID }),
	text("host", func(r *audit.Record) string { return r.Host }),
	text("user", func(r *audit.Record) string { return r.User }),
	integer("pid", func(r *audit.Record) int64 { return int64(r.PID) }),
	text("labels", func(r *audit.Record) string { return string(r.Labels) }),
	text("tenant", func(r *audit.Record) string { return r.Tenant }),
	lists("anomalies", proto.ColumnTypeString, func(r *sink.Row) []string { return r.Record.Anomalies },
		func(to *proto.Buffer, word *string) { to.PutString(*word) }),
	integer("at", func(r *audit.Record) int64 { return r.At }),
	integer("bytes", func(r *audit.Record) int64 { return r.Bytes }),
	text("digest", func(r *audit.Record) string { return string(r.Digest) }),
	nullable("from", micros, func(r *audit.Record) (uint64, bool) { return microsOf(moment(r.From)) }),
	nullable("to", micros, func(r *audit.Record) (uint64, bool) { return microsOf(moment(r.To)) }),
	integer("count", func(r *audit.Record) int64 { return r.Count }),
	integer("denied", func(r *audit.Record) int64 { return r.Denied }),
	flag("durable", func(r *audit.Record) bool { return !r.NotDurable }),
	text("proxy", func(r *audit.Record) string { return string(r.Proxy) }),
	operations("ops", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(operationName(o)) }),
	operations("ops_args", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(string(o.Args)) }),
	operations("ops_path", proto.ColumnTypeString, func(to *proto.Buffer, o *audit.Operation) { to.PutString(o.Path) }),
	operations("ops_candidate", proto.ColumnTypeBool, func(to *proto.Buffer, o *audit.Operation) { to.PutBool(o.Candidate) }),
	values("raw", proto.ColumnTypeString, func(to *proto.Buffer, r *sink.Row) { to.PutString(r.Raw) }),
	values("payload_hash", "FixedString(16)", func(to *proto.Buffer, r *sink.Row) { to.PutRaw(r.Hash[:]) }),
	word("kafka_topic", func(r *sink.Row) string { return r.Source.Topic }),
	values("kafka_partition", proto.ColumnTypeUInt32, func(to *proto.Buffer, r *sink.Row) { to.PutUInt32(r.Source.Partition) }),
	natural("kafka_offset", func(r *sink.Row) uint64 { return r.Source.Offset }),
}

// columnsAt are all columns of events that arrive at a time.
func columnsAt(at time.Time) []column {
	ingested := values("ingested_at", millis, func(to *proto.Buffer, _ *sink.Row) { to.PutInt64(at.UnixMilli()) })
	return append(slices.Clip(eventColumns), ingested)
}

// putID writes a record's UUID. ClickHouse keeps it as two numbers.
func putID(to *proto.Buffer, r *sink.Row) {
	u := id(r.Record.RecordID)
	to.PutUInt64(binary.BigEndian.Uint64(u[:8]))
	to.PutUInt64(binary.BigEndian.Uint64(u[8:]))
}

// id reads a UUID that whoever made the row has checked; zero for another text.
func id(s string) uuid.UUID {
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.UUID{}
	}
	return u
}

func candidates(r *audit.Record) string {
	if len(r.Candidates) == 0 {
		return ""
	}
	b := []byte{'['}
	for i, c := range r.Candidates {
		if i > 0 {
			b = append(b, ',')
		}
		b = audit.AppendQuote(append(b, `{"method":`...), c.Method)
		if c.Tool != "" {
			b = audit.AppendQuote(append(b, `,"tool":`...), c.Tool)
		}
		if c.Args != "" {
			b = append(append(b, `,"args":`...), c.Args...)
		}
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

func errorCode(r *audit.Record) (bits uint64, ok bool) {
	if r.ErrorCode == nil {
		return 0, false
	}
	return uint64(*r.ErrorCode), true
}

func duration(r *audit.Record) (bits uint64, ok bool) {
	if r.Duration < 0 {
		return 0, false
	}
	return math.Float64bits(float64(r.Duration.Microseconds()) / 1000), true
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func microsOf(t *time.Time) (bits uint64, ok bool) {
	if t == nil {
		return 0, false
	}
	return uint64(t.UnixMicro()), true
}

func operationName(o *audit.Operation) string {
	if o.Tool == "" {
		return o.Method
	}
	return o.Tool
}

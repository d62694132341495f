package clickhouse

import (
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// A column of events and how it is filled. Whole columns are appended: a call
// per value would cost more than reading the record.
type column struct {
	name   string
	append func(to driver.BatchColumn, rows []sink.Row) error
}

// values makes a column of what of returns for each row.
func values[T any](name string, of func(r *sink.Row) T) column {
	return column{name, func(to driver.BatchColumn, rows []sink.Row) error {
		list := make([]T, len(rows))
		for i := range rows {
			list[i] = of(&rows[i])
		}
		return to.Append(list)
	}}
}

// record is values of what of returns for each row's record.
func record[T any](name string, of func(r *audit.Record) T) column {
	return values(name, func(r *sink.Row) T { return of(&r.Record) })
}

// operations makes a column of lists, an element for each operation.
func operations[T any](name string, of func(o *audit.Operation) T) column {
	return values(name, func(r *sink.Row) []T {
		list := make([]T, len(r.Operations))
		for i := range r.Operations {
			list[i] = of(&r.Operations[i])
		}
		return list
	})
}

// eventColumns are the columns of events but ingested_at, in the table's order.
var eventColumns = []column{
	record("v", func(*audit.Record) uint8 { return audit.Version }),
	record("kind", func(r *audit.Record) string { return string(r.Kind) }),
	record("record_id", func(r *audit.Record) uuid.UUID { return id(r.RecordID) }),
	record("session_id", func(r *audit.Record) string { return r.SessionID }),
	record("seq", func(r *audit.Record) uint64 { return r.Seq }),
	record("call_no", func(r *audit.Record) uint64 { return r.CallNo }),
	record("ts", func(r *audit.Record) time.Time { return r.TS }),
	record("method", func(r *audit.Record) string { return r.Method }),
	record("tool", func(r *audit.Record) string { return r.Tool }),
	record("target", func(r *audit.Record) string { return r.Target }),
	record("candidates", candidates),
	record("outcome", func(r *audit.Record) string { return string(r.Outcome) }),
	record("error_type", func(r *audit.Record) string { return r.ErrorType }),
	record("error_code", func(r *audit.Record) *int64 { return r.ErrorCode }),
	record("result_type", func(r *audit.Record) string { return r.ResultType }),
	record("forwarded", func(r *audit.Record) bool { return r.Forwarded }),
	record("cancel_requested", func(r *audit.Record) bool { return r.CancelRequested }),
	record("recovered", func(r *audit.Record) bool { return r.Recovered }),
	record("duration_ms", duration),
	record("client_id", func(r *audit.Record) string { return r.ClientID }),
	record("request_id", func(r *audit.Record) string { return r.RequestID }),
	record("request_id_type", func(r *audit.Record) string { return r.RequestIDType }),
	record("client_name", func(r *audit.Record) string { return r.Client.Name }),
	record("client_version", func(r *audit.Record) string { return r.Client.Version }),
	record("server_name", func(r *audit.Record) string { return r.Server.Name }),
	record("server_version", func(r *audit.Record) string { return r.Server.Version }),
	record("protocol_version", func(r *audit.Record) string { return r.ProtocolVersion }),
	record("server_command", func(r *audit.Record) string { return r.ServerCommand.Command }),
	record("server_command_args_digest", func(r *audit.Record) string { return string(r.ServerCommand.ArgsDigest) }),
	record("tier", func(r *audit.Record) string { return r.Tier }),
	record("annotations", func(r *audit.Record) string { return string(r.Annotations) }),
	record("tool_hash", func(r *audit.Record) string { return r.ToolHash }),
	record("args", func(r *audit.Record) string { return string(r.Args) }),
	record("args_bytes", func(r *audit.Record) int64 { return r.ArgsBytes }),
	record("result_bytes", func(r *audit.Record) int64 { return r.ResultBytes }),
	record("error_digest", func(r *audit.Record) string { return string(r.ErrorDigest) }),
	record("trace_id", func(r *audit.Record) string { return r.TraceID }),
	record("span_id", func(r *audit.Record) string { return r.SpanID }),
	record("host", func(r *audit.Record) string { return r.Host }),
	record("user", func(r *audit.Record) string { return r.User }),
	record("pid", func(r *audit.Record) int64 { return int64(r.PID) }),
	record("labels", func(r *audit.Record) string { return string(r.Labels) }),
	record("tenant", func(r *audit.Record) string { return r.Tenant }),
	record("anomalies", func(r *audit.Record) []string { return r.Anomalies }),
	record("at", func(r *audit.Record) int64 { return r.At }),
	record("bytes", func(r *audit.Record) int64 { return r.Bytes }),
	record("digest", func(r *audit.Record) string { return string(r.Digest) }),
	record("from", func(r *audit.Record) *time.Time { return moment(r.From) }),
	record("to", func(r *audit.Record) *time.Time { return moment(r.To) }),
	record("count", func(r *audit.Record) int64 { return r.Count }),
	record("denied", func(r *audit.Record) int64 { return r.Denied }),
	record("durable", func(r *audit.Record) bool { return !r.NotDurable }),
	record("proxy", func(r *audit.Record) string { return string(r.Proxy) }),
	operations("ops", operationName),
	operations("ops_args", func(o *audit.Operation) string { return string(o.Args) }),
	operations("ops_path", func(o *audit.Operation) string { return o.Path }),
	operations("ops_candidate", func(o *audit.Operation) bool { return o.Candidate }),
	values("raw", func(r *sink.Row) []byte { return r.Raw }),
	values("payload_hash", func(r *sink.Row) string { return string(r.Hash[:]) }),
	values("kafka_topic", func(r *sink.Row) string { return r.Source.Topic }),
	values("kafka_partition", func(r *sink.Row) uint32 { return r.Source.Partition }),
	values("kafka_offset", func(r *sink.Row) uint64 { return r.Source.Offset }),
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
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

func duration(r *audit.Record) *float64 {
	if r.Duration < 0 {
		return nil
	}
	ms := float64(r.Duration.Microseconds()) / 1000
	return &ms
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func operationName(o *audit.Operation) string {
	if o.Tool == "" {
		return o.Method
	}
	return o.Tool
}

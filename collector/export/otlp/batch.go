package otlp

import (
	"encoding/hex"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// flushAt is the size of a request, in bytes, with which it is sent. The record that
// made it so large can add as much as a record with all its operations' spans: less
// than 2 MiB. Receivers of gRPC take 4 MiB unless they are set to less.
const flushAt = 1536 << 10

// A batch collects the log records and spans of records in their order.
type batch struct {
	wantLogs, wantSpans, wantArgs bool

	shared attributes // of the record at hand: those of its span, which its log record has too
	level  string     // of its risk
	event  string     // of its policy
	logs   logs
	spans  spans
}

func newBatch(c *Config) *batch {
	scope := &commonpb.InstrumentationScope{Name: serviceName, Version: c.Version}
	b := &batch{
		wantArgs: c.Arguments, shared: attributes{field: spanAttributes},
		logs:  logs{scope: scope, attributes: attributes{field: logAttributes}},
		spans: spans{scope: scope, attributes: attributes{field: spanAttributes}, wantArgs: c.Arguments},
	}
	for _, s := range c.signals() {
		b.wantLogs = b.wantLogs || s == Logs
		b.wantSpans = b.wantSpans || s == Traces
	}
	return b
}

func (b *batch) reset() {
	b.logs.reset()
	b.spans.reset()
}

// full reports whether what was collected is to be sent.
func (b *batch) full() bool { return b.logs.size >= flushAt || b.spans.size >= flushAt }

// add adds the log record of r and, if it is a call with its outcome, its spans.
func (b *batch) add(r *receiver.Record) {
	var own *ids
	if r.Record.Kind == audit.KindCall {
		n := callIDs(r)
		own = &n
	}
	if !b.wantLogs && (!b.wantSpans || own == nil) {
		return
	}
	b.shared.buf = b.shared.buf[:0]
	b.addShared(r)
	if b.wantLogs {
		a := &b.logs.attributes
		from := len(a.buf)
		a.text(string(semconv.LogRecordUIDKey), r.Record.RecordID)
		a.append(b.shared.buf)
		b.addRest(r)
		b.logs.add(r, own, severity(&r.Record, b.level, b.event), a.buf[from:len(a.buf):len(a.buf)])
	}
	if b.wantSpans && own != nil {
		b.spans.add(r, own, b.shared.buf)
	}
}

// addShared adds the attributes of both the log record and the span.
func (b *batch) addShared(rec *receiver.Record) {
	a, r := &b.shared, &rec.Record
	a.text("auditproxy.record_id", r.RecordID)
	a.text(string(semconv.McpSessionIDKey), r.SessionID)
	addCall(a, r)
	if r.RequestIDType != "" {
		a.text(string(semconv.JSONRPCRequestIDKey), r.RequestID)
	}
	if b.wantArgs {
		a.text(string(semconv.GenAIToolCallArgumentsKey), string(r.Args))
	}
	a.text(string(semconv.UserNameKey), r.User)
	a.text("auditproxy.tenant", r.Tenant)
	a.text("auditproxy.outcome", string(r.Outcome))
	a.text("auditproxy.error_type", r.ErrorType)
	a.text("auditproxy.client.name", r.Client.Name)
	a.text("auditproxy.client.version", r.Client.Version)
	a.text("auditproxy.server.name", r.Server.Name)
	a.text("auditproxy.server.version", r.Server.Version)
	b.level = a.object(r.Risk, riskMembers, "level")
	if r.Detections != "" {
		b.addDetections(r.Detections)
	}
	b.event = a.object(r.Policy, policyMembers, "event")
	a.object(r.Approval, approvalMembers, "")
	n := int64(0)
	for i := range rec.Operations {
		if isChild(&rec.Operations[i]) {
			n++
		}
	}
	a.count("auditproxy.operations", n)
}

func (b *batch) addDetections(v audit.JSON) {
	// A list that a newer proxy wrote otherwise is passed on as its text.
	list, err := audit.ParseDetections(v)
	if err != nil {
		b.shared.text("auditproxy.detections", string(v))
		return
	}
	words, at := make([]string, len(list)), make([]string, len(list))
	for i, d := range list {
		words[i], at[i] = d.Detector, d.At
	}
	b.shared.texts("auditproxy.detections", words)
	b.shared.texts("auditproxy.detections_at", at)
}

// addRest adds the attributes of the log record alone: all other members.
func (b *batch) addRest(rec *receiver.Record) {
	a, r := &b.logs.attributes, &rec.Record
	a.text("auditproxy.kind", string(r.Kind))
	a.unsigned("auditproxy.seq", r.Seq)
	if r.CallNo != 0 {
		a.unsigned("auditproxy.call_no", r.CallNo)
	}
	b.addCandidates(r.Candidates)
	a.text("auditproxy.result_type", r.ResultType)
	a.yes("auditproxy.forwarded", r.Forwarded)
	a.yes("auditproxy.cancel_requested", r.CancelRequested)
	a.yes("auditproxy.recovered", r.Recovered)
	if r.Duration >= 0 && (r.Kind == audit.KindCall || r.Duration > 0) {
		a.integer("auditproxy.duration_us", r.Duration.Microseconds())
	}
	a.text("auditproxy.client_id", r.ClientID)
	a.text("auditproxy.request_id_type", r.RequestIDType)
	a.text("auditproxy.server_command", r.ServerCommand.Command)
	a.text("auditproxy.server_command_args_digest", string(r.ServerCommand.ArgsDigest))
	a.text("auditproxy.tier", r.Tier)
	a.text("auditproxy.annotations", string(r.Annotations))
	a.text("auditproxy.tool_hash", r.ToolHash)
	a.count("auditproxy.args_bytes", r.ArgsBytes)
	a.count("auditproxy.result_bytes", r.ResultBytes)
	a.text("auditproxy.error_digest", string(r.ErrorDigest))
	a.text("auditproxy.trace_id", r.TraceID)
	a.text("auditproxy.span_id", r.SpanID)
	a.count(string(semconv.ProcessPIDKey), int64(r.PID))
	a.text("auditproxy.labels", string(r.Labels))
	a.texts("auditproxy.anomalies", r.Anomalies)
	if r.Kind == audit.KindAnomaly || r.Bytes > 0 {
		a.integer("auditproxy.at", r.At)
		a.integer("auditproxy.bytes", r.Bytes)
		a.text("auditproxy.digest", string(r.Digest))
	}
	if r.Kind == audit.KindGap {
		a.text("auditproxy.from", r.From.UTC().Format(time.RFC3339Nano))
		a.text("auditproxy.to", r.To.UTC().Format(time.RFC3339Nano))
		a.integer("auditproxy.count", r.Count)
		a.integer("auditproxy.denied", r.Denied)
	}
	if r.NotDurable {
		a.boolean("auditproxy.durable", false)
	}
	a.text("auditproxy.payload_hash", hex.EncodeToString(rec.Hash[:]))
	if b.wantArgs && !r.Kind.Known() {
		// A newer proxy's, whose members are not known either.
		a.text(string(semconv.LogRecordOriginalKey), rec.Raw)
	}
	a.text("auditproxy.proxy", string(r.Proxy))
	a.text("auditproxy.evidence", string(r.Evidence))
}

// addCandidates adds the calls that other servers read in the same bytes.
func (b *batch) addCandidates(list []audit.Candidate) {
	if len(list) == 0 {
		return
	}
	names, args := make([]string, len(list)), make([]string, len(list))
	for i, c := range list {
		names[i], args[i] = spanName(c.Method, c.Tool, c.Target), string(c.Args)
	}
	b.logs.attributes.texts("auditproxy.candidates", names)
	if b.wantArgs {
		b.logs.attributes.texts("auditproxy.candidates_args", args)
	}
}

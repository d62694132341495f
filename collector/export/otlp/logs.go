package otlp

import (
	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
)

// logs collects log records in the order of their records. Its messages are reused.
type logs struct {
	scope      *commonpb.InstrumentationScope
	groups     []*logspb.ResourceLogs
	size       int // bytes on the wire, at most
	host       string
	memory     slab[logItem]
	attributes attributes // of all log records, one after the other
}

// A logItem is a log record with all that it needs.
type logItem struct {
	record logspb.LogRecord
	body   commonpb.AnyValue
	text   commonpb.AnyValue_StringValue
	trace  [16]byte
	span   [8]byte
}

func (l *logs) reset() {
	l.groups, l.size, l.host = nil, 0, ""
	l.memory.reset()
	l.attributes.buf = l.attributes.buf[:0]
}

// add adds the log record of r, whose ids are those of its span, if it has one.
func (l *logs) add(r *receiver.Record, own *ids, severity logspb.SeverityNumber, encoded []byte) {
	item := l.memory.next()
	item.text.StringValue = utf8Text(body(&r.Record))
	item.body.Value = &item.text
	rec := &item.record
	rec.TimeUnixNano, rec.ObservedTimeUnixNano = nanos(r.Record.TS), nanos(r.Arrived)
	rec.SeverityNumber, rec.SeverityText = severity, severityTexts[severity]
	rec.Body = &item.body
	rec.ProtoReflect().SetUnknown(encoded)
	rec.EventName = "mcp.audit." + utf8Text(string(r.Record.Kind))
	ok := own != nil
	if ok {
		item.trace, item.span = own.trace, own.span
	} else {
		item.trace, item.span, ok = clientSpan(&r.Record) // an open call's own span comes with its outcome
	}
	if ok {
		rec.TraceId, rec.SpanId, rec.Flags = item.trace[:], item.span[:], sampled
	}
	l.size += len(encoded) + len(item.text.StringValue) + len(rec.EventName) + 100
	host := r.Record.Host
	if len(l.groups) == 0 || host != l.host {
		l.host, l.size = host, l.size+groupSize+len(host)
		l.groups = append(l.groups, &logspb.ResourceLogs{
			Resource: resource(host), SchemaUrl: SchemaURL,
			ScopeLogs: []*logspb.ScopeLogs{{Scope: l.scope, SchemaUrl: SchemaURL}},
		})
	}
	scope := l.groups[len(l.groups)-1].ScopeLogs[0]
	scope.LogRecords = append(scope.LogRecords, rec)
}

// body returns a sentence for people.
func body(r *audit.Record) string {
	if r.Kind != audit.KindCall && r.Kind != audit.KindOpen {
		return string(r.Kind)
	}
	s := spanName(r.Method, r.Tool, r.Target)
	switch {
	case r.Kind == audit.KindOpen:
		return s + ": no answer yet"
	case r.ErrorType != "":
		return s + ": " + string(r.Outcome) + " " + r.ErrorType
	}
	return s + ": " + string(r.Outcome)
}

// The severities in use, and their names.
const (
	debug    = logspb.SeverityNumber_SEVERITY_NUMBER_DEBUG
	info     = logspb.SeverityNumber_SEVERITY_NUMBER_INFO
	low      = logspb.SeverityNumber_SEVERITY_NUMBER_INFO2
	warning  = logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	failure  = logspb.SeverityNumber_SEVERITY_NUMBER_ERROR
	critical = logspb.SeverityNumber_SEVERITY_NUMBER_FATAL
)

var severityTexts = map[logspb.SeverityNumber]string{debug: "DEBUG", info: "INFO", low: "INFO2", warning: "WARN", failure: "ERROR", critical: "FATAL"}

// severity returns how much a record should alarm, by the level of its risk and the
// event of its policy too.
func severity(r *audit.Record, level, event string) logspb.SeverityNumber {
	switch r.Kind {
	case audit.KindGap:
		return failure
	case audit.KindAnomaly:
		return warning
	case audit.KindCheckpoint:
		return debug
	case audit.KindPolicy:
		if event == "reload_failed" {
			return failure
		}
	case audit.KindCall, audit.KindOpen:
		if r.Detections != "" || r.ErrorType == audit.ErrPolicyDenied {
			switch level {
			case "low":
				return low
			case "medium":
				return warning
			case "high":
				return failure
			case "critical":
				return critical
			}
		}
		switch {
		case r.ErrorType == audit.ErrAuditFailure:
			return failure
		case r.Outcome == audit.OutcomeUnknown:
			return warning
		}
	}
	return info
}

package otlp

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// maxChildren and maxChildBytes bound the child spans of a call, whose number and
// paths the client chooses. The attribute auditproxy.operations counts all
// operations.
const (
	maxChildren   = 1000
	maxChildBytes = 1 << 20
)

// Flags of a span: whether it is known that its parent is in another process.
const (
	remoteKnown = uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	remote      = uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
)

// spans collects spans in the order of their records. Its messages are reused.
type spans struct {
	wantArgs   bool
	scope      *commonpb.InstrumentationScope
	groups     []*tracepb.ResourceSpans
	size       int // bytes on the wire, at most
	host       string
	memory     slab[spanItem]
	attributes attributes // of all spans, one after the other
}

// A spanItem is a span with all that it needs.
type spanItem struct {
	span   tracepb.Span
	status tracepb.Status
	ids    ids
}

func (s *spans) reset() {
	s.groups, s.size, s.host = nil, 0, ""
	s.memory.reset()
	s.attributes.buf = s.attributes.buf[:0]
}

// add adds the span of a call, which has these attributes, and those of its
// operations.
func (s *spans) add(rec *receiver.Record, own *ids, encoded []byte) {
	r := &rec.Record
	item := s.next(r.Host)
	item.ids = *own
	span := &item.span
	span.Flags = sampled
	if item.ids.fromClient {
		span.ParentSpanId = item.ids.parent[:]
		span.Flags |= remoteKnown | remote
	}
	span.Name, span.Kind = utf8Text(spanName(r.Method, r.Tool, r.Target)), tracepb.Span_SPAN_KIND_SERVER
	span.StartTimeUnixNano = nanos(r.TS)
	span.EndTimeUnixNano = later(span.StartTimeUnixNano, approvalWait(r), r.Duration)
	a := &s.attributes
	from := len(a.buf)
	a.buf = append(a.buf, encoded...)
	span.ProtoReflect().SetUnknown(a.buf[from:len(a.buf):len(a.buf)])
	if failure := errorType(r); failure != "" {
		item.status.Code, item.status.Message = tracepb.Status_STATUS_CODE_ERROR, utf8Text(r.ErrorType)
		span.Status = &item.status
	}
	s.size += len(encoded) + len(span.Name) + 150
	s.addChildren(rec, item)
}

// next appends an empty span to those of a host.
func (s *spans) next(host string) *spanItem {
	if len(s.groups) == 0 || host != s.host {
		s.host, s.size = host, s.size+groupSize+len(host)
		s.groups = append(s.groups, &tracepb.ResourceSpans{
			Resource: resource(host), SchemaUrl: SchemaURL,
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: s.scope, SchemaUrl: SchemaURL}},
		})
	}
	item := s.memory.next()
	item.span.TraceId, item.span.SpanId = item.ids.trace[:], item.ids.span[:]
	scope := s.groups[len(s.groups)-1].ScopeSpans[0]
	scope.Spans = append(scope.Spans, &item.span)
	return item
}

// approvalWait returns how long the call waited for a person before it began.
func approvalWait(r *audit.Record) time.Duration {
	if r.Approval == "" {
		return 0
	}
	a, err := audit.ParseApproval(r.Approval)
	if err != nil || a.WaitMS > int64(maxWait/time.Millisecond) {
		return 0
	}
	return time.Duration(a.WaitMS) * time.Millisecond
}

// maxWait is longer than any wait of a real call.
const maxWait = 365 * 24 * time.Hour

// addChildren adds the spans of a call's operations. When each of them ran is not
// known, so they have the times of the call.
func (s *spans) addChildren(rec *receiver.Record, call *spanItem) {
	if len(rec.Operations) <= 1 {
		return
	}
	a := &s.attributes
	known := map[string][8]byte{} // by path; an operation precedes those inside it
	var id []byte
	before, count := s.size, 0
	for i := range rec.Operations {
		op := &rec.Operations[i]
		if !isChild(op) || count == maxChildren || s.size-before > maxChildBytes {
			continue
		}
		count++
		from := len(a.buf)
		a.text("auditproxy.record_id", rec.Record.RecordID)
		a.text("auditproxy.operation.path", op.Path)
		a.text(string(semconv.McpMethodNameKey), op.Method)
		a.constant(semconv.GenAIOperationNameExecuteTool)
		a.text(string(semconv.GenAIToolNameKey), op.Tool)
		// The arguments of an operation that has others would be sent once more for
		// each level.
		if s.wantArgs && (i+1 == len(rec.Operations) || !strings.HasPrefix(rec.Operations[i+1].Path, op.Path+".")) {
			a.text(string(semconv.GenAIToolCallArgumentsKey), string(op.Args))
		}
		item := s.next(rec.Record.Host)
		item.ids.trace = call.ids.trace
		id = append(append(append(id[:0], rec.Record.RecordID...), 0), op.Path...)
		if _, ok := known[op.Path]; ok {
			// A duplicate member gives two operations one path, and both count.
			id = strconv.AppendInt(append(id, 0), int64(count), 10)
		}
		sum := sha256.Sum256(id)
		item.ids.span = notZero([8]byte(sum[:8]))
		known[op.Path] = item.ids.span
		item.ids.parent = call.ids.span
		if outer, ok := enclosing(known, op.Path); ok {
			item.ids.parent = outer
		}
		span := &item.span
		span.ParentSpanId, span.Flags = item.ids.parent[:], sampled|remoteKnown
		span.Name, span.Kind = utf8Text(spanName(op.Method, op.Tool, op.Target)), tracepb.Span_SPAN_KIND_INTERNAL
		span.StartTimeUnixNano, span.EndTimeUnixNano = call.span.StartTimeUnixNano, call.span.EndTimeUnixNano
		span.ProtoReflect().SetUnknown(a.buf[from:len(a.buf):len(a.buf)])
		s.size += len(a.buf) - from + len(span.Name) + 150
	}
}

// enclosing returns the span of the nearest operation that has the one at path in
// its arguments.
func enclosing(spans map[string][8]byte, path string) (span [8]byte, ok bool) {
	for {
		i := strings.LastIndexByte(path, ']')
		if i < 0 {
			return span, false
		}
		if i+1 < len(path) {
			if span, ok = spans[path[:i+1]]; ok {
				return span, true
			}
		}
		path = path[:i]
	}
}

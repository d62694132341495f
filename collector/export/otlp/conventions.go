package otlp

import (
	"strconv"
	"strings"

	"auditproxy/schemas/audit"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// SchemaURL is the version of the semantic conventions: the last one that
// describes MCP.
const SchemaURL = semconv.SchemaURL

// serviceName is the service of the resource: the telemetry is the proxy's, not
// the server's that it observes.
const serviceName = "auditproxy"

// groupSize is the size of a resource with its scope, without the host's name.
const groupSize = 300

// sampled is W3C's trace flag. Flags of the client's span are not in a record.
const sampled = 1

var (
	riskMembers = []member{
		{"category", "auditproxy.risk.category"}, {"level", "auditproxy.risk.level"},
		{"source", "auditproxy.risk.source"}, {"conflict", "auditproxy.risk.conflict"},
	}
	policyMembers = []member{
		{"hash", "auditproxy.policy.hash"}, {"mode", "auditproxy.policy.mode"}, {"decision", "auditproxy.policy.decision"},
		{"applied", "auditproxy.policy.applied"}, {"rule", "auditproxy.policy.rule"}, {"reason", "auditproxy.policy.reason"},
		{"counter", "auditproxy.policy.counter"}, {"count", "auditproxy.policy.count"}, {"max", "auditproxy.policy.max"},
		{"window", "auditproxy.policy.window"}, {"dialect", "auditproxy.policy.dialect"}, {"source", "auditproxy.policy.source"},
		{"event", "auditproxy.policy.event"}, {"detail", "auditproxy.policy.detail"},
	}
	approvalMembers = []member{
		{"outcome", "auditproxy.approval.outcome"}, {"scope", "auditproxy.approval.scope"}, {"by", "auditproxy.approval.by"},
		{"user", "auditproxy.approval.user"}, {"channel", "auditproxy.approval.channel"},
		{"request", "auditproxy.approval.request"}, {"wait_ms", "auditproxy.approval.wait_ms"},
	}
)

// addCall adds what the conventions have in common for spans and metrics of a call.
func addCall(a *attributes, r *audit.Record) {
	a.text(string(semconv.McpProtocolVersionKey), r.ProtocolVersion)
	if r.Method == "" && r.Kind != audit.KindCall && r.Kind != audit.KindOpen {
		return
	}
	a.text(string(semconv.McpMethodNameKey), r.Method)
	if r.Method == "tools/call" {
		a.constant(semconv.GenAIOperationNameExecuteTool)
		a.text(string(semconv.GenAIToolNameKey), r.Tool)
	}
	a.text(targetKey(r.Method), r.Target)
	if r.ErrorCode != nil {
		a.text(string(semconv.RPCResponseStatusCodeKey), strconv.FormatInt(*r.ErrorCode, 10))
	}
	a.text(string(semconv.ErrorTypeKey), errorType(r))
	a.constant(semconv.NetworkTransportPipe)
}

// targetKey returns the key for the target of a method. Only of some methods it is
// certain that it is a prompt's name or a resource's URI.
func targetKey(method string) string {
	switch {
	case method == "prompts/get":
		return string(semconv.GenAIPromptNameKey)
	case strings.HasPrefix(method, "resources/"):
		return string(semconv.McpResourceURIKey)
	}
	return "auditproxy.target"
}

// errorType returns error.type by the conventions, "" if the call did not fail. An
// answer that only says that the client asked wrongly is no failure of a server.
func errorType(r *audit.Record) string {
	switch {
	case r.Outcome != audit.OutcomeError && r.Outcome != audit.OutcomeUnknown:
		return ""
	case r.ErrorCode != nil && (r.ErrorType == audit.ErrJSONRPC || r.ErrorType == audit.ErrCancelled || r.ErrorType == ""):
		switch *r.ErrorCode {
		case -32700, -32600, -32601, -32602, -32002:
			return ""
		}
		return strconv.FormatInt(*r.ErrorCode, 10)
	case r.ErrorType == "":
		return semconv.ErrorTypeOther.Value.AsString()
	case r.ErrorType == audit.ErrToolError || !audit.OwnErrorType(r.ErrorType):
		return "tool_error"
	}
	return r.ErrorType
}

// spanName returns the name of a call's span.
func spanName(method, tool, target string) string {
	switch {
	case method == "":
		return "opaque call"
	case method == "tools/call" && tool != "":
		return method + " " + tool
	case method == "prompts/get" && target != "":
		return method + " " + target
	}
	return method
}

// isChild reports whether an operation is a child span. Other readings of the same
// bytes were not run, as far as is known.
func isChild(op *audit.Operation) bool { return op.Path != "" && !op.Candidate }

// resource describes the proxies of a host. Records of one host that follow each
// other share it.
func resource(host string) *resourcepb.Resource {
	list := []*commonpb.KeyValue{textPair(semconv.ServiceNameKey, serviceName)}
	if host != "" {
		list = append(list, textPair(semconv.HostNameKey, host))
	}
	return &resourcepb.Resource{Attributes: list}
}

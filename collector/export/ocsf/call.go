package ocsf

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"auditproxy/schemas/audit"
)

// call appends what a call is: API Activity.
func (m *mapping) call() {
	var (
		r              = m.r
		risk, _        = audit.ParseRisk(r.Risk) // what cannot be read stays unmapped
		detections, _  = audit.ParseDetections(r.Detections)
		policy, bad    = audit.ParsePolicy(r.Policy)
		approval, _    = audit.ParseApproval(r.Approval)
		action, result = decided(r, &policy, &approval)
		level          = levelOf(risk.Level)
	)
	m.class(6, "Application Activity", 6003, "API Activity", activityOf(risk.Category))
	m.when()
	if risk.Level != "" && (r.Detections != "" || action == denied) {
		m.severity(level.severity)
	} else {
		m.severity(informational)
	}
	m.outcome()
	m.id("action", action)
	m.id("disposition", result)
	if risk.Level != "" {
		m.id("risk_level", level.risk)
	}
	m.detections(detections)
	if bad == nil {
		m.policy(policy)
	}
	m.authorizations(policy.Decision, approval.Outcome)
	m.api()
	m.actor()
	m.agent()
	m.device()
	m.endpoints()
	m.resources()
	m.trace(approval.WaitMS)
	m.profiles.control = true
}

// activityOf returns what a call of a category of risk does. Execution and money are
// none of an API's create, read, update and delete.
func activityOf(category string) id {
	switch category {
	case "":
		return id{0, "Unknown"}
	case "read":
		return id{2, "Read"}
	case "write":
		return id{3, "Update"}
	case "destructive":
		return id{4, "Delete"}
	case "execute":
		return other("Execute")
	case "financial":
		return other("Financial")
	}
	return other(category)
}

// A level is a level of risk in OCSF.
type level struct{ risk, severity id }

func levelOf(word string) level {
	switch word {
	case "low":
		return level{id{1, "Low"}, id{2, "Low"}}
	case "medium":
		return level{id{2, "Medium"}, id{3, "Medium"}}
	case "high":
		return level{id{3, "High"}, id{4, "High"}}
	case "critical":
		return level{id{4, "Critical"}, id{5, "Critical"}}
	}
	return level{other(word), other(word)}
}

var (
	allowed  = id{1, "Allowed"}
	denied   = id{2, "Denied"}
	observed = id{3, "Observed"}
	blocked  = id{2, "Blocked"}
	rejected = id{25, "Rejected"}
	unknown  = id{0, "Unknown"}
)

// decided returns action and disposition of a call.
func decided(r *audit.Record, p *audit.Policy, a *audit.Approval) (action, disposition id) {
	// The proxy sets these words itself: a server's become ToolError.
	switch r.ErrorType {
	case audit.ErrApprovalDenied:
		return denied, rejected
	case audit.ErrAmbiguousRequest, audit.ErrAuditFailure, audit.ErrPolicyDenied, audit.ErrApprovalTimeout, audit.ErrApprovalUnavailable:
		return denied, blocked
	}
	switch {
	case r.Policy == "":
		return observed, id{17, "Logged"}
	case p.Decision == audit.DecisionAllow:
		return allowed, id{1, "Allowed"}
	case p.Decision != audit.DecisionDeny && p.Decision != audit.DecisionAsk:
		return unknown, unknown
	case !p.Applied:
		return observed, id{15, "Detected"}
	case p.Decision == audit.DecisionDeny:
		return denied, blocked
	}
	switch a.Outcome {
	case "approved":
		return allowed, id{8, "Approved"}
	case "denied":
		return denied, rejected
	case "timeout", "unavailable", "cancelled":
		return denied, blocked
	}
	return unknown, unknown // nobody has answered yet
}

func (m *mapping) outcome() {
	r := m.r
	switch {
	case r.Kind == audit.KindOpen && r.Outcome == "":
		m.status(other("Open"))
	case r.Outcome == audit.OutcomeOK:
		m.status(success)
	case r.Outcome == audit.OutcomeError:
		m.status(failure)
	default:
		m.status(unknown)
	}
	switch r.Outcome {
	case audit.OutcomeOK, audit.OutcomeError, audit.OutcomeUnknown:
		m.has |= mOutcome
	}
	m.member(mErrorType, "status_code", r.ErrorType)
}

// detections appends what was found as a text. The list is unmapped.
func (m *mapping) detections(list []audit.Detection) {
	if len(list) == 0 {
		return
	}
	var b strings.Builder
	for i, d := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.Detector)
		if d.At != "" {
			b.WriteString(" at ")
			b.WriteString(d.At)
		}
	}
	m.text("risk_details", b.String())
}

func (m *mapping) authorizations(decisions ...string) {
	list := m.list("authorizations")
	for _, decision := range decisions {
		if decision == "" {
			continue
		}
		one := m.element()
		m.str("decision", decision)
		m.close(one)
	}
	m.closeList(list)
}

func (m *mapping) api() {
	r := m.r
	api := m.open("api")
	switch {
	case r.Tool != "":
		m.member(mTool, "operation", r.Tool)
	case r.Method != "":
		m.str("operation", r.Method)
	default:
		m.str("operation", "unknown") // an opaque call
	}
	if r.Tool == "" {
		m.has |= mTool // of tools/call without a name
	}
	if r.Method != "" {
		group := m.open("group")
		m.member(mMethod, "name", r.Method)
		m.close(group)
	}
	if r.Server.Name != "" {
		service := m.open("service")
		m.member(mServer, "name", r.Server.Name)
		m.text("version", r.Server.Version)
		m.close(service)
	}
	m.member(mProtocolVersion, "version", r.ProtocolVersion)
	m.request()
	m.response()
	m.close(api)
}

func (m *mapping) request() {
	r := m.r
	request := m.open("request")
	if r.RequestID != "" {
		m.str("uid", r.RequestID)
	} else {
		m.str("uid", r.RecordID)
	}
	m.has |= mRequestID
	if r.Args != "" {
		m.json("data", string(r.Args))
		m.has |= mArgs
	}
	if len(r.Anomalies) > 0 {
		flags := m.list("flags")
		for _, word := range r.Anomalies {
			m.item(word)
		}
		m.closeList(flags)
		m.has |= mAnomalies
	}
	m.close(request)
}

func (m *mapping) response() {
	r := m.r
	response := m.open("response")
	if r.ErrorCode != nil && small(*r.ErrorCode) {
		m.integer("code", *r.ErrorCode)
		m.has |= mErrorCode
	}
	m.text("error", r.ErrorType)
	data := m.open("data")
	if r.ResultBytes > 0 {
		m.integer("result_bytes", r.ResultBytes)
		m.has |= mResultBytes
	}
	if r.ErrorDigest != "" {
		m.json("error_digest", string(r.ErrorDigest))
		m.has |= mErrorDigest
	}
	m.close(data)
	m.close(response)
}

// endpoints appends both ends of the server's standard input. They are on one host.
func (m *mapping) endpoints() {
	r := m.r
	src := m.open("src_endpoint")
	m.text("hostname", r.Host)
	m.text("svc_name", r.Client.Name)
	if r.Host == "" && r.Client.Name == "" {
		m.str("instance_uid", r.SessionID) // an endpoint has something
	}
	m.close(src)
	dst := m.open("dst_endpoint")
	m.text("hostname", r.Host)
	m.text("svc_name", r.Server.Name)
	m.close(dst)
}

// Bounds of the paths of a call with many operations. All are in its arguments.
const (
	maxPaths = 32
	maxPath  = 16 << 10 // bytes; redaction leaves 4096 code points

	// maxRead is how much is read of operations' arguments, in bytes. Those of nested
	// operations are read again and again, those of a call for each of its candidates.
	maxRead = 1 << 20
)

// resources appends what the call names: its target, and the paths that its
// operations write to, where redaction left them clear.
func (m *mapping) resources() {
	r := m.r
	resources := m.list("resources")
	targets := 0
	if r.Target != "" {
		one := m.element()
		m.member(mTarget, "name", r.Target)
		m.close(one)
		targets = 1
	}
	var paths []string
	for i, read := 0, 0; i < len(m.operations) && len(paths) < maxPaths; i++ {
		args := m.operations[i].Args
		if read += len(args); read > maxRead {
			break
		}
		if !strings.Contains(string(args), "output_path") {
			continue
		}
		if path := textOf(args, "output_path"); path != "" && len(path) <= maxPath && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		one := m.element()
		m.str("name", path)
		m.close(one)
	}
	m.closeList(resources)
	observables := m.list("observables")
	m.observable("actor.user.name", id{4, "User Name"}, r.User)
	m.observable("device.hostname", id{1, "Hostname"}, r.Host)
	for i, path := range paths {
		m.observable("resources["+strconv.Itoa(targets+i)+"].name", id{45, "File Path"}, path)
	}
	m.closeList(observables)
}

func (m *mapping) observable(name string, typ id, value string) {
	if value == "" {
		return
	}
	one := m.element()
	m.str("name", name)
	m.id("type", typ)
	m.str("value", value)
	m.close(one)
}

// trace appends the trace that the client gave, and in it the call as a span. A call
// whose end is unknown is no span.
func (m *mapping) trace(waited int64) {
	r := m.r
	if r.TraceID == "" {
		return
	}
	trace := m.open("trace")
	m.member(mTraceID, "uid", r.TraceID)
	if r.Duration >= 0 && r.Kind == audit.KindCall {
		start := r.TS.UnixMilli()
		end := r.TS.Add(r.Duration).UnixMilli()
		if 0 < waited && waited <= math.MaxInt64-end {
			end += waited
		}
		span := m.open("span")
		m.str("uid", spanOf(r.RecordID))
		m.member(mSpanID, "parent_uid", r.SpanID)
		m.integer("start_time", start)
		m.integer("end_time", end)
		m.integer("duration", end-start)
		m.close(span)
	}
	m.close(trace)
	m.profiles.trace = true
}

// spanOf returns the last 16 hexadecimal digits of a UUID.
func spanOf(id string) string {
	digits := strings.ReplaceAll(id, "-", "")
	return digits[max(0, len(digits)-16):]
}

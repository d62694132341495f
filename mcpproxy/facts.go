package mcpproxy

import "auditproxy/schemas/audit"

// facts are what the record of a call has of that call alone: an audit.Record
// without its time, its outcome, what all calls of a session share, and what
// only other kinds of records have. It is about half as large, and tens of
// thousands of calls may be open.
type facts struct {
	RecordID string
	CallNo   uint64

	Method, Tool, Target string
	Candidates           []audit.Candidate

	ErrorCode  *int64
	ResultType string

	ClientID, RequestID, RequestIDType string
	Client                             audit.Peer
	ProtocolVersion                    string

	Tier        string
	Annotations audit.JSON
	ToolHash    string

	Args      audit.JSON
	ArgsBytes int64

	Risk, Detections, Policy, Approval audit.JSON

	ResultBytes     int64
	ErrorDigest     audit.JSON
	TraceID, SpanID string
	Anomalies       []string

	At, Bytes int64
	Digest    audit.JSON

	Forwarded, CancelRequested, NotDurable bool
}

// recordOf returns what c's record has without the session's part, see place. It
// is good until the next one. Every member that any call's record may have is
// set here or in place; assigning them takes a third of the time of a new Record.
func (s *session) recordOf(c *call) *audit.Record {
	f, r := &c.rec, &s.whole
	r.Kind, r.RecordID, r.Seq, r.CallNo, r.TS = audit.KindCall, f.RecordID, 0, f.CallNo, c.start
	r.Method, r.Tool, r.Target, r.Candidates = f.Method, f.Tool, f.Target, f.Candidates
	r.Outcome, r.ErrorType, r.ErrorCode, r.ResultType, r.Duration = "", "", f.ErrorCode, f.ResultType, 0
	r.Forwarded, r.CancelRequested, r.NotDurable = f.Forwarded, f.CancelRequested, f.NotDurable
	r.ClientID, r.RequestID, r.RequestIDType = f.ClientID, f.RequestID, f.RequestIDType
	r.Client, r.ProtocolVersion = f.Client, f.ProtocolVersion
	r.Tier, r.Annotations, r.ToolHash = f.Tier, f.Annotations, f.ToolHash
	r.Args, r.ArgsBytes, r.ResultBytes, r.ErrorDigest = f.Args, f.ArgsBytes, f.ResultBytes, f.ErrorDigest
	r.Risk, r.Detections, r.Policy, r.Approval = f.Risk, f.Detections, f.Policy, f.Approval
	r.TraceID, r.SpanID, r.Anomalies = f.TraceID, f.SpanID, f.Anomalies
	r.At, r.Bytes, r.Digest = f.At, f.Bytes, f.Digest
	return r
}

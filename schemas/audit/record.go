// Package audit defines the Record of a call, its encoding as a line of the
// spool, and the operations in it.
//
// The files, from the top: parse, operations, relayed, members, member, decision, value,
// record, line, fold.
package audit

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/jsontext"
)

// Version is the value of "v". New members do not change it.
const Version = 1

// Limits of one record line. Whatever writes records keeps below them, so that
// no reader needs a buffer larger than MaxLine and no broker's limit is met.
const (
	MaxRecord = 256 << 10         // bytes of a record line without its line feed
	MaxDepth  = jsontext.MaxDepth // levels of nesting
	MaxLine   = 512 << 10         // bytes a reader accepts before it calls a line damaged
)

// Kind is the subject of a record.
type Kind string

// The kinds of a record.
const (
	KindCall         Kind = "call"          // one call, final
	KindOpen         Kind = "open"          // a call without an answer after 60 s; its final record follows
	KindSessionStart Kind = "session_start" // the proxy started
	KindSessionEnd   Kind = "session_end"   // the proxy ended, or was found dead
	KindAnomaly      Kind = "anomaly"       // an answer after the record, lines that were lost; from older proxies, opaque bytes
	KindGap          Kind = "gap"           // calls that could not be recorded
	KindPolicy       Kind = "policy"        // a policy came into force, or could not be loaded
	KindCheckpoint   Kind = "checkpoint"    // the signed hash of all records before it
)

// Known reports whether this program knows the kind. A record of another kind
// was written by a newer proxy: readers count it, store it and show it.
func (k Kind) Known() bool {
	switch k {
	case KindCall, KindOpen, KindSessionStart, KindSessionEnd, KindAnomaly, KindGap, KindPolicy, KindCheckpoint:
		return true
	}
	return false
}

// Outcome is how a call ended.
type Outcome string

// The outcomes of a call.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeError   Outcome = "error"
	OutcomeUnknown Outcome = "unknown" // the proxy died first
)

// Values of error_type that the proxy sets. A server can set others, see
// ErrorTypeOK and OwnErrorType.
const (
	ErrToolError        = "ToolError"        // isError without a usable error_type
	ErrJSONRPC          = "JSONRPCError"     // a JSON-RPC error, see error_code
	ErrCancelled        = "Cancelled"        // cancelled by the client
	ErrServerExited     = "ServerExited"     // the server ended before it answered
	ErrNoResponse       = "NoResponse"       // the session ended before an answer
	ErrProxyDied        = "ProxyDied"        // found by recovery
	ErrAmbiguousRequest = "AmbiguousRequest" // refused: two readers could differ
	ErrAuditFailure     = "AuditFailure"     // refused: a part of its line could not be recorded
	ErrPolicyDenied     = "PolicyDenied"     // refused by policy

	ErrApprovalDenied      = "ApprovalDenied"      // refused by a person
	ErrApprovalTimeout     = "ApprovalTimeout"     // refused: no answer in time
	ErrApprovalUnavailable = "ApprovalUnavailable" // refused: there was no way to ask
)

// JSON is one JSON value as text, "" for none. The code that sets it ensures
// strict JSON (RFC 8259) on one line.
type JSON string

// Peer is a client's or server's description of itself. It is not trusted.
type Peer struct{ Name, Version string }

// Candidate is a call that some server reads in bytes that others read
// differently.
type Candidate struct {
	Method, Tool, Target string
	Args                 JSON // the redacted summary of its arguments, "" if they are the call's
}

// Command is the wrapped command. Its arguments may hold secrets, so only
// their digest is kept.
type Command struct {
	Command    string
	ArgsDigest JSON
}

// A Record is one line of the audit trail; its members are those of
// schemas/record.v1.schema.json, in that order. A member at its zero value is
// unknown and left out, unless its Kind requires it.
type Record struct {
	Kind      Kind
	RecordID  string // UUIDv7 (RFC 9562); a call's is minted at its intent
	SessionID string // UUIDv7 of the proxy's run
	Seq       uint64 // 0, 1, 2… over the session's records, dense
	CallNo    uint64 // 1, 2, 3… over the session's calls, dense; 0: not about a call
	TS        time.Time

	Method     string // by the client
	Tool       string // by the client: params.name of tools/call
	Target     string // by the client: a resource's URI, a prompt's name
	Candidates []Candidate

	Outcome         Outcome
	ErrorType       string
	ErrorCode       *int64 // of a JSON-RPC error, by the server
	ResultType      string // "input_required" or "task"; "" is complete
	Forwarded       bool   // the bytes were handed to the server
	CancelRequested bool
	Recovered       bool          // written by recovery, not by the proxy that saw it
	Duration        time.Duration // monotonic; negative is unknown

	ClientID        string // params._meta.client_id, by the client
	RequestID       string // the JSON-RPC id as text, by the client
	RequestIDType   string // "number" or "string"
	Client          Peer   // by the client
	Server          Peer   // by the server
	ProtocolVersion string // by the client
	ServerCommand   Command
	Tier            string // by the server, or derived from Annotations
	Annotations     JSON   // by the server: the declared hints
	ToolHash        string // SHA-256 of the definition in tools/list, hex
	Args            JSON   // the redacted summary of params.arguments
	ArgsBytes       int64  // of params.arguments on the wire
	Risk            JSON   // see ParseRisk
	Detections      JSON   // see ParseDetections
	Policy          JSON   // see ParsePolicy
	Approval        JSON   // see ParseApproval
	ResultBytes     int64  // of the answer's line on the wire
	ErrorDigest     JSON   // of the error text, never the text
	TraceID, SpanID string // W3C Trace Context, from params._meta.traceparent

	Host, User string
	PID        int
	Labels     JSON // object of strings, from the configuration
	Tenant     string

	Anomalies []string

	At     int64 // of an opaque call: offset in the client's stream; of a late answer, in the server's
	Bytes  int64 // of an opaque call or an anomaly: length; 0 for any other call
	Digest JSON  // of an opaque call: digest of the bytes, never the bytes

	From, To      time.Time // gap
	Count, Denied int64     // gap: calls not recorded; the refused ones among them

	NotDurable bool // "durable": false: forwarded before the intent's sync finished
	Proxy      JSON // session_start: version, profile, key id, methods skipped, configuration
	Evidence   JSON // session_start: keys and place among the host's sessions; checkpoint: the signed checkpoint
}

// Line kinds other than a record's. Readers skip unknown ones.
const (
	LineRecord  = ""
	LineIntent  = "intent"  // a call about to be forwarded
	LineContext = "context" // session, client, server, host and user, for the intents after it
	LineTool    = "tool"    // a tool's tier, annotations and hash, for the intents after it
)

// AppendRecord appends r as a sealed line.
func AppendRecord(dst []byte, r *Record) []byte {
	from := len(dst)
	dst = append(dst, `{"v":1,"kind":"`...)
	dst = append(append(dst, r.Kind...), '"')
	dst = appendID(dst, `,"record_id":`, r.RecordID)
	dst = appendID(dst, `,"session_id":`, r.SessionID)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, r.Seq, 10)
	if r.CallNo != 0 {
		dst = append(dst, `,"call_no":`...)
		dst = strconv.AppendUint(dst, r.CallNo, 10)
	}
	dst = appendTime(dst, `,"ts":"`, r.TS)
	dst = appendWhat(dst, r)
	dst = appendText(dst, `,"outcome":`, string(r.Outcome))
	dst = appendText(dst, `,"error_type":`, r.ErrorType)
	if r.ErrorCode != nil {
		dst = append(dst, `,"error_code":`...)
		dst = strconv.AppendInt(dst, *r.ErrorCode, 10)
	}
	dst = appendText(dst, `,"result_type":`, r.ResultType)
	dst = appendTrue(dst, `,"forwarded":true`, r.Forwarded)
	dst = appendTrue(dst, `,"cancel_requested":true`, r.CancelRequested)
	dst = appendTrue(dst, `,"recovered":true`, r.Recovered)
	if r.Duration >= time.Microsecond || r.Duration >= 0 && r.Kind == KindCall && r.Outcome != OutcomeUnknown {
		dst = append(dst, `,"duration_ms":`...)
		dst = appendMillis(dst, r.Duration)
	}
	dst = appendRequest(dst, r)
	dst = appendPeers(dst, r)
	dst = appendDefinition(dst, r)
	dst = appendArgs(dst, r)
	dst = appendDecision(dst, r)
	dst = appendJSON(dst, `,"approval":`, r.Approval)
	dst = appendCount(dst, `,"result_bytes":`, r.ResultBytes)
	dst = appendJSON(dst, `,"error_digest":`, r.ErrorDigest)
	dst = appendTrace(dst, r)
	dst = appendPlace(dst, r)
	dst = appendAnomalies(dst, r)
	switch r.Kind {
	case KindAnomaly, KindCall, KindOpen:
		dst = appendBytes(dst, r)
	case KindGap:
		dst = appendTime(dst, `,"from":"`, r.From)
		dst = appendTime(dst, `,"to":"`, r.To)
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, r.Count, 10)
		dst = append(dst, `,"denied":`...)
		dst = strconv.AppendInt(dst, r.Denied, 10)
	}
	dst = appendTrue(dst, `,"durable":false`, r.NotDurable)
	dst = appendJSON(dst, `,"proxy":`, r.Proxy)
	dst = appendJSON(dst, `,"evidence":`, r.Evidence)
	return Seal(append(dst, '}'), from)
}

// AppendIntent appends the sealed intent line of a call: the members that its
// record needs if the proxy dies, without those of the context and tool lines
// before it.
func AppendIntent(dst []byte, r *Record) []byte {
	from := len(dst)
	dst = append(dst, `{"line":"intent","v":1`...)
	dst = appendID(dst, `,"record_id":`, r.RecordID)
	dst = append(dst, `,"call_no":`...)
	dst = strconv.AppendUint(dst, r.CallNo, 10)
	dst = appendTime(dst, `,"ts":"`, r.TS)
	dst = appendWhat(dst, r)
	dst = appendRequest(dst, r)
	dst = appendArgs(dst, r)
	dst = appendDecision(dst, r)
	dst = appendJSON(dst, `,"approval":`, r.Approval)
	dst = appendTrace(dst, r)
	dst = appendAnomalies(dst, r)
	dst = appendBytes(dst, r)
	return Seal(append(dst, '}'), from)
}

// AppendContext appends a sealed context line. The last one before an intent
// holds; each segment starts with one, so that it can be read alone.
func AppendContext(dst []byte, r *Record) []byte {
	from := len(dst)
	dst = append(dst, `{"line":"context","v":1`...)
	dst = appendID(dst, `,"session_id":`, r.SessionID)
	dst = appendPeers(dst, r)
	dst = appendPlace(dst, r)
	return Seal(append(dst, '}'), from)
}

// AppendTool appends a sealed tool line: r.Tool's definition.
func AppendTool(dst []byte, r *Record) []byte {
	from := len(dst)
	dst = append(dst, `{"line":"tool","v":1`...)
	dst = appendText(dst, `,"tool":`, r.Tool)
	dst = appendDefinition(dst, r)
	return Seal(append(dst, '}'), from)
}

func appendWhat(dst []byte, r *Record) []byte {
	dst = appendText(dst, `,"method":`, r.Method)
	if r.Tool != "" || r.Method == "tools/call" {
		dst = jsontext.AppendQuote(append(dst, `,"tool":`...), r.Tool)
	}
	dst = appendText(dst, `,"target":`, r.Target)
	if len(r.Candidates) == 0 {
		return dst
	}
	return appendCandidates(append(dst, `,"candidates":`...), r.Candidates)
}

func appendCandidates(dst []byte, list []Candidate) []byte {
	dst = append(dst, '[')
	for i, c := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuote(append(dst, `{"method":`...), c.Method)
		dst = appendText(dst, `,"tool":`, c.Tool)
		dst = appendText(dst, `,"target":`, c.Target)
		dst = appendJSON(dst, `,"args":`, c.Args)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendRequest(dst []byte, r *Record) []byte {
	dst = appendText(dst, `,"client_id":`, r.ClientID)
	if r.RequestID != "" || r.RequestIDType != "" {
		dst = jsontext.AppendQuote(append(dst, `,"request_id":`...), r.RequestID)
	}
	return appendText(dst, `,"request_id_type":`, r.RequestIDType)
}

func appendPeers(dst []byte, r *Record) []byte {
	dst = appendPeer(dst, `,"client":`, r.Client)
	dst = appendPeer(dst, `,"server":`, r.Server)
	dst = appendText(dst, `,"protocol_version":`, r.ProtocolVersion)
	if r.ServerCommand != (Command{}) {
		dst = jsontext.AppendQuote(append(dst, `,"server_command":{"command":`...), r.ServerCommand.Command)
		dst = appendJSON(dst, `,"args_digest":`, r.ServerCommand.ArgsDigest)
		dst = append(dst, '}')
	}
	return dst
}

func appendPeer(dst []byte, member string, p Peer) []byte {
	if p == (Peer{}) {
		return dst
	}
	dst = append(dst, member...)
	dst = jsontext.AppendQuote(append(dst, `{"name":`...), p.Name)
	dst = appendText(dst, `,"version":`, p.Version)
	return append(dst, '}')
}

func appendDefinition(dst []byte, r *Record) []byte {
	dst = appendText(dst, `,"tier":`, r.Tier)
	dst = appendJSON(dst, `,"annotations":`, r.Annotations)
	return appendID(dst, `,"tool_hash":`, r.ToolHash)
}

func appendArgs(dst []byte, r *Record) []byte {
	dst = appendJSON(dst, `,"args":`, r.Args)
	return appendCount(dst, `,"args_bytes":`, r.ArgsBytes)
}

func appendDecision(dst []byte, r *Record) []byte {
	dst = appendJSON(dst, `,"risk":`, r.Risk)
	dst = appendJSON(dst, `,"detections":`, r.Detections)
	return appendJSON(dst, `,"policy":`, r.Policy)
}

func appendTrace(dst []byte, r *Record) []byte {
	dst = appendID(dst, `,"trace_id":`, r.TraceID)
	return appendID(dst, `,"span_id":`, r.SpanID)
}

func appendPlace(dst []byte, r *Record) []byte {
	dst = appendText(dst, `,"host":`, r.Host)
	dst = appendText(dst, `,"user":`, r.User)
	dst = appendCount(dst, `,"pid":`, int64(r.PID))
	dst = appendJSON(dst, `,"labels":`, r.Labels)
	return appendText(dst, `,"tenant":`, r.Tenant)
}

func appendAnomalies(dst []byte, r *Record) []byte {
	for i, word := range r.Anomalies {
		if i == 0 {
			dst = append(dst, `,"anomalies":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuote(dst, word)
	}
	if len(r.Anomalies) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

func appendBytes(dst []byte, r *Record) []byte {
	if r.Bytes > 0 || r.Kind == KindAnomaly {
		dst = append(dst, `,"at":`...)
		dst = strconv.AppendInt(dst, r.At, 10)
		dst = append(dst, `,"bytes":`...)
		dst = strconv.AppendInt(dst, r.Bytes, 10)
	}
	return appendJSON(dst, `,"digest":`, r.Digest)
}

// Opaque reports whether r is about a call that the proxy could not read: it
// has no method, but another reader might have found one. Older proxies wrote
// anomalies of such bytes.
func (r *Record) Opaque() bool {
	return (r.Kind == KindCall || r.Kind == KindOpen) && r.Method == "" && r.Bytes > 0
}

func appendText(dst []byte, member, s string) []byte {
	if s == "" {
		return dst
	}
	return jsontext.AppendQuote(append(dst, member...), s)
}

// appendID is appendText for a value of this program, which needs no escaping.
func appendID(dst []byte, member, s string) []byte {
	if s == "" {
		return dst
	}
	dst = append(append(dst, member...), '"')
	return append(append(dst, s...), '"')
}

func appendJSON(dst []byte, member string, v JSON) []byte {
	if v == "" {
		return dst
	}
	return append(append(dst, member...), v...)
}

func appendTrue(dst []byte, member string, v bool) []byte {
	if !v {
		return dst
	}
	return append(dst, member...)
}

func appendCount(dst []byte, member string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, member...), n, 10)
}

// appendMillis appends d in milliseconds with the digits a microsecond needs.
func appendMillis(dst []byte, d time.Duration) []byte {
	us := d.Microseconds()
	dst = strconv.AppendInt(dst, us/1000, 10)
	if us %= 1000; us == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendTime appends t in RFC 3339 with microseconds, in UTC.
func appendTime(dst []byte, member string, t time.Time) []byte {
	dst = append(dst, member...)
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, sec := t.Clock()
	us := t.Nanosecond() / 1000
	return append(dst,
		byte('0'+year/1000%10), byte('0'+year/100%10), byte('0'+year/10%10), byte('0'+year%10), '-',
		byte('0'+month/10), byte('0'+month%10), '-', byte('0'+day/10), byte('0'+day%10), 'T',
		byte('0'+hour/10), byte('0'+hour%10), ':', byte('0'+minute/10), byte('0'+minute%10), ':',
		byte('0'+sec/10), byte('0'+sec%10), '.',
		byte('0'+us/100000), byte('0'+us/10000%10), byte('0'+us/1000%10),
		byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10), 'Z', '"')
}

// OwnErrorType reports whether s is a value of error_type that a server must
// not set: it would report an executed call as refused or unanswered.
func OwnErrorType(s string) bool {
	switch s {
	case ErrToolError, ErrJSONRPC, ErrCancelled, ErrServerExited, ErrNoResponse, ErrProxyDied, ErrAmbiguousRequest, ErrAuditFailure, ErrPolicyDenied,
		ErrApprovalDenied, ErrApprovalTimeout, ErrApprovalUnavailable:
		return true
	}
	return false
}

// Refusals are the values of error_type of calls that the proxy answered itself. Of
// a call that is also forwarded, the server got a part.
func Refusals() []string {
	return []string{ErrPolicyDenied, ErrApprovalDenied, ErrApprovalTimeout, ErrApprovalUnavailable, ErrAmbiguousRequest, ErrAuditFailure}
}

// ErrorTypeOK reports whether a server's error_type is allowed in a record:
// [A-Za-z][A-Za-z0-9_.]{0,63}.
func ErrorTypeOK(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '_' || c == '.')) {
			return false
		}
	}
	return true
}

// AppendNewID appends a new UUIDv7 (RFC 9562, section 5.7) for the time now.
// It is unique, not secret.
func AppendNewID(dst []byte, now time.Time) []byte {
	var id [16]byte
	ms := now.UnixMilli()
	r0, r1 := rand.Uint64(), rand.Uint64()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[7] = 0x70|byte(r0>>8)&0x0F, byte(r0)
	for i := range 8 {
		id[8+i] = byte(r1 >> (8 * i))
	}
	id[8] = 0x80 | id[8]&0x3F
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	return hex.AppendEncode(dst, id[10:])
}

// NewID is AppendNewID as a string.
func NewID(now time.Time) string { return string(AppendNewID(nil, now)) }

// TimeOfID returns when an id was made: it is a UUIDv7, whose first 48 bits are
// milliseconds since 1970 (RFC 9562, section 5.7). For other ids it is the zero time.
func TimeOfID(id string) time.Time {
	digits := strings.ReplaceAll(id, "-", "")
	if len(digits) != 32 || digits[12] != '7' {
		return time.Time{}
	}
	var ms int64
	for _, d := range []byte(digits[:12]) {
		n := strings.IndexByte("0123456789abcdef", d)
		if n < 0 {
			return time.Time{}
		}
		ms = ms<<4 | int64(n)
	}
	return time.UnixMilli(ms)
}

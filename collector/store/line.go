package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A Line is a record in a list.
type Line struct {
	TS         time.Time `ch:"ts"`
	RecordID   uuid.UUID `ch:"record_id"`
	Hash       string    `ch:"hash"` // of the record's bytes, hex
	Kind       string    `ch:"kind"`
	SessionID  string    `ch:"session_id"`
	Seq        uint64    `ch:"seq"`
	CallNo     uint64    `ch:"call_no"`
	Method     string    `ch:"method"`
	Tool       string    `ch:"tool"`
	Target     string    `ch:"target"`
	Outcome    string    `ch:"outcome"`
	ErrorType  string    `ch:"error_type"`
	DurationMS *float64  `ch:"duration_ms"`
	Tier       string    `ch:"tier"`
	Host       string    `ch:"host"`
	User       string    `ch:"user"`
	ClientID   string    `ch:"client_id"`
	ClientName string    `ch:"client_name"`
	ServerName string    `ch:"server_name"`
	Args       string    `ch:"args"` // JSON; its first 16 KiB in a list
	Ops        []string  `ch:"ops"`
	Anomalies  []string  `ch:"anomalies"`
	Category   string    `ch:"risk_category"`
	Detections []string  `ch:"detections"`
	Decision   string    `ch:"policy_decision"`
	Applied    bool      `ch:"policy_applied"`
	Rule       string    `ch:"policy_rule"`
	Approval   string    `ch:"approval_outcome"`
	ApprovalBy string    `ch:"approval_by"`
	Event      string    `ch:"policy_event"`  // of a record about a policy; "none" if none came into force
	Source     string    `ch:"policy_source"` // of such a record, as what follows
	Mode       string    `ch:"policy_mode"`
	Detail     string    `ch:"policy_detail"`
	PolicyHash string    `ch:"policy_hash"`
	Raw        string    `ch:"raw"` // only where it was asked for
}

// Cursor returns the line's place in the order of a list.
func (l Line) Cursor() Cursor { return Cursor{l.TS, l.RecordID, l.Hash} }

const lineColumns = `ts, record_id, lower(hex(payload_hash)) AS hash, kind, session_id, seq, call_no, method, tool, target, outcome, error_type, duration_ms,
	tier, host, user, client_id, client_name, server_name, substring(args, 1, 16384) AS args, arraySlice(ops, 1, 64) AS ops, anomalies,
	risk_category, detections, policy_decision, policy_applied, policy_rule, approval_outcome, JSONExtractString(approval, 'by') AS approval_by,
	multiIf(kind != 'policy', '', JSONExtractString(policy, 'event') = 'loaded' AND JSONExtractString(policy, 'hash') = '', 'none', JSONExtractString(policy, 'event')) AS policy_event,
	if(kind = 'policy', JSONExtractString(policy, 'source'), '') AS policy_source, if(kind = 'policy', JSONExtractString(policy, 'mode'), '') AS policy_mode,
	if(kind = 'policy', JSONExtractString(policy, 'detail'), '') AS policy_detail, if(kind = 'policy', JSONExtractString(policy, 'hash'), '') AS policy_hash`

// The decisions against a call, each with its effect. AnyDecision is any of
// them.
const (
	Denied      = "denied"
	WouldDeny   = "would_deny" // the policy observes: the call was forwarded
	Asked       = "asked"
	WouldAsk    = "would_ask"
	AnyDecision = "any"
)

// Effect returns the word for a decision with its effect, "" for a call that was
// allowed or that no policy decided.
func (l Line) Effect() string {
	switch {
	case l.Decision == "deny" && l.Applied:
		return Denied
	case l.Decision == "deny":
		return WouldDeny
	case l.Decision == "ask" && l.Applied:
		return Asked
	case l.Decision == "ask":
		return WouldAsk
	}
	return ""
}

// A Cursor is a place in the order of records: their time, then their bytes'
// identity. Records that arrive later do not move it.
type Cursor struct {
	TS       time.Time
	RecordID uuid.UUID
	Hash     string
}

// String returns the cursor as text for a URL.
func (c Cursor) String() string {
	return fmt.Sprintf("%d.%s.%s", c.TS.UnixMicro(), c.RecordID, c.Hash)
}

// ParseCursor parses the result of String.
func ParseCursor(text string) (c Cursor, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return c, errors.New("want a place in the list as its links have it")
	}
	us, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return c, fmt.Errorf("reading the time of a place: %w", err)
	}
	if c.RecordID, err = uuid.Parse(parts[1]); err != nil {
		return c, fmt.Errorf("reading the record of a place: %w", err)
	}
	if b, err := hex.DecodeString(parts[2]); err != nil || len(b) != 16 {
		return c, errors.New("reading the hash of a place: want 32 hex digits")
	}
	c.TS, c.Hash = time.UnixMicro(us).UTC(), parts[2]
	return c, nil
}

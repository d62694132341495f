// Package samples generates the records that a proxy writes for a server of
// tmux, for benchmarks.
package samples

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"
)

// A Session generates the records of one session, all of one length.
type Session struct {
	ID     string
	size   int    // of a record's line
	seq    uint64 // of the next record
	no     uint64 // of the last call
	record audit.Record
	line   []byte
}

// New returns a session whose records have size bytes each, without the line
// feed.
func New(size int) *Session {
	return &Session{ID: audit.NewID(time.Now()), size: size}
}

// Next appends the next record to dst, without a line feed. It repeats the
// parts that real records repeat, and its random parts are random: digests and
// ids are most of what does not compress.
func (s *Session) Next(dst []byte) []byte {
	now := time.Now()
	code := int64(-32602)
	s.no++
	s.seq++
	s.record = audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(now), SessionID: s.ID, Seq: s.seq - 1, CallNo: s.no,
		TS: now, Method: "tools/call", Tool: tools[rand.IntN(len(tools))],
		Outcome: audit.OutcomeOK, Forwarded: true, Duration: time.Duration(rand.IntN(90_000)) * time.Microsecond,
		RequestID: strconv.FormatUint(s.no, 10), RequestIDType: "number",
		Client: audit.Peer{Name: "claude-code", Version: "2.1.7"}, Server: audit.Peer{Name: "libtmux-mcp", Version: "0.1.0a22"},
		ProtocolVersion: "2025-06-18", ServerCommand: audit.Command{Command: "libtmux-mcp"},
		Tier: "execute", Annotations: `{"readOnlyHint":false,"destructiveHint":true}`,
		ArgsBytes: 130, ResultBytes: 240 + rand.Int64N(4000),
		Host: "build-07", User: "agent", PID: 41237, Labels: `{"team":"platform"}`,
	}
	sum := sha256.Sum256([]byte(s.record.Tool)) // a server declares a tool once
	s.record.ToolHash = hex.EncodeToString(sum[:])
	args := `{"pane_id":"%3"`
	if s.record.Tool == "send_keys" {
		args = `{"keys":{"len":46,"hmac":"` + random(8) + `"},"pane_id":"%3","enter":true`
	}
	if s.no%20 == 0 {
		args += `,"operations":[{"tool":"pipe_pane","arguments":{"pane_id":"%3"}}]`
	}
	if s.no%50 == 0 {
		s.record.Outcome, s.record.ErrorType, s.record.ErrorCode = audit.OutcomeError, audit.ErrJSONRPC, &code
	}
	s.record.Args = audit.JSON(args + `}`)
	s.line = audit.AppendRecord(s.line[:0], &s.record)
	if missing := s.size + 1 - len(s.line) - len(`,"cwd":""`); missing > 0 {
		s.record.Args = audit.JSON(args + `,"cwd":"` + strings.Repeat("/srv/build/checkout", missing/19+1)[:missing] + `"}`)
		s.line = audit.AppendRecord(s.line[:0], &s.record)
	}
	return append(dst, s.line[:len(s.line)-1]...)
}

// Lines appends the spool's lines of the next call: its intent and its record,
// each with its line feed.
func (s *Session) Lines(dst []byte) []byte {
	s.Next(nil)
	return append(audit.AppendIntent(dst, &s.record), s.line...)
}

// Mark appends a record of another kind, with its line feed.
func (s *Session) Mark(dst []byte, kind audit.Kind) []byte {
	now := time.Now()
	s.seq++
	return audit.AppendRecord(dst, &audit.Record{
		Kind: kind, RecordID: audit.NewID(now), SessionID: s.ID, Seq: s.seq - 1, TS: now,
		Client: s.record.Client, Server: s.record.Server, Host: "build-07", User: "agent", PID: 41237,
	})
}

// Context appends the context line of the session, with its line feed.
func (s *Session) Context(dst []byte) []byte {
	return audit.AppendContext(dst, &audit.Record{SessionID: s.ID, Host: "build-07", User: "agent", PID: 41237})
}

var tools = []string{"send_keys", "send_keys", "capture_pane", "list_panes", "list_windows", "wait_for_text", "pipe_pane", "new_window"}

// random returns 2n hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(b)
}

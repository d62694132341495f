package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka"
)

// A session writes records as a proxy with libtmux-mcp does, of one length.
type session struct {
	id     string
	size   int // of a record's line
	no     uint64
	record audit.Record
	line   []byte
}

func newSession(size int) *session {
	return &session{id: audit.NewID(time.Now()), size: size}
}

// next appends the next record to dst, without a line feed. What a record
// repeats it repeats here, and what is random in it is random: digests and ids
// are most of what does not compress.
func (s *session) next(dst []byte) []byte {
	now := time.Now()
	code := int64(-32602)
	s.no++
	s.record = audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(now), SessionID: s.id, Seq: s.no - 1, CallNo: s.no,
		TS: now, Method: "tools/call", Tool: tools[rand.IntN(len(tools))],
		Outcome: audit.OutcomeOK, Forwarded: true, Duration: time.Duration(rand.IntN(90_000)) * time.Microsecond,
		RequestID: strconv.FormatUint(s.no, 10), RequestIDType: "number",
		Client: audit.Peer{Name: "claude-code", Version: "2.1.7"}, Server: audit.Peer{Name: "libtmux-mcp", Version: "0.1.0a22"},
		ProtocolVersion: "2025-06-18", ServerCommand: audit.Command{Command: "libtmux-mcp"},
		Tier: "execute", Annotations: `{"readOnlyHint":false,"destructiveHint":true}`, ToolHash: random(32),
		ArgsBytes: 130, ResultBytes: 240 + rand.Int64N(4000),
		Host: "build-07", User: "agent", PID: 41237, Labels: `{"team":"platform"}`,
	}
	args := `{"keys":{"len":46,"hmac":"` + random(8) + `"},"pane_id":"%3","enter":true`
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

var tools = []string{"send_keys", "send_keys", "capture_pane", "list_panes", "list_windows", "wait_for_text", "pipe_pane", "new_window"}

// random returns 2n hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(b)
}

// preload writes n records to a topic the way a shipper does, from some
// sessions in turn.
func preload(ctx context.Context, addr, topic string, n, size int) error {
	const sessions, batch = 16, 1000
	p, err := kafka.New(kafka.Config{Access: kafka.Access{Brokers: []string{addr}}, Topic: topic, Source: "/benchcollector"})
	if err != nil {
		return err
	}
	defer p.Close()
	var list [sessions]*session
	for i := range list {
		list[i] = newSession(size)
	}
	lines := make([][]byte, 0, batch)
	for i := 0; n > 0; i++ {
		s := list[i%sessions]
		lines = lines[:0]
		for range min(batch, n) {
			lines = append(lines, s.next(nil))
		}
		if err := p.Write(ctx, s.id, lines); err != nil {
			return fmt.Errorf("filling topic %q: %w", topic, err)
		}
		n -= len(lines)
	}
	return nil
}

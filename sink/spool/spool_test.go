package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testID = "0198f3c2-7b1a-7c3e-8d4f-5a6b7c8d9e0f"

// when is the start of every test's call n.
func when(n int) time.Time {
	return time.Date(2026, 11, 21, 10, 0, n, 0, time.UTC)
}

func callID(n int) string { return fmt.Sprintf("0198f3c2-0000-7000-8000-%012d", n) }

// intent is the sealed intent line of call n.
func intent(n int) []byte {
	return audit.AppendIntent(nil, &audit.Record{
		RecordID: callID(n), CallNo: uint64(n), TS: when(n), Method: "tools/call", Tool: "send_keys",
		RequestID: fmt.Sprint(n), RequestIDType: "number", Args: `{"keys":{"len":3}}`, ArgsBytes: 14,
	})
}

// final is the sealed record of call n.
func final(n int, seq uint64) []byte {
	return audit.AppendRecord(nil, &audit.Record{
		Kind: audit.KindCall, RecordID: callID(n), SessionID: testID, Seq: seq, CallNo: uint64(n), TS: when(n),
		Method: "tools/call", Tool: "send_keys", Outcome: audit.OutcomeOK, Forwarded: true, Duration: time.Millisecond,
		RequestID: fmt.Sprint(n), RequestIDType: "number", Args: `{"keys":{"len":3}}`, ArgsBytes: 14,
	})
}

func boundary(kind audit.Kind, seq uint64) []byte {
	return audit.AppendRecord(nil, &audit.Record{
		Kind: kind, RecordID: callID(int(1_000_000 + seq)), SessionID: testID, Seq: seq, TS: when(0), Duration: -1,
	})
}

func head(dst []byte) []byte {
	dst = audit.AppendContext(dst, &audit.Record{SessionID: testID, Client: audit.Peer{Name: "tester"}, Host: "here", PID: 7})
	return audit.AppendTool(dst, &audit.Record{Tool: "send_keys", Tier: "mutating", ToolHash: "ab"})
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a session in a new directory.
func create(t testing.TB, c Config) *Session {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "spool")
	}
	s, err := Create(c, testID)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// run starts s.Run and ends it with the test, before Close.
func run(t testing.TB, s *Session) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func appendLines(t testing.TB, s *Session, lines []byte, final bool) int64 {
	t.Helper()
	pos, err := s.Append(lines, final)
	must(t, err)
	return pos
}

// items returns all items of a reader.
func items(t testing.TB, c ReaderConfig) []Item {
	t.Helper()
	if c.Session == "" {
		c.Session = testID
	}
	r, err := OpenReader(c)
	must(t, err)
	defer r.Close()
	return drain(t, r.Next)
}

func drain(t testing.TB, next func() (Item, error)) (list []Item) {
	t.Helper()
	for {
		i, err := next()
		if errors.Is(err, io.EOF) {
			return list
		}
		must(t, err)
		i.Line = append([]byte(nil), i.Line...)
		list = append(list, i)
	}
}

// texts returns the lines of items, and damage in words.
func texts(list []Item) (out []string) {
	for _, i := range list {
		if i.Damage != Intact {
			out = append(out, fmt.Sprintf("%v at %v, %d", i.Damage, i.Pos, i.Length))
			continue
		}
		out = append(out, string(i.Line)+"\n")
	}
	return out
}

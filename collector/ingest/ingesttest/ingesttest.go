// Package ingesttest makes records and rows for tests.
package ingesttest

import (
	"crypto/sha256"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
)

// Call returns a call of a session, the number no, which began that many seconds
// after start.
func Call(no int, tool string, start time.Time) audit.Record {
	return audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(start), SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab",
		Seq: uint64(no), CallNo: uint64(no), TS: start.Add(time.Duration(no) * time.Second),
		Method: "tools/call", Tool: tool, Outcome: audit.OutcomeOK, Duration: time.Millisecond, Tenant: "acme",
	}
}

// Row returns what the collector makes of r, which need not be valid.
func Row(t testing.TB, r audit.Record, source ingest.Source) ingest.Row {
	t.Helper()
	return RowOf(t, audit.AppendRecord(nil, &r), source)
}

// RowOf returns what the collector makes of a record's line.
func RowOf(t testing.TB, line []byte, source ingest.Source) ingest.Row {
	t.Helper()
	raw := line[:len(line)-len("\n")]
	r, err := audit.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: string(raw), Hash: [16]byte(sum[:]), Source: source}
}

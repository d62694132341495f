package ingest_test

import (
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
)

// TestStoredText reads what it writes, and nothing else.
func TestStoredText(t *testing.T) {
	at := time.UnixMicro(1795828778346123)
	want := ingest.Stored{Session: audit.NewID(at), Seq: 1<<64 - 1, TS: at, Source: ingest.Source{Offset: 7}}
	row := ingest.Row{Record: audit.Record{SessionID: want.Session, Seq: want.Seq, TS: at}, Source: ingest.Source{Topic: "t", Partition: 3, Offset: 7}}
	text := ingest.StoredText(&row)
	if got, ok := ingest.ParseStored(text); !ok || got != want {
		t.Errorf("%q is %+v, %t, want %+v", text, got, ok, want)
	}
	for _, bad := range []string{"", "x", text[:36], text[:40], "x" + text[1:]} {
		if got, ok := ingest.ParseStored(bad); ok {
			t.Errorf("%q is %+v", bad, got)
		}
	}
	row.Record.SessionID = "a session with a name of a stranger"
	if text := ingest.StoredText(&row); text != "" {
		t.Errorf("of another id: %q", text)
	}
}

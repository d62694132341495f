package letters_test

import (
	"testing"
	"time"

	"auditproxy/cmd/internal/letters"
	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/store/storetest"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

// TestReplayIsEvaluated checks that replayed records are after a mark that a
// collector sweeps immediately.
func TestReplayIsEvaluated(t *testing.T) {
	s, _ := storetest.Open(t, clickhouse.Retention{})
	const keep = 400 * 24 * time.Hour
	row := ingesttest.Row(t, ingesttest.Call(1, "pipe_pane", time.Now()), ingest.Source{Topic: "t"})
	letter := ingest.DeadLetter{Source: row.Source, Key: row.Record.SessionID, Raw: []byte(row.Raw), Reason: "ts", Seen: time.Now()}
	if err := s.InsertDeadLetters(t.Context(), []ingest.DeadLetter{letter}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stored, remain, err := letters.Replay(t.Context(), s, ingest.Decoder{Keep: keep}, store.LetterFilter{}, nil)
	if stored != 1 || remain != 0 || err != nil {
		t.Fatalf("Replay = %d, %d, %v", stored, remain, err)
	}
	marks, err := s.Marks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(marks) != 1 || marks[0].Kind != alert.MarkRun || began.Sub(marks[0].At) < 30*time.Minute {
		t.Fatalf("marks %+v, want one of a run that was abandoned long ago", marks)
	}
	if n, err := s.CountArrived(t.Context(), marks[0].Upto, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d records arrived after the mark %+v, %v, want the one that was replayed", n, marks[0], err)
	}
}

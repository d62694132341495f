package ship

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/audit"

	"go.uber.org/zap"
)

// TestOnce ships a spool with an old session and a new one. A damaged line is kept
// aside and is a finding; a session that cannot be read is not.
func TestOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	now := time.Now()
	old, recent := newWriter(t, dir), newWriter(t, dir)
	for _, w := range []*writer{old, recent} {
		w.write(audit.KindCall, 0)
		w.end()
	}
	oldID, recentID := old.record.SessionID, recent.record.SessionID
	segment := func(w *writer) string { return filepath.Join(dir, "sessions", w.record.SessionID, "00000001.jsonl") }
	age := func(w *writer, age time.Duration) {
		t.Helper()
		must(t, os.Chtimes(segment(w), now.Add(-age), now.Add(-age)))
	}
	age(old, 48*time.Hour)
	damage := func() {
		text, err := os.ReadFile(segment(recent))
		must(t, err)
		must(t, os.WriteFile(segment(recent), bytes.Replace(text, []byte(`"call"`), []byte(`"CALL"`), 1), 0o600))
		age(recent, 0)
	}
	for _, tt := range []struct {
		name    string
		before  func()
		since   time.Duration // ago; 0: what was not shipped before
		printed string
		records map[string]int // by session
		code    int            // -1: no error
	}{
		{"first", nil, 0, "shipped 6 records of 2 sessions\n", map[string]int{oldID: 3, recentID: 3}, -1},
		{"nothing is left", nil, 0, "shipped 0 records of 0 sessions\n", nil, -1},
		{"again, of a day", nil, 24 * time.Hour, "shipped 3 records of 1 session\n", map[string]int{recentID: 3}, -1},
		{"again, of a week", nil, 7 * 24 * time.Hour, "shipped 6 records of 2 sessions\n", map[string]int{oldID: 3, recentID: 3}, -1},
		{"a damaged line", damage, 24 * time.Hour, "shipped 2 records of 1 session\n", map[string]int{recentID: 2}, cli.ExitFound},
		{"a session of others", func() { must(t, os.Chmod(filepath.Dir(segment(old)), 0o777)) }, 24 * time.Hour, "shipped 2 records of 1 session\n", map[string]int{recentID: 2}, cli.ExitUnclear},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.before != nil {
				tt.before()
			}
			var since time.Time
			if tt.since > 0 {
				since = now.Add(-tt.since)
			}
			got := &collected{lines: map[string][]string{}, more: make(chan struct{}, 1)}
			var out strings.Builder
			err := Once(t.Context(), Config{Dir: dir, Sink: got, Log: zap.NewNop(), Stdout: &out, Stderr: io.Discard}, since)
			if out.String() != tt.printed {
				t.Errorf("printed %q, want %q", &out, tt.printed)
			}
			for _, w := range []*writer{old, recent} {
				if n := len(got.lines[w.record.SessionID]); n != tt.records[w.record.SessionID] {
					t.Errorf("%d records of session %q, want %d", n, w.record.SessionID, tt.records[w.record.SessionID])
				}
			}
			code := -1
			var exit cli.ExitError
			switch {
			case errors.As(err, &exit):
				code = exit.Code
			case err != nil:
				code = cli.ExitUnclear
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %v", code, tt.code, err)
			}
		})
	}
}

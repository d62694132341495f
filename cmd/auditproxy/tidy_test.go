package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// TestTidyWaitsForTheConsumer keeps an old session of which a consumer has read a part,
// where spool.consumer is not set: a collector or ship --follow may be away for longer than
// spool.retain_age. doctor says that it waits.
func TestTidyWaitsForTheConsumer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		consumer string // spool.consumer
		read     bool
		kept     bool
	}{
		{"not set, and it was read", "", true, true},
		{"not set, and nothing was read", "", false, false},
		{"none", "none", true, false},
		{"collector", "collector", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			now := time.Now()
			w := startSession(t, dir, now.Add(-3*time.Hour))
			w.end(now.Add(-3 * time.Hour))
			if tt.read {
				c, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: w.id})
				must(t, err)
				item, err := c.Next()
				must(t, err)
				must(t, c.Commit(item.End()))
				must(t, c.Close())
			}
			must(t, os.Chtimes(w.segment(1), now.Add(-3*time.Hour), now.Add(-3*time.Hour)))
			looked := now.Add(-20 * time.Minute).Unix() // a quarter of the age ago, so that the time counts
			must(t, os.WriteFile(filepath.Join(dir, "looks"), fmt.Appendf(nil, "%d %d\n", looked, looked), 0o600))
			a := &app{keys: proxyKeys(dir), env: []string{"AUDITPROXY_SPOOL_RETAIN_AGE=1h", "AUDITPROXY_SPOOL_CONSUMER=" + tt.consumer}}
			newRootCmd(a)
			cfg, err := a.load()
			must(t, err)
			d := a.diagnose()
			if told := slices.ContainsFunc(d.Problems, func(f finding) bool { return f.Code == "sessions_not_consumed" }); told != tt.kept {
				t.Errorf("doctor says that records wait: %t, want %t; it found %v", told, tt.kept, d.Findings)
			}
			if i := slices.IndexFunc(d.Config, func(s cli.Setting) bool { return s.Key == "spool.consumer" }); d.Config[i].Value != tt.consumer {
				t.Errorf("doctor shows the consumer %q, want %q", d.Config[i].Value, tt.consumer)
			}
			tidyOnce(t.Context(), cfg, zap.NewNop())
			list, err := spool.List(dir)
			must(t, err)
			if kept := len(list) > 0; kept != tt.kept {
				t.Errorf("the session is kept: %t, want %t", kept, tt.kept)
			}
		})
	}
}

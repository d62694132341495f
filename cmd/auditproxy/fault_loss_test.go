package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestSpoolFileLost removes, renames or cuts the segment, or all of the
// session's directory, while the proxy runs: later calls have records, and an
// anomaly reports it.
func TestSpoolFileLost(t *testing.T) {
	for _, c := range []struct {
		name, anomaly string
		do            func(segment string) error
	}{
		{"removed", "spool_removed", os.Remove},
		{"renamed", "spool_removed", func(s string) error { return os.Rename(s, s+".old") }},
		{"cut", "spool_changed", func(s string) error { return os.Truncate(s, 0) }},
		{"replaced", "spool_replaced", func(s string) error {
			if err := os.Rename(s, s+".old"); err != nil {
				return err
			}
			return os.WriteFile(s, nil, 0o600)
		}},
		{"directory removed", "spool_removed", func(s string) error { return os.RemoveAll(filepath.Dir(s)) }},
	} {
		for _, durability := range []string{"intent", "interval"} {
			t.Run(c.name+"/"+durability, func(t *testing.T) {
				t.Parallel()
				w := wrap(t, setup{flags: []string{"--durability", durability}})
				for id := 1; id <= 5; id++ {
					w.answered(id, 100)
				}
				names, err := filepath.Glob(filepath.Join(w.spool, "sessions", "*", "*.jsonl"))
				must(t, err)
				if len(names) != 1 {
					t.Fatalf("segments %q, want one", names)
				}
				// Its last lines are synced: else they would be repeated.
				eventually(t, "the final records are not synced", func() bool { return synced(t, names[0]) })
				must(t, c.do(names[0]))
				// An interval's sync, which finds out, may come at any time.
				id := 5
				eventually(t, "the loss is not noticed", func() bool {
					id++
					if w.answered(id, 100).refused() {
						t.Fatalf("call %d was refused", id)
					}
					return noticed(t, w.spool)
				})
				must(t, w.call(id+1, 100))
				w.next(id + 1)
				if status := w.end(); status != 0 {
					t.Errorf("status %#x\n%s", status, &w.stderr)
				}
				tr := lateTrail(t, w.spool)
				for later := 6; later <= id+1; later++ {
					if n := tr[later]; n != 1 {
						t.Errorf("call %d after the loss has %d records", later, n)
					}
				}
				if !strings.Contains(all(t, w.spool), fmt.Sprintf("%q", c.anomaly)) {
					t.Errorf("no anomaly says %q", c.anomaly)
				}
			})
		}
	}
}

// all is the content of the segments that keep their name.
func all(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "sessions", "*", "*.jsonl"))
	must(t, err)
	var b []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		b = append(b, content...)
	}
	return string(b)
}

func noticed(t *testing.T, dir string) bool { return strings.Contains(all(t, dir), `"spool_`) }

// synced reports whether the writer has published the end of the segment.
func synced(t *testing.T, segment string) bool {
	t.Helper()
	durable, err := os.ReadFile(filepath.Join(filepath.Dir(segment), "durable"))
	must(t, err)
	i, err := os.Stat(segment)
	must(t, err)
	size := i.Size()
	return len(durable) == 8 && bytes.Equal(durable[4:], []byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)})
}

// lateTrail counts the final records by request id, a repeated line once. Lost
// records are missing from the spool, so no reader accepts the whole session.
func lateTrail(t *testing.T, dir string) map[int]int {
	t.Helper()
	finals := make(map[int]int)
	var told []string
	for line := range strings.Lines(all(t, dir)) {
		kind, r, err := audit.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		must(t, err)
		if kind != audit.LineRecord || r.Kind != audit.KindCall || slices.Contains(told, r.RecordID) {
			continue
		}
		told = append(told, r.RecordID)
		var id int
		_, err = fmt.Sscan(r.RequestID, &id)
		must(t, err)
		finals[id]++
	}
	return finals
}

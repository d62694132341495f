package stream_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/stream"
	"auditproxy/deploy/dev"
	"auditproxy/internal/diskfull"

	"github.com/google/go-cmp/cmp"
)

// TestDiskFull fills a tmpfs of 1 MiB and frees it, twice.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "1m")
	path := filepath.Join(dir, "events.ndjson")
	rubbish := filepath.Join(dir, "rubbish")
	w, _ := toFile(t, stream.File{Path: path, MaxSize: 100_000})
	var want []string
	no := 0
	for _, size := range []int{600 << 10, 300 << 10} {
		if err := os.WriteFile(rubbish, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		for {
			list := records(t, no, 10)
			err := w.Send(t.Context(), list)
			if err != nil {
				if !diskfull.Is(err) || errors.Is(err, receiver.ErrRefused) || !strings.HasSuffix(err.Error(), "if df -i shows that none are left") {
					t.Fatal(err)
				}
				break
			}
			want, no = append(want, texts(list)...), no+10
		}
		if diff := cmp.Diff(want, once(written(t, path))); diff != "" {
			t.Fatalf("lines on the full disk (-want +got):\n%.2000s", diff)
		}
		if err := os.Remove(rubbish); err != nil {
			t.Fatal(err)
		}
		send(t, w, records(t, no, 10))
		want, no = append(want, texts(records(t, no, 10))...), no+10
	}
	if diff := cmp.Diff(want, written(t, path)); diff != "" {
		t.Errorf("lines (-want +got):\n%.2000s", diff)
	}
}

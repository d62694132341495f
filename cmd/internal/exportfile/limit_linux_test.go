package exportfile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/exportfile"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestFileCannotGrow has a file that reaches a limit for files, which its mark does
// not reach: what was not written is not marked, and comes when the file is continued.
func TestFileCannotGrow(t *testing.T) {
	list := records(t, 40)
	random := rand.New(rand.NewPCG(1, 2)) // so that Parquet does not shrink it
	for i := 40; i < 100; i++ {
		r := ingesttest.Call(i, "large", start)
		r.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012d", i)
		text := make([]byte, 30_000)
		for i := range text {
			text[i] = byte('a' + random.IntN(26))
		}
		r.Args = audit.JSON(`{"a":"` + string(text) + `"}`)
		list = append(list, row(t, r))
	}
	for _, name := range []string{"ndjson", "csv", "parquet"} {
		for _, limit := range []uint64{1, 100, 700_000, 1_500_000} {
			file := filepath.Join(t.TempDir(), "records."+name)
			c := exportfile.Config{Source: &memory{list: list, page: 7}, Format: format(t, name), File: file, PartBytes: 1 << 20, Resume: true}
			var before unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
				t.Fatal(err)
			}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
				t.Fatal(err)
			}
			_, err := export(t, c)
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(err, syscall.EFBIG) {
				t.Errorf("%s with a limit of %d bytes: error %v", name, limit, err)
			}
			if _, err := export(t, c); err != nil {
				t.Errorf("%s, continued after a limit of %d bytes: %v", name, limit, err)
				continue
			}
			if diff := cmp.Diff(idsOf(list), ids(t, name, file)); diff != "" {
				t.Errorf("%s, continued after a limit of %d bytes (-want +got):\n%.400s", name, limit, diff)
			}
		}
	}
}

// TestReadOnlyDirectory has a directory that cannot be written before an export and
// between two: the error says what to do, and then the file is complete.
func TestReadOnlyDirectory(t *testing.T) {
	list, dir := records(t, 40), t.TempDir()
	file := filepath.Join(dir, "records.ndjson")
	c := exportfile.Config{Source: &memory{list: list[:20], page: 7}, Format: format(t, "ndjson"), File: file, Resume: true}
	for range 2 {
		writable := dev.ReadOnly(t, dir)
		if _, err := export(t, c); err == nil || !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "mount it for writing") {
			t.Errorf("in a read-only directory: %v", err)
		}
		writable()
		if _, err := export(t, c); err != nil {
			t.Fatal(err)
		}
		c.Source = &memory{list: list, page: 7}
	}
	if diff := cmp.Diff(idsOf(list), ids(t, "ndjson", file)); diff != "" {
		t.Errorf("the file (-want +got):\n%.400s", diff)
	}
}

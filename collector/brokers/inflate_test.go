package brokers

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/compress"
)

// TestInflationTakesLittleMemory reads batches of which a reader without a bound
// allocates more than twice what they become, which this one must not reach once.
func TestInflationTakesLittleMemory(t *testing.T) {
	BoundBatches()
	if testing.Short() {
		t.Skip("it has one goroutine")
	}
	const size = 256 << 20
	for _, kind := range []compress.Compression{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		t.Run(kind.String(), func(t *testing.T) {
			var batch bytes.Buffer
			w := kind.Codec().NewWriter(&batch)
			zeros := make([]byte, 1<<20)
			for range size / len(zeros) {
				if _, err := w.Write(zeros); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := kind.Codec().NewReader(&batch)
			got, err := io.ReadAll(r)
			runtime.ReadMemStats(&after)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if err != nil || len(got) > 1<<10 || !strings.Contains(string(got), "when it is decompressed") {
				t.Errorf("read %d bytes (%v) of %d, want a record that says why", len(got), err, size)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > size {
				t.Errorf("reading took %d MB of memory, want %d at most", took>>20, size>>20)
			}
		})
	}
}

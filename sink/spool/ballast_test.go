package spool

import (
	"bytes"
	"compress/zlib"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBallastIsNoise packs the ballast, as some file systems do with what is
// written: the space it gives back would be less than its size.
func TestBallastIsNoise(t *testing.T) {
	s := create(t, Config{})
	b, err := os.ReadFile(filepath.Join(s.dir, ballastFile))
	must(t, err)
	if len(b) != ballastSize {
		t.Errorf("the ballast has %d bytes, want %d", len(b), ballastSize)
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err = w.Write(b)
	must(t, err)
	must(t, w.Close())
	if packed.Len() < ballastSize {
		t.Errorf("the ballast can be packed into %d bytes", packed.Len())
	}
	blocks := make(map[string]bool)
	for block := range slices.Chunk(b, 4<<10) {
		blocks[string(block)] = true
	}
	if len(blocks) != ballastSize/(4<<10) {
		t.Errorf("the ballast has only %d different blocks", len(blocks))
	}
}

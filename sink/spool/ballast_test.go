package spool

import (
	"bytes"
	"compress/zlib"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

// TestBallastTakesSpace checks that the file system gave the ballast its space,
// as it does for bytes that were never written.
func TestBallastTakesSpace(t *testing.T) {
	s := create(t, Config{})
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(s.dir, ballastFile), &st))
	if st.Size != ballastSize || st.Blocks*512 < ballastSize {
		t.Errorf("the ballast has %d bytes in %d blocks of 512, want %d bytes in whole", st.Size, st.Blocks, ballastSize)
	}
}

// unallocated is a file system that reserves no space for unwritten bytes.
type unallocated struct{ disk.FS }

func (u unallocated) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := u.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return struct{ disk.File }{f}, nil
}

// TestBallastIsNoise compresses a written ballast, as some file systems do: a
// compressible one would free less space than its size.
func TestBallastIsNoise(t *testing.T) {
	s := create(t, Config{FS: unallocated{disk.Host()}})
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

package tiles

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

func text(i int64) []byte { return fmt.Appendf(nil, "entry %d", i) }

// written writes a log with the code of Go's checksum database.
func written(t testing.TB, dir string, n int64) tlog.Tree {
	t.Helper()
	var stored []tlog.Hash
	hashes := tlog.HashReaderFunc(func(indexes []int64) (found []tlog.Hash, err error) {
		for _, i := range indexes {
			found = append(found, stored[i])
		}
		return found, nil
	})
	for i := range n {
		more, err := tlog.StoredHashes(i, text(i), hashes)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
	write := func(tile tlog.Tile, data []byte) {
		name := filepath.Join(dir, Path(tile))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tile := range tlog.NewTiles(height, 0, n) {
		data, err := tlog.ReadTileData(tile, hashes)
		if err != nil {
			t.Fatal(err)
		}
		write(tile, data)
		if tile.L != 0 {
			continue
		}
		tile.L = -1
		data = nil
		for i := range tile.W {
			e := text(tile.N*width + int64(i))
			data = append(binary.BigEndian.AppendUint16(data, uint16(len(e))), e...)
		}
		write(tile, data)
	}
	root, err := tlog.TreeHash(n, hashes)
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Tree{N: n, Hash: root}
}

// read reads all entries.
func read(t testing.TB, place string, tree tlog.Tree, from int64) (n int64, err error) {
	t.Helper()
	r, err := Open(place)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Entries(t.Context(), tree, from) {
		if err != nil {
			return n, err
		}
		if e.Index != from+n || string(e.Data) != string(text(e.Index)) {
			t.Fatalf("entry %d is %q with index %d", from+n, e.Data, e.Index)
		}
		n++
	}
	return n, nil
}

func TestEntries(t *testing.T) {
	for _, n := range []int64{0, 1, 255, 256, 257, 700, 66_000} {
		dir := t.TempDir()
		tree := written(t, dir, n)
		server := httptest.NewServer(http.FileServer(http.Dir(dir)))
		for _, place := range []string{dir, server.URL, server.URL + "/"} {
			for _, from := range []int64{0, 1, n / 2, n - 1, n, n + 1} {
				got, err := read(t, place, tree, max(0, from))
				if want := max(0, n-max(0, from)); err != nil || got != want {
					t.Errorf("of %d entries from %d: read %d, %v", n, from, got, err)
				}
			}
		}
		server.Close()
		// The wider tile stands for a narrower one.
		if n == 66_000 {
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if old, err := r.Root(t.Context(), tree, 300); err != nil {
				t.Error(err)
			} else if got, err := read(t, dir, tlog.Tree{N: 300, Hash: old}, 0); got != 300 || err != nil {
				t.Errorf("the first 300: read %d, %v", got, err)
			}
		}
	}
}

// TestChanged changes each file of a log at many places: either nothing that was
// read has changed, or the error says so.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	tree := written(t, dir, 600)
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		good, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for at := 0; at < len(good); at += 37 {
			for change, bad := range map[string][]byte{
				"flipped":  append(append(append([]byte{}, good[:at]...), good[at]^1), good[at+1:]...),
				"cut":      good[:at],
				"inserted": append(append(append([]byte{}, good[:at]...), 0), good[at:]...),
				"appended": append(append([]byte{}, good...), make([]byte, at+1)...),
			} {
				if err := os.WriteFile(name, bad, 0o600); err != nil {
					return err
				}
				if n, err := read(t, dir, tree, 0); !errors.Is(err, ErrMismatch) {
					t.Errorf("%s %s at %d: read %d entries, %v", name, change, at, n, err)
				}
			}
		}
		return os.WriteFile(name, good, 0o600)
	})
	if err != nil || files < 6 {
		t.Fatalf("%d files, %v", files, err)
	}
	if n, err := read(t, dir, tree, 0); n != 600 || err != nil {
		t.Errorf("unchanged: %d, %v", n, err)
	}
	other := tree
	other.Hash[0] ^= 1
	if _, err := read(t, dir, other, 0); !errors.Is(err, ErrMismatch) {
		t.Errorf("another tree: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "tile/entries/001")); err != nil {
		t.Fatal(err)
	}
	if n, err := read(t, dir, tree, 0); n != 256 || !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrMismatch) {
		t.Errorf("a missing file: %d, %v", n, err)
	}
}

func TestCheckpointText(t *testing.T) {
	hash := tlog.Hash{1}.String()
	origin, tree, err := ParseCheckpoint([]byte("log\n12\n" + hash + "\nmore\n\n— x y\n"))
	if origin != "log" || tree != (tlog.Tree{N: 12, Hash: tlog.Hash{1}}) || err != nil {
		t.Errorf("parsed %q, %v, %v", origin, tree, err)
	}
	for _, bad := range []string{"", "log", "log\n1\n", "\n1\n" + hash + "\n", "log\n01\n" + hash + "\n", "log\n-1\n" + hash + "\n", "log\n+1\n" + hash + "\n",
		"log\n1\n" + hash, "log\n1\n" + hash[1:] + "\n", "log\n1\nAAAA\n", "log\n99999999999999999999\n" + hash + "\n"} {
		if _, _, err := ParseCheckpoint([]byte(bad)); err == nil {
			t.Errorf("%q is a checkpoint", bad)
		}
	}
}

// TestServer checks that a server that answers with errors, or too much, is an
// error.
func TestServer(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"500":                 func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"set evidence.serve":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"more than":           func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxCheckpoint+1)) },
		"file does not exist": http.NotFound,
	} {
		server := httptest.NewServer(answer)
		r, err := Open(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Checkpoint(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		server.Close()
	}
	if _, err := Open("http://"); err == nil {
		t.Error("an address without a host is opened")
	}
}

// FuzzPath checks that a path is that of one tile.
func FuzzPath(f *testing.F) {
	f.Add("tile/0/x001/x234/067.p/5")
	f.Add("tile/entries/000")
	f.Add("tile/-1/000")
	f.Add("tile/data/000")
	f.Fuzz(func(t *testing.T, path string) {
		tile, ok := ParsePath(path)
		if ok && (Path(tile) != path || strings.Contains(path, "..") || tile.N < 0 || tile.W < 1 || tile.W > width) {
			t.Errorf("%q is %v", path, tile)
		}
	})
}

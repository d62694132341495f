// Package tiles reads a transparency log in C2SP tlog-tiles form, from a
// directory or from a web server, and compares what it reads with a checkpoint.
//
// A Reader trusts nothing that it reads. Each method takes the tree that the
// caller trusts, usually that of a checkpoint whose signatures the caller has
// checked, and returns ErrMismatch for what does not hash to this tree.
//
// The files, from the top: tiles, source.
package tiles

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrMismatch means that what was read is not in the tree.
var ErrMismatch = errors.New("the log's files do not match its tree")

// The names of the two files that change; all others never do.
const (
	CheckpointFile = "checkpoint"           // signed by the log
	WitnessedFile  = "checkpoint.witnessed" // with signatures of witnesses too
)

const (
	height = 8           // of a tile
	width  = 1 << height // of a tile, and the entries of a bundle

	maxCheckpoint = 64 << 10
	maxTile       = width * tlog.HashSize
	maxBundle     = width * (2 + MaxEntry)
	maxCached     = 128 // tiles
)

// MaxEntry is the most bytes that an entry has.
const MaxEntry = 1<<16 - 1

// A Reader reads a log. Its methods may be called concurrently.
type Reader struct {
	source source

	mu    sync.Mutex
	tiles map[tlog.Tile][]byte // some that were in the tree, so that parents are read once
}

// Open returns a reader of a directory or, if place starts with http:// or
// https://, of the log with that prefix. It reads nothing yet.
func Open(place string) (*Reader, error) {
	s, err := open(place)
	if err != nil {
		return nil, fmt.Errorf("opening log %q: %w", place, err)
	}
	return &Reader{source: s, tiles: map[tlog.Tile][]byte{}}, nil
}

// Checkpoint returns the newest checkpoint as it is, unchecked. Its error
// is fs.ErrNotExist if there is none.
func (r *Reader) Checkpoint(ctx context.Context) ([]byte, error) {
	return r.file(ctx, CheckpointFile, maxCheckpoint)
}

// Witnessed returns the newest checkpoint that witnesses have signed too,
// unchecked. It may be older than Checkpoint's. Its error is fs.ErrNotExist if
// there is none.
func (r *Reader) Witnessed(ctx context.Context) ([]byte, error) {
	return r.file(ctx, WitnessedFile, maxCheckpoint)
}

func (r *Reader) file(ctx context.Context, name string, most int) ([]byte, error) {
	b, err := r.source.read(ctx, name, most)
	if err != nil {
		return nil, fmt.Errorf("reading %q of the log: %w", name, err)
	}
	return b, nil
}

// ParseCheckpoint returns what a checkpoint says, without regard to who signed
// it (C2SP tlog-checkpoint). Extension lines are skipped.
func ParseCheckpoint(signed []byte) (origin string, tree tlog.Tree, err error) {
	lines := strings.SplitN(string(signed), "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return "", tlog.Tree{}, errors.New("parsing checkpoint: want an origin, a size and a hash, each on a line")
	}
	n, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || n < 0 || lines[1] != strconv.FormatInt(n, 10) {
		return "", tlog.Tree{}, fmt.Errorf("parsing checkpoint: %q is not a size", lines[1])
	}
	hash, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(hash) != tlog.HashSize {
		return "", tlog.Tree{}, fmt.Errorf("parsing checkpoint: %q is not a hash", lines[2])
	}
	return lines[0], tlog.Tree{N: n, Hash: tlog.Hash(hash)}, nil
}

// An Entry is an entry of a log.
type Entry struct {
	Index int64
	Data  []byte
}

// Entries returns the entries of the tree from an index on, in order. Each is in
// the tree. The iteration ends at the first error. It needs the memory of one
// bundle of 256 entries.
func (r *Reader) Entries(ctx context.Context, tree tlog.Tree, from int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for at := max(from, 0); at < tree.N; {
			first := at / width * width
			entries, err := r.bundle(ctx, tree, first)
			if err != nil {
				yield(Entry{Index: at}, fmt.Errorf("reading entries of the log from %d: %w", at, err))
				return
			}
			for _, e := range entries[at-first:] {
				if !yield(Entry{Index: at, Data: e}, nil) {
					return
				}
				at++
			}
		}
	}
}

// bundle returns the entries from first on, which is a multiple of width.
func (r *Reader) bundle(ctx context.Context, tree tlog.Tree, first int64) ([][]byte, error) {
	n := int(min(width, tree.N-first))
	leaves, err := r.Leaves(ctx, tree, first, n)
	if err != nil {
		return nil, err
	}
	raw, got, err := r.readTile(ctx, tlog.Tile{H: height, L: -1, N: first / width, W: n}, maxBundle)
	if err != nil {
		return nil, err
	}
	entries := make([][]byte, 0, n)
	for i := range n {
		size := 0
		if len(raw) >= 2 {
			size = 2 + int(binary.BigEndian.Uint16(raw))
		}
		if size == 0 || len(raw) < size {
			return nil, fmt.Errorf("%w: its bundle ends before entry %d", ErrMismatch, first+int64(i))
		}
		if tlog.RecordHash(raw[2:size]) != leaves[i] {
			return nil, fmt.Errorf("%w: entry %d has another hash", ErrMismatch, first+int64(i))
		}
		entries = append(entries, raw[2:size:size])
		raw = raw[size:]
	}
	if got == n && len(raw) > 0 {
		return nil, fmt.Errorf("%w: its bundle goes on after entry %d", ErrMismatch, first+int64(n)-1)
	}
	return entries, nil
}

// Leaves returns the hashes of n entries from an index on.
func (r *Reader) Leaves(ctx context.Context, tree tlog.Tree, from int64, n int) ([]tlog.Hash, error) {
	stored := make([]int64, n)
	for i := range stored {
		stored[i] = tlog.StoredHashIndex(0, from+int64(i))
	}
	return r.hashes(ctx, tree).ReadHashes(stored)
}

// Find returns the index of the newest entry with a hash. It reads 32 bytes for
// each entry that is newer.
func (r *Reader) Find(ctx context.Context, tree tlog.Tree, leaf tlog.Hash) (index int64, found bool, err error) {
	for end := tree.N; end > 0; {
		first := (end - 1) / width * width
		leaves, err := r.Leaves(ctx, tree, first, int(end-first))
		if err != nil {
			return 0, false, fmt.Errorf("finding an entry of the log: %w", err)
		}
		for i := len(leaves) - 1; i >= 0; i-- {
			if leaves[i] == leaf {
				return first + int64(i), true, nil
			}
		}
		end = first
	}
	return 0, false, nil
}

// Root returns the hash that the tree had when it had size entries.
func (r *Reader) Root(ctx context.Context, tree tlog.Tree, size int64) (tlog.Hash, error) {
	if size < 0 || size > tree.N {
		return tlog.Hash{}, fmt.Errorf("computing the log's hash at size %d: it has %d entries", size, tree.N)
	}
	hash, err := tlog.TreeHash(size, r.hashes(ctx, tree))
	if err != nil {
		return hash, fmt.Errorf("computing the log's hash at size %d: %w", size, err)
	}
	return hash, nil
}

// InclusionProof proves that the entry with an index is in the tree as it was
// when it had size entries. tlog.CheckRecord checks it.
func (r *Reader) InclusionProof(ctx context.Context, tree tlog.Tree, index, size int64) (tlog.RecordProof, error) {
	if index < 0 || index >= size || size > tree.N {
		return nil, fmt.Errorf("proving entry %d of %d: the log has %d entries", index, size, tree.N)
	}
	proof, err := tlog.ProveRecord(size, index, r.hashes(ctx, tree))
	if err != nil {
		return nil, fmt.Errorf("proving entry %d of %d: %w", index, size, err)
	}
	return proof, nil
}

// ConsistencyProof proves that the tree as it was with from entries is a prefix of
// the tree as it was with to entries. tlog.CheckTree checks it. The proof from an
// empty tree, or from a tree to itself, is empty.
func (r *Reader) ConsistencyProof(ctx context.Context, tree tlog.Tree, from, to int64) (tlog.TreeProof, error) {
	if from < 0 || from > to || to > tree.N {
		return nil, fmt.Errorf("proving size %d in %d: the log has %d entries", from, to, tree.N)
	}
	if from == 0 || from == to {
		return nil, nil
	}
	proof, err := tlog.ProveTree(to, from, r.hashes(ctx, tree))
	if err != nil {
		return nil, fmt.Errorf("proving size %d in %d: %w", from, to, err)
	}
	return proof, nil
}

// hashes reads hashes that are in the tree.
func (r *Reader) hashes(ctx context.Context, tree tlog.Tree) tlog.HashReader {
	checked := tlog.TileHashReader(tree, &tileReader{ctx, r})
	return tlog.HashReaderFunc(func(stored []int64) ([]tlog.Hash, error) {
		hashes, err := checked.ReadHashes(stored)
		if err != nil && !errors.Is(err, ErrMismatch) && !errors.As(err, new(*readError)) {
			err = fmt.Errorf("%w: %w", ErrMismatch, err)
		}
		return hashes, err
	})
}

// A tileReader is what tlog reads tiles with.
type tileReader struct {
	ctx context.Context
	r   *Reader
}

// Height is that of C2SP's tiles.
func (t *tileReader) Height() int { return height }

// ReadTiles returns tiles, unchecked.
func (t *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, tile := range tiles {
		t.r.mu.Lock()
		data[i] = t.r.tiles[tile]
		t.r.mu.Unlock()
		if data[i] != nil {
			continue
		}
		raw, got, err := t.r.readTile(t.ctx, tile, maxTile)
		if err != nil {
			return nil, err
		}
		if len(raw) != got*tlog.HashSize {
			return nil, fmt.Errorf("%w: tile %q has %d bytes, want %d", ErrMismatch, Path(tile), len(raw), got*tlog.HashSize)
		}
		data[i] = raw[:tile.W*tlog.HashSize]
	}
	return data, nil
}

// SaveTiles keeps tiles that were in the tree.
func (t *tileReader) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if len(t.r.tiles)+len(tiles) > maxCached {
		clear(t.r.tiles)
	}
	for i, tile := range tiles {
		t.r.tiles[tile] = data[i]
	}
}

// readTile returns a tile or a wider one with the same start, and its width: the log
// may remove a partial tile once there is the full one.
func (r *Reader) readTile(ctx context.Context, t tlog.Tile, most int) ([]byte, int, error) {
	b, err := r.source.read(ctx, Path(t), most)
	if t.W < width && errors.Is(err, fs.ErrNotExist) {
		full := t
		full.W = width
		if b, err = r.source.read(ctx, Path(full), most); err == nil {
			t = full
		}
	}
	switch {
	case errors.Is(err, errTooLong):
		return nil, 0, fmt.Errorf("%w: reading %q: %w", ErrMismatch, Path(t), err)
	case err != nil:
		return nil, 0, &readError{Path(t), err}
	}
	return b, t.W, nil
}

// A readError is the error of a file that could not be read, not of one that
// is wrong.
type readError struct {
	name string
	err  error
}

func (e *readError) Error() string { return fmt.Sprintf("reading %q: %v", e.name, e.err) }
func (e *readError) Unwrap() error { return e.err }

// Path returns a tile's path below the log's prefix. It is not that of package
// tlog: C2SP's has no height, and calls the tiles of level -1 entries.
func Path(t tlog.Tile) string {
	path := strings.TrimPrefix(t.Path(), fmt.Sprintf("tile/%d/", t.H))
	if entries, ok := strings.CutPrefix(path, "data/"); ok {
		path = "entries/" + entries
	}
	return "tile/" + path
}

// ParsePath is the inverse of Path.
func ParsePath(path string) (tlog.Tile, bool) {
	rest, ok := strings.CutPrefix(path, "tile/")
	if !ok || strings.HasPrefix(rest, "data/") {
		return tlog.Tile{}, false
	}
	if entries, ok := strings.CutPrefix(rest, "entries/"); ok {
		rest = "data/" + entries
	}
	t, err := tlog.ParseTilePath(fmt.Sprintf("tile/%d/%s", height, rest))
	return t, err == nil && Path(t) == path
}

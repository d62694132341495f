package translog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	recentMax = 1 << 15 // entries in memory: about 4 MB

	runMagic   = "auditproxy seen\n"
	runHeader  = len(runMagic) + 8 + 8 + tlog.HashSize // from, to, hash of the tree with to entries
	runItem    = 8 + 8                                 // key, index
	runBlock   = 256                                   // items that a lookup reads at once
	runSuffix  = ".run"
	runPattern = "%020d-%020d" + runSuffix
)

// A seen is an index of a log's entries by their hashes. It is derived from the
// log: what is missing or damaged is made again from the log's tiles.
//
// The newest entries are in memory. Older ones are in runs, files of items
// sorted by the first 8 bytes of the hash. A run is merged with an older one that is
// less than twice as long, so there are few. An item is not proof: the caller
// compares the whole hash in the log.
type seen struct {
	dir    string
	runs   []*run // from the oldest: without gaps
	from   int64  // the first entry in memory
	recent map[tlog.Hash]int64
	order  []uint64 // keys of the entries in memory
	max    int      // entries in memory
}

// A run has the items of the entries from..to-1.
type run struct {
	from, to int64
	root     tlog.Hash // of the tree with to entries
	file     *os.File
}

// openSeen opens the runs that are of this log: rootAt returns the hash of its
// tree at a size. Others are removed.
func openSeen(dir string, size int64, rootAt func(int64) (tlog.Hash, error)) (*seen, error) {
	s := &seen{dir: dir, recent: map[tlog.Hash]int64{}, max: recentMax}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the index of the log: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the index of the log: %w", err)
	}
	// A merged run is next to its parts after a crash: take the longest.
	var found []*run
	for _, entry := range names {
		r, err := openRun(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // removed below
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b *run) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	keep := map[string]bool{}
	for _, r := range found {
		good := r.from == s.from && r.to <= size
		if good {
			root, err := rootAt(r.to)
			if err != nil {
				return nil, errors.Join(err, r.file.Close(), s.close())
			}
			good = root == r.root
		}
		if !good {
			r.file.Close()
			continue
		}
		s.runs, s.from = append(s.runs, r), r.to
		keep[filepath.Base(r.file.Name())] = true
	}
	for _, entry := range names {
		if !keep[entry.Name()] {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return nil, errors.Join(fmt.Errorf("removing from the index of the log: %w", err), s.close())
			}
		}
	}
	return s, nil
}

func (s *seen) close() error {
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.file.Close())
	}
	s.runs = nil
	return errors.Join(errs...)
}

// size returns how many entries are indexed.
func (s *seen) size() int64 { return s.from + int64(len(s.order)) }

func keyOf(leaf tlog.Hash) uint64 { return binary.BigEndian.Uint64(leaf[:]) }

// add indexes the next entry.
func (s *seen) add(leaf tlog.Hash) {
	s.recent[leaf] = s.size()
	s.order = append(s.order, keyOf(leaf))
}

// full reports whether the entries in memory should become a run.
func (s *seen) full() bool { return len(s.order) >= s.max }

// find returns the index of an entry, and those of entries in runs that may have
// its hash.
func (s *seen) find(leaf tlog.Hash) (index int64, found bool, maybe []int64, err error) {
	if index, found = s.recent[leaf]; found {
		return index, true, nil, nil
	}
	for _, r := range s.runs {
		if maybe, err = r.find(keyOf(leaf), maybe); err != nil {
			return 0, false, nil, fmt.Errorf("reading the index of the log: %w", err)
		}
	}
	return 0, false, maybe, nil
}

// flush makes the entries in memory a run; root is the hash of the tree that ends
// with them.
func (s *seen) flush(root tlog.Hash) error {
	items := make([]item, len(s.order))
	for i, key := range s.order {
		items[i] = item{key, s.from + int64(i)}
	}
	slices.SortFunc(items, item.compare)
	next := 0
	r, err := writeRun(s.dir, s.from, s.size(), root, func() (item, error) {
		if next == len(items) {
			return item{}, io.EOF
		}
		next++
		return items[next-1], nil
	})
	if err != nil {
		return fmt.Errorf("writing the index of the log: %w", err)
	}
	s.runs = append(s.runs, r)
	s.from, s.order = r.to, s.order[:0]
	clear(s.recent)
	for n := len(s.runs); n >= 2 && s.runs[n-2].count() < 2*s.runs[n-1].count(); n = len(s.runs) {
		if err := s.merge(); err != nil {
			return fmt.Errorf("merging the index of the log: %w", err)
		}
	}
	return nil
}

// merge makes one run of the newest two.
func (s *seen) merge() error {
	n := len(s.runs)
	older, newer := s.runs[n-2], s.runs[n-1]
	a, b := older.items(), newer.items()
	x, errX := a()
	y, errY := b()
	r, err := writeRun(s.dir, older.from, newer.to, newer.root, func() (item, error) {
		var least item
		var err error
		if errY == io.EOF || errX == nil && x.compare(y) < 0 {
			least, err = x, errX
			x, errX = a()
		} else {
			least, err = y, errY
			y, errY = b()
		}
		return least, err
	})
	if err != nil {
		return err
	}
	s.runs = append(s.runs[:n-2], r)
	// The parts are of no more use, and openSeen removes them if this fails.
	return errors.Join(older.remove(), newer.remove())
}

// An item is an entry in a run.
type item struct {
	key   uint64
	index int64
}

func (i item) compare(j item) int {
	return cmp.Or(cmp.Compare(i.key, j.key), cmp.Compare(i.index, j.index))
}

func decodeItem(b []byte) item {
	return item{binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))}
}

// writeRun writes the items that next returns, sorted, up to io.EOF.
func writeRun(dir string, from, to int64, root tlog.Hash, next func() (item, error)) (*run, error) {
	name := filepath.Join(dir, fmt.Sprintf(runPattern, from, to))
	f, err := os.OpenFile(name+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	head := binary.BigEndian.AppendUint64([]byte(runMagic), uint64(from))
	head = append(binary.BigEndian.AppendUint64(head, uint64(to)), root[:]...)
	w.Write(head) // errors stay until Flush
	var it item
	for it, err = next(); err == nil; it, err = next() {
		b := binary.BigEndian.AppendUint64(w.AvailableBuffer(), it.key)
		w.Write(binary.BigEndian.AppendUint64(b, uint64(it.index)))
	}
	if err == io.EOF {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err == nil {
		err = disk.SyncDir(dir)
	}
	if err != nil {
		return nil, err
	}
	return openRun(name)
}

// openRun opens a run whose header and length fit its name.
func openRun(name string) (*run, error) {
	var from, to int64
	if n, err := fmt.Sscanf(filepath.Base(name), runPattern, &from, &to); n != 2 || err != nil {
		return nil, fmt.Errorf("%q is not a run", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &run{from: from, to: to, file: f}
	head := make([]byte, runHeader)
	info, err := f.Stat()
	if err == nil {
		_, err = f.ReadAt(head, 0)
	}
	want := binary.BigEndian.AppendUint64([]byte(runMagic), uint64(from))
	want = binary.BigEndian.AppendUint64(want, uint64(to))
	if err != nil || from < 0 || to <= from || !bytes.HasPrefix(head, want) || info.Size() != int64(runHeader)+runItem*r.count() {
		return nil, errors.Join(fmt.Errorf("%q is not a whole run", name), err, f.Close())
	}
	copy(r.root[:], head[len(want):])
	return r, nil
}

func (r *run) count() int64 { return r.to - r.from }

func (r *run) remove() error {
	return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
}

// items returns a function that returns the items in order, and io.EOF at the end.
func (r *run) items() func() (item, error) {
	in := bufio.NewReader(io.NewSectionReader(r.file, int64(runHeader), runItem*r.count()))
	b := make([]byte, runItem)
	return func() (item, error) {
		if _, err := io.ReadFull(in, b); err != nil {
			return item{}, err
		}
		return decodeItem(b), nil
	}
}

// find appends the indexes of the items with a key. Keys are evenly distributed,
// so it guesses where the key is; every other guess is the middle, for keys
// that are not.
func (r *run) find(key uint64, found []int64) ([]int64, error) {
	lo, hi := int64(0), r.count()
	least, most := uint64(0), uint64(math.MaxUint64) // keys at lo and hi
	for guess := true; lo < hi; guess = !guess {
		at := lo + (hi-lo)/2
		if guess && key >= least && key <= most && most > least {
			high, low := bits.Mul64(key-least, uint64(hi-lo))
			if high < most-least {
				share, _ := bits.Div64(high, low, most-least)
				at = lo + min(int64(share), hi-lo-1)
			}
		}
		// A block around at.
		start := max(lo, at-runBlock/2)
		items, err := r.read(start, min(hi, start+runBlock))
		if err != nil {
			return found, err
		}
		first, last := items[0], items[len(items)-1]
		switch {
		case first.key > key:
			hi, most = start, first.key
		case last.key < key:
			lo, least = start+int64(len(items)), last.key
		default:
			return r.equal(key, start, items, found)
		}
	}
	return found, nil
}

// equal appends the items with a key, of which some may be in a block, and more next
// to it.
func (r *run) equal(key uint64, start int64, items []item, found []int64) ([]int64, error) {
	for items[0].key == key && start > 0 {
		before := max(0, start-runBlock)
		more, err := r.read(before, start)
		if err != nil {
			return found, err
		}
		start, items = before, append(more, items...)
	}
	for end := start + int64(len(items)); items[len(items)-1].key == key && end < r.count(); end = start + int64(len(items)) {
		more, err := r.read(end, min(r.count(), end+runBlock))
		if err != nil {
			return found, err
		}
		items = append(items, more...)
	}
	for _, it := range items {
		if it.key == key {
			found = append(found, it.index)
		}
	}
	return found, nil
}

func (r *run) read(from, to int64) ([]item, error) {
	b := make([]byte, runItem*(to-from))
	if _, err := r.file.ReadAt(b, int64(runHeader)+runItem*from); err != nil {
		return nil, err
	}
	items := make([]item, to-from)
	for i := range items {
		items[i] = decodeItem(b[i*runItem:])
	}
	return items, nil
}

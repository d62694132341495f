package translog

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// rootOf stands for the hash of a tree.
func rootOf(size int64) (tlog.Hash, error) {
	var h tlog.Hash
	binary.BigEndian.PutUint64(h[8:], uint64(size))
	return h, nil
}

func openIndex(t testing.TB, dir string, size int64) *seen {
	t.Helper()
	s, err := openSeen(dir, size, rootOf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

func fill(t testing.TB, s *seen, leaves []tlog.Hash) {
	t.Helper()
	for _, leaf := range leaves {
		s.add(leaf)
		if !s.full() {
			continue
		}
		root, _ := rootOf(s.size())
		if err := s.flush(root); err != nil {
			t.Fatal(err)
		}
	}
}

// indexes returns where an entry may be.
func indexes(t testing.TB, s *seen, leaf tlog.Hash) []int64 {
	t.Helper()
	index, found, maybe, err := s.find(leaf)
	if err != nil {
		t.Fatal(err)
	}
	if found {
		maybe = append(maybe, index)
	}
	return maybe
}

// TestSeen compares the index with a map, with keys that are even, alike and equal,
// and while it is opened again.
func TestSeen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, key := range map[string]func(i int) uint64{
		"even":  func(int) uint64 { return random.Uint64() },
		"alike": func(i int) uint64 { return 1<<60 + uint64(i%2000) },
		"rare":  func(i int) uint64 { return uint64(i%3) * (1<<63 - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "seen")
			s := openIndex(t, dir, 0)
			s.max = 100
			where := map[tlog.Hash]int64{}
			var leaves []tlog.Hash
			for i := range 6_000 {
				var leaf tlog.Hash
				binary.BigEndian.PutUint64(leaf[:], key(i))
				binary.BigEndian.PutUint64(leaf[8:], uint64(i))
				where[leaf] = int64(i)
				leaves = append(leaves, leaf)
			}
			fill(t, s, leaves)
			probe := func(s *seen) {
				t.Helper()
				for range 500 {
					i := random.IntN(int(s.size()))
					if got := indexes(t, s, leaves[i]); !slices.Contains(got, int64(i)) {
						t.Fatalf("entry %d is not found, only %v", i, got)
					}
				}
				if name != "rare" {
					if got := indexes(t, s, tlog.Hash{0xaa}); len(got) > 0 {
						t.Errorf("an unknown entry is found at %v", got)
					}
				}
			}
			probe(s)
			if len(s.runs) > 12 {
				t.Errorf("there are %d runs", len(s.runs))
			}
			probe(openIndex(t, dir, int64(len(leaves))))

			// A log that has fewer entries than the index.
			s = openIndex(t, dir, 5_000)
			if s.size() > 5_000 {
				t.Errorf("the index has %d entries, the log 5000", s.size())
			}
			s.max = 100
			fill(t, s, leaves[s.size():])
			probe(s)
		})
	}
}

// TestSeenDamaged checks that a damaged run, and one of another log, is removed with
// those after it.
func TestSeenDamaged(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cut":     func(file string) error { return os.Truncate(file, 200) },
		"empty":   func(file string) error { return os.Truncate(file, 0) },
		"removed": os.Remove,
		"another log": func(file string) error {
			b, err := os.ReadFile(file)
			if err == nil {
				b[runHeader-1] ^= 1
				err = os.WriteFile(file, b, 0o644)
			}
			return err
		},
		"renamed": func(file string) error { return os.Rename(file, filepath.Join(filepath.Dir(file), "x")) },
	} {
		dir := filepath.Join(t.TempDir(), "seen")
		s := openIndex(t, dir, 0)
		s.max = 100
		fill(t, s, make([]tlog.Hash, 700)) // runs of 400, 200, 100
		names, err := filepath.Glob(filepath.Join(dir, "*"+runSuffix))
		if err != nil || len(names) != 3 {
			t.Fatalf("%s: runs %v, %v", name, names, err)
		}
		if err := damage(names[1]); err != nil {
			t.Fatal(err)
		}
		s = openIndex(t, dir, 700)
		if s.size() != 400 {
			t.Errorf("%s: the index has %d entries, want the 400 before the damage", name, s.size())
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	if _, err := openSeen(t.TempDir(), 0, func(int64) (tlog.Hash, error) { return tlog.Hash{}, errors.New("x") }); err != nil {
		t.Errorf("an empty index: %v", err)
	}
}

// TestSeenIsNoProof has an item in the index for an entry that only begins with the
// same bytes: the log does not have it.
func TestSeenIsNoProof(t *testing.T) {
	l := opened(t, Config{Dir: filepath.Join(t.TempDir(), "log")})
	add(t, l, texts(0, 3))
	covered(t, l, 3)
	tree, err := l.tree()
	if err != nil {
		t.Fatal(err)
	}
	leaf := tlog.RecordHash([]byte("another"))
	var items []item
	for i := range int64(3) {
		items = append(items, item{keyOf(leaf), i})
	}
	r, err := writeRun(filepath.Join(l.config.Dir, seenDir), 0, 3, tree.Hash, func() (item, error) {
		if len(items) == 0 {
			return item{}, io.EOF
		}
		next := items[0]
		items = items[1:]
		return next, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.runs, l.seen.from, l.seen.recent, l.seen.order = []*run{r}, 3, map[tlog.Hash]int64{}, nil
	if has, err := l.has(t.Context(), leaf); has || err != nil {
		t.Errorf("an entry that is not in the log: %v, %v", has, err)
	}
}

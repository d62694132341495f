package translog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/translog/tiles"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"go.uber.org/zap/zaptest"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"k8s.io/klog/v2"
)

// opened opens a log that is closed with the test, changes it and runs it.
func opened(t testing.TB, c Config, change ...func(*Log)) *Log {
	t.Helper()
	if c.Log == nil {
		c.Log = zaptest.NewLogger(t)
	}
	if c.Interval == 0 {
		c.Interval = minInterval
	}
	if c.Name == "" {
		c.Name = "auditproxy/log/test"
	}
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Errorf("running the log: %v", err)
		}
	})
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}))
	return l
}

func texts(from, to int) (entries [][]byte) {
	for i := from; i < to; i++ {
		entries = append(entries, fmt.Appendf(nil, "entry %d", i))
	}
	return entries
}

func add(t testing.TB, l *Log, entries [][]byte) {
	t.Helper()
	if err := l.Add(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	timeout := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("after a minute: not %s", what)
		}
	}
}

// covered waits for a checkpoint of n entries.
func covered(t testing.TB, l *Log, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("a checkpoint of %d entries", n), func() bool { return l.Status().Published == n })
}

// contents reads a log through its newest checkpoint.
func contents(t testing.TB, dir, key string) (entries [][]byte) {
	t.Helper()
	r, tree := checkpoint(t, dir, key)
	for e, err := range r.Entries(t.Context(), tree, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Index != int64(len(entries)) {
			t.Fatalf("entry %d has index %d", len(entries), e.Index)
		}
		entries = append(entries, e.Data)
	}
	return entries
}

func checkpoint(t testing.TB, place, key string) (*tiles.Reader, tlog.Tree) {
	t.Helper()
	r, err := tiles.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := r.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(signed, note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	_, tree, err := tiles.ParseCheckpoint([]byte(n.Text))
	if err != nil {
		t.Fatal(err)
	}
	return r, tree
}

// check runs tessera's fsck over a log.
func check(t testing.TB, dir, key string) {
	t.Helper()
	v, err := note.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	hashes := func(bundle []byte) (leaves [][]byte, err error) {
		var b api.EntryBundle
		if err := b.UnmarshalText(bundle); err != nil {
			return nil, err
		}
		for _, e := range b.Entries {
			leaves = append(leaves, rfc6962.DefaultHasher.HashLeaf(e))
		}
		return leaves, nil
	}
	if err := fsck.New(v.Name(), v, client.FileFetcher{Root: dir}, hashes, fsck.Opts{N: 2}).Check(t.Context()); err != nil {
		t.Errorf("fsck: %v", err)
	}
}

// same compares entries, in the order of want.
func same(t testing.TB, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("the log has %d entries, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("entry %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// TestAdd checks that entries are in the log once, in order, also after a restart,
// and that tessera's fsck finds the log whole.
func TestAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	const n = 1500 // more than one batch, and than one bundle
	var key string
	t.Run("first", func(t *testing.T) {
		l := opened(t, Config{Dir: dir})
		key = l.Status().Key
		covered(t, l, 0)
		for at := 0; at < n; at += 100 {
			add(t, l, texts(at, at+100))
			add(t, l, texts(max(0, at-150), at+50)) // repeated
		}
		add(t, l, [][]byte{[]byte("x"), []byte("x")})
		add(t, l, nil)
		covered(t, l, n+1)
	})
	want := append(texts(0, n), []byte("x"))
	same(t, contents(t, dir, key), want)
	check(t, dir, key)
	l := opened(t, Config{Dir: dir})
	if l.Status().Key != key {
		t.Error("the key is another one after a restart")
	}
	add(t, l, texts(0, n+1))
	covered(t, l, n+2)
	same(t, contents(t, dir, key), append(want, texts(n, n+1)...))
	check(t, dir, key)
}

// TestConcurrent checks that entries which several add at once are there once.
func TestConcurrent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := opened(t, Config{Dir: dir})
	const n = 400
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for at := 0; at < n; at += 20 {
				if err := l.Add(t.Context(), texts(at, at+40)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	covered(t, l, n+20)
	got := contents(t, dir, l.Status().Key)
	times := map[string]int{}
	for _, e := range got {
		times[string(e)]++
	}
	for _, e := range texts(0, n+20) {
		if times[string(e)] != 1 {
			t.Errorf("%q is in the log %d times", e, times[string(e)])
		}
	}
}

func TestAddRefused(t *testing.T) {
	l := opened(t, Config{Dir: filepath.Join(t.TempDir(), "log")})
	if err := l.Add(t.Context(), [][]byte{make([]byte, tiles.MaxEntry+1)}); err == nil || !strings.Contains(err.Error(), "65536 bytes") {
		t.Errorf("an entry that is too long: %v", err)
	}
	add(t, l, [][]byte{make([]byte, tiles.MaxEntry)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Add(ctx, texts(0, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	covered(t, l, 1)
}

// TestChecksumDatabaseClient reads the tiles with the code of Go's checksum
// database, which shares no code with tessera, and checks proofs with it.
func TestChecksumDatabaseClient(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := opened(t, Config{Dir: dir})
	const n = 1000
	add(t, l, texts(0, 300))
	covered(t, l, 300)
	_, old := checkpoint(t, dir, l.Status().Key)
	add(t, l, texts(300, n))
	covered(t, l, n)
	r, tree := checkpoint(t, dir, l.Status().Key)
	hashes := tlog.TileHashReader(tree, diskTiles(dir))
	for _, i := range []int64{0, 255, 256, 299, 300, n - 1} {
		want, err := tlog.ProveRecord(n, i, hashes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.InclusionProof(t.Context(), tree, i, n)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("proof of %d (-want +got): %v\n%s", i, err, diff)
		}
		if err := tlog.CheckRecord(got, n, tree.Hash, i, tlog.RecordHash(fmt.Appendf(nil, "entry %d", i))); err != nil {
			t.Errorf("proof of %d: %v", i, err)
		}
		index, found, err := r.Find(t.Context(), tree, tlog.RecordHash(fmt.Appendf(nil, "entry %d", i)))
		if index != i || !found || err != nil {
			t.Errorf("entry %d found at %d, %v, %v", i, index, found, err)
		}
	}
	if _, found, err := r.Find(t.Context(), tree, tlog.Hash{}); found || err != nil {
		t.Errorf("an entry that is not there is found: %v, %v", found, err)
	}
	proof, err := r.ConsistencyProof(t.Context(), tree, old.N, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := tlog.CheckTree(proof, n, tree.Hash, old.N, old.Hash); err != nil {
		t.Error(err)
	}
	if root, err := r.Root(t.Context(), tree, old.N); err != nil || root != old.Hash {
		t.Errorf("root at %d: %v, %v, want %v", old.N, root, err, old.Hash)
	}
}

// diskTiles reads tiles as tlog-tiles names them.
type diskTiles string

func (d diskTiles) Height() int { return 8 }

func (d diskTiles) ReadTiles(list []tlog.Tile) (data [][]byte, err error) {
	for _, t := range list {
		// tile/8/0/x001/234.p/5 is tile/0/x001/234.p/5 there.
		b, err := os.ReadFile(filepath.Join(string(d), "tile", strings.TrimPrefix(t.Path(), "tile/8/")))
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	return data, nil
}

func (d diskTiles) SaveTiles([]tlog.Tile, [][]byte) {}

// TestSecondProcess checks that a log has one writer, also when the directories
// differ and the key is the same.
func TestSecondProcess(t *testing.T) {
	base := t.TempDir()
	l := opened(t, Config{Dir: filepath.Join(base, "log")})
	for _, c := range []Config{
		{Dir: l.config.Dir},
		{Dir: filepath.Join(base, "other"), Key: l.config.Key},
	} {
		if _, err := Open(t.Context(), c); !errors.Is(err, errInUse) {
			t.Errorf("opened twice: %v", err)
		}
	}
}

// TestRolledBack checks that a log is not opened if it does not continue what was
// signed.
func TestRolledBack(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "log")
	grow := func(from, to int) {
		t.Run(fmt.Sprint("to ", to), func(t *testing.T) {
			l := opened(t, Config{Dir: dir})
			add(t, l, texts(from, to))
			covered(t, l, int64(to))
		})
	}
	copyTo := func(to, from string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
	}
	grow(0, 300)
	copyTo(base+"/old", dir)
	grow(300, 600)
	copyTo(base+"/new", dir)
	// The same log with another past, as one that has the key could make it.
	key, err := os.ReadFile(dir + ".key")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/forged.key", key, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("forge", func(t *testing.T) {
		l := opened(t, Config{Dir: base + "/forged"})
		add(t, l, texts(1, 700))
		covered(t, l, 699)
	})
	last, err := os.ReadFile(dir + ".key.last")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name string, is error, words ...string) {
		t.Helper()
		l, err := Open(t.Context(), Config{Dir: dir})
		if err == nil {
			t.Errorf("%s: opened", name)
			l.Close()
			return
		}
		if is != nil && !errors.Is(err, is) {
			t.Errorf("%s: %v, want %v", name, err, is)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not name %q", name, err, w)
			}
		}
	}

	copyTo(dir, base+"/old")
	refused("an old copy", ErrRolledBack, "300 entries", "covers 600", "restore the newest copy")
	copyTo(dir, base+"/forged")
	refused("another past", ErrRolledBack, "first 600 entries")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	refused("an empty log", ErrRolledBack, "0 entries", "covers 600")

	put := func(file string, text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The memory was rolled back with the log; what was published was not.
	old, err := os.ReadFile(base + "/old/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(old), "\n\n")
	newest, err := os.ReadFile(base + "/new/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	copyTo(dir, base+"/old")
	put(dir+".key.last", []byte(text+"\n"))
	for _, name := range []string{tiles.CheckpointFile, tiles.WitnessedFile} {
		put(filepath.Join(dir, name), newest)
		refused("an old copy and an old memory: "+name, ErrRolledBack, "300 entries", "covers 600")
		put(filepath.Join(dir, name), old)
	}
	put(dir+".key.last", []byte(strings.Replace(text, "auditproxy/log/", "auditproxy/log/other-", 1)+"\n"))
	refused("the memory of another log", nil, "key.last", "it is of log")
	put(dir+".key.last", []byte(text+"\n"))
	own, err := loadKey(dir + ".key")
	if err != nil {
		t.Fatal(err)
	}
	other, err := note.Sign(&note.Note{Text: strings.Replace(text, "auditproxy/log/", "auditproxy/log/other-", 1) + "\n"}, own.signer)
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(dir, tiles.CheckpointFile), other)
	refused("the checkpoint of another log by this key", nil, "checking the published checkpoint", "it is of log")
	if _, err := Open(t.Context(), Config{Dir: dir, Name: "auditproxy/log/another"}); err == nil || !strings.Contains(err.Error(), "use another key file, or this name") {
		t.Errorf("under another name: %v", err)
	}
	// Without its key a log that has begun gets no other one.
	for name, begun := range map[string]func() error{
		"its entries": func() error { return os.Remove(dir + ".key.last") },
		"its memory":  func() error { return os.RemoveAll(dir) },
	} {
		copyTo(dir, base+"/old")
		put(dir+".key.last", []byte(text+"\n"))
		if err := errors.Join(begun(), os.RemoveAll(dir+".key")); err != nil {
			t.Fatal(err)
		}
		refused("no key, and "+name, nil, "restore the key")
		put(dir+".key", key)
	}
	put(dir+".key.last", last)

	copyTo(dir, base+"/new")
	if err := os.Remove(dir + ".key.last"); err != nil {
		t.Fatal(err)
	}
	refused("no memory", nil, "key.last", "missing", "restore this file")
	if err := os.WriteFile(dir+".key.last", last[:len(last)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a torn memory", nil, "key.last")
	if err := os.WriteFile(dir+".key.last", last, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + ".key"); err != nil {
		t.Fatal(err)
	}
	refused("no key", nil, "restore the key")
	if _, err := makeKey(dir+".key", "auditproxy/log/test"); err != nil {
		t.Fatal(err)
	}
	refused("another key", nil, "checking the published checkpoint")
	if err := os.WriteFile(dir+".key", key, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+".key", 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a key for all", nil, "chmod 600")
	if err := os.Chmod(dir+".key", 0o600); err != nil {
		t.Fatal(err)
	}
	grow(600, 601)
}

// TestSignerRefuses checks that the signer signs no past, in case the log is
// replaced while it is open.
func TestSignerRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	k, err := makeKey(file, "log")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSigner(k, file+".last")
	if err != nil {
		t.Fatal(err)
	}
	text := func(size int, hash byte) []byte {
		return fmt.Appendf(nil, "log\n%d\n%v\n", size, tlog.Hash{hash})
	}
	for _, step := range []struct {
		size int
		hash byte
		bad  bool
	}{{5, 1, false}, {5, 1, false}, {5, 2, true}, {4, 1, true}, {6, 2, false}} {
		if _, err := s.Sign(text(step.size, step.hash)); (err != nil) != step.bad || err != nil && !errors.Is(err, ErrRolledBack) {
			t.Errorf("signing size %d, hash %d: %v", step.size, step.hash, err)
		}
	}
	if s, err = openSigner(k, file+".last"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(text(5, 1)); !errors.Is(err, ErrRolledBack) {
		t.Errorf("signing an older size after a restart: %v", err)
	}
}

// TestReplacedWhileOpen removes and replaces the directory of an open log: nothing
// is added until it is back.
func TestReplacedWhileOpen(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "log")
	l := opened(t, Config{Dir: dir})
	replaced := 0
	replace := func(with string) {
		t.Helper()
		if err := os.CopyFS(base+"/next", os.DirFS(with)); err != nil {
			t.Fatal(err)
		}
		// The open log writes into whatever has this name, and may make it anew.
		for err := os.ErrExist; err != nil; replaced++ {
			if replaced > 100 {
				t.Fatal(err)
			}
			if err := os.Rename(dir, fmt.Sprint(base, "/replaced", replaced)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			err = os.Rename(base+"/next", dir)
		}
	}
	add(t, l, texts(0, 100))
	covered(t, l, 100)
	if err := os.CopyFS(base+"/old", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	add(t, l, texts(100, 300))
	covered(t, l, 300)
	if err := os.CopyFS(base+"/new", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(base+"/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{base + "/empty", base + "/old"} {
		replace(with)
		for range 2 {
			if err := l.Add(t.Context(), texts(300, 310)); !errors.Is(err, ErrRolledBack) {
				t.Fatalf("added to %s: %v", with, err)
			}
		}
	}
	replace(base + "/new")
	add(t, l, texts(300, 310))
	covered(t, l, 310)
	same(t, contents(t, dir, l.Status().Key), texts(0, 310))
}

// TestLogLibrary checks that tessera's lines reach a logger, with their warnings, and
// that one is not repeated each second.
func TestLogLibrary(t *testing.T) {
	library.TakeAll()
	klog.Infof("a %d", 1)
	for range 3 {
		klog.Warning("b")
	}
	klog.Errorf("c")
	klog.V(1).Info("d")
	slog.Warn("e", slog.String("name", "f"))
	slog.Error("g")
	slog.Debug("h")
	var got []string
	for _, e := range library.TakeAll() {
		if len(fmt.Sprint(e.ContextMap()["text"])) > 8 {
			continue // of a log that was closed just now
		}
		got = append(got, e.Level.String()+" "+e.Message+" "+strings.TrimSpace(fmt.Sprint(e.ContextMap()["text"])))
	}
	want := []string{"info tessera reported a 1", "info tessera reported b", "error tessera failed c", "info tessera reported e name=f", "error tessera failed g"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestIdle checks that nothing runs while nothing is added, and that it starts
// again.
func TestIdle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := opened(t, Config{Dir: dir}, func(l *Log) { l.rest = time.Millisecond })
	running := func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "transparency-dev/tessera")
	}
	for i := range 3 {
		add(t, l, texts(i, i+1))
		covered(t, l, int64(i+1))
		eventually(t, "idle", func() bool { return !running() })
	}
	same(t, contents(t, dir, l.Status().Key), texts(0, 3))
}

func TestConfig(t *testing.T) {
	_, err := Open(t.Context(), Config{
		Name: "a log", Interval: time.Millisecond, Quorum: 3,
		Witnesses: []Witness{{URL: "ftp://x", Key: "no key"}, {URL: "http://x", Key: "PRIVATE+KEY+a+b+s3cr3t"}},
	})
	for _, want := range []string{"there is no directory", `"a log" is not a name`, "interval of 1ms", "quorum of 3", `"ftp://x"`, "witness 0: its key is not", "witness 1: its key is a private key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v has the private key", err)
	}
	dir := t.TempDir()
	if _, err := Open(t.Context(), Config{Dir: dir, Key: filepath.Join(dir, "key")}); err == nil || !strings.Contains(err.Error(), "may be published") {
		t.Errorf("a key among the tiles: %v", err)
	}
}

// TestBrokenIndex: after the index could not be read, the next Add opens it again, and
// all later ones succeed.
func TestBrokenIndex(t *testing.T) {
	l := opened(t, Config{Dir: filepath.Join(t.TempDir(), "log")})
	add(t, l, texts(0, 10))
	l.mu.Lock()
	l.broken = errors.New("read error")
	l.mu.Unlock()
	add(t, l, texts(0, 20))
	add(t, l, texts(20, 30))
	covered(t, l, 30)
}

// TestNewLogHasNewName begins a log in another directory, as after one that was rolled
// back: to those who have seen the old one it must not be that log.
func TestNewLogHasNewName(t *testing.T) {
	names := map[string]bool{}
	for _, dir := range []string{"old", "new", "new"} {
		l, err := Open(t.Context(), Config{Dir: filepath.Join(t.TempDir(), dir)})
		if err != nil {
			t.Fatal(err)
		}
		if name := l.Status().Name; names[name] || !strings.HasPrefix(name, defaultName) {
			t.Errorf("the log in %q has the name %q; names before: %v", dir, name, names)
		} else {
			names[name] = true
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepWaits: what looks like the rest of a failed write is one that goes on, while a
// call of Add waits.
func TestSweepWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := opened(t, Config{Dir: dir})
	add(t, l, texts(0, 10))
	covered(t, l, 10)
	file := filepath.Join(dir, "tile", "0", "0001234567")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wait := func(calls int) {
		l.mu.Lock()
		l.waiting, l.failed = calls, true
		l.mu.Unlock()
		l.follow()
	}
	wait(1)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("while a call waits: %v", err)
	}
	wait(0)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("afterwards: %v", err)
	}
}

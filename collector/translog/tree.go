package translog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"auditproxy/internal/lazyregexp"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	batchMax     = 1024             // entries that are written together
	batchWait    = time.Millisecond // for more of them
	collectEvery = 10 * time.Second // partial tiles that full ones replace are removed
	idleAfter    = 30 * time.Second // several times collectEvery
	closeWait    = 5 * time.Second  // for the last checkpoint, besides the interval
)

// Files of tessera's driver.
const (
	stateDir  = ".state"
	treeState = "treeState"
)

// seenDir is the index's directory in the log's.
const seenDir = ".seen"

// tree returns the tree that is on the disk, of which the last entries may have no
// checkpoint yet.
func (l *Log) tree() (tlog.Tree, error) {
	file := filepath.Join(l.config.Dir, stateDir, treeState)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyTree()
	}
	var state struct {
		Size int64  `json:"size"`
		Root []byte `json:"root"`
	}
	if err == nil {
		err = json.Unmarshal(b, &state)
	}
	if err == nil && (state.Size < 0 || len(state.Root) != tlog.HashSize) {
		err = errors.New("it has no hash")
	}
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("reading the log's state %q: %w", file, err)
	}
	if state.Size == 0 {
		return emptyTree()
	}
	return tlog.Tree{N: state.Size, Hash: tlog.Hash(state.Root)}, nil
}

// intact is tree, and ErrRolledBack if it has become smaller: the directory was
// removed or replaced while the log is open. tessera would start a new tree there, or
// end the process. mu is held.
func (l *Log) intact() (tlog.Tree, error) {
	tree, err := l.tree()
	if err == nil && tree.N < l.status.Size {
		err = fmt.Errorf("%w while it was open: it has %d entries of %d: restore the directory %q", ErrRolledBack, tree.N, l.status.Size, l.config.Dir)
	}
	return tree, err
}

func emptyTree() (tlog.Tree, error) {
	hash, err := tlog.TreeHash(0, tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return nil, nil }))
	return tlog.Tree{Hash: hash}, err
}

// published returns the size of the newest checkpoint, -1 if there is none.
func (l *Log) published() (int64, error) {
	signed, err := l.reader.Checkpoint(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	tree, err := l.key.tree(signed)
	return tree.N, err
}

// checkPast compares the tree with what was signed and published.
func (l *Log) checkPast(ctx context.Context, tree tlog.Tree) error {
	last, any := l.signer.signed()
	if !any && tree.N > 0 {
		return fmt.Errorf("%q is missing, which remembers the last signed checkpoint, so it is unknown whether the log of %d entries is complete: restore this file, or compare the log with a checkpoint kept elsewhere and copy that to it",
			l.config.Last, tree.N)
	}
	if any {
		if err := l.contains(ctx, tree, last, fmt.Sprintf("the last checkpoint that was signed (%q)", l.config.Last)); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		what string
		read func(context.Context) ([]byte, error)
	}{
		{"the published checkpoint", l.reader.Checkpoint},
		{"the checkpoint that witnesses have signed", l.reader.Witnessed},
	} {
		signed, err := file.read(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is published again
		}
		if err != nil {
			return err
		}
		old, err := l.key.tree(signed)
		if err != nil {
			return fmt.Errorf("checking %s: %w: restore the log or its key", file.what, err)
		}
		if err := l.contains(ctx, tree, old, file.what); err != nil {
			return err
		}
	}
	return nil
}

// contains reports whether an older tree is a prefix of the log's.
func (l *Log) contains(ctx context.Context, tree, old tlog.Tree, what string) error {
	const remedy = "restore the newest copy of the log; if there is none, keep this one with its key, and set evidence.log to another directory, where a new log begins, with a name of its own"
	if old.N > tree.N {
		return fmt.Errorf("%w: it has %d entries, %s covers %d: %s", ErrRolledBack, tree.N, what, old.N, remedy)
	}
	hash, err := l.reader.Root(ctx, tree, old.N)
	if err != nil {
		return err
	}
	if hash != old.Hash {
		return fmt.Errorf("%w: its first %d entries have hash %v, %s has %v: %s", ErrRolledBack, old.N, hash, what, old.Hash, remedy)
	}
	return nil
}

// reopenSeen opens the index, after a look at what was signed. mu is held, or nothing else uses l.
func (l *Log) reopenSeen(ctx context.Context) error {
	if l.seen != nil {
		if err := l.seen.close(); err != nil {
			return err
		}
		l.seen = nil
	}
	tree, err := l.intact()
	if err != nil {
		return err
	}
	if err := l.checkPast(ctx, tree); err != nil {
		return err
	}
	rootAt := func(size int64) (tlog.Hash, error) { return l.reader.Root(ctx, tree, size) }
	if l.seen, err = openSeen(filepath.Join(l.config.Dir, seenDir), tree.N, rootAt); err != nil {
		return err
	}
	return l.catchUp(ctx)
}

// catchUp indexes the entries that are in the tree since the last call. mu is
// held.
func (l *Log) catchUp(ctx context.Context) error {
	tree, err := l.intact()
	if err != nil {
		return err
	}
	for l.seen.size() < tree.N {
		from := l.seen.size()
		leaves, err := l.reader.Leaves(ctx, tree, from, int(min(tree.N-from, 256-from%256)))
		if err != nil {
			return fmt.Errorf("reading the log's entries from %d: %w", from, err)
		}
		for _, leaf := range leaves {
			l.seen.add(leaf)
			if !l.seen.full() {
				continue
			}
			root, err := l.reader.Root(ctx, tree, l.seen.size())
			if err != nil {
				return err
			}
			if err := l.seen.flush(root); err != nil {
				return err
			}
		}
	}
	l.report(func(s *Status) { s.Size = tree.N })
	return nil
}

// has reports whether an entry is in the log. mu is held.
func (l *Log) has(ctx context.Context, leaf tlog.Hash) (bool, error) {
	_, found, maybe, err := l.seen.find(leaf)
	if found || err != nil || len(maybe) == 0 {
		return found, err
	}
	tree, err := l.tree()
	if err != nil {
		return false, err
	}
	for _, index := range maybe {
		leaves, err := l.reader.Leaves(ctx, tree, index, 1)
		if err != nil {
			return false, fmt.Errorf("reading entry %d of the log: %w", index, err)
		}
		if leaves[0] == leaf {
			return true, nil
		}
	}
	return false, nil
}

// leftover is a name that tessera gives a file until it is whole. On a full disk, and
// in a crash, it stays.
var leftover = lazyregexp.New(`^(checkpoint|treeState|gcState|version)[0-9]+$`)

// torn is such a name of a tile: more digits follow its own. A tile's has three, or at
// most so many if it is not full, so that no tile has such a name.
var torn = lazyregexp.New(`^[0-9]{4,}$`)

// sweep removes what failed writes have left, which could be a file for each second of
// a full disk. mu is held, and no call of Add is waiting: tessera has no reason to write.
func (l *Log) sweep() error {
	var errs []error
	for _, dir := range []string{l.config.Dir, filepath.Join(l.config.Dir, stateDir)} {
		files, err := os.ReadDir(dir)
		errs = append(errs, err)
		for _, f := range files {
			if leftover.MatchString(f.Name()) && f.Type().IsRegular() {
				errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(l.config.Dir, "tile"), func(name string, f fs.DirEntry, err error) error {
		if err == nil && f.Type().IsRegular() && torn.MatchString(f.Name()) {
			err = os.Remove(name)
		}
		if errors.Is(err, fs.ErrNotExist) { // a new log has no tile, and tessera removes old ones
			return nil
		}
		return err
	})
	return errors.Join(append(errs, err)...)
}

// writable returns an error where tessera could not open its lock, and would end the
// process: on a disk that became read-only, or with too many open files. It ends the lock
// that tessera has, which that of the directory makes needless.
func (l *Log) writable() error {
	f, err := os.OpenFile(filepath.Join(l.config.Dir, stateDir, treeState+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// start starts tessera, unless it is running. mu is held, and an entry follows.
func (l *Log) start() error {
	if err := l.writable(); err != nil {
		return err
	}
	if l.writer != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	driver, err := posix.New(ctx, posix.Config{Path: l.config.Dir})
	if err != nil {
		cancel()
		return err
	}
	appender, shutdown, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(l.signer).
		WithBatching(batchMax, batchWait).
		WithCheckpointInterval(l.config.Interval).
		WithCheckpointRepublishInterval(0).
		WithGarbageCollectionInterval(collectEvery))
	if err != nil {
		cancel()
		return err
	}
	l.writer = &writer{appender, shutdown, cancel}
	l.used = time.Now()
	return nil
}

// stop stops tessera once a checkpoint covers what was added, or after closeWait.
// mu is held, and no call of Add is waiting: tessera forgets entries that are on
// their way.
func (l *Log) stop() error {
	if l.writer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.config.Interval+closeWait)
	defer cancel()
	err := l.writer.shutdown(ctx)
	l.writer.cancel()
	l.writer = nil
	return err
}

// release closes the files of the log.
func (l *Log) release() error {
	var errs []error
	if l.seen != nil {
		errs = append(errs, l.seen.close())
		l.seen = nil
	}
	for _, f := range l.locks {
		errs = append(errs, f.Close())
	}
	l.locks = nil
	return errors.Join(errs...)
}

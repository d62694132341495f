package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/proof"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/verify"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A known is what records are compared with.
type known struct {
	proof.Known
	trust      evidence.Trust
	log        *evidencereport.Log // nil: there is no log
	rolledBack []string            // how the log contradicts kept checkpoints of it
}

// ownLog returns the directory of this collector's log, "" if there is none. A log
// that has signed something and has no checkpoint any more is there: without it,
// nobody would see that it was removed.
func (c config) ownLog() string {
	dir := c.evidence.dir(c.localDir)
	for _, name := range []string{filepath.Join(dir, tiles.CheckpointFile), dir + ".key.last"} {
		if _, err := os.Stat(name); err == nil && c.evidence.enabled {
			return dir
		}
	}
	return ""
}

// readLog reads a log: of each session that want reports its starts, and the largest
// checkpoint by each key. kept are checkpoints of the log itself from elsewhere.
func (k *known) readLog(ctx context.Context, place string, part part, kept [][]byte, want func(session string) bool) error {
	r, err := tiles.Open(place)
	if err != nil {
		return err
	}
	signed, err := r.Checkpoint(ctx)
	if k.trust.Quorum > 0 {
		signed, err = r.Witnessed(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading log %q: %w: no checkpoint of it has the signatures of a quorum yet", place, evidence.ErrUnwitnessed)
		}
	}
	if err != nil {
		return err
	}
	c, witnesses, err := k.trust.OpenLog(signed)
	switch {
	case errors.Is(err, evidence.ErrUnwitnessed):
		return fmt.Errorf("reading log %q: %w", place, err)
	case err != nil && changed(signed, err):
		return fmt.Errorf("reading log %q: %w: its checkpoint is damaged, or was changed: compare it with a copy, and restore the newest one", place, err)
	case err != nil:
		return fmt.Errorf("reading log %q: %w: name its key in the trust file, in a line \"log KEY\"", place, err)
	}
	k.Size, k.log = c.Size, &evidencereport.Log{Size: c.Size, Signed: witnesses, Witnesses: len(k.trust.Witnesses), At: k.trust.Witnessed(signed)}
	tree := tlog.Tree{N: c.Size, Hash: c.Root}
	if err := k.compareLog(ctx, r, c.Origin, tree, signed, kept); err != nil {
		return err
	}
	sessions := map[string]*heard{}
	err = part.each(ctx, r, tree, func(id string, entry evidence.Entry) {
		if !want(id) {
			return
		}
		if sessions[id] == nil {
			sessions[id] = &heard{}
		}
		sessions[id].add(entry)
	})
	switch {
	case errors.Is(err, tiles.ErrMismatch):
		k.rolledBack = append(k.rolledBack, fmt.Sprintf("log %q: %v", place, err))
	case err != nil:
		return err
	}
	for _, s := range sessions {
		k.Starts = append(k.Starts, s.starts...)
		for _, c := range s.largest {
			k.Checkpoints = append(k.Checkpoints, verify.Checkpoint{Signed: c.signed, From: "the log"})
		}
	}
	return nil
}

// changed reports whether a checkpoint, which err says is not signed, is none that any log
// has signed.
func changed(signed []byte, err error) bool {
	_, none := evidence.ReadCheckpoint(signed)
	return none != nil || errors.As(err, new(*note.InvalidSignatureError))
}

// A part of a log is what to read of it. The zero value is all of it.
type part struct {
	most int64 // entries: the newest, and as many from about where the session oldest began

	oldest string // "" for the newest only
}

// before is how many bundles are read before the one that has sessions as old as those
// that are looked for: entries come in the order of arrival.
const before = 16

// each calls do for the entries of sessions in a part.
func (p part) each(ctx context.Context, r *tiles.Reader, tree tlog.Tree, do func(session string, e evidence.Entry)) error {
	newest := int64(0)
	if p.most > 0 {
		newest = max(0, tree.N-p.most)
	}
	read := func(from, to int64) error {
		for e, err := range r.Entries(ctx, tree, from) {
			if err != nil || e.Index >= to {
				return err
			}
			entry, err := evidence.ReadEntry(e.Data)
			if id, ok := evidence.SessionOf(entry.Origin); ok && err == nil { // a writer of the log may add anything to it
				do(id, entry)
			}
		}
		return nil
	}
	if p.oldest != "" && newest > 0 {
		from, err := p.find(ctx, r, tree, newest)
		if err == nil {
			err = read(from, min(from+p.most, newest))
		}
		if err != nil {
			return err
		}
	}
	return read(newest, tree.N)
}

// find returns about where the oldest session begins, among the first n entries.
// Entries are not sorted, and anyone may have added some: it compares the one in the
// middle of the ids in a bundle.
func (p part) find(ctx context.Context, r *tiles.Reader, tree tlog.Tree, n int64) (int64, error) {
	const bundle = 256
	var failed error
	first := sort.Search(int(n/bundle), func(i int) bool {
		var ids []string
		for e, err := range r.Entries(ctx, tree, int64(i)*bundle) {
			if failed = errors.Join(failed, err); err != nil || e.Index >= int64(i+1)*bundle {
				break
			}
			entry, err := evidence.ReadEntry(e.Data)
			if id, ok := evidence.SessionOf(entry.Origin); ok && err == nil {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return failed != nil || len(ids) > 0 && ids[len(ids)/2] >= p.oldest
	})
	return int64(max(0, first-before)) * bundle, failed
}

// A heard is what a log says of a session. A later entry does not replace one that
// it contradicts: it may be of somebody who wrote the session again.
type heard struct {
	starts  []evidence.Entry
	largest []logged // by different keys
}

// A logged is a checkpoint in a log, whose signature is not checked.
type logged struct {
	size   int64
	key    []byte // the name and the hash of the key that it says it is by
	signed []byte
}

// maxHeard is how many starts, and how many keys, of a session are compared. It has
// one start and is signed by two keys, so that with more one of them is wrong.
const maxHeard = 8

func (h *heard) add(e evidence.Entry) {
	if e.Checkpoint == nil {
		same := func(known evidence.Entry) bool { return bytes.Equal(known.Bytes(), e.Bytes()) }
		if len(h.starts) < maxHeard && !slices.ContainsFunc(h.starts, same) {
			h.starts = append(h.starts, e)
		}
		return
	}
	c, err := evidence.ReadCheckpoint(e.Checkpoint)
	if err != nil || c.Size == 0 { // of no records: that is compared with nothing
		return
	}
	l := logged{c.Size, evidence.SignerOf(e.Checkpoint), e.Checkpoint}
	i := slices.IndexFunc(h.largest, func(known logged) bool { return bytes.Equal(known.key, l.key) })
	switch {
	case i >= 0 && h.largest[i].size < l.size:
		h.largest[i] = l
	case i < 0 && len(h.largest) < maxHeard:
		h.largest = append(h.largest, l)
	}
}

// compareLog compares the log, whose checkpoint is signed, with others that were kept
// elsewhere. Those need no witness, and may be newer than what witnesses have signed.
func (k *known) compareLog(ctx context.Context, r *tiles.Reader, origin string, tree tlog.Tree, signed []byte, kept [][]byte) error {
	if len(kept) > 0 && k.trust.Quorum > 0 {
		newest, err := r.Checkpoint(ctx)
		if err != nil {
			return err
		}
		c, err := k.openKept(newest, origin)
		if err != nil {
			return fmt.Errorf("reading the log's newest checkpoint: %w", err)
		}
		if c.Size > tree.N {
			tree, newest = tlog.Tree{N: c.Size, Hash: c.Root}, signed
		}
		kept = append(kept[:len(kept):len(kept)], newest) // the smaller one
	}
	for _, old := range kept {
		if err := k.compareKept(ctx, r, origin, tree, old); err != nil {
			return err
		}
	}
	return nil
}

// openKept reads a checkpoint that the log must have signed, and no witness.
func (k *known) openKept(signed []byte, origin string) (evidence.Checkpoint, error) {
	c, _, err := evidence.Trust{Logs: k.trust.Logs}.OpenLog(signed)
	if err == nil && c.Origin != origin {
		err = fmt.Errorf("it is of log %q, and the log is %q: name the other one with --log", c.Origin, origin)
	}
	return c, err
}

// compareKept compares the log with one checkpoint.
func (k *known) compareKept(ctx context.Context, r *tiles.Reader, origin string, tree tlog.Tree, signed []byte) error {
	old, err := k.openKept(signed, origin)
	if err != nil {
		return fmt.Errorf("reading a kept checkpoint of the log: %w", err)
	}
	if old.Size > tree.N {
		k.rolledBack = append(k.rolledBack, fmt.Sprintf("the log %s is rolled back: it has %d entries, and had %d", old.Origin, tree.N, old.Size))
		return nil
	}
	root, err := r.Root(ctx, tree, old.Size)
	switch {
	case errors.Is(err, tiles.ErrMismatch), err == nil && root != old.Root:
		k.rolledBack = append(k.rolledBack, fmt.Sprintf("the log %s was rewritten: its first %d entries are others than those of the kept checkpoint", old.Origin, old.Size))
		return nil
	}
	return err
}

// trusted returns the keys that automatic verification trusts: those of
// evidence.trust_file, and of the spools that this collector reads itself.
func (c config) trusted() (evidence.Trust, error) {
	trust, err := evidencereport.ReadTrust(c.evidence.trustFile)
	if len(c.brokers) == 0 {
		for _, dir := range c.spoolDirs {
			key, keyErr := evidencereport.ReadKey(filepath.Join(dir, "evidence", "host.key.pub"))
			if keyErr == nil {
				trust.Hosts = append(trust.Hosts, key)
			} else if !errors.Is(keyErr, fs.ErrNotExist) {
				err = errors.Join(err, keyErr)
			}
		}
	}
	return trust, err
}

// logKeys returns the keys of the log in a directory that are trusted. Who can replace
// the log can replace the key next to it: it says nothing where a trust file names a
// log.
func logKeys(trust evidence.Trust, dir string) ([]string, error) {
	if len(trust.Logs) > 0 {
		return trust.Logs, nil
	}
	key, err := evidencereport.ReadKey(dir + ".key.pub")
	if err != nil {
		return nil, err
	}
	return []string{key}, nil
}

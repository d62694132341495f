package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/proof"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/verify"

	"golang.org/x/mod/sumdb/tlog"
)

// A known is what records are compared with.
type known struct {
	proof.Known
	trust      evidence.Trust
	log        *evidencereport.Log // nil: there is no log
	rolledBack []string            // how the log contradicts kept checkpoints of it
}

// ownLog returns the directory of this collector's log, "" if it is not here.
func (c config) ownLog() string {
	dir := c.evidence.dir(c.localDir)
	if _, err := os.Stat(filepath.Join(dir, tiles.CheckpointFile)); err != nil || !c.evidence.enabled {
		return ""
	}
	return dir
}

// readLog reads a log: of each session that want reports its start and its largest
// checkpoint. last limits it to so many entries, the newest; 0: all. kept are
// checkpoints of the log itself from elsewhere.
func (k *known) readLog(ctx context.Context, place string, last int64, kept [][]byte, want func(session string) bool) error {
	r, err := tiles.Open(place)
	if err != nil {
		return err
	}
	signed, err := r.Checkpoint(ctx)
	if k.trust.Quorum > 0 {
		signed, err = r.Witnessed(ctx)
	}
	if err != nil {
		return err
	}
	c, witnesses, err := k.trust.OpenLog(signed)
	if err != nil {
		return fmt.Errorf("reading log %q: %w: name its key in the trust file, in a line \"log KEY\"", place, err)
	}
	k.Size, k.log = c.Size, &evidencereport.Log{Size: c.Size, Signed: witnesses, Witnesses: len(k.trust.Witnesses)}
	tree := tlog.Tree{N: c.Size, Hash: c.Root}
	for _, old := range kept {
		if err := k.compareLog(ctx, r, tree, old); err != nil {
			return err
		}
	}
	largest, starts := map[string]verify.Checkpoint{}, map[string]evidence.Entry{}
	sizes := map[string]int64{}
	from := int64(0)
	if last > 0 {
		from = max(0, c.Size-last)
	}
	for e, err := range r.Entries(ctx, tree, from) {
		switch {
		case errors.Is(err, tiles.ErrMismatch):
			k.rolledBack = append(k.rolledBack, fmt.Sprintf("log %q: %v", place, err))
		case err != nil:
			return err
		}
		if err != nil {
			break
		}
		entry, err := evidence.ReadEntry(e.Data)
		id, ok := evidence.SessionOf(entry.Origin)
		if err != nil || !ok || !want(id) {
			continue // a writer of the log may add anything to it
		}
		if entry.Checkpoint == nil {
			starts[id] = entry
		} else if c, err := evidence.ReadCheckpoint(entry.Checkpoint); err == nil && c.Size > sizes[id] {
			sizes[id], largest[id] = c.Size, verify.Checkpoint{Signed: entry.Checkpoint, From: "the log"}
		}
	}
	for _, c := range largest {
		k.Checkpoints = append(k.Checkpoints, c)
	}
	for _, e := range starts {
		k.Starts = append(k.Starts, e)
	}
	return nil
}

// compareLog compares the log with a checkpoint of it that was kept elsewhere.
func (k *known) compareLog(ctx context.Context, r *tiles.Reader, tree tlog.Tree, signed []byte) error {
	old, _, err := k.trust.OpenLog(signed)
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

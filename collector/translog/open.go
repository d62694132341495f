package translog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"auditproxy/collector/translog/tiles"
	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"github.com/transparency-dev/tessera"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/tlog"
)

// Open opens the log and makes it if it is missing. It starts nothing.
func Open(ctx context.Context, c Config) (*Log, error) {
	c, witnessKeys, err := c.complete()
	if err != nil {
		return nil, err
	}
	l := &Log{config: c, added: make(chan struct{}, 1), pending: map[tlog.Hash]tessera.IndexFuture{}, rest: idleAfter}
	l.idle.L = &l.mu
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening log %q: %w", c.Dir, diskfull.WithRemedy(withCause(err))), l.release())
	}
	l.witnesses = newWitnesses(l.config, l.key, l.reader, witnessKeys)
	return l, nil
}

func (l *Log) open(ctx context.Context) error {
	c := &l.config
	// Not disk.MakeDirs: a web server may serve this directory as another user.
	if err := os.MkdirAll(filepath.Join(c.Dir, stateDir), 0o755); err != nil {
		return err
	}
	if err := l.lock(c.Dir, os.O_RDONLY); err != nil {
		return err
	}
	tree, err := l.tree()
	if err != nil {
		return err
	}
	if err := l.openKey(tree); err != nil {
		return err
	}
	// The key must not sign two logs either.
	if err := l.lock(c.Last+".lock", os.O_RDWR|os.O_CREATE); err != nil {
		return err
	}
	if l.signer, err = openSigner(l.key, c.Last); err != nil {
		return err
	}
	if l.reader, err = tiles.Open(c.Dir); err != nil {
		return err
	}
	if err := l.writable(); err != nil {
		return err
	}
	if err := l.sweep(); err != nil {
		return err
	}
	if err := l.reopenSeen(ctx); err != nil {
		return err
	}
	published, err := l.published()
	l.report(func(s *Status) {
		s.Name, s.Key, s.Published, s.Quorum = l.key.signer.Name(), l.key.public, published, c.Quorum
	})
	return err
}

// lock takes a lock that the process keeps.
func (l *Log) lock(name string, flag int) error {
	f, err := disk.Host().OpenFile(name, flag, 0o600)
	if err != nil {
		return err
	}
	l.locks = append(l.locks, f)
	switch ok, err := f.Lock(false); {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: %q is locked", errInUse, name)
	}
	return nil
}

// openKey loads the key, or makes it for a new log.
func (l *Log) openKey(tree tlog.Tree) error {
	c := &l.config
	k, err := loadKey(c.Key)
	if errors.Is(err, fs.ErrNotExist) {
		_, lastErr := os.Stat(c.Last)
		if tree.N > 0 || lastErr == nil {
			return fmt.Errorf("its key %q is missing: restore the key, or set evidence.log to another directory, where a new log begins, with a name of its own", c.Key)
		}
		if k, err = makeKey(c.Key, cmp.Or(c.Name, newName())); err == nil {
			c.Log.Info("log key made", zap.String("file", c.Key), zap.String("key", k.public))
		}
	}
	if err != nil {
		return err
	}
	if c.Name != "" && c.Name != k.signer.Name() {
		return fmt.Errorf("its key %q is for the name %q, not %q: use another key file, or this name", c.Key, k.signer.Name(), c.Name)
	}
	l.key = k
	return k.writePublic(c.Key + ".pub")
}

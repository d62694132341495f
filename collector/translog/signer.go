package translog

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"auditproxy/collector/translog/tiles"
	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A signer signs checkpoints, and remembers the last one in a file that is not
// part of the log. So a log that was replaced by an older copy of itself is
// noticed, and never signed: nobody could tell its next entries from those that
// others have seen at the same places.
type signer struct {
	note.Signer
	file string

	mu   sync.Mutex
	last tlog.Tree
	any  bool  // whether any checkpoint was signed
	err  error // of the last call of Sign
}

func openSigner(k *key, file string) (*signer, error) {
	s := &signer{Signer: k.signer, file: file}
	text, err := disk.ReadFile(disk.Host(), file, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last signed checkpoint: %w", err)
	}
	origin, tree, err := tiles.ParseCheckpoint(text)
	if err == nil && origin != k.signer.Name() {
		err = fmt.Errorf("it is of log %q, not %q", origin, k.signer.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last signed checkpoint %q: %w", file, err)
	}
	s.last, s.any = tree, true
	return s, nil
}

// Sign signs the text of a checkpoint. The memory comes first: after a crash it
// may have a checkpoint that was never published, whose entries are in the log.
func (s *signer) Sign(text []byte) (sig []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.err = err }()
	_, tree, err := tiles.ParseCheckpoint(text)
	if err != nil {
		return nil, err
	}
	if s.any && (tree.N < s.last.N || tree.N == s.last.N && tree.Hash != s.last.Hash) {
		return nil, fmt.Errorf("%w: refusing to sign size %d with hash %v after size %d with hash %v",
			ErrRolledBack, tree.N, tree.Hash, s.last.N, s.last.Hash)
	}
	if !s.any || tree != s.last {
		if err := disk.ReplaceFile(disk.Host(), s.file, text); err != nil {
			return nil, fmt.Errorf("remembering the checkpoint: %w", diskfull.WithRemedy(err))
		}
		s.last, s.any = tree, true
	}
	return s.Signer.Sign(text)
}

// failed returns why the last call of Sign failed.
func (s *signer) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// signed returns the last tree that was signed, and whether there is one.
func (s *signer) signed() (tlog.Tree, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.any
}

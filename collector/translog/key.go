package translog

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/collector/translog/tiles"
	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"
)

// A key signs checkpoints. Its name is the log's origin.
type key struct {
	signer note.Signer
	public string // in note's verifier form
	check  note.Verifier
}

// maxKey is more than a key in note's form has.
const maxKey = 4096

// loadKey returns the key in a file, and fs.ErrNotExist if there is none.
func loadKey(file string) (*key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("loading log key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("loading log key: %q can be read by others: chmod 600 it", file)
	}
	if info.Size() > maxKey {
		return nil, fmt.Errorf("loading log key: %q has %d bytes, want one line with a key", file, info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("loading log key: %w", err)
	}
	k, err := parseKey(strings.TrimSpace(string(text)))
	if err != nil {
		// The cause might quote the key.
		return nil, fmt.Errorf("loading log key: %q has no Ed25519 key in note's form", file)
	}
	return k, nil
}

func parseKey(text string) (*key, error) {
	signer, err := note.NewSigner(text)
	if err != nil {
		return nil, err
	}
	// Base64 may contain "+", names may not.
	encoded := strings.SplitN(text, "+", 5)
	secret, err := base64.StdEncoding.DecodeString(encoded[len(encoded)-1])
	if err != nil || len(secret) != 1+ed25519.SeedSize {
		return nil, errors.New("the key has another length")
	}
	public := ed25519.NewKeyFromSeed(secret[1:]).Public().(ed25519.PublicKey)
	k := &key{signer: signer}
	if k.public, err = note.NewEd25519VerifierKey(signer.Name(), public); err != nil {
		return nil, err
	}
	k.check, err = note.NewVerifier(k.public)
	return k, err
}

// tree returns the tree of a checkpoint that the key has signed.
func (k *key) tree(signed []byte) (tlog.Tree, error) {
	n, err := note.Open(signed, note.VerifierList(k.check))
	if err != nil {
		return tlog.Tree{}, err
	}
	origin, tree, err := tiles.ParseCheckpoint([]byte(n.Text))
	if err == nil && origin != k.signer.Name() {
		err = fmt.Errorf("it is of log %q", origin)
	}
	return tree, err
}

// makeKey makes a key and writes it to a file, for its owner only.
func makeKey(file, name string) (*key, error) {
	secret, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, fmt.Errorf("making log key: %w", err)
	}
	if err := disk.ReplaceFile(disk.Host(), file, []byte(secret+"\n")); err != nil {
		return nil, fmt.Errorf("making log key: %w", err)
	}
	return parseKey(secret)
}

// writePublic writes the public half next to the key, if it is not there yet.
// The directory of a key that was supplied may be read-only: then it is not
// written.
func (k *key) writePublic(file string) error {
	if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == k.public {
		return nil
	}
	err := replacePublic(file, []byte(k.public+"\n"))
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("writing the log's public key: %w", err)
	}
	return nil
}

// replacePublic makes a file that everybody may read hold data, durably.
func replacePublic(file string, data []byte) error {
	// Not disk.ReplaceFile, whose files are for their owner.
	tmp := file + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, file); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(file))
}

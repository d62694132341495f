package chain

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/note"
)

const (
	hostKeyFile = "host.key"
	publicExt   = ".pub"
	maxKey      = 4096 // bytes of a key file
)

// Key returns the host's key and its verifier key. It returns fs.ErrNotExist if
// there is none yet: the first session makes it.
func Key(c Config) (note.Signer, string, error) {
	return c.key(disk.OrHost(c.FS), false)
}

func (c Config) key(f disk.FS, create bool) (signer note.Signer, public string, err error) {
	name := c.KeyFile
	if name == "" {
		name = c.path(hostKeyFile)
	}
	private, err := readKey(f, name)
	if err == nil && private == "" && c.KeyFile == "" {
		err = fmt.Errorf("%q is empty: %w", name, fs.ErrNotExist) // a power cut left it so before Sync
	}
	if errors.Is(err, fs.ErrNotExist) && create && c.KeyFile == "" {
		private, err = c.makeKey(f)
	}
	if err != nil {
		return nil, "", fmt.Errorf("loading the host's key: %w", err)
	}
	if signer, err = note.NewSigner(private); err != nil {
		return nil, "", fmt.Errorf("loading the host's key: %q has no private key of a note", name)
	}
	public, err = verifierKey(private)
	return signer, public, err
}

// readKey reads a key file: one line, owned by this user, unreadable for others.
func readKey(f disk.FS, name string) (string, error) {
	k, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer k.Close()
	if err := disk.CheckRegular(k, name); err != nil {
		return "", err
	}
	i, err := k.Stat()
	if err != nil {
		return "", err
	}
	if i.Mode&0o077 != 0 {
		return "", fmt.Errorf("%q can be read by others: chmod 600 it", name)
	}
	if i.Size > maxKey {
		return "", fmt.Errorf("%q is %d bytes long, more than any key", name, i.Size)
	}
	b := make([]byte, i.Size)
	if _, err := k.ReadAt(b, 0); err != nil && i.Size > 0 {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// makeKey makes the host's key. It is called with the chain locked. A crash leaves
// no key or a whole one, and perhaps no public half, which is only for people. The
// first call does not wait for a sync, see Sync: a power cut before that leaves no
// key, or an empty one, and the sessions until then are those of an unknown host.
func (c Config) makeKey(f disk.FS) (string, error) {
	private, public, err := note.GenerateKey(rand.Reader, strings.TrimSuffix(evidence.Origin(c.Host, ""), "/"))
	if err != nil {
		return "", err
	}
	name := c.path(hostKeyFile)
	if err := write(f, name, private); err != nil {
		return "", err
	}
	return private, write(f, name+publicExt, public)
}

// write makes name hold a line and nothing else.
func write(f disk.FS, name, line string) error {
	temporary := name + ".tmp"
	if err := f.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t, err := f.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = t.Write([]byte(line + "\n"))
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	return f.Rename(temporary, name)
}

// verifierKey returns the public half of a private key.
func verifierKey(private string) (string, error) {
	rest, _ := strings.CutPrefix(private, "PRIVATE+KEY+")
	name, rest, _ := strings.Cut(rest, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errors.New("loading the host's key: it is not an Ed25519 key")
	}
	return note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey))
}

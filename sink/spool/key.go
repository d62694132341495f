package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

// KeySize is the length of a digest key in bytes.
const KeySize = 32

const keyFile = "key"

// LoadKey returns the digest key, and makes it and the directory at the first
// start. Among processes that start concurrently one makes the key, and all
// return the same.
func LoadKey(dir string) (key []byte, created bool, err error) {
	if err := disk.MakeDirs(disk.Host(), dir); err != nil {
		return nil, false, fmt.Errorf("making spool directory %q: %w: name another one with spool.dir", dir, err)
	}
	if err := disk.CheckDir(disk.Host(), dir); err != nil {
		return nil, false, fmt.Errorf("loading digest key: %w", err)
	}
	key, err = ReadKey(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		key, created, err = makeKey(dir)
	}
	return key, created, err
}

// ReadKey reads a key file: 32 bytes, owned by this user, unreadable for
// others.
func ReadKey(name string) ([]byte, error) {
	f, err := disk.Host().OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("loading digest key: %w", err)
	}
	defer f.Close()
	if err := disk.CheckRegular(f, name); err != nil {
		return nil, fmt.Errorf("loading digest key: %w", err)
	}
	i, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("loading digest key: %w", err)
	}
	if i.Mode&0o077 != 0 {
		return nil, fmt.Errorf("loading digest key: %q can be read by others: chmod 600 it", name)
	}
	if i.Size != KeySize {
		return nil, fmt.Errorf("loading digest key: %q is %d bytes long, want %d: restore it, or put other random bytes in its place, with which digests differ from those before", name, i.Size, KeySize)
	}
	key := make([]byte, KeySize)
	if _, err := f.ReadAt(key, 0); err != nil {
		return nil, fmt.Errorf("loading digest key: %w", err)
	}
	return key, nil
}

// makeKey makes the key with the directory locked. A crash leaves no key or a
// whole one, and perhaps an unused key.tmp.
func makeKey(dir string) (key []byte, created bool, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, false, fmt.Errorf("making digest key: %w", err)
	}
	defer d.Close()
	for {
		if err = unix.Flock(int(d.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("locking %q to make the digest key: %w", dir, err)
	}
	name := filepath.Join(dir, keyFile)
	if key, err = ReadKey(name); !errors.Is(err, fs.ErrNotExist) {
		return key, false, err // another process has made it
	}
	key = make([]byte, KeySize)
	rand.Read(key) // never fails, see crypto/rand
	if err := disk.ReplaceFile(disk.Host(), name, key); err != nil {
		return nil, false, fmt.Errorf("making digest key: %w", diskfull.WithRemedy(err))
	}
	return key, true, nil
}

// KeyFile returns the path of the key that LoadKey makes.
func KeyFile(dir string) string { return filepath.Join(dir, keyFile) }

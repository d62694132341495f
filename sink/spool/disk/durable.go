package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNoDirSync means that the file system cannot sync directories. This is
// not a failed write: files exist and can be synced. Only the survival of new
// names in a power cut depends on the file system then.
var ErrNoDirSync = errors.New("file system cannot sync directories")

// SyncDir makes the names in a directory of the host durable, where its file
// system can: one that cannot sync directories has not failed to write a file.
// dir may be a symbolic link.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = dirSynced(d.Sync()); errors.Is(err, ErrNoDirSync) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// SyncNames makes the names in a directory durable, where the file system can.
// dir is not a symbolic link.
func SyncNames(f FS, dir string) error {
	err := TrySyncNames(f, dir)
	if errors.Is(err, ErrNoDirSync) {
		return nil
	}
	return err
}

// TrySyncNames is SyncNames, but returns ErrNoDirSync.
func TrySyncNames(f FS, dir string) error {
	d, err := f.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dirSynced(d.Sync()), d.Close())
}

// dirSynced returns ErrNoDirSync if err, from the sync of a directory, means
// that.
func dirSynced(err error) error {
	// fsync(2) returns EINVAL for a descriptor that cannot be synced; FUSE,
	// CIFS and 9P also return other errors for that.
	for _, cannot := range []error{unix.EINVAL, unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOSYS} {
		if errors.Is(err, cannot) {
			return fmt.Errorf("%w: %w", ErrNoDirSync, err)
		}
	}
	return err
}

// SyncFile makes the contents of a regular file of this user durable.
func SyncFile(f FS, name string) error {
	g, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := CheckRegular(g, name); err != nil {
		return err
	}
	return g.Sync()
}

// ReplaceFile makes name hold data and nothing else, durably. A crash leaves
// the old contents or the new, and perhaps name + ".tmp", which the next call
// removes.
func ReplaceFile(f FS, name string, data []byte) error {
	// A new file: the old one may have another name elsewhere.
	tmp, flags := name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL
	w, err := f.OpenFile(tmp, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err := f.Remove(tmp); err != nil {
			return err
		}
		w, err = f.OpenFile(tmp, flags, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := f.Rename(tmp, name); err != nil {
		return err
	}
	return SyncNames(f, filepath.Dir(name))
}

// ReadFile returns at most max bytes of a regular file of this user.
func ReadFile(f FS, name string, max int) ([]byte, error) {
	r, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := CheckRegular(r, name); err != nil {
		return nil, err
	}
	b := make([]byte, max)
	n, err := r.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// CheckRegular refuses anything but a regular file of this user.
func CheckRegular(f File, name string) error {
	i, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !i.Mode.IsRegular():
		return fmt.Errorf("%q is not a regular file", name)
	case i.UID != os.Geteuid():
		return fmt.Errorf("%q belongs to uid %d, we run as uid %d", name, i.UID, os.Geteuid())
	}
	return nil
}

// CheckDir refuses a directory that other users could change. Its parents may
// be links; it itself may not.
func CheckDir(f FS, dir string) error {
	i, err := f.Lstat(dir)
	switch {
	case err != nil:
		return err
	case i.Mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%q is a symbolic link: name the directory that it points to", dir)
	case !i.Mode.IsDir():
		return fmt.Errorf("%q is not a directory: remove it or choose another spool.dir", dir)
	case i.UID != os.Geteuid():
		return fmt.Errorf("%q belongs to uid %d, we run as uid %d: choose another spool.dir or change its owner", dir, i.UID, os.Geteuid())
	case i.Mode&0o022 != 0:
		return fmt.Errorf("%q can be written by others: choose another directory, or run chmod 700 %[1]s if no other user needs it", dir)
	}
	return nil
}

// MakeDirs makes dir and its missing parents. A crash leaves some of them,
// and the next call makes the others.
func MakeDirs(f FS, dir string) error {
	err := f.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := MakeDirs(f, filepath.Dir(dir)); err != nil {
			return err
		}
		err = f.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

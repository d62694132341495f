package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"auditproxy/sink/spool/disk"
)

// replace writes data in place of the bytes read from c, keeps a copy of those
// next to the file, and returns the copy's path. A reader of the file finds the
// old bytes or the new ones, never a part; mode and owner stay, see keepOwner.
func (c config) replace(data []byte) (backup string, err error) {
	// Clients write to these files too, and time has passed since the question.
	// A write between this check and the rename is lost: they use no lock.
	now, err := os.ReadFile(c.target)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(now, c.data) {
		return "", errors.New("it has changed since it was read: try again")
	}
	if backup, err = c.backUp(); err != nil {
		return "", err
	}
	// A crash here leaves a superfluous backup.
	tmp, err := os.CreateTemp(filepath.Dir(c.target), ".auditproxy-*.tmp")
	if err != nil {
		return "", err
	}
	// A crash from here to the rename leaves this file behind as well.
	defer os.Remove(tmp.Name())
	if err := c.fill(tmp, data); err != nil {
		return "", err
	}
	if err := os.Rename(tmp.Name(), c.target); err != nil {
		return "", err
	}
	return backup, disk.SyncDir(filepath.Dir(c.target))
}

// backUp copies the bytes read from c to a new file, unless an earlier backup
// has the same bytes. A backup is never overwritten.
func (c config) backUp() (string, error) {
	for n := 1; ; n++ {
		name := c.target + ".auditproxy-backup"
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, c.data) {
				return name, nil
			}
			continue
		}
		if err != nil {
			return "", err
		}
		// A crash in here leaves part of a backup, and the file unchanged.
		if err := c.fill(f, c.data); err != nil {
			return "", errors.Join(err, os.Remove(name))
		}
		return name, disk.SyncDir(filepath.Dir(name))
	}
}

// fill writes data to f, gives it c's owner and mode, syncs and closes it.
func (c config) fill(f *os.File, data []byte) error {
	mode := c.info.Mode().Perm()
	_, err := f.Write(data)
	if err == nil {
		mode, err = c.keepOwner(f, mode)
	}
	if err == nil {
		err = f.Chmod(mode) // after the owner: a change of owner can clear bits
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keepOwner gives f the owner of c if it differs, because root may wrap for a
// user, and returns the mode for it. A user cannot give a file to a foreign group.
// Then f keeps the user's group, without group rights, and others have no right that
// the old group lacked, because its members are others now.
func (c config) keepOwner(f *os.File, mode fs.FileMode) (fs.FileMode, error) {
	want, ok := c.info.Sys().(*syscall.Stat_t)
	if !ok {
		return mode, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	have, ok := info.Sys().(*syscall.Stat_t)
	if ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return mode, nil
	}
	err = f.Chown(int(want.Uid), int(want.Gid))
	if err != nil && ok && have.Uid == want.Uid {
		return mode&0o700 | mode&0o007&(mode>>3), nil
	}
	return mode, err
}

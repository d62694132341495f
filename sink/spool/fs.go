package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// FS is the part of a file system that the spool uses, so that a test can
// fail or stop at each operation.
type FS interface {
	// OpenFile is os.OpenFile that never follows a link at the end of name.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	// Rename replaces the file at to, in one step.
	Rename(from, to string) error
	Remove(name string) error
	// Chtimes sets the modification time.
	Chtimes(name string, at time.Time) error
	// Lstat does not follow a link at the end of name.
	Lstat(name string) (Info, error)
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
}

// File is an open file or directory of an FS.
type File interface {
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync returns when the contents would survive a crash of the machine;
	// for a directory these are its names. After an error the bytes written
	// since the last Sync may be lost, and a second Sync does not report
	// that.
	Sync() error
	Truncate(size int64) error
	Stat() (Info, error)
	// Lock takes a flock(2) without waiting and reports whether it succeeded.
	// Close releases it.
	Lock(shared bool) (bool, error)
}

// Info is the part of an inode that the spool uses.
type Info struct {
	Mode    fs.FileMode
	UID     int
	Inode   uint64
	Links   uint64
	Size    int64 // bytes
	Disk    int64 // bytes on the disk, less than Size where it has holes
	ModTime time.Time
}

// osFS is the real file system.
type osFS struct{}

// osFile is a file of the real file system.
type osFile struct {
	*os.File
	dir bool
}

// HostFS returns the real file system, for a test to wrap.
func HostFS() FS { return osFS{} }

func orOS(f FS) FS {
	if f == nil {
		return osFS{}
	}
	return f
}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	// O_NONBLOCK: a FIFO put in a segment's place must not hang a reader.
	f, err := os.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("opening %q: it is a symbolic link, remove it: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	return osFile{f, flag&unix.O_DIRECTORY != 0}, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (osFS) Rename(from, to string) error              { return os.Rename(from, to) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }

func (osFS) Chtimes(name string, at time.Time) error {
	ts := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "chtimes", Path: name, Err: err}
	}
	return nil
}

func (osFS) Lstat(name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return Info{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return info(&st), nil
}

func (osFS) ReadDir(name string) ([]string, error) {
	// O_NONBLOCK has no effect on a directory, and saves os from trying to
	// set it.
	d, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (f osFile) Sync() error {
	if f.dir {
		return f.File.Sync()
	}
	return datasync(f.File)
}

func (f osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return info(&st), nil
}

func (f osFile) Lock(shared bool) (bool, error) {
	how := unix.LOCK_EX | unix.LOCK_NB
	if shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, fmt.Errorf("locking %q: %w", f.Name(), err)
		}
	}
}

// info does not allocate, unlike os.FileInfo: every sync calls it.
func info(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular // no difference matters here
	}
	return Info{
		Mode:    mode,
		UID:     int(st.Uid),
		Inode:   uint64(st.Ino),
		Links:   uint64(st.Nlink),
		Size:    st.Size,
		Disk:    int64(st.Blocks) * 512, // stat(2): of this size on every file system
		ModTime: time.Unix(st.Mtim.Unix()),
	}
}

// noSpace reports whether err means a full disk, as opposed to a failing
// device. EFBIG is not here: another file can still grow.
func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// errNoDirSync means that the file system cannot sync directories. This is
// not a failed write: files exist and can be synced. Only the survival of new
// names in a power cut depends on the file system then.
var errNoDirSync = errors.New("file system cannot sync directories")

// SyncDir makes the names in a directory durable, where the file system can:
// one that cannot sync directories has not failed to write a file.
// dir may be a symbolic link.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = dirSynced(d.Sync()); errors.Is(err, errNoDirSync) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// syncDir makes the names in a directory durable, where the file system can.
func syncDir(f FS, dir string) error {
	err := trySyncDir(f, dir)
	if errors.Is(err, errNoDirSync) {
		return nil
	}
	return err
}

// trySyncDir is syncDir, but returns errNoDirSync.
func trySyncDir(f FS, dir string) error {
	d, err := f.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dirSynced(d.Sync()), d.Close())
}

// dirSynced returns errNoDirSync if err, from the sync of a directory, means
// that.
func dirSynced(err error) error {
	// fsync(2) returns EINVAL for a descriptor that cannot be synced; FUSE,
	// CIFS and 9P also return other errors for that.
	for _, cannot := range []error{unix.EINVAL, unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOSYS} {
		if errors.Is(err, cannot) {
			return fmt.Errorf("%w: %w", errNoDirSync, err)
		}
	}
	return err
}

// syncFile makes the contents of a regular file of this user durable.
func syncFile(f FS, name string) error {
	g, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := checkRegular(g, name); err != nil {
		return err
	}
	return g.Sync()
}

// replaceFile makes name hold data and nothing else, durably. A crash leaves
// the old contents or the new, and perhaps name + ".tmp", which the next call
// removes.
func replaceFile(f FS, name string, data []byte) error {
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
	return syncDir(f, filepath.Dir(name))
}

// readFile returns at most max bytes of a regular file of this user.
func readFile(f FS, name string, max int) ([]byte, error) {
	r, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := checkRegular(r, name); err != nil {
		return nil, err
	}
	b := make([]byte, max)
	n, err := r.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

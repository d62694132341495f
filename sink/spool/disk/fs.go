// Package disk is the part of a file system that the spool uses, and the steps
// on it that survive a crash.
//
// An FS can be replaced, so that a test fails or stops at each operation. No
// operation follows a link at the end of a name, and the checks refuse what
// another user owns or could change.
//
// The files, from the top: durable, fs, fs_linux, fs_portable.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// FS is the part of a file system that the spool uses.
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

// An Allocator is a File that can reserve space for itself without writing it.
type Allocator interface {
	// Allocate returns errors.ErrUnsupported where the file system cannot.
	Allocate(size int64) error
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

// hostFS is the real file system.
type hostFS struct{}

// hostFile is a file of the real file system.
type hostFile struct {
	*os.File
	dir bool
}

// Host returns the real file system, for a test to wrap.
func Host() FS { return hostFS{} }

// OrHost returns f, or the real file system if f is nil.
func OrHost(f FS) FS {
	if f == nil {
		return hostFS{}
	}
	return f
}

func (hostFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	// O_NONBLOCK: a FIFO put in a segment's place must not hang a reader.
	f, err := os.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("opening %q: it is a symbolic link, remove it: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	return hostFile{f, flag&unix.O_DIRECTORY != 0}, nil
}

func (hostFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (hostFS) Rename(from, to string) error              { return os.Rename(from, to) }
func (hostFS) Remove(name string) error                  { return os.Remove(name) }

func (hostFS) Chtimes(name string, at time.Time) error {
	ts := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "chtimes", Path: name, Err: err}
	}
	return nil
}

func (hostFS) Lstat(name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return Info{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return info(&st), nil
}

func (hostFS) ReadDir(name string) ([]string, error) {
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

func (f hostFile) Sync() error {
	if f.dir {
		return f.File.Sync()
	}
	return datasync(f.File)
}

func (f hostFile) Allocate(size int64) error { return allocate(f.File, size) }

func (f hostFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return info(&st), nil
}

func (f hostFile) Lock(shared bool) (bool, error) {
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

// A Room is the size of a disk, and what this user can still write to it.
type Room struct {
	Size, Free uint64 // bytes
	Inodes     uint64 // free; math.MaxUint64 where the number of files has no limit
}

// Space returns the room on the disk of a directory. A directory that is not there
// will be on its parent's disk.
func Space(dir string) (Room, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			r := Room{st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize), st.Ffree}
			if st.Files == 0 { // btrfs and others make inodes as they need them
				r.Inodes = math.MaxUint64
			}
			return r, nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return Room{}, fmt.Errorf("looking for free space in %q: %w", dir, err)
		}
		dir = parent
	}
}

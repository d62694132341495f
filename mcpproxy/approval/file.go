package approval

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// fileInfo is the part of an inode that says whose file it is, and which.
type fileInfo struct {
	dev, ino uint64
	mode     uint32
	links    uint64
	uid, gid int
	size     int64
	changed  unix.Timespec
}

func (i fileInfo) kind() uint32 { return i.mode & unix.S_IFMT }

func newInfo(st *unix.Stat_t) fileInfo {
	return fileInfo{dev: uint64(st.Dev), ino: st.Ino, mode: uint32(st.Mode), links: uint64(st.Nlink), uid: int(st.Uid), gid: int(st.Gid),
		size: st.Size, changed: st.Ctim}
}

func lstat(name string) (fileInfo, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return fileInfo{}, err
	}
	return newInfo(&st), nil
}

// errKind is the error of a file that is not a regular one.
var errKind = errors.New("it is not a regular file")

// readFile reads a regular file of at most max bytes and does not wait: a FIFO
// has no reader or writer. The error is errKind, or about the file.
func readFile(name string, max int64) (fileInfo, []byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		i, _ := lstat(name)
		return i, nil, errKind
	} else if err != nil {
		i, _ := lstat(name)
		return i, nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileInfo{}, nil, err
	}
	i := newInfo(&st)
	if i.kind() != unix.S_IFREG {
		return i, nil, errKind
	}
	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		err = fmt.Errorf("it has more than %d bytes", max)
	}
	return i, text, err
}

// unlocked reports whether a file is there and no process has locked it. What
// cannot be determined is false.
func unlocked(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Stat_t // after the lock: who removes a file does so before unlocking it
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil && unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0
}

// names returns the names in a directory, and an error if it has too many.
func names(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil && len(list) == maxNames {
		err = fmt.Errorf("it has %d files or more: remove those of questions that are over", maxNames)
	}
	return list, err
}

// maxNames is how many files of a directory are looked at.
const maxNames = 1 << 16

// exists reports whether there is anything with a name.
func exists(name string) (bool, error) {
	_, err := lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

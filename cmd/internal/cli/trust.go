package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CheckTrusted refuses a file that a user other than owner could have written.
// The file, each directory on the way to it and each link that is followed must
// belong to owner or root. No other user may write there. In a sticky
// directory other users cannot replace the owner's files. On a file system that
// is mounted read-only the mode does not count: a Kubernetes volume may have
// mode 0777.
//
// A missing file is fs.ErrNotExist, wherever its path ends.
//
// Because no untrusted user can write to any of them, the file opened afterwards
// is the one that was checked.
func CheckTrusted(path string, owner int) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at, rest, links := "/", strings.Trim(filepath.Clean(path), "/"), 0
	i, err := os.Lstat(at)
	for err == nil {
		if problem := untrusted(at, i, owner); problem != nil || rest == "" {
			return problem
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(at, name) // ".." of a link's target: at has no links in it
		if i, err = os.Lstat(next); err != nil || i.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if problem := untrusted(next, i, owner); problem != nil {
			return problem
		}
		if links++; links > 40 {
			return fmt.Errorf("leads through %q, one of too many symbolic links", next)
		}
		var target string
		if target, err = os.Readlink(next); err != nil {
			break
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = strings.Trim(target+"/"+rest, "/")
		i, err = os.Lstat(at)
	}
	return err
}

// untrusted returns why one file, directory or link is not trusted.
func untrusted(path string, i fs.FileInfo, owner int) error {
	st, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%q has no owner that could be checked", path)
	}
	uid, mode := int(st.Uid), i.Mode()
	switch {
	case uid != 0 && uid != owner && !unmapped(uid):
		return fmt.Errorf("%q belongs to uid %d, who is not root and could change it: chown it to root", path, uid)
	case mode&fs.ModeSymlink != 0, mode.Perm()&0o022 == 0, mode.IsDir() && mode&fs.ModeSticky != 0, readOnly(path):
		return nil
	}
	return fmt.Errorf("%q can be written by others than its owner (mode %04o): chmod go-w it", path, mode.Perm())
}

// readOnly reports whether path is on a file system that is mounted read-only.
func readOnly(path string) bool {
	var st unix.Statfs_t
	const flag = 1 // ST_RDONLY of Linux, MNT_RDONLY of macOS
	return unix.Statfs(path, &st) == nil && st.Flags&flag != 0
}

// sameFile reports whether two absolute paths name one file, which need not
// exist yet.
func sameFile(a, b string) bool { return a == b || resolve(a) == resolve(b) }

// resolve follows the links in the existing part of an absolute path.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(resolve(dir), filepath.Base(path))
}

//go:build !portable

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync is fdatasync(2): the bytes and the size, without the times.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// allocate is fallocate(2). A file system that lacks it (ZFS, NFS before 4.2)
// returns errors.ErrUnsupported.
func allocate(f *os.File, size int64) error {
	for {
		switch err := unix.Fallocate(int(f.Fd()), 0, 0, size); err {
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return errors.ErrUnsupported
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}

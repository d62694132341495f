//go:build !portable

package spool

import (
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

//go:build !linux

package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush discards unread input, see tcflush(3).
func flush(f *os.File) {
	const fread = 1 // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, fread)
}

package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush discards unread input, see tcflush(3).
func flush(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }

//go:build !portable

package mcpproxy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hideDescriptors keeps descriptors that this process inherited from the
// server. Go opens its own with close-on-exec.
func hideDescriptors() { unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) }

// growPipe asks for a capacity of size bytes.
func growPipe(fd uintptr, size int) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) }

// dup2 makes to a copy of from, closed on exec.
func dup2(from, to int) { unix.Dup3(from, to, unix.O_CLOEXEC) }

// reopenPipe opens the pipe fd again: the new descriptor has flags of its own,
// so it can be non-blocking while other processes that share fd see no change.
func reopenPipe(fd, flag int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

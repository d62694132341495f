//go:build !linux || portable

package mcpproxy

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// This file is the proxy on macOS, by calls that Linux has too: the build tag
// portable selects it there, for tests. The promises are those of Linux, with
// these differences:
//
//   - The server's process group ends as on Linux. If the proxy is killed, the
//     server is not; it sees its input end. Linux is the same, because a parent
//     death signal depends on the thread that started the server.
//   - A pipe on standard input or output stays in blocking mode. A read or
//     write of it that blocks at the end of the session outlives Run, and ends
//     with the process.
//   - Pipes keep the system's capacity (16 to 64 KiB), so a long message needs
//     more reads.

// hideDescriptors keeps descriptors that this process inherited from the
// server. Go opens its own with close-on-exec.
func hideDescriptors() {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// growPipe does nothing: the capacity of a pipe cannot be set.
func growPipe(uintptr, int) {}

// dup2 makes to a copy of from, closed on exec.
func dup2(from, to int) {
	if unix.Dup2(from, to) == nil {
		unix.CloseOnExec(to)
	}
}

// reopenPipe fails: opening /dev/fd/N duplicates the descriptor, and setting
// the copy non-blocking would change it for every process that shares it.
func reopenPipe(int, int) (*os.File, error) { return nil, errors.ErrUnsupported }

package approvals

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxTyped bounds a line that a person types.
const maxTyped = 1 << 10 // bytes

// readLine appends input to a line, and waits for it at most so long. It returns
// true at the end of the input. No goroutine reads, because it could not be
// stopped.
func readLine(f *os.File, line []byte, wait time.Duration) (_ []byte, ended bool, err error) {
	fd := int(f.Fd())
	var set unix.FdSet
	set.Zero()
	set.Set(fd)
	timeout := unix.NsecToTimeval(wait.Nanoseconds())
	n, err := unix.Select(fd+1, &set, nil, nil, &timeout)
	if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
		return line, false, nil
	} else if err != nil {
		return line, false, os.NewSyscallError("select", err)
	}
	buf := make([]byte, maxTyped)
	m, err := f.Read(buf)
	if len(line) < maxTyped {
		line = append(line, buf[:m]...)
	}
	// A terminal whose other side is gone returns EIO.
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EIO) {
		return line, true, nil
	}
	return line, false, err
}

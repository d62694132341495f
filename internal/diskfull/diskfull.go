// Package diskfull tells a full disk from a failing one.
package diskfull

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Is reports whether err means a full disk, as opposed to a failing
// device. EFBIG is not here: another file can still grow.
func Is(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// WithRemedy says in an error about a full disk, or one that nothing can be written to,
// what to do. Some file systems are full of files while they have space.
func WithRemedy(err error) error {
	switch {
	case Is(err):
		return fmt.Errorf("%w: free space there, or inodes if df -i shows that none are left", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount it for writing; after an error of the disk, dmesg has the reason", err)
	}
	return err
}

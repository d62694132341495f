//go:build !linux || portable

package disk

import (
	"errors"
	"os"
)

// This file is the spool on macOS, with machine_darwin.go of package spool; the
// build tag portable selects it on Linux, for tests. The promises are those of
// Linux:
//
//   - A sync is F_FULLFSYNC, which (*os.File).Sync uses there, because fsync(2)
//     on macOS does not reach the medium. It is slower than fdatasync(2), so
//     more calls are forwarded with "durable": false.
//   - Locks are flock(2), which belong to the open file as on Linux.
//   - The ballast is written, not preallocated. A local Time Machine snapshot
//     can hold its blocks after it is removed: a full disk then refuses final
//     records too, until there is room.

// datasync returns when the bytes and the size of f would survive a crash of
// the machine.
func datasync(f *os.File) error { return f.Sync() }

// allocate cannot reserve space here.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }

//go:build !linux

package spool

import "os"

// datasync is what os has for it; on macOS that is F_FULLFSYNC, because
// fsync(2) there does not reach the medium.
func datasync(f *os.File) error { return f.Sync() }

package spool

import (
	"encoding/hex"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machineUUID returns the hardware UUID, by gethostuuid(2), or "" if the
// system does not return it.
func machineUUID() string {
	var id [16]byte
	var wait unix.Timespec // zero: do not wait for it
	if _, _, errno := unix.Syscall(unix.SYS_GETHOSTUUID, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&wait)), 0); errno != 0 || id == [16]byte{} {
		return ""
	}
	return hex.EncodeToString(id[:])
}

//go:build !portable

package main

import (
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieBySignal ends this process by sig, as the server ended, so that the parent sees
// the same status. It returns only if that does not work.
func dieBySignal(sig syscall.Signal) {
	signal.Reset(sig)
	// The runtime handles some signals without being asked. The kernel's struct
	// sigaction of zeros is SIG_DFL.
	var act [4]uint64
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	unix.Kill(unix.Getpid(), sig)
	time.Sleep(time.Second) // the kernel soon delivers it to some thread of this process
}

// hideMemory keeps other processes of this user from reading this one's
// memory, which holds the traffic, and its core from being written.
func hideMemory() { unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

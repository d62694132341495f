//go:build !linux || portable

package main

import (
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieBySignal ends this process by sig, as the server ended, so that the parent sees
// the same status. It returns if that does not work, and for signals that the Go
// runtime ignores or answers with a crash report. The exit code is then 128 plus
// the signal's number, as in a shell.
func dieBySignal(sig syscall.Signal) {
	if !diesBy(sig) {
		return
	}
	signal.Reset(sig)
	unix.Kill(unix.Getpid(), sig)
	time.Sleep(time.Second) // for its delivery, to any thread
}

// diesBy reports whether sig ends a Go process that does not handle it.
func diesBy(sig syscall.Signal) bool {
	return sig == syscall.SIGHUP || sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGKILL
}

// hideMemory does nothing. macOS lets a process read another's memory only with
// a debugging entitlement or as root, and writes cores only if the user's
// limits allow it.
func hideMemory() {}

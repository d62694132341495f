//go:build !portable

package main

import "syscall"

// diesBy reports whether dieOf ends a process by sig.
func diesBy(syscall.Signal) bool { return true }

//go:build !linux

package kafkatest

import "syscall"

// endWithParent does nothing: only Linux has a parent death signal.
func endWithParent(*syscall.SysProcAttr) {}

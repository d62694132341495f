//go:build !linux

package process

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

var errLinuxOnly = errors.New("measuring processes needs Linux")

// EndWithParent does nothing: only Linux has a parent death signal.
func EndWithParent(*exec.Cmd, syscall.Signal) {}

// CPUTime returns an error.
func CPUTime(int) (time.Duration, error) { return 0, errLinuxOnly }

// Children returns an error.
func Children(int) ([]int, error) { return nil, errLinuxOnly }

// PeakRSS returns an error.
func PeakRSS(int) (int64, error) { return 0, errLinuxOnly }

// CPUs returns an error.
func CPUs() ([]int, error) { return nil, errLinuxOnly }

// Sibling returns no CPU.
func Sibling(int, []int) (int, bool) { return 0, false }

// LastCPU returns an error.
func LastCPU() (int, error) { return 0, errLinuxOnly }

// Bind returns an error.
func Bind(...int) error { return errLinuxOnly }

// StartBound returns an error.
func StartBound(int, func() error) error { return errLinuxOnly }

// SleepThread returns an error.
func SleepThread(time.Duration) error { return errLinuxOnly }

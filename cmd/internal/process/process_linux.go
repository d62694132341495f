package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EndWithParent has the kernel send sig to the process that cmd will start
// when the thread that starts it ends, as it does at the latest with this
// process. It must be called before cmd.Start.
func EndWithParent(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = sig
}

// CPUTime returns the processor time that the process pid has used so far,
// without that of its children.
func CPUTime(pid int) (time.Duration, error) {
	const sched = 2 // see clock_getcpuclockid(3)
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("reading CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// PeakRSS returns the largest resident set of the process pid so far, in
// bytes.
func PeakRSS(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading resident set: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("reading resident set of process %d: no VmHWM", pid)
}

// LastCPU returns the highest number of a CPU that this thread may use.
func LastCPU() (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("reading CPU affinity: %w", err)
	}
	for i := len(set)*64 - 1; i >= 0; i-- {
		if set.IsSet(i) {
			return i, nil
		}
	}
	return 0, errors.New("reading CPU affinity: no CPU")
}

// Bind binds the calling thread, and what it starts from now on, to one CPU.
// The caller locks its goroutine to the thread.
func Bind(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("binding to CPU %d: %w", cpu, err)
	}
	return nil
}

// StartBound calls start while the calling thread is bound to one CPU, so that
// the process which start starts is bound from its first instruction.
func StartBound(cpu int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("reading CPU affinity: %w", err)
	}
	if err := Bind(cpu); err != nil {
		return err
	}
	return errors.Join(start(), unix.SchedSetaffinity(0, &all))
}

// SleepThread sleeps without giving up the thread, as [time.Sleep] would: other
// threads need not be bound to this one's CPU. A signal ends the sleep early.
func SleepThread(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	ts := unix.NsecToTimespec(int64(d))
	if err := unix.Nanosleep(&ts, nil); err != nil && err != unix.EINTR {
		return fmt.Errorf("sleeping: %w", err)
	}
	return nil
}

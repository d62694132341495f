package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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

// Children returns the numbers of the processes that the process pid has started
// and that have not ended.
func Children(pid int) (list []int, err error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended, and its children are another's
		} else if err != nil {
			return nil, fmt.Errorf("reading the children of process %d: %w", pid, err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("reading the children of process %d: %w", pid, err)
			}
			list = append(list, child)
		}
	}
	return list, nil
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

// CPUs returns the numbers of the CPUs that this thread may use, ascending.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("reading CPU affinity: %w", err)
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	if len(cpus) == 0 {
		return nil, errors.New("reading CPU affinity: no CPU")
	}
	return cpus, nil
}

// LastCPU returns the highest number of a CPU that this thread may use.
func LastCPU() (int, error) {
	cpus, err := CPUs()
	if err != nil {
		return 0, err
	}
	return cpus[len(cpus)-1], nil
}

// Sibling returns the CPU of others that shares a core with cpu, or the first
// of others where the kernel reports none; ok is false if others has no CPU but
// cpu.
func Sibling(cpu int, others []int) (sibling int, ok bool) {
	others = slices.DeleteFunc(slices.Clone(others), func(n int) bool { return n == cpu })
	if len(others) == 0 {
		return 0, false
	}
	// A list such as "0,32" or "0-1"; a virtual machine may hide it.
	list, _ := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
	for part := range strings.SplitSeq(strings.TrimSpace(string(list)), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			continue
		}
		for _, n := range others {
			if from <= n && n <= to {
				return n, true
			}
		}
	}
	return others[0], true
}

// Bind binds the calling thread, and what it starts from now on, to CPUs.
// The caller locks its goroutine to the thread.
func Bind(cpus ...int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("binding to CPUs %v: %w", cpus, err)
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

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"auditproxy/cmd/internal/process"

	"golang.org/x/sys/unix"
)

const (
	neighbourMemory = 32 << 20 // bytes: more than a core's own caches hold
	cacheLine       = 64       // bytes
)

// neighbour reads and writes one byte of each cache line of its memory, over
// and over, until stdin ends. It writes a line feed after the first time. It
// returns the exit code.
func neighbour(stdin *os.File, stdout io.Writer) int {
	poll := []unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLIN}}
	memory := make([]byte, neighbourMemory)
	for first := true; ; first = false {
		for i := 0; i < len(memory); i += cacheLine {
			memory[i]++
		}
		if first {
			if _, err := stdout.Write([]byte("\n")); err != nil {
				fmt.Fprintf(os.Stderr, "neighbour: %v\n", err)
				return 1
			}
		}
		// Not in a goroutine: on one CPU under SCHED_FIFO no other thread runs.
		poll[0].Revents = 0
		if n, err := unix.Poll(poll, 0); n > 0 && err == nil {
			return 0
		}
	}
}

// startNeighbour starts a neighbour on one CPU and returns when it walks. It
// ends with its standard input: end closes that, and the kernel does if this
// process is killed. Where the kernel can, it also kills it with its parent.
func startNeighbour(self string, cpu int) (end func() error, err error) {
	cmd := exec.Command(self, "neighbour")
	cmd.Stderr = os.Stderr
	process.EndWithParent(cmd, syscall.SIGKILL)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.StartBound(cpu, cmd.Start); err != nil {
		return nil, fmt.Errorf("starting neighbour on CPU %d: %w", cpu, err)
	}
	end = func() error {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("neighbour ended early: %w", err)
		}
		return nil
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for neighbour: %w", err), end())
	}
	return end, nil
}

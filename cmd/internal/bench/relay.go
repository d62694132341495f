package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// relay is the least that every stdio proxy does: it starts a server and copies
// bytes both ways. It returns the exit code.
func relay(argv []string, stdin *os.File, stdout io.Writer) int {
	if err := copyBothWays(argv, stdin, stdout); err != nil {
		fmt.Fprintf(os.Stderr, "relay: %v\n", err)
		return 1
	}
	return 0
}

func copyBothWays(argv []string, stdin *os.File, stdout io.Writer) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	toServer, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	fromServer, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Clients hand over a descriptor that blocks. Reading that, io.Copy would
	// hold the only processor until the runtime's monitor retakes it, at every
	// call: ten times the round trip, and no fair relay.
	if err := unix.SetNonblock(int(stdin.Fd()), true); err != nil {
		return err
	}
	stdin = os.NewFile(stdin.Fd(), stdin.Name())
	go func() { // ends with the client's input, or with the process
		io.Copy(toServer, stdin)
		toServer.Close()
	}()
	if _, err := io.Copy(stdout, fromServer); err != nil {
		return err
	}
	return cmd.Wait()
}

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// runName returns a name for this run that no other has. Where it can, it says
// which process this is, for runEnded.
func runName(now time.Time) string {
	id := audit.NewID(now)
	if place := processPlace(); place != "" {
		return fmt.Sprintf("%s %s %d", id, place, os.Getpid())
	}
	return id
}

// runEnded reports whether the run with a name has certainly ended: it was a
// process of this place, where no process has its number now. A process elsewhere
// cannot be seen.
func runEnded(name string) bool {
	_, process, _ := strings.Cut(name, " ")
	place, number, found := strings.Cut(process, " ")
	pid, err := strconv.Atoi(number)
	if !found || err != nil || pid <= 0 || place != processPlace() {
		return false
	}
	return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// processPlace identifies the processes that no two processes with one number are
// among: those of a namespace, since the machine was started. It has no spaces, and
// is empty where the system does not tell.
func processPlace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, spaceErr := os.Readlink("/proc/self/ns/pid")
	if err != nil || spaceErr != nil {
		return ""
	}
	place := strings.TrimSpace(string(boot)) + "/" + space
	if strings.ContainsAny(place, " \n") {
		return ""
	}
	return place
}

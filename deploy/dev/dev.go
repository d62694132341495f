// Package dev gives tests what make tools fetches, what they share, free ports,
// terminals and small disks.
//
// The files, from the top: system_linux, system_other, dev.
package dev

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Fetched returns the absolute path of something below .tools, given as the
// elements of its path, which may be patterns of filepath.Match. If it is missing,
// the test is skipped, or fails where the variable CI is set, as make test sets
// it, so that no test is skipped unnoticed.
func Fetched(t testing.TB, elem ...string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(append([]string{root, ".tools"}, elem...)...)
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		missing(t, fmt.Errorf("there is no %q", pattern))
	}
	return found[len(found)-1]
}

// Command is Fetched for a program of the system.
func Command(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, err)
	}
	return path
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%v: run make tools", err)
	}
	t.Skipf("%v: run make tools", err)
}

// Superuser skips a test that gives files away or runs programs as other users,
// unless root runs it. make test says at its end whether such tests ran.
func Superuser(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away, and runs programs as other users")
	}
}

// FreePorts returns ports of 127.0.0.1 that were free a moment ago. They are below
// those that the kernel gives to clients (ip_local_port_range(7)): a client could
// have one before the server has it, or while the server is stopped. A client of
// that very server then even connects to itself.
func FreePorts(n int) ([]int, error) {
	const first, last, attempts = 12_000, 32_000, 1000
	var ports []int
	for range attempts {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(last-first)))
		if err != nil {
			continue
		}
		defer l.Close()
		if ports = append(ports, l.Addr().(*net.TCPAddr).Port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("finding %d free ports from %d to %d: too many are taken", n, first, last)
}

// FreeAddr returns 127.0.0.1 with a port as FreePorts finds it.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(ports[0])
}

// Root returns the repository's directory: the nearest one above the working
// directory that has go.mod. A test runs in the directory of its package.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the repository: no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// sharedVariable is the environment variable with the directory for what tests
// share.
const sharedVariable = "DEV_SHARED"

// Run runs the tests of a package, which share what Share makes, and returns the
// exit code.
func Run(m interface{ Run() int }) int {
	dir, err := os.MkdirTemp("", "shared")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv(sharedVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Share returns the path of a file or directory that all tests of a package use,
// which make makes at another path for the first of them.
func Share(t testing.TB, name string, make func(own string)) string {
	t.Helper()
	dir := os.Getenv(sharedVariable)
	if dir == "" {
		t.Fatal("TestMain does not call dev.Run")
	}
	shared := filepath.Join(dir, name)
	if _, err := os.Stat(shared); err == nil {
		return shared
	}
	// Several may make it at once; each finds a whole one.
	own := filepath.Join(t.TempDir(), name)
	make(own)
	if err := os.Rename(own, shared); err != nil {
		if _, other := os.Stat(shared); other != nil { // a directory does not replace one
			t.Fatal(err)
		}
	}
	return shared
}

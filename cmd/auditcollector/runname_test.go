package main

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRunEnded names runs of another process, before and after it has ended, and
// of processes that nobody here can know of.
func TestRunEnded(t *testing.T) {
	if processPlace() == "" {
		if runtime.GOOS == "linux" {
			t.Fatal("Linux does not tell where a process is")
		}
		t.Skip("this system does not tell where a process is")
	}
	now := time.Now()
	own := runName(now)
	if own == runName(now) {
		t.Errorf("two runs have the name %q", own)
	}
	if runEnded(own) {
		t.Errorf("%q, which is this process, has ended", own)
	}
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(own)
	other := strings.Join(append(words[:2:2], strconv.Itoa(cmd.Process.Pid)), " ")
	if runEnded(other) {
		t.Errorf("%q has ended, but it runs", other)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !runEnded(other) {
		t.Errorf("%q has not ended, but it has", other)
	}
	for _, name := range []string{
		words[0],                     // an older program's, or a replay's
		words[0] + " stored",         // a replay's
		strings.Join(words[:2], " "), // cut off
		words[0] + " elsewhere " + strconv.Itoa(cmd.Process.Pid),
		words[0] + "  " + strconv.Itoa(cmd.Process.Pid),
		strings.Join(append(words[:2:2], "0"), " "), // kill(2) means groups with these
		strings.Join(append(words[:2:2], "-1"), " "),
	} {
		if runEnded(name) {
			t.Errorf("%q has ended, which nobody can know", name)
		}
	}
}

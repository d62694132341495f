package main_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFramesDeniedAreNotExecuted puts the proxy, with a policy that allows one
// tool, in front of real servers and sends them the frames: no server executes
// another tool, and each executes the strict calls behind a frame.
//
// Frames that need a process of their own are sent with SOAK set, and so are all to
// the servers in Python but one. The package mcpproxy holds all frames
// against what servers did with them.
func TestFramesDeniedAreNotExecuted(t *testing.T) {
	t.Parallel()
	proxy := build(t, "./cmd/auditproxy")
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":"1","default":"deny","tools":{"safe":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := frameServers(t)
	for _, group := range inTurn(t, frames(t)) {
		for _, s := range servers {
			quick := s.runtime != "python" && group[0].follows(t) || len(group) > 100 && s.name == "python-sdk 2.3.0"
			if !soak() && !quick {
				continue
			}
			t.Run(group[0].Name+" "+s.name, func(t *testing.T) {
				t.Parallel()
				for n := 0; n < len(group); {
					spool := t.TempDir()
					sent, executed := runDenied(t, group, n, s, append([]string{proxy, "--policy-file", file}, readable(spool)...)...)
					checkDenied(t, group[n:n+sent], executed, spool)
					n += sent
				}
			})
		}
	}
}

func checkDenied(t *testing.T, sent []frame, executed []execution, spool string) {
	t.Helper()
	marked := 0
	for _, e := range executed {
		if _, ok := marks(e.args); ok {
			marked++
		}
		if e.tool != "safe" {
			t.Errorf("the server executed %.40q with %.200s", e.tool, e.args)
		}
	}
	// The last frame may end the server.
	if least := 2 * (len(sent) - 1); marked < least && sent[0].follows(t) {
		t.Errorf("%d strict calls were executed, want at least %d", marked, least)
	}
	for _, r := range records(t, spool) {
		if r.Forwarded && r.Tool != "safe" {
			t.Errorf("forwarded a call of %.40q, anomalies %s", r.Tool, r.Anomalies)
		}
	}
}

// runDenied sends the frames of a group from number n on to one process of s,
// each with its mark, and returns how many it had before it ended and what it
// executed.
func runDenied(t *testing.T, group []frame, n int, s frameServer, prefix ...string) (sent int, executed []execution) {
	t.Helper()
	journal := newJournal(t)
	argv := slices.Concat(prefix, s.command(journal.path))
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = environ()
	stdin, stdout := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	out := bufio.NewReader(stdout)
	first, second := group[n].opening()
	if first != "" {
		io.WriteString(stdin, first)
		if answer, err := out.ReadString('\n'); err != nil || !strings.Contains(answer, "protocolVersion") {
			t.Errorf("initialize was answered with %q, %v", answer, err)
		}
	}
	answers, noted := make(chan string), make(chan struct{})
	go func() {
		defer close(answers)
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				return
			}
			answers <- line
		}
	}()
	go func() {
		defer close(noted)
		for e := range journal.noted {
			executed = append(executed, e)
		}
	}()
	for alive := true; alive && n < len(group); n++ {
		if !group[n].Initialize { // some servers answer nothing before
			sent, alive = sent+1, false
			stdin.Write(group[n].bytes(t))
			continue
		}
		// It is ignored if the server ends before it has read all of the frame.
		go io.WriteString(stdin, second+string(group[n].bytes(t))+mark(n))
		second = ""
		for alive = false; !alive; {
			line, more := <-answers
			if !more {
				break
			}
			alive = strings.Contains(line, `"second mark `)
		}
		sent++
	}
	stdin.Close()
	for range answers {
	}
	cmd.Wait() // each server has its own idea of the right exit code
	if !late.Stop() {
		t.Errorf("the server was still there after %v", patience)
	}
	journal.pipe.WriteString("\n")
	<-noted
	return sent, executed
}

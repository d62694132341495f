package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/cmd/internal/ledger"
)

// serveCalls is an MCP server that writes the id of each call to a file before
// it answers: the file holds what was executed, even if the server dies.
func serveCalls(journal string) int {
	f, err := os.OpenFile(journal, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var call struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(in.Bytes(), &call) != nil {
			continue // cut at the end of the input
		}
		// One write, so that lines of several servers stay whole.
		if _, err := f.Write(append(call.ID, '\n')); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", call.ID)
	}
	return 0
}

// callEvery is the time between two calls of one agent.
const callEvery = 20 * time.Millisecond

// Agents call through proxies, which write to one spool directory. Each has its
// own proxy and server.
type agents struct {
	t       *testing.T
	proxy   string // the program
	server  string // the program
	journal string // of all servers
	spool   string
	poison  int // one call in so many is of poisonTool

	waits atomic.Bool // while it is true, agents make no calls

	mu   sync.Mutex
	sent []string // ids of calls, which no two agents share; guarded by mu
}

// poisonTool is a tool whose records the table refuses in these tests.
const poisonTool = "poison"

// newAgents builds the proxy as it is released.
func newAgents(t *testing.T, dir, spool string, poison int) *agents {
	t.Helper()
	a := &agents{t: t, proxy: clitest.Build(t, "auditproxy/cmd/auditproxy"), server: filepath.Join(dir, serverName),
		journal: filepath.Join(dir, "journal"), spool: spool, poison: poison}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, a.server)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// next notes a call as sent and returns its line.
func (a *agents) next() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	no, tool := len(a.sent)+1, "list_panes"
	if no%a.poison == 0 {
		tool = poisonTool
	}
	a.sent = append(a.sent, fmt.Sprint(no))
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"pane":"%%%d"}}}`+"\n", no, tool, no)
}

// called returns how many calls were sent.
func (a *agents) called() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(len(a.sent))
}

// done is the journal. It is whole once no agent runs.
func (a *agents) done() ledger.Journal {
	a.t.Helper()
	b, err := os.ReadFile(a.journal)
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return ledger.Journal{Sent: a.sent, Executed: strings.Fields(string(b))}
}

// An agent calls until it is killed or ends.
type agent struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer // of the proxy and its server; read it after kill or end
	stop   chan struct{}
	wait   sync.WaitGroup
}

func (a *agents) start() *agent {
	a.t.Helper()
	g := &agent{cmd: exec.Command(a.proxy, "--spool-dir", a.spool, "--durability", "interval", "--", a.server, a.journal),
		stderr: new(bytes.Buffer), stop: make(chan struct{})}
	g.cmd.Env = []string{"HOME=" + filepath.Dir(a.journal), "PATH=" + os.Getenv("PATH")}
	g.cmd.Stderr = g.stderr // the server has it too, so that Wait waits for both
	in, err := g.cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { g.kill() })
	g.wait.Go(func() { io.Copy(io.Discard, out) })
	g.wait.Go(func() {
		defer in.Close()
		tick := time.NewTicker(callEvery)
		defer tick.Stop()
		for {
			select {
			case <-g.stop:
				return
			case <-tick.C:
			}
			if a.waits.Load() {
				continue
			}
			if _, err := io.WriteString(in, a.next()); err != nil {
				return // it was killed
			}
		}
	})
	return g
}

// kill kills the proxy; its server ends by itself.
func (g *agent) kill() {
	if g.cmd.ProcessState == nil {
		_ = g.cmd.Process.Signal(syscall.SIGKILL)
		_ = g.end()
	}
}

// end ends the calls and waits for the proxy.
func (g *agent) end() error {
	close(g.stop)
	g.wait.Wait()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, g.stderr)
	}
	return nil
}

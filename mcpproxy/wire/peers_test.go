package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	tools = "../../.tools/"           // fetched by make tools
	peers = "../../deploy/dev/peers/" // servers that note their executions
)

// TestProcessesExecuteWhatIsTold is the same for servers that are not in Go, a
// few hundred streams in each process: TypeScript, Python, and libtmux-mcp. It
// takes minutes and is for soaking.
func TestProcessesExecuteWhatIsTold(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		return
	}
	python := func(release string) string { return tools + "libtmux-mcp-" + release + "/bin/python" }
	packages, err := filepath.Abs(tools + "typescript")
	if err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][]string{
		"typescript-sdk 1.32.2": {"node", peers + "typescript_sdk.mjs", packages},
		"typescript-sdk 2.4.0":  {"node", peers + "typescript_server.mjs", packages},
		"python-sdk 1.29.0":     {python("0.1.0a20"), peers + "mcp_server.py"},
		"python-sdk 2.3.0":      {python("0.1.0a22"), peers + "mcp_server.py"},
		"libtmux-mcp 0.1.0a20":  {python("0.1.0a20"), peers + "libtmux_mcp_server.py", "--journal"},
		"libtmux-mcp 0.1.0a22":  {python("0.1.0a22"), peers + "libtmux_mcp_server.py", "--journal"},
	} {
		t.Run(name, func(t *testing.T) {
			const rounds, streams = 20, 200
			executed := 0
			for round := range rounds {
				h := newHostile(3, uint64(round))
				all := h.opening()
				for i := range streams {
					h.compose(fmt.Sprintf("s%d_", i))
					all += string(h.stream()) + "\n"
				}
				executed += throughProcess(t, name, argv, []byte(all+lastCall), h.stream())
			}
			if executed < rounds*streams/4 {
				t.Errorf("of %d streams only %d calls were executed", rounds*streams, executed)
			}
			t.Logf("%d streams, %d calls executed", rounds*streams, executed)
		})
	}
}

// throughProcess sends a server a stream that ends in lastCall and, once that
// was answered, the part without a line end.
func throughProcess(t *testing.T, name string, argv []string, stream, end []byte) (executed int) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "journal")
	cmd := exec.CommandContext(t.Context(), argv[0], append(argv[1:len(argv):len(argv)], journal)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, silent, written := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		in.Write(stream) // fails where the server is gone
		select {
		case <-last:
			in.Write(end)
		case <-silent:
		}
		in.Close()
	}()
	var n notes
	for r := bufio.NewReader(out); err == nil; {
		var line []byte
		line, err = r.ReadBytes('\n')
		n.Write(line)
		if bytes.Contains(line, []byte(`"id":"last"`)) {
			close(last)
		}
	}
	close(silent)
	<-written
	cmd.Wait() // each server has its own idea of the right exit code
	if err != io.EOF {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	l := (&passage{stream: append(stream, end...), limit: Limit}).run(func(*ledger, []byte) {})
	for line := range bytes.Lines(noted) {
		var tool string
		var args json.RawMessage
		if err := json.Unmarshal(line, &[]any{&tool, &args}); err != nil {
			t.Fatal(err)
		}
		n.add(methodCall, tool, []byte(anyArgs), nil)
		if string(args) != `"?"` {
			l.checkWords(t, name, tool, args)
		}
	}
	l.check(t, name, n.list)
	l.checkIDs(t, name, n.answered())
	return len(n.list)
}

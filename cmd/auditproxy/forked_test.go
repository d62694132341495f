package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"auditproxy/deploy/dev"
)

// forkedSDK returns the start of a command line that runs a script on the Python SDK
// of a release of libtmux-mcp.
func forkedSDK(t *testing.T, release string) []string {
	t.Helper()
	return forked(t, release, "sdk", "import anyio._backends._asyncio, anyio.to_thread, mcp.client.stdio, mcp.server.stdio, mcp.server.lowlevel")
}

// forkedLibtmux is forkedSDK with the server of libtmux-mcp.
func forkedLibtmux(t *testing.T, release string) []string {
	t.Helper()
	return forked(t, release, "libtmux", "import anyio._backends._asyncio, fastmcp.server.context, libtmux_mcp.server\nlibtmux_mcp.server.build_mcp_server()")
}

// forked returns the start of a command line that runs a script in a fork of a Python
// that has executed some statements. All tests share that one, which ends soon after
// them.
func forked(t *testing.T, release, name, statements string) []string {
	t.Helper()
	python := dev.Fetched(t, "libtmux-mcp-"+release, "bin", "python")
	script := filepath.Join(root(t), "deploy/dev/peers/forked.py")
	socket := dev.Share(t, name+release, func(own string) {
		cmd := exec.Command(python, script, "serve", own, statements)
		cmd.Env = environ()
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
			t.Fatalf("executing %q: %q, %v", statements, line, err)
		}
	})
	return []string{python, "-I", "-S", script, "run", socket}
}

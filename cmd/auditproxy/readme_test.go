package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the commands of the README in its order, in a home of their
// own with a client's configuration, and looks for the make targets that it
// names.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	bin := filepath.Dir(program(t))
	files := map[string]string{
		filepath.Join(bin, "libtmux-mcp"):   "#!/bin/sh\nexec cat\n",
		filepath.Join(home, ".claude.json"): `{"mcpServers":{"tmux":{"command":"libtmux-mcp"}}}`,
	}
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_keys","arguments":{"keys":"x"}}}` + "\n"
	commands := regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(string(readme), -1)
	ran := 0
	for _, m := range commands {
		// A broker that somebody runs there gets nothing of ours.
		line := strings.ReplaceAll(m[1], "127.0.0.1:19092", "127.0.0.1:1")
		switch {
		case strings.HasPrefix(line, "make "):
			if target := strings.Fields(line)[1]; !bytes.Contains(makefile, []byte("\n"+target+":")) {
				t.Errorf("README names %q, but the Makefile has no such target", line)
			}
			continue
		case !strings.Contains(line, "auditproxy ") || strings.HasPrefix(line, "install ") || strings.HasPrefix(line, "auditcollector "): // those run in cmd
			continue
		}
		ran++
		out, err := runReadme(t, line, bin, home, call)
		if err != nil {
			t.Errorf("README command %q: %v\n%s", line, err, out)
		}
	}
	if ran < 8 {
		t.Errorf("README has %d commands of this program, want all that a newcomer needs", ran)
	}
	t.Run("names files that exist", func(t *testing.T) {
		for _, m := range regexp.MustCompile(`\]\(([a-z][^):]*)\)`).FindAllStringSubmatch(string(readme), -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Error(err)
			}
		}
	})
}

// runReadme runs one line in a shell. What follows new lines is stopped once it
// has shown one.
func runReadme(t *testing.T, line, bin, home, in string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*ceiling)
	defer cancel()
	follow := strings.HasSuffix(line, " -f")
	if line == "auditproxy wrap" || line == "auditproxy unwrap" {
		in = "y\n"
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+strings.TrimPrefix(line, "exec "))
	if strings.Contains(line, "|") {
		c = exec.CommandContext(ctx, "/bin/sh", "-c", line)
	}
	c.Dir = home
	c.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "AUDITPROXY_SPOOL_DIR=" + home + "/spool", "PATH=" + bin + ":" + os.Getenv("PATH"), "PASSWORD=secret", "TZ=UTC"}
	c.Stdin = strings.NewReader(in)
	if !follow {
		return c.CombinedOutput()
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	first := make([]byte, 1<<10)
	n, err := stdout.Read(first)
	if err != nil || n == 0 {
		return first[:n], fmt.Errorf("it shows nothing: %w", err)
	}
	c.Process.Signal(os.Interrupt)
	c.Wait()
	return first[:n], nil
}

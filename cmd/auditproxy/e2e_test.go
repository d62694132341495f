package main_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/schemas/audit"
)

// soak selects the long forms of these tests; see the Makefile.
func soak() bool { return os.Getenv("SOAK") != "" }

// build compiles the package at path, from the root of the repository, as it is
// released, and returns the binary.
func build(t *testing.T, path string) string {
	t.Helper()
	return clitest.Build(t, filepath.Join("auditproxy", path))
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// environ is the environment of a wrapped server, with more added to it:
// without any tmux that the test runs in, and with a FastMCP that neither draws
// a banner nor checks for updates.
func environ(more ...string) []string {
	env := []string{
		"FASTMCP_SHOW_SERVER_BANNER=false", "FASTMCP_CHECK_FOR_UPDATES=off", "FASTMCP_LOG_LEVEL=ERROR",
		"PYTHONDONTWRITEBYTECODE=1",
	}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); {
		case name == "TMUX", name == "TMUX_PANE", strings.HasPrefix(name, "LIBTMUX_"), strings.HasPrefix(name, "AUDITPROXY_"):
		default:
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// records reads the spool at dir of a proxy that has ended.
func records(t *testing.T, dir string) (list []audit.Record) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(content) {
			kind, r, err := audit.ParseLine(bytes.TrimSuffix(line, []byte("\n")))
			switch {
			case err != nil:
				return errors.Join(err, errors.New(path))
			case kind == audit.LineRecord:
				list = append(list, r)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading spool: %v", err)
	}
	return list
}

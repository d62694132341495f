package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages whose commands are run, from the repository's root.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("looking for documents: found %d, %v", len(pages), err)
	}
	return append([]string{"../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md"}, pages...)
}

// TestReadmeLog compares the lines of the log in README.md with those that log prints.
func TestReadmeLog(t *testing.T) {
	printed := readFile(t, "testdata/log/short.txtar")
	lines := regexp.MustCompile(`(?m)^ {4}([0-9:.-]{8,} .*)$`).FindAllStringSubmatch(readFile(t, "../../README.md"), -1)
	for _, line := range lines {
		if !strings.Contains(printed, "\n"+line[1]) {
			t.Errorf("README.md has the line %q, which no line that log prints begins with", line[1])
		}
	}
	if len(lines) == 0 {
		t.Error("README.md has no line of the log: the pattern of this test no longer matches")
	}
}

// TestDocuments runs the commands of the documents, each in their order and in
// a home of its own with a client's configuration and the record of a call. It
// also looks for the make targets, tests and files that they name.
func TestDocuments(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(program(t))
	if err := os.WriteFile(filepath.Join(bin, "libtmux-mcp"), []byte("#!/bin/sh\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_keys","arguments":{"keys":"x"}}}` + "\n"
	commands := regexp.MustCompile(`(?m)^ {4,}(\S.*)$`)
	ran := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		home := t.TempDir()
		client := `{"mcpServers":{"tmux":{"command":"libtmux-mcp"}}}`
		if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(client), 0o600); err != nil {
			t.Fatal(err)
		}
		recorded := false
		for _, m := range commands.FindAllStringSubmatch(string(text), -1) {
			// A broker that already runs there must get no records of the test.
			line := strings.ReplaceAll(m[1], "127.0.0.1:19092", "127.0.0.1:1")
			switch indented := strings.HasPrefix(m[0], "     "); {
			case indented && !strings.HasPrefix(line, "go test "): // text of a list
				continue
			case strings.HasPrefix(line, "make "):
				if target := strings.Fields(line)[1]; !bytes.Contains(makefile, []byte("\n"+target+":")) {
					t.Errorf("%s names %q, but the Makefile has no such target", name, line)
				}
				continue
			case strings.HasPrefix(line, "go test "):
				checkGoTest(t, name, line)
				continue
			case !strings.HasPrefix(line, "auditproxy ") && !strings.Contains(line, "| auditproxy "): // those of auditcollector run in cmd
				continue
			}
			if !recorded && !strings.Contains(line, " -- ") {
				if out, err := runCommand(t, "auditproxy -- libtmux-mcp", bin, home, call); err != nil {
					t.Fatalf("recording a call: %v\n%s", err, out)
				}
			}
			recorded = true
			ran++
			if out, err := runCommand(t, line, bin, home, call); err != nil {
				t.Errorf("command %q of %s: %v\n%s", line, name, err, out)
			}
		}
		checkLinks(t, page, string(text))
	}
	if ran < 16 {
		t.Errorf("the documents have %d commands of this program, want at least 16: the patterns of this test no longer match", ran)
	}
}

// checkGoTest checks that the packages of a go test command exist, and that
// its -run matches a test in one of them.
func checkGoTest(t *testing.T, page, line string) {
	t.Helper()
	words := strings.Fields(line)
	var run string
	var sources []string
	for i, word := range words {
		switch {
		case word == "-run" && i+1 < len(words):
			run = strings.Trim(words[i+1], "'")
		case strings.HasPrefix(word, "./"):
			dir := filepath.Join("../..", strings.TrimSuffix(word, "/..."))
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil || len(files) == 0 && !strings.HasSuffix(word, "/...") {
				t.Errorf("%s names package %q of %q, which has no Go files", page, word, line)
			}
			sources = append(sources, files...)
		}
	}
	if run == "" {
		return
	}
	pattern, err := regexp.Compile(run)
	if err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
		return
	}
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)`).FindAllStringSubmatch(string(text), -1) {
			if pattern.MatchString(m[1]) {
				return
			}
		}
	}
	t.Errorf("%s has %q, which matches no test", page, line)
}

// checkLinks checks that the files that a page links to exist, and the
// headings that its links lead to.
func checkLinks(t *testing.T, page, text string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)(?:\]\(|^\[[a-z]+\]: )([^)\s]+)\)?`).FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], ":") {
			continue // elsewhere on the net
		}
		name, anchor, _ := strings.Cut(m[1], "#")
		target := filepath.Join(filepath.Dir(page), name)
		if name == "" {
			target = page
		}
		content, err := os.ReadFile(target)
		if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
			err = nil
		}
		if err != nil {
			t.Errorf("%s links to %q: %v", filepath.Base(page), m[1], err)
			continue
		}
		if anchor != "" && !hasHeading(string(content), anchor) {
			t.Errorf("%s links to %q, which has no such heading", filepath.Base(page), m[1])
		}
	}
}

// hasHeading reports whether a heading of the page has the anchor that GitHub
// gives it.
func hasHeading(page, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestSpoolIsDocumented checks that docs/operations.md has each file and directory
// that a call makes in the spool.
func TestSpoolIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	const policy = `{"version":"1","default":"allow","tools":{"x":{"limits":[{"counter":"c","window":"day","max":9,"scope":"user"}]}}}`
	if err := os.WriteFile(filepath.Join(home, "policy.json"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}` + "\n"
	if out, err := runCommand(t, "auditproxy --policy-file policy.json -- cat", filepath.Dir(program(t)), home, call); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths, err := filepath.Glob(home + "/spool/*")
	inSession, sessionErr := filepath.Glob(home + "/spool/sessions/*/*")
	if err = errors.Join(err, sessionErr); err != nil || len(paths) < 4 || len(inSession) < 4 {
		t.Fatalf("found %q and %q, %v", paths, inSession, err)
	}
	for _, path := range append(paths, inSession...) {
		row := "| `" + filepath.Base(path)
		if slices.Contains(inSession, path) {
			row = "| `sessions/SESSION_ID/" + filepath.Base(path)
		}
		if !bytes.Contains(page, []byte(row+"`")) && !bytes.Contains(page, []byte(row+"/")) {
			t.Errorf("docs/operations.md has no row that begins with %q", row)
		}
	}
}

// runCommand runs one line in a shell. A command that follows new lines is
// stopped once it has shown one.
func runCommand(t *testing.T, line, bin, home, in string) ([]byte, error) {
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

package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"auditproxy/cmd/internal/process"
	"auditproxy/deploy/dev"
)

// documents are the pages of the repository that are for people.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("looking for documents: found %d, %v", len(pages), err)
	}
	return append([]string{"../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"}, pages...)
}

// TestDocuments runs the documents' commands of auditcollector, in their order,
// on the record of one call. Those of auditproxy are tested with that program.
func TestDocuments(t *testing.T) {
	r := newReader(t, buildPrograms(t))
	ran := 0
	for _, page := range documents(t) {
		for _, m := range regexp.MustCompile(`(?m)^    (auditcollector .*)$`).FindAllStringSubmatch(readFile(t, page), -1) {
			// A broker that already runs there must get no records of the test.
			line := strings.NewReplacer("127.0.0.1:19092", "127.0.0.1:1", "/srv/export", r.dir).Replace(m[1])
			ran++
			if strings.HasPrefix(line, "auditcollector run") {
				r.collect(line)
				continue
			}
			if out, err := r.command(t.Context(), line).CombinedOutput(); err != nil {
				t.Errorf("command %q of %s: %v\n%s", line, filepath.Base(page), err, out)
			}
		}
	}
	r.stop()
	if ran < 8 {
		t.Errorf("the documents have %d commands of auditcollector, want at least 8: the pattern of this test no longer matches", ran)
	}
}

// TestReadmeIsShort checks that the README can be read in one go.
func TestReadmeIsShort(t *testing.T) {
	const maxLines, maxColumns = 150, 120
	lines := strings.Split(strings.TrimSuffix(readFile(t, "../README.md"), "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("README.md has %d lines, want at most %d: move details to docs/", len(lines), maxLines)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			t.Errorf("README.md:%d has %d columns, want at most %d", i+1, n, maxColumns)
		}
	}
}

// TestChangelog checks that no merge has left an entry twice, wrapped in two ways.
func TestChangelog(t *testing.T) {
	seen := map[string]bool{}
	for _, entry := range regexp.MustCompile(`\n(?:\* |## )`).Split(readFile(t, "../CHANGELOG.md"), -1) {
		if words := strings.Join(strings.Fields(entry), " "); seen[words] {
			t.Errorf("CHANGELOG.md has an entry twice: %.60s…", words)
		} else {
			seen[words] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("CHANGELOG.md has %d entries, want at least 100: the pattern of this test no longer matches", len(seen))
	}
}

// TestInstall runs the README's commands that install the programs, for a user who has
// installed nothing before.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin/auditproxy", "bin/auditcollector", ".tools/libchdb/libchdb.so"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := regexp.MustCompile(`(?m)^    ((?:mkdir|install) .*)$`).FindAllStringSubmatch(readFile(t, "../README.md"), -1)
	for _, m := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", m[1])
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("command %q of README.md: %v\n%s", m[1], err, out)
		}
	}
	for _, name := range []string{"auditproxy", "auditcollector", "libchdb.so"} {
		if info, err := os.Stat(filepath.Join(dir, ".local", "bin", name)); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s is not installed: %v", name, err)
		}
	}
}

// A reader runs the commands of the documents, in a home of its own.
type reader struct {
	t   *testing.T
	bin programs
	dir string

	// Owned by the test.
	running *exec.Cmd // auditcollector run; nil: none
}

// newReader returns a reader who has recorded a call.
func newReader(t *testing.T, bin programs) *reader {
	t.Helper()
	dir, err := os.MkdirTemp("", "rd") // short, for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &reader{t: t, bin: bin, dir: dir}
	record := r.command(t.Context(), "auditproxy -- cat")
	record.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_keys","arguments":{"keys":"x"}}}` + "\n")
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("recording a call: %v\n%s", err, out)
	}
	return r
}

func (r *reader) command(ctx context.Context, line string) *exec.Cmd {
	library := dev.Fetched(r.t, "libchdb", "libchdb.so")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+line)
	cmd.Dir = r.dir // for files that a command writes
	cmd.Env = []string{
		"HOME=" + r.dir, "PATH=" + string(r.bin) + ":" + os.Getenv("PATH"), "TZ=UTC",
		// The documented path, for a reader who is not root and may use the
		// port.
		"AUDITPROXY_SPOOL_DIR=" + r.dir + "/spool", "AUDITCOLLECTOR_SPOOL_DIRS=" + r.dir + "/spool", "AUDITCOLLECTOR_LOCAL_DIR=" + r.dir + "/local",
		"AUDITCOLLECTOR_LOCAL_LIBRARY=" + library, "AUDITCOLLECTOR_METRICS_LISTEN=127.0.0.1:0", "AUDITCOLLECTOR_REVIEW_LISTEN=127.0.0.1:0",
	}
	return cmd
}

// collect starts a collector in place of the running one, and waits until the
// call is in its store and the review page is served.
func (r *reader) collect(line string) {
	r.t.Helper()
	r.stop()
	cmd := r.command(context.Background(), line)
	cmd.Stderr = os.Stderr
	process.EndWithParent(cmd, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.running = cmd
	r.t.Cleanup(r.stop)
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		out, err := r.command(ctx, "auditcollector query --format json 'SELECT count() AS calls FROM audit.events WHERE tool = '\\''send_keys'\\'").Output()
		if err == nil && strings.TrimSpace(string(out)) == `{"calls":1}` && r.command(ctx, "auditcollector review link").Run() == nil {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatalf("command %q: after two minutes the store has %s", line, out)
		}
	}
}

// stop ends the collector that runs.
func (r *reader) stop() {
	if r.running == nil {
		return
	}
	if err := r.running.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Error(err)
	}
	if err := r.running.Wait(); err != nil {
		r.t.Errorf("command of a collector ends with %v", err)
	}
	r.running = nil
}

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

	"auditproxy/cmd/internal/process"
)

func TestReadme(t *testing.T) {
	p := buildPrograms(t)
	t.Run("commands", func(t *testing.T) { testReadmeCommands(t, p) })
}

// testReadmeCommands runs the README's commands of auditcollector, in their
// order, on the record of one call. Those of auditproxy run beside that program.
func testReadmeCommands(t *testing.T, p programs) {
	r := newReader(t, p)
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^    (auditcollector .*)$`).FindAllStringSubmatch(readFile(t, "../README.md"), -1) {
		// A broker that somebody runs there gets nothing of ours.
		line := strings.ReplaceAll(m[1], "127.0.0.1:19092", "127.0.0.1:1")
		ran++
		if strings.HasPrefix(line, "auditcollector run") {
			r.collect(line)
			continue
		}
		if out, err := r.command(t.Context(), line).CombinedOutput(); err != nil {
			t.Errorf("README command %q: %v\n%s", line, err, out)
		}
	}
	r.stop()
	if ran < 6 {
		t.Errorf("README has %d commands of auditcollector, want all that a newcomer needs", ran)
	}
}

// A reader does what the README says, in a home of its own.
type reader struct {
	t   *testing.T
	bin programs
	dir string

	// Owned by the test.
	running *exec.Cmd // auditcollector run; nil: none
}

// newReader returns one who has already recorded a call.
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
	library, err := filepath.Abs("../.tools/libchdb/libchdb.so")
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+line)
	cmd.Env = []string{
		"HOME=" + r.dir, "PATH=" + string(r.bin) + ":" + os.Getenv("PATH"), "TZ=UTC",
		// Where the README's reader has them, who is not root and may use the port.
		"AUDITPROXY_SPOOL_DIR=" + r.dir + "/spool", "AUDITCOLLECTOR_SPOOL_DIRS=" + r.dir + "/spool", "AUDITCOLLECTOR_LOCAL_DIR=" + r.dir + "/local",
		"AUDITCOLLECTOR_LOCAL_LIBRARY=" + library, "AUDITCOLLECTOR_METRICS_LISTEN=127.0.0.1:0", "AUDITCOLLECTOR_REVIEW_LISTEN=127.0.0.1:0",
	}
	return cmd
}

// collect starts a collector in place of the one that runs, and waits until
// the call is in its store and the review page is there.
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
			r.t.Fatalf("README command %q: after two minutes the store has %s", line, out)
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
		r.t.Errorf("README command of a collector ends with %v", err)
	}
	r.running = nil
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/sink/clickhouse/chdb"
)

// signed runs a session of a signing proxy with so many calls, and returns its id.
func (h home) signed(t *testing.T, calls int) string {
	t.Helper()
	sessions := filepath.Join(h.spoolDir(), "sessions", "*")
	before, _ := filepath.Glob(sessions)
	const answers = `while read line; do id=${line#*'"id":'}; echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%,*},\"result\":{\"content\":[]}}"; done`
	cmd := exec.Command(clitest.Build(t, "auditproxy/cmd/auditproxy"), "--spool-dir", h.spoolDir(), "--", "sh", "-c", answers)
	cmd.Env, cmd.Stderr = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH")}, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	answered := bufio.NewScanner(out)
	for id := range calls {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"list_keys","arguments":{}}}`+"\n", id)
		if !answered.Scan() {
			t.Fatalf("call %d has no answer: %v", id, answered.Err())
		}
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	after, err := filepath.Glob(sessions)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range after {
		if !slices.Contains(before, dir) {
			return filepath.Base(dir)
		}
	}
	t.Fatal("the proxy made no session")
	return ""
}

// TestRunVerifies runs a collector over the spool of signing proxies. It verifies
// their sessions by itself; a row that is changed later, without a new record,
// is found, and is an alert.
func TestRunVerifies(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	honest, changed := h.signed(t, 5), h.signed(t, 5)
	args := []string{"--batch-wait", "20ms", "--evidence-verify-every", "1m"}
	state := func(session string) string {
		return "SELECT state FROM audit.verifications WHERE session_id = '" + session + "' ORDER BY at DESC LIMIT 1"
	}
	is := func(question, want string) func() bool {
		return func() bool {
			got, err := h.query(chdb.Reader, question)
			return err == nil && got == want+"\n"
		}
	}
	// A collector verifies when it starts and then every minute. Another start is
	// sooner, once the mark of the last turn is gone.
	p := h.collect(t, args...)
	eventually(t, "the records are in the engine", h.counts(t, distinct, 16))
	change := func(sql string) {
		t.Helper()
		if _, err := h.query(chdb.Writer, sql); err != nil {
			t.Fatal(err)
		}
	}
	again := func() {
		t.Helper()
		change("ALTER TABLE audit.alert_marks DELETE WHERE kind = 'verification' SETTINGS mutations_sync = 2")
		if code := p.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
		p = h.collect(t, args...)
	}
	again()
	for _, session := range []string{honest, changed} {
		eventually(t, "session "+session+" is verified", is(state(session), "ok"))
	}
	change("ALTER TABLE audit.events UPDATE raw = replace(raw, 'list_keys', 'list_keyz') WHERE session_id = '" + changed + "' AND kind = 'call' AND call_no = 3 SETTINGS mutations_sync = 2")
	again()
	eventually(t, "the change is found", is(state(changed), "tampered"))
	eventually(t, "there is an alert", is("SELECT DISTINCT rule, severity, session_id FROM audit.alerts WHERE rule = 'records-tampered'", "records-tampered\tcritical\t"+changed))
	if got := h.ask(t, state(honest)); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("the other session is %q", got)
	}
}

package main_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
)

// A person at a terminal allows one call and denies the next. The server, which
// repeats its input, receives only the first.
func TestApprovalsAtTerminal(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	text := "version: \"1\"\ndefault: allow\ntools: {kill_server: {action: require_approval, reason: 'Really?'}}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environ("HOME="+dir, "TERM=xterm", "AUDITPROXY_SPOOL_DIR="+filepath.Join(dir, "spool"))
	if err := os.Mkdir(filepath.Join(dir, "spool"), 0o700); err != nil {
		t.Fatal(err)
	}

	master, slave := dev.Terminal(t)
	person := exec.CommandContext(t.Context(), proxy, "approvals", "-f")
	person.Env, person.Dir, person.Stdin, person.Stdout, person.Stderr = env, dir, slave, slave, slave
	if err := person.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	screen := make(chan string, 1000)
	go func() {
		defer close(screen)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf) // ends with EIO when no process has the terminal open
			if err != nil {
				return
			}
			screen <- string(buf[:n])
		}
	}()
	shown := ""
	sees := func(want string) {
		t.Helper()
		timeout := time.After(time.Minute)
		for !strings.Contains(shown, want) {
			select {
			case part, more := <-screen:
				if !more {
					t.Fatalf("the terminal shows %q and ends, want %q", shown, want)
				}
				shown += part
			case <-timeout:
				t.Fatalf("the terminal shows %q, want %q", shown, want)
			}
		}
		_, shown, _ = strings.Cut(shown, want)
	}
	sees("waiting for calls")

	wrapped := exec.CommandContext(t.Context(), proxy, "--policy-file", policy, "--", "cat")
	wrapped.Env, wrapped.Dir, wrapped.Stderr = env, dir, os.Stderr
	in, err := wrapped.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := wrapped.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := wrapped.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for _, call := range []struct{ id, typed, said, answer string }{
		{"1", "a\n", "allowed once", `"id":1,"method":"tools/call"`},
		{"2", "d\n", "denied", "A person was asked about this call and denied it."},
	} {
		io.WriteString(in, `{"jsonrpc":"2.0","id":`+call.id+`,"method":"tools/call","params":{"name":"kill_server","arguments":{}}}`+"\n")
		sees("\a")
		sees("kill_server")
		sees("Really?")
		sees("[a]llow once, [s]ession, [d]eny; or the word always or skip: ")
		io.WriteString(master, call.typed)
		sees(call.said)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, call.answer) {
			t.Errorf("call %s: the client gets %q, %v, want %q", call.id, line, err, call.answer)
		}
	}
	in.Close()
	io.Copy(io.Discard, lines)
	if err := wrapped.Wait(); err != nil {
		t.Errorf("the proxy ends with %v", err)
	}
	person.Process.Signal(os.Interrupt)
	if err := person.Wait(); err != nil {
		t.Errorf("approvals -f ends with %v", err)
	}
	for range screen {
	}
}

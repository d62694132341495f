package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestCredentialsStayOutOfRecovery kills the proxy with calls open, leaves a
// torn line, and makes the next proxy recover it.
func TestCredentialsStayOutOfRecovery(t *testing.T) {
	s := newSweep(t, build(t, "./cmd/auditproxy"))
	for _, c := range credentials {
		for _, p := range positions {
			s.traffic.say(p, quoteInner(c.text))
		}
	}
	logged := s.runKilled(t)
	s.tear(t)
	dead := s.prints(t, "log", "-o", "wide")
	logged = append(logged, s.recover(t)...)

	written := s.written(t)
	for _, c := range credentials {
		for what, text := range map[string][]byte{"log of it": logged, "spool": written, "auditproxy log of the dead session": dead} {
			if form := leak(text, c.hidden()); form != "" {
				t.Errorf("%s: the %s has %s", c.format, what, form)
			}
		}
	}
	if torn, _ := filepath.Glob(filepath.Join(s.spool, "sessions", "*", "*.torn-*")); len(torn) != 1 {
		t.Errorf("%d torn ends were kept, want 1", len(torn))
	}
	unknown := 0
	for _, r := range records(t, s.spool) {
		if r.Outcome == audit.OutcomeUnknown {
			unknown++
		}
	}
	// At least the calls that the server does not answer.
	if unknown < len(credentials) {
		t.Errorf("%d calls ended as unknown, want %d or more", unknown, len(credentials))
	}
}

// runKilled has client and server send all of it, and kills the proxy.
func (s *sweep) runKilled(t *testing.T) (logged []byte) {
	t.Helper()
	cmd := s.command(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, stdout := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go stdin.Write(s.traffic.client) // ends with the process
	if _, err := io.ReadFull(stdout, make([]byte, len(s.traffic.answers()))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // reports that it was killed
	return stderr.Bytes()
}

// recover runs another proxy until it reports that it recovered the first one's
// session.
func (s *sweep) recover(t *testing.T) (logged []byte) {
	t.Helper()
	s.traffic = traffic{}
	cmd := s.command(t)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, _ := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	for !bytes.Contains(logged, []byte("session recovered")) {
		line, err := lines.ReadBytes('\n')
		if logged = append(logged, line...); err != nil {
			t.Fatalf("no session was recovered: %v\n%s", err, logged)
		}
	}
	stdin.Close()
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return append(logged, rest...)
}

// tear adds a line without its end to the last segment, as a write leaves it
// when the proxy dies in the middle.
func (s *sweep) tear(t *testing.T) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(s.spool, "sessions", "*", "*.jsonl"))
	if err != nil || len(list) == 0 {
		t.Fatalf("there is no segment (%v)", err)
	}
	segment := slices.Max(list)
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
	if err := os.WriteFile(segment, append(content, content[last:len(content)-5]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCredentialsStayOutOfOversizeCalls sends calls that are only partly kept in
// memory: credentials are names, values, and the text before and behind.
func TestCredentialsStayOutOfOversizeCalls(t *testing.T) {
	const size = 17 << 20
	s := newSweep(t, build(t, "./cmd/auditproxy"))
	for some := range slices.Chunk(credentials, 9) {
		var args strings.Builder
		args.WriteString(`{"Marmalade":1`)
		for _, c := range some {
			for _, e := range encodings { // 55 names: 64 are kept
				fmt.Fprintf(&args, `,"%s":"%s"`, e.of(c.text), e.of(c.text))
			}
		}
		c, d := quoteInner(some[0].text), quoteInner(some[1].text)
		unit := c + " " + d + " "
		fmt.Fprintf(&args, `,"pane_id":"%s"}`, strings.Repeat(unit, size/len(unit)))
		s.traffic.say(position{
			client: `{"jsonrpc":"2.0","params":{"arguments":` + args.String() + `,"name":"` + c + `","Name":"` + d + `","_meta":{"client_id":"` + d + `"}},"method":"tools/call","id":"` + c + `"}`,
			server: `{"jsonrpc":"2.0","id":"` + c + `","result":{}}`,
		}, "")
	}
	text := append(s.run(t), s.written(t)...)
	text = append(text, s.prints(t, "log", "-o", "wide")...)
	for _, c := range credentials {
		if form := leak(text, c.hidden()); form != "" {
			t.Errorf("%s: %s", c.format, form)
		}
	}
	oversize := 0
	for _, r := range records(t, s.spool) {
		if r.Kind == audit.KindCall && slices.Contains(r.Anomalies, "oversize") && strings.Contains(string(r.Args), `"Marmalade"`) {
			oversize++
		}
	}
	if oversize != 3 {
		t.Errorf("%d oversize calls are recorded with the names of their arguments, want 3", oversize)
	}
}

// TestCredentialsStayOutOfMessages makes the program report problems in its
// arguments and environment.
func TestCredentialsStayOutOfMessages(t *testing.T) {
	proxy, dir := build(t, "./cmd/auditproxy"), t.TempDir()
	for _, c := range credentials {
		flag, path := "--"+c.text, "/dev/null/"+c.text
		if strings.HasPrefix(c.text, "-") {
			flag = c.text
		}
		if strings.Contains(c.text, "//") {
			path = "/dev/null/x" // paths have one slash only, and so no URLs
		}
		for _, args := range [][]string{
			{"--", c.text},
			{"--", "./" + c.text},
			{"--", c.text, "${HOME}"},
			{c.text},
			{"wrong-word", "--", c.text},
			{flag},
			{"--labels=" + c.text + "," + c.text, "--", "true"},
			{"--labels=x=1," + c.text + "=1,x=2", "--tiers=" + c.text + " x", "--", "true"},
			{"--drain", c.text, "--", "true"},
			{"--config", path, "--", "true"},
			{"--spool-dir", path, "--", "true"},
			{"--redact-key-file", path, "--", "true"},
			{"--spool-dir", path, "log"},
			{"--spool-dir", path, "verify"},
			{"log", "--since", c.text},
			{"show", c.text},
			{"digest", "--domain", c.text},
			{"wrap", path},
			{"doctor", "--tenant", c.text, "--spool-dir", path},
		} {
			cmd := exec.CommandContext(t.Context(), proxy, args...)
			cmd.Env, cmd.Dir = environ("HOME="+dir), dir
			out, err := cmd.CombinedOutput()
			if err == nil || len(out) == 0 {
				t.Errorf("%s: auditproxy %q: %v, says %q", c.format, args, err, out)
			}
			if form := leak(out, c.hidden()); form != "" {
				t.Errorf("%s: auditproxy %q prints %s", c.format, args, form)
			}
		}
	}
}

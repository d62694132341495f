package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestLibtmuxSideBySide drives a session over every tool of libtmux-mcp and
// compares each line of the server's own audit log with the proxy's record: under
// the profile libtmux they agree.
func TestLibtmuxSideBySide(t *testing.T) {
	t.Parallel()
	proxy := build(t, "./cmd/auditproxy")
	for _, tt := range []struct{ release, allTools string }{
		{"0.1.0a20", "LIBTMUX_SAFETY=destructive"},
		{"0.1.0a22", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown"},
	} {
		t.Run(tt.release, func(t *testing.T) {
			s := newTmuxSession(t, tt.release, tt.allTools)
			spool := filepath.Join(s.dir, "spool")
			s.run(t, proxy, "--spool-dir", spool, "--redact-profile", "libtmux", "--")
			compare(t, s.auditLog(t), records(t, spool))
		})
	}
}

// A tmuxSession is a tmux server of its own and a libtmux-mcp that works on it
// and writes its audit log down.
type tmuxSession struct {
	release string
	dir     string // short, because the tmux socket lies in it
	env     []string
	server  []string // the command line of libtmux-mcp
}

func newTmuxSession(t *testing.T, release, allTools string) *tmuxSession {
	t.Helper()
	dev.Command(t, "tmux")
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &tmuxSession{
		release: release,
		dir:     dir,
		env:     environ("TMUX_TMPDIR="+dir, "LIBTMUX_SOCKET=test", "SHELL=/bin/sh", "HOME="+dir, allTools),
		server: []string{
			dev.Fetched(t, "libtmux-mcp-"+release, "bin", "python"),
			filepath.Join(root(t), "deploy/dev/peers/libtmux_mcp_server.py"),
			"--audit", filepath.Join(dir, "audit"),
		},
	}
	if out, err := s.tmux("-f", "/dev/null", "new-session", "-d", "-s", "base", "-x", "120", "-y", "40").CombinedOutput(); err != nil {
		t.Fatalf("starting tmux: %v\n%s", err, out)
	}
	// The session under test kills the server: an error here is ignored.
	t.Cleanup(func() { s.tmux("kill-server").Run() })
	return s
}

func (s *tmuxSession) tmux(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-L", "test"}, args...)...)
	cmd.Env = s.env
	return cmd
}

// run makes the calls of testdata/libtmux_session.jsonl, one after the other,
// with prefix before the server's command line. Some are meant to fail.
func (s *tmuxSession) run(t *testing.T, prefix ...string) {
	t.Helper()
	argv := slices.Concat(prefix, s.server)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.env
	var log bytes.Buffer
	cmd.Stderr = &log
	client := mcp.NewClient(&mcp.Implementation{Name: "side-by-side", Version: "1"}, nil)
	// The SDK's five seconds for the server's end are not enough beside busy cores.
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Minute}, nil)
	if err != nil {
		t.Fatalf("connecting: %v\n%s", err, &log)
	}
	defer session.Close()
	unused := s.tools(t, session)
	vars := map[string]string{"dir": s.dir, "long": strings.Repeat("äß☃𝄞", 60)}
	for _, c := range s.calls(t) {
		result, err := session.CallTool(t.Context(), c.params(vars))
		if err != nil {
			t.Fatalf("calling %q: %v\n%s", c.Tool, err, &log)
		}
		delete(unused, c.Tool)
		remember(vars, result)
	}
	if len(unused) > 0 {
		t.Errorf("the session leaves out %v", unused)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing: %v\n%s", err, &log)
	}
}

func (s *tmuxSession) tools(t *testing.T, session *mcp.ClientSession) map[string]bool {
	t.Helper()
	tools := make(map[string]bool)
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatalf("listing tools: %v", err)
		}
		tools[tool.Name] = true
	}
	if len(tools) < 50 {
		t.Fatalf("the server has %d tools, want all of them", len(tools))
	}
	return tools
}

type tmuxCall struct {
	Tool      string
	Release   string // the only release that has the tool, "" for all
	Arguments json.RawMessage
	ClientID  string `json:"client_id"`
}

func (s *tmuxSession) calls(t *testing.T) (calls []tmuxCall) {
	t.Helper()
	f, err := os.Open("testdata/libtmux_session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var c tmuxCall
		switch err := dec.Decode(&c); {
		case err == io.EOF:
			return calls
		case err != nil:
			t.Fatal(err)
		case cmp.Or(c.Release, s.release) == s.release:
			calls = append(calls, c)
		}
	}
}

// params replaces `${name}` in c's arguments by its value in vars.
func (c *tmuxCall) params(vars map[string]string) *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: c.Tool}
	if c.Arguments != nil {
		text := os.Expand(string(c.Arguments), func(name string) string { return vars[name] })
		p.Arguments = json.RawMessage(text)
	}
	if c.ClientID != "" {
		p.Meta = mcp.Meta{"client_id": c.ClientID}
	}
	return p
}

// remember keeps the strings of an answer for the calls after it.
func remember(vars map[string]string, result *mcp.CallToolResult) {
	fields, _ := result.StructuredContent.(map[string]any)
	for name, v := range fields {
		if text, ok := v.(string); ok && !result.IsError {
			vars[name] = text
		}
	}
}

// A serverLine is one line of libtmux-mcp's own audit log.
type serverLine struct {
	Tool      string
	Outcome   audit.Outcome
	ClientID  string          `json:"client_id"`
	RequestID json.RawMessage `json:"request_id"`
	Args      json.RawMessage
}

func (s *tmuxSession) auditLog(t *testing.T) (lines []serverLine) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(content) {
		var l serverLine
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("reading the server's log: %v\n%s", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

// compare compares the lines of the server's log with the calls in list. A
// batch has a line for each call in it that was executed, with the request id
// of the batch and before its own line; the record of the batch has them as
// operations.
func compare(t *testing.T, lines []serverLine, list []audit.Record) {
	t.Helper()
	calls := slices.DeleteFunc(list, func(r audit.Record) bool { return r.Kind != audit.KindCall })
	for _, r := range calls {
		var own []serverLine
		for len(lines) > 0 && requestID(lines[0]) == r.RequestID {
			own, lines = append(own, lines[0]), lines[1:]
		}
		if len(own) == 0 {
			t.Errorf("%s %q has a record and no line in the server's log", r.RequestID, r.Tool)
			continue
		}
		outer := own[len(own)-1]
		got := map[string]any{"tool": r.Tool, "outcome": r.Outcome, "client_id": r.ClientID, "args": value(t, []byte(r.Args))}
		want := map[string]any{"tool": outer.Tool, "outcome": outer.Outcome, "client_id": outer.ClientID, "args": value(t, outer.Args)}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("request %s, the server's log and our record:\n%s", r.RequestID, diff)
		}
		compareInner(t, own[:len(own)-1], &r)
	}
	for _, l := range lines {
		t.Errorf("%q of request %s is in the server's log and has no record", l.Tool, l.RequestID)
	}
}

// compareInner checks that each of lines is one of r's operations. Operations
// that the server refused have no line.
func compareInner(t *testing.T, lines []serverLine, r *audit.Record) {
	t.Helper()
	ops := audit.Operations(r)
	for _, l := range lines {
		i := slices.IndexFunc(ops, func(o audit.Operation) bool {
			return o.Path != "" && o.Tool == l.Tool && gocmp.Equal(value(t, []byte(o.Args)), value(t, l.Args))
		})
		if i < 0 {
			t.Errorf("request %s: %q with %s, which the server executed, is not among the operations left, %+v", r.RequestID, l.Tool, l.Args, ops)
			continue
		}
		ops = ops[i+1:]
	}
}

func requestID(l serverLine) string { return strings.Trim(string(l.RequestID), `"`) }

// value decodes b with its numbers as they are written.
func value(t *testing.T, b []byte) (v any) {
	t.Helper()
	if len(b) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("decoding %q: %v", b, err)
	}
	return v
}

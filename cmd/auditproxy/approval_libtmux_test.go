package main_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestLibtmuxAsks asks people through files about the end of a session: an
// approved call ends it. A call that is denied, is cancelled or ends with the
// agent does not reach the server. Other requests are answered meanwhile.
func TestLibtmuxAsks(t *testing.T) {
	t.Parallel()
	s := newTmuxSession(t, "0.1.0a22", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown")
	for _, name := range []string{"approved", "denied", "cancelled", "left"} {
		if out, err := s.tmux("new-session", "-d", "-s", name).CombinedOutput(); err != nil {
			t.Fatalf("starting a session: %v\n%s", err, out)
		}
	}
	file := filepath.Join(s.dir, "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":"1","default":"allow","tools":{"kill_session":{"action":"require_approval"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	spool := filepath.Join(s.dir, "spool")
	c := s.connect(t, build(t, "./cmd/auditproxy"), "--policy-file", file, "--spool-dir", spool, "--approval-channels", "files", "--")
	dir, err := approval.Open(approval.Config{Dir: filepath.Join(spool, "approvals"), Own: true, SameUser: true, People: true})
	if err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		result *mcp.CallToolResult
		err    error
	}
	kill := func(ctx context.Context, name string) <-chan outcome {
		over := make(chan outcome, 1)
		go func() {
			result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "kill_session", Arguments: map[string]any{"session_name": name}})
			over <- outcome{result, err}
		}()
		return over
	}
	alive := func(name string) bool { return s.tmux("has-session", "-t", "="+name).Run() == nil }
	for _, approved := range []bool{true, false} {
		name := map[bool]string{true: "approved", false: "denied"}[approved]
		over := kill(t.Context(), name)
		q := waitingQuestion(t, dir)
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Errorf("listing tools while a call waits: %v", err)
		}
		if result, denied := c.call(t, &mcp.CallToolParams{Name: "list_sessions", Arguments: map[string]any{}}); denied || result.IsError {
			t.Errorf("another call while one waits: %v", result)
		}
		if !alive(name) {
			t.Errorf("session %s ended before an answer", name)
		}
		if err := dir.Give(&q, approval.Answer{Approved: approved, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if got := <-over; got.err != nil || got.result.IsError == approved {
			t.Errorf("%s: result %v, error %v", name, got.result, got.err)
		}
		if alive(name) == approved {
			t.Errorf("session %s is alive: %t", name, !approved)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := kill(ctx, "cancelled")
	waitingQuestion(t, dir)
	cancel()
	if got := <-over; got.err == nil {
		t.Errorf("a cancelled call has the result %v", got.result)
	}
	noQuestion(t, dir)
	over = kill(t.Context(), "left")
	waitingQuestion(t, dir)
	if err := c.stdin.Close(); err != nil {
		t.Error(err)
	}
	if got := <-over; got.err == nil && !got.result.IsError {
		t.Errorf("a call of an agent that ended has the result %v", got.result)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the proxy: %v\n%s", err, &c.log)
	}
	noQuestion(t, dir)
	for _, name := range []string{"denied", "cancelled", "left"} {
		if !alive(name) {
			t.Errorf("session %s ended", name)
		}
	}
	var executed, outcomes []string
	for _, l := range s.auditLog(t) {
		if l.Tool == "kill_session" {
			executed = append(executed, string(l.Args))
		}
	}
	if len(executed) != 1 || !strings.Contains(executed[0], "approved") {
		t.Errorf("the server executed %q", executed)
	}
	for _, r := range records(t, spool) {
		if r.Tool != "kill_session" {
			continue
		}
		a, err := audit.ParseApproval(r.Approval)
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, a.Outcome)
		if r.Forwarded != (a.Outcome == "approved") {
			t.Errorf("call %d is %s and forwarded %t", r.CallNo, a.Outcome, r.Forwarded)
		}
	}
	if want := []string{"approved", "denied", "cancelled", "cancelled"}; !slices.Equal(outcomes, want) {
		t.Errorf("the approvals are %q, want %q", outcomes, want)
	}
}

// waitingQuestion waits for the only question.
func waitingQuestion(t *testing.T, dir *approval.Dir) approval.Question {
	t.Helper()
	list := questionsAre(t, dir, 1)
	return list[0]
}

func noQuestion(t *testing.T, dir *approval.Dir) {
	t.Helper()
	questionsAre(t, dir, 0)
}

// questionsAre waits until so many questions wait.
func questionsAre(t *testing.T, dir *approval.Dir, n int) []approval.Question {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		list, err := dir.Waiting()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == n {
			return list
		}
		if time.Now().After(end) {
			t.Fatalf("%d questions wait, want %d", len(list), n)
		}
	}
}

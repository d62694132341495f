package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type arguments = map[string]any

// A call is one tool call and its purpose in the demo.
type call struct {
	tool string
	args arguments
	why  string
	fail bool // the call is meant to fail

	answer string // what the approver types; "": the call needs no approval
}

// calls are the agent's calls. The first pane of the session it makes is %1.
func (d *demo) calls() []call {
	typed := "export DB_PASSWORD=" + d.secret + "; echo connecting with $DB_PASSWORD"
	return []call{
		{"create_session", arguments{"session_name": "deploy", "environment": arguments{"API_TOKEN": d.secret}}, "a secret in the new shell's environment", false, ""},
		{"send_keys", arguments{"pane_id": "%1", "keys": typed}, "a secret typed into the shell", false, ""},
		{"set_environment", arguments{"name": "DB_PASSWORD", "value": d.secret, "session_name": "deploy"}, "a secret for later shells", false, ""},
		{"pipe_pane", arguments{"pane_id": "%1", "output_path": d.pipeFile()}, "the terminal copied to a file: the path stays readable", false, ""},
		{"send_keys_batch", arguments{"operations": []arguments{
			{"pane_id": "%1", "keys": "echo again: " + d.secret},
			{"pane_id": "%1", "keys": "echo done"},
		}}, "two secrets in one call", false, ""},
		{"wait_for_text", arguments{"pane_id": "%1", "patterns": []string{"nothing prints this"}, "timeout": 0.5}, "half a second to print", false, ""},
		{"capture_pane", arguments{"pane_id": "%1"}, "reads the terminal, secret and all; answers are never recorded", false, ""},
		{"capture_pane", arguments{"pane_id": "%99"}, "an error: there is no such pane", true, ""},
		{"call_read_tools_batch", arguments{"operations": []arguments{
			{"tool": "list_sessions", "arguments": arguments{}},
			{"tool": "get_pane_info", "arguments": arguments{"pane_id": "%1"}},
		}}, "a batch: one call that is two operations", false, ""},
		{"create_session", arguments{"session_name": "scratch"}, "a session that nobody needs", false, ""},
		{"kill_session", arguments{"session_name": "scratch"}, "a person is asked, and allows it once", false, "a"},
		{"kill_session", arguments{"session_name": "deploy"}, "a person is asked, and denies it", true, "d"},
	}
}

// session plays an agent: a client of the official Go SDK that believes it
// talks to libtmux-mcp.
func (d *demo) session(ctx context.Context) error {
	d.out.heading("An agent at work, through the proxy")
	log, err := os.OpenFile(d.proxyLog(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	defer log.Close()
	if err := d.startApprover(ctx); err != nil {
		return err
	}
	args := append(d.brokers(), "--policy-file", d.policyFile(), "--log-level", "debug", "--", d.python, d.server, "--audit", d.serverLog())
	d.out.command("auditproxy", args...)
	cmd := exec.Command(d.proxy, args...)
	cmd.Env, cmd.Stderr = d.environ(), log
	client := mcp.NewClient(&mcp.Implementation{Name: "demo-agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		return fmt.Errorf("connecting (see %s): %w", d.proxyLog(), err)
	}
	// A second Close is harmless; this one is for early returns.
	defer session.Close()
	// As agents do first; the proxy learns the tools' tiers from the answer.
	if _, err := session.ListTools(ctx, nil); err != nil {
		return fmt.Errorf("listing tools (see %s): %w", d.proxyLog(), err)
	}
	for _, c := range d.calls() {
		if err := d.make(ctx, session, c); err != nil {
			return err
		}
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("closing session (see %s): %w", d.proxyLog(), err)
	}
	return nil
}

func (d *demo) make(ctx context.Context, session *mcp.ClientSession, c call) error {
	args, err := json.Marshal(c.args)
	if err != nil {
		return fmt.Errorf("encoding arguments of %q: %w", c.tool, err)
	}
	answered := make(chan error, 1)
	go func() { answered <- d.answer(ctx, c.tool, c.answer) }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return fmt.Errorf("calling %q: %w", c.tool, err)
	}
	if err := <-answered; err != nil {
		return err
	}
	if result.IsError != c.fail {
		return fmt.Errorf("calling %q: it is an error: %t, expected: %t", c.tool, result.IsError, c.fail)
	}
	d.out.text("%-22s %s\n%s\n", c.tool, c.why, d.out.styled(faint, "  "+strings.ReplaceAll(string(args), d.secret, d.out.styled(red, d.secret)+d.out.faintAgain())))
	return nil
}

// faintAgain resumes the faint style after another one has ended it.
func (s *screen) faintAgain() string {
	if !s.color {
		return ""
	}
	return faint
}

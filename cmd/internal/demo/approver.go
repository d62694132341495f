package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// policySource is a policy that asks a person before a session is killed.
const policySource = `version: "1"
default: allow
tools:
  kill_session: {action: require_approval, reason: Somebody may be working there.}
`

// patience is how long the demo waits for its own approver.
const patience = time.Minute

// approver runs tmux on the socket of the approver, whose terminal the agent does
// not reach.
func (d *demo) approver(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-L", "approver", "-f", "/dev/null"}, args...)...)
	cmd.Env = d.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running tmux %s for the approver: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// startApprover starts a terminal for the approver, which waits for questions.
func (d *demo) startApprover(ctx context.Context) error {
	if err := os.WriteFile(d.policyFile(), []byte(policySource), 0o600); err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	if err := os.MkdirAll(d.approvals(), 0o700); err != nil {
		return fmt.Errorf("making the directory of questions: %w", err)
	}
	_, err := d.approver(ctx, "new-session", "-d", "-x", "140", "-y", "30", d.proxy, "approvals", "-f")
	if err != nil {
		return err
	}
	d.undo = append(d.undo, func() error {
		_, err := d.approver(context.WithoutCancel(ctx), "kill-server")
		return err
	})
	return nil
}

// answer waits for the question about a call of tool, types choice, and shows the
// approver's terminal. It does nothing if choice is "".
func (d *demo) answer(ctx context.Context, tool, choice string) error {
	if choice == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		text, err := d.approver(ctx, "capture-pane", "-p")
		if err != nil {
			return err
		}
		if text = strings.TrimRight(text, " \n"); strings.HasSuffix(text, "skip:") {
			d.out.text("%s\n", d.out.styled(bold, "At the approver's terminal, auditproxy approvals -f:"))
			asked := strings.TrimSpace(text[strings.LastIndex(text, "\n\n")+1:])
			d.out.text("  | %s %s\n", strings.ReplaceAll(asked, "\n", "\n  | "), d.out.styled(bold, choice))
			_, err = d.approver(ctx, "send-keys", choice, "Enter")
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.New("nobody was asked about " + tool)
		}
	}
}

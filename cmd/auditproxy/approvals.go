package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"auditproxy/cmd/internal/approvals"
	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/mcpproxy/approval"

	"github.com/spf13/cobra"
)

const approvalsLong = `List the calls that wait until a person allows them, the oldest first: the id, who
asked, the tool, its risk, what was found in the arguments, the rule that asks, and
the redacted arguments.

With -f it watches, rings the bell and asks about each call at the terminal:
[a]llow once, [s]ession, [d]eny; the word always allows this tool of this server
from now on, for calls with nothing worse found in them; skip leaves the call to
others. Without a terminal, or with --format json, it prints calls as they come.

Questions are in approval.dir. Whose answers count is said by the proxy that asks:
see approval.approvers and approval.same_user in its configuration.

The exit code is 2 if the spool or a question could not be read.`

func newApprovalsCmd(a *app) *cobra.Command {
	var follow, colour, noColour bool
	var format string
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "list the calls that wait for a person, and answer them",
		Long:  approvalsLong,
		Example: `  auditproxy approvals
  auditproxy approvals -f
  auditproxy approvals approve 019e8b1c-5a2f --session
  auditproxy approvals --format json | jq .calls`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			if colour && noColour {
				return errors.New("--color and --no-color are both set")
			}
			return a.approvals(cmd, follow, format == "json", colour || a.colours(a.stdout) && !noColour)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "watch, and ask about each call at a terminal")
	f.BoolVar(&colour, "color", false, "print colours even if the output is not a terminal")
	f.BoolVar(&noColour, "no-color", false, "no colours")
	cli.AddFormat(cmd, &format)
	cmd.AddCommand(newApproveCmd(a), newDenyCmd(a), newAllowedCmd(a), newRevokeCmd(a))
	return cmd
}

// settle is the time after a change of questions in which input may be meant for
// the previous one.
const settle = time.Second

func (a *app) approvals(cmd *cobra.Command, follow, asJSON, colour bool) error {
	s, err := a.openApprovals(asJSON, colour)
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	if keyboard, ok := a.stdin.(*os.File); follow && ok && !asJSON && terminal.IsTerminal(keyboard) && terminal.IsTerminal(a.stdout) {
		return s.Ask(ctx, approvals.Asker{Keyboard: keyboard, By: approvals.Name(a.getenv), Settle: settle})
	}
	if follow {
		return s.Follow(ctx)
	}
	n, err := s.List()
	if err == nil && n == 0 && terminal.IsTerminal(a.stdout) {
		a.say(errors.New("no call waits"))
	}
	return err
}

// openApprovals opens the directory of the configuration for people.
func (a *app) openApprovals(asJSON, colour bool) (*approvals.Session, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, err
	}
	if cfg.approval.files.Own { // approval.dir is in the spool, and made when a proxy first asks
		if err := view.CheckSpool(cfg.spoolDir); err != nil {
			return nil, fmt.Errorf("reading questions: %w", err)
		}
	}
	c := approvals.Config{Files: cfg.approval.files, JSON: asJSON, Colour: colour, Stdout: a.stdout, Say: a.say}
	if terminal.IsTerminal(a.stdout) {
		c.Cells = terminal.Width(a.stdout)
	}
	return approvals.Open(c)
}

const approveLong = `Allow one call that waits, and print which it was. The beginning of its id is
enough where no other starts like it. The answer belongs to the user who runs this
command; the proxy counts it only if that user may answer.

With --session later calls of this tool are allowed until the proxy ends, with
--always in every session of this server, if nothing worse is found in them. "auditproxy
approvals allowed" lists what is always allowed.

The exit code is 1 if the answer does not count: the call no longer waits, somebody
else was first, or this user may not answer. It is 2 if the proxy did not take the
answer within 3 seconds.`

func newApproveCmd(a *app) *cobra.Command {
	var session, always bool
	answer := approval.Answer{Approved: true, Scope: approval.Once}
	cmd := answerCmd(a, &answer, func() error {
		switch {
		case session && always:
			return errors.New("--session and --always are both set")
		case session:
			answer.Scope = approval.Session
		case always:
			answer.Scope = approval.Always
		}
		return nil
	})
	cmd.Use, cmd.Short, cmd.Long = "approve ID", "allow a call that waits", approveLong
	cmd.Example = "  auditproxy approvals approve 019e8b1c-5a2f\n  auditproxy approvals approve 019e8b1c-5a2f --session --by Ann"
	cmd.Flags().BoolVar(&session, "session", false, "allow the tool until the proxy ends")
	cmd.Flags().BoolVar(&always, "always", false, "allow the tool in every session of this server")
	return cmd
}

const denyLong = `Deny one call that waits, and print which it was. The agent gets an error. The exit
codes are those of approve.`

func newDenyCmd(a *app) *cobra.Command {
	answer := approval.Answer{Scope: approval.Once}
	cmd := answerCmd(a, &answer, func() error { return nil })
	cmd.Use, cmd.Short, cmd.Long = "deny ID", "deny a call that waits", denyLong
	cmd.Example = "  auditproxy approvals deny 019e8b1c-5a2f"
	return cmd
}

// answerCmd is what approve and deny share.
func answerCmd(a *app, answer *approval.Answer, check func() error) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the id of one call, got %d: auditproxy approvals lists them", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(cli.CheckFormat(format), check()); err != nil {
				return err
			}
			if !cmd.Flags().Changed("by") {
				answer.By = approvals.Name(a.getenv)
			}
			s, err := a.openApprovals(format == "json", a.colours(a.stdout))
			if err != nil {
				return err
			}
			ctx, stop := cli.Interruptible(cmd.Context())
			defer stop()
			return s.Answer(ctx, args[0], *answer)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			s, err := a.openApprovals(false, false)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.IDs(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&answer.By, "by", "", "`NAME` of who answers, for the record; default: this user's")
	cmd.RegisterFlagCompletionFunc("by", cobra.NoFileCompletions)
	cli.AddFormat(cmd, &format)
	return cmd
}

const allowedLong = `List what is always allowed: the tool, the server by the digest of its command line,
who allowed it and when, and what may be found in the arguments. Files that do not
count are listed with the reason, and make the exit code 1.`

func newAllowedCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "allowed",
		Short:   "list what is always allowed",
		Long:    allowedLong,
		Example: "  auditproxy approvals allowed\n  auditproxy approvals allowed --format json | jq -r .tool",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			s, err := a.openApprovals(format == "json", a.colours(a.stdout))
			if err != nil {
				return err
			}
			n, err := s.Allowed(a.location())
			if err == nil && n == 0 && terminal.IsTerminal(a.stdout) {
				a.say(errors.New("nothing is always allowed"))
			}
			return err
		},
	}
	cli.AddFormat(cmd, &format)
	return cmd
}

const revokeLong = `Remove what always allows a tool, of one server or of all. Approvals for a session
that runs stay: they end with it. The exit code is 1 if the tool is not always
allowed. Only the user who allowed it, the directory's owner or root can.`

func newRevokeCmd(a *app) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:     "revoke TOOL",
		Short:   "ask about a tool again that is always allowed",
		Long:    revokeLong,
		Example: "  auditproxy approvals revoke send_keys\n  auditproxy approvals revoke send_keys --server-key 0123456789abcdef",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one tool, got %d: auditproxy approvals allowed lists them", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.openApprovals(false, false)
			if err != nil {
				return err
			}
			return s.Revoke(args[0], key)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			s, err := a.openApprovals(false, false)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.Tools(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&key, "server-key", "", "only of the server with this `KEY`, as listed by allowed")
	cmd.RegisterFlagCompletionFunc("server-key", cobra.NoFileCompletions)
	return cmd
}

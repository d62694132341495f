package main

import (
	"errors"
	"fmt"
	"os"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/view"
	"auditproxy/mcpproxy/risk"

	"github.com/spf13/cobra"
)

const policyReplayLong = `Print what a policy would have done to the recorded calls of this machine, by rule
and tool, next to what was done. "let through" are calls that reached the server,
"stopped" those that did not.

A call is undecidable where a condition needs a value that is a digest in the
record, or where the record does not have all that the decision depends on. A call
that this same policy has decided before, enforced or not, has its recorded
decision: to be sure about conditions on redacted values, let the policy observe.

Limits count over the times of the calls. Calls that retention has removed as
whole sessions count as never made.

The exit code is 1 if the policy would have denied or asked about calls that were
let through, else 2 if calls are undecidable or records cannot be read.`

const policyReplayExample = `  auditproxy policy replay policy.yaml --since 7d
  auditproxy policy replay preset:libtmux-readonly
  auditproxy policy replay policy.yaml --format json | jq '.rows[] | select(.decision == "deny")'`

func newPolicyReplayCmd(a *app) *cobra.Command {
	var o replay.Flags
	var format string
	cmd := &cobra.Command{
		Use:     "replay FILE",
		Short:   "print what a policy would have done to recorded calls",
		Long:    policyReplayLong,
		Example: policyReplayExample,
		Args:    replay.OnePolicy,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := o.Selection(a.now())
			if err = errors.Join(cli.CheckFormat(format), err); err != nil {
				return err
			}
			return a.replayPolicy(cmd, args[0], sel, format == "json")
		},
		ValidArgsFunction: replay.CompletePolicy,
	}
	o.Add(cmd)
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) replayPolicy(cmd *cobra.Command, file string, sel replay.Selection, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	r := risk.Config{Home: a.getenv("HOME"), Own: a.ownFiles(cfg), Text: a.messages().AppendText}
	r.Cwd, _ = os.Getwd() // "" is unknown
	l, err := gate.LoadNamed(file, r)
	if err != nil {
		return err
	}
	entries, err := view.List(cfg.spoolDir, sel.Session)
	if err == nil {
		entries, err = view.List(cfg.spoolDir, "") // limits of a user count over all sessions
	}
	if err != nil {
		return fmt.Errorf("replaying: %w", err)
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	run := replay.New(replay.Config{Policy: l.Policy, Risk: l.Risk})
	if err := run.Spool(ctx, cfg.spoolDir, entries, sel, a.stderr); err != nil {
		return fmt.Errorf("replaying: %w", err)
	}
	report := run.Report()
	report.Policy = replay.Source{Source: file, Dialect: l.Policy.Dialect, Hash: l.Policy.Hash, Mode: l.Mode}
	return report.Write(a.stdout, asJSON, a.colours(a.stdout), a.location())
}

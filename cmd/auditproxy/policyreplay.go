package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/terminal"
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

// callOptions are the flags that select calls, as they were written.
type callOptions struct{ since, until, session string }

func (o *callOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "calls that started at or after `TIME`, such as 7d or \"2026-11-21 10:00\"")
	f.StringVar(&o.until, "until", "", "calls that started at or before `TIME`")
	f.StringVar(&o.session, "session", "", "sessions whose id starts with `ID`")
	for _, name := range []string{"since", "until", "session"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// selection parses the flags; it reports all problems with them.
func (a *app) selection(o callOptions, now time.Time) (replay.Selection, error) {
	s := replay.Selection{Session: o.session}
	var errs []error
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", o.since, &s.Since}, {"until", o.until, &s.Until}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.at, err = terminal.ParseTime(t.text, now.In(a.location())); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", t.flag, err))
		}
	}
	if len(errs) == 0 && !s.Since.IsZero() && !s.Until.IsZero() && s.Until.Before(s.Since) {
		errs = append(errs, errors.New("--until is before --since"))
	}
	return s, errors.Join(errs...)
}

func newPolicyReplayCmd(a *app) *cobra.Command {
	var o callOptions
	var format string
	cmd := &cobra.Command{
		Use:     "replay FILE",
		Short:   "print what a policy would have done to recorded calls",
		Long:    policyReplayLong,
		Example: policyReplayExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("policy replay needs the policy: auditproxy policy replay FILE, or preset:NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := a.selection(o, time.Now())
			if err = errors.Join(checkFormat(format), err); err != nil {
				return err
			}
			return a.replayPolicy(cmd, args[0], sel, format == "json")
		},
		ValidArgsFunction: completePolicy,
	}
	o.add(cmd)
	addFormatFlag(cmd, &format)
	return cmd
}

func (a *app) replayPolicy(cmd *cobra.Command, file string, sel replay.Selection, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	r := risk.Config{Home: a.getenv("HOME"), Own: a.ownFiles(cfg), Text: a.messages().AppendText}
	r.Cwd, _ = os.Getwd() // "" is unknown
	l, err := loadPolicy(file, r)
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
	return a.printReport(run.Report(), file, l, asJSON)
}

// printReport prints the report; its error is the exit code.
func (a *app) printReport(r *replay.Report, file string, l gate.Loaded, asJSON bool) error {
	r.Policy = replay.Source{Source: file, Dialect: l.Policy.Dialect, Hash: l.Policy.Hash, Mode: l.Mode}
	var err error
	if asJSON {
		err = terminal.PrintJSON(a.stdout, r)
	} else {
		err = r.Print(a.stdout, a.colours(a.stdout), a.location())
	}
	switch {
	case err != nil:
		return fmt.Errorf("replaying: printing: %w", err)
	case r.Found():
		return cli.ExitError{Code: cli.ExitFound}
	case r.Unclear():
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}

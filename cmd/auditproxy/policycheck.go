package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"

	"github.com/spf13/cobra"
)

const policyCheckLong = `Print what a policy says: its dialect, its tools and rules, and what it leaves
open. Warnings name rules that have no effect, and say where no call would pass.

If there is a spool, the policy is compared with the tools that it has seen: those
that were called, and those that servers listed. Warnings name tools that are not
among them, and conditions on arguments that no recorded call had.

The exit code is 1 if the policy does not load, with all problems, their lines and
columns, which --format json has as "problems". It is 2 if the policy cannot be
read, or not be compared with the spool.`

func newPolicyCheckCmd(a *app) *cobra.Command {
	var o replay.Flags
	var server, format string
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "check a policy and print what it says",
		Long:    policyCheckLong,
		Example: "  auditproxy policy check policy.yaml\n  auditproxy policy check preset:libtmux-readonly --format json",
		Args:    replay.OnePolicy,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := o.Selection(a.now())
			if err = errors.Join(cli.CheckFormat(format), err); err != nil {
				return err
			}
			return a.checkPolicy(cmd, args[0], server, sel, format == "json")
		},
		ValidArgsFunction: replay.CompletePolicy,
	}
	cli.AddFormat(cmd, &format)
	addServerFlag(cmd, &server)
	o.Add(cmd)
	return cmd
}

// A checked policy is what check prints.
type checked struct {
	policy.Listing
	Compared *compared `json:"compared,omitempty"` // nil without a spool to compare with
}

// A refused policy is what check prints of one that does not load.
type refused struct {
	Problems []policy.Problem `json:"problems"`
	More     int              `json:"more,omitempty"` // problems beyond those
}

// compared is what a policy was compared with.
type compared struct {
	Tools int   `json:"tools"`
	Calls int64 `json:"calls"`
}

func (a *app) checkPolicy(cmd *cobra.Command, file, server string, sel replay.Selection, asJSON bool) error {
	l, err := gate.LoadNamed(file, risk.Config{})
	var bad *policy.Error
	if errors.As(err, &bad) {
		if asJSON {
			a.cleanProblems(bad.Problems)
			err = errors.Join(err, terminal.PrintJSON(a.stdout, refused{bad.Problems, bad.More}))
		}
		return cli.ExitError{Code: cli.ExitFound, Err: err}
	}
	if err != nil {
		return err
	}
	seen, unseen := a.seenTools(cmd, server, sel)
	c := checked{Listing: l.Policy.Describe(nil)}
	if seen != nil {
		tools := seen.Seen()
		c = checked{l.Policy.Describe(tools), &compared{len(tools), seen.Calls}}
	}
	for i := range c.Tools {
		t := &c.Tools[i]
		t.Name = a.clean(t.Name)
		for i := range t.Rules {
			r := &t.Rules[i]
			r.Rule, r.Text = a.clean(r.Rule), cleanPattern(r.Text, a.cleanText)
		}
	}
	for i := range c.Open {
		c.Open[i] = a.clean(c.Open[i])
	}
	a.cleanProblems(c.Warnings)
	if asJSON {
		err = terminal.PrintJSON(a.stdout, c)
	} else {
		err = a.printListing(&c)
	}
	if err != nil {
		err = fmt.Errorf("printing: %w", err)
	}
	if unseen != nil {
		unseen = fmt.Errorf("comparing with the tools of the spool: %w", unseen)
	}
	return errors.Join(err, unseen)
}

func (a *app) cleanProblems(problems []policy.Problem) {
	for i := range problems {
		problems[i].Text = cleanPattern(problems[i].Text, a.clean)
	}
}

// cleanPattern cleans a text that may have a pattern, in which a program's name is behind
// an anchor or a group: "^mysql -pPASSWORD".
func cleanPattern(text string, clean func(string) string) string {
	parts := strings.Split(clean(text), " and ") // conditions, each of them short
	for n, part := range parts {
		for i := 0; i+1 < len(part); i++ {
			if strings.IndexByte("^(|):", part[i]) >= 0 {
				part = part[:i+1] + clean(part[i+1:])
			}
		}
		parts[n] = part
	}
	return strings.Join(parts, " and ")
}

// seenTools returns the tools that the spool has seen, nil without any.
func (a *app) seenTools(cmd *cobra.Command, server string, sel replay.Selection) (*replay.Inventory, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(cfg.spoolDir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries, err := view.List(cfg.spoolDir, sel.Session)
	if err != nil {
		return nil, err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	v, err := replay.Tools(ctx, cfg.spoolDir, server, entries, sel, a.stderr)
	if err != nil {
		return nil, err
	}
	for _, problem := range v.Problems {
		a.say(fmt.Errorf("comparing with the tools of the spool: %w", problem))
	}
	switch {
	case len(v.Seen()) > 0:
	case server != "":
		return nil, fmt.Errorf("no calls of a server called %q", server)
	default:
		return nil, nil
	}
	return v, nil
}

func (a *app) printListing(l *checked) error {
	var out strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintln(&out, terminal.EscapeLine(fmt.Sprintf(format, args...)))
	}
	say("dialect   %s", l.Dialect)
	say("hash      %s", l.Hash)
	if l.Mode != "" {
		say("mode      %s", l.Mode)
	}
	if l.Approval != "" {
		say("approval  %s", l.Approval)
	}
	say("default   %s", l.Default)
	if c := l.Compared; c != nil {
		say("compared  with %s of %s in the spool", terminal.Count(c.Tools, "tool"), terminal.Count(int(c.Calls), "call"))
	}
	for _, t := range l.Tools {
		say("%-8s  %s", t.Action, t.Name)
		for _, r := range t.Rules {
			say("            %s  (%s)", r.Text, r.Rule)
		}
	}
	for _, text := range l.Open {
		say("open      %s", text)
	}
	for _, w := range l.Warnings {
		say("warning   %d:%d: %s", w.Line, w.Column, w.Text)
	}
	_, err := io.WriteString(a.stdout, out.String())
	return err
}

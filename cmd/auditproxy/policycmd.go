package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

const policyLong = `Check, try and make policies: rules about which calls reach the server.

The key policy.file puts one in force: a file, or "preset:NAME" for one that comes
with auditproxy. docs/policy.md explains how to write one.`

func newPolicyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "check, try and make policies",
		Long:    policyLong,
		Example: "  auditproxy policy check policy.yaml\n  auditproxy --policy-file preset:observe -- libtmux-mcp",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyCheckCmd(a), newPolicyEvalCmd(a), newPolicyReplayCmd(a), newPolicyInitCmd(a))
	return cmd
}

const policyCheckLong = `Print what a policy says: its dialect, its tools and rules, and what it leaves
open. Warnings name rules that have no effect.

If there is a spool, the policy is compared with the tools that it has seen: those
that were called, and those that servers listed. Warnings name tools that are not
among them, and conditions on arguments that no recorded call had.

The exit code is 1 if the policy does not load, with all problems, their lines and
columns, and 2 if it cannot be read, or not be compared with the spool.`

func newPolicyCheckCmd(a *app) *cobra.Command {
	var o replay.Flags
	var server, format string
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "check a policy and print what it says",
		Long:    policyCheckLong,
		Example: "  auditproxy policy check policy.yaml\n  auditproxy policy check preset:libtmux-readonly --format json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("policy check needs the policy: auditproxy policy check FILE, or preset:NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := o.Selection(a.now())
			if err = errors.Join(cli.CheckFormat(format), err); err != nil {
				return err
			}
			return a.checkPolicy(cmd, args[0], server, sel, format == "json")
		},
		ValidArgsFunction: completePolicy,
	}
	cli.AddFormat(cmd, &format)
	addServerFlag(cmd, &server)
	o.Add(cmd)
	return cmd
}

// addServerFlag adds --server to a command that reads calls.
func addServerFlag(cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "", "only calls of the server with this `NAME`, its own or its command's")
	cmd.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
}

// completePolicy completes files and presets.
func completePolicy(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return replay.CompletePolicy(gate.PresetPrefix, word)
}

// loadPolicy loads a policy that a command names. A policy that does not load is
// a finding.
func loadPolicy(file string, r risk.Config) (gate.Loaded, error) {
	if !strings.HasPrefix(file, gate.PresetPrefix) {
		abs, err := filepath.Abs(file)
		if err != nil {
			return gate.Loaded{}, fmt.Errorf("reading policy %q: %w", file, err)
		}
		file = abs
	}
	return gate.Config{File: file, Risk: r}.Load()
}

// A checked policy is what check prints.
type checked struct {
	policy.Listing
	Compared *compared `json:"compared,omitempty"` // nil if there is nothing to compare with
}

// compared is what a policy was compared with.
type compared struct {
	Tools int   `json:"tools"`
	Calls int64 `json:"calls"`
}

func (a *app) checkPolicy(cmd *cobra.Command, file, server string, sel replay.Selection, asJSON bool) error {
	l, err := loadPolicy(file, risk.Config{})
	var bad *policy.Error
	if errors.As(err, &bad) {
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

// seenTools returns the tools that the spool has, nil if there is none.
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

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (a *app) printListing(l *checked) error {
	var out strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintln(&out, terminal.EscapeMessage(fmt.Sprintf(format, args...)))
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

const policyEvalLong = `Read calls from standard input, one JSON object a line, and print the risk of
each, what its arguments do and, with a policy, what the policy decides.

A line has the members tool and arguments, and may have definition (the tool's
entry in the answer to tools/list), at_ms (Unix milliseconds), cwd, home and
upstream (how the server answers: ok, rpc_error, is_error or none). Counters of
limits begin at zero and last for the run. Nothing is run and nothing is recorded.

The exit code is 2 if the policy does not load, or a line cannot be read.`

const policyEvalExample = `  echo '{"tool":"send_keys","arguments":{"keys":"rm -rf /"}}' | auditproxy policy eval
  auditproxy policy eval --policy policy.yaml --format json < calls.jsonl`

func newPolicyEvalCmd(a *app) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:     "eval",
		Short:   "print the risk of calls and what a policy decides about them",
		Long:    policyEvalLong,
		Example: policyEvalExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.evalPolicy(file, format == "json")
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`policy` to decide by: a file, or preset:NAME")
	cmd.RegisterFlagCompletionFunc("policy", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return completePolicy(cmd, nil, word)
	})
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) evalPolicy(file string, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	r := risk.Config{Home: a.getenv("HOME"), Own: a.ownFiles(cfg), Readlink: readlink, Text: a.messages().AppendText}
	r.Cwd, _ = os.Getwd() // "" is unknown
	var l gate.Loaded
	if file != "" {
		l, err = loadPolicy(file, r)
	} else {
		l, err = gate.Config{Risk: r}.Load()
	}
	if err != nil {
		return err
	}
	return gate.Eval(a.stdin, l, func(tool string, e gate.Evaluation) error {
		if asJSON {
			return a.printJSON(e)
		}
		_, err := io.WriteString(a.stdout, terminal.EscapeMessage(tool+"  "+e.String())+"\n")
		return err
	})
}

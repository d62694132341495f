package main

import (
	"errors"
	"fmt"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/mcpproxy/risk"

	"github.com/spf13/cobra"
)

const policyInitLong = `Print a policy that allows what was done on this machine, and nothing else: the
tools that calls were made of, each at most twice as often as in the busiest minute
and hour of a session. Destructive tools need approval. Comments have the counts.

The policy observes until its mode is changed. The exit code is 2 if there are no
calls, or if some could not be read.`

const policyInitExample = `  auditproxy policy init --since 7d > policy.yaml
  auditproxy policy init --server libtmux-mcp > policy.yaml
  auditproxy policy replay policy.yaml`

func newPolicyInitCmd(a *app) *cobra.Command {
	var o replay.Flags
	var server, format string
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "make a policy of recorded calls",
		Long:    policyInitLong,
		Example: policyInitExample,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sel, err := o.Selection(a.now())
			if format != "yaml" && format != "json" {
				err = errors.Join(fmt.Errorf("--format is %q, want yaml or json", format), err)
			}
			if err != nil {
				return err
			}
			return a.proposePolicy(cmd, server, sel, format == "json")
		},
	}
	addServerFlag(cmd, &server)
	o.Add(cmd)
	cmd.Flags().StringVar(&format, "format", "yaml", "`form` of the policy: yaml, or json without comments")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) proposePolicy(cmd *cobra.Command, server string, sel replay.Selection, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	entries, err := view.List(cfg.spoolDir, sel.Session)
	if err != nil {
		return fmt.Errorf("making a policy: %w", err)
	}
	p := replay.Proposal{Server: server}
	if p.Risk, err = risk.New(risk.Config{}); err != nil {
		return fmt.Errorf("making a policy: %w", err)
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	if err := p.Spool(ctx, cfg.spoolDir, entries, sel, a.stderr); err != nil {
		return fmt.Errorf("making a policy: %w", err)
	}
	if asJSON {
		var v any
		if v, err = p.JSON(); err == nil {
			err = terminal.PrintJSON(a.stdout, v)
		}
	} else {
		var text []byte
		if text, err = p.YAML(); err == nil {
			_, err = a.stdout.Write(text)
		}
	}
	if err = errors.Join(append([]error{err}, p.Problems()...)...); err != nil {
		return fmt.Errorf("making a policy: %w", err)
	}
	return nil
}

// addServerFlag adds --server to a command that reads calls.
func addServerFlag(cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "", "only calls of the server with this `NAME`, its own or its command's")
	cmd.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
}

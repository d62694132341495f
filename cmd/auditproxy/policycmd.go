package main

import (
	"auditproxy/cmd/internal/cli"

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

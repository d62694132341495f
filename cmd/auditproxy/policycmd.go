package main

import (
	"fmt"
	"strings"

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

		PersistentPreRunE: refuseProxyPolicy,
	}
	cmd.AddCommand(newPolicyCheckCmd(a), newPolicyEvalCmd(a), newPolicyReplayCmd(a), newPolicyInitCmd(a))
	return cmd
}

// refuseProxyPolicy refuses the flag of a proxy's policy, which all commands take: what
// a command prints would look as if it were about that policy.
func refuseProxyPolicy(cmd *cobra.Command, _ []string) error {
	if !cmd.Flags().Changed("policy-file") {
		return nil
	}
	instead := "leave it out"
	switch {
	case cmd.Flags().Lookup("policy") != nil:
		instead = "use --policy"
	case strings.Contains(cmd.Use, "FILE"):
		instead = "write the policy after the command: " + cmd.CommandPath() + " FILE"
	}
	return fmt.Errorf("--policy-file chooses the policy of proxies, not that of %s; %s", cmd.CommandPath(), instead)
}

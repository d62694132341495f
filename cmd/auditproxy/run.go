package main

import "github.com/spf13/cobra"

func newRunCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:           "auditproxy [flags] -- COMMAND [ARGUMENT...]",
		Short:         "wrap an MCP server and keep a record of every call",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			code := runProxy(cmd.Context(), a, config{}, args)
			return exitError{code: code}
		},
	}
}

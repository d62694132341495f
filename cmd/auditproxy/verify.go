package main

import "github.com/spf13/cobra"

func newVerifyCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "verify", Short: "check the records", RunE: func(cmd *cobra.Command, args []string) error { return nil }}
}

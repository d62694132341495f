package main

import "github.com/spf13/cobra"

func newShowCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "show", Short: "show one record", RunE: func(cmd *cobra.Command, args []string) error { return nil }}
}

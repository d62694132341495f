package main

import "github.com/spf13/cobra"

func newLogCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "log", Short: "read the records", RunE: func(cmd *cobra.Command, args []string) error { return nil }}
}

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/mcpproxy/risk"

	"github.com/spf13/cobra"
)

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

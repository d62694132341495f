package main

import "github.com/spf13/cobra"

func newWrapCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "wrap", Short: "put the proxy in front of the servers of an MCP client", RunE: func(cmd *cobra.Command, args []string) error { return nil }}
}

// A clientStatus says what a client's configuration runs.
type clientStatus struct {
	Client  string         // "Claude Code", "Cursor", …
	Path    string         // of the file
	Err     error          // why it could not be read; nil if it could
	Servers []serverStatus // in the order of the file
}

// A serverStatus says whether a server is recorded.
type serverStatus struct {
	Name    string
	Wrapped bool
	Remote  bool // it has a URL and cannot be wrapped
}

// scanClients reads the configurations of the clients that are installed.
func scanClients(a *app) []clientStatus { return nil }

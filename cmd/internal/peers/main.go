// Command peers is an MCP server on one of two Go SDKs, for the tests: its
// tools note that they were executed, outside the process, before they answer.
// It is also a server that asks for approval, and a client that answers.
//
//	peers go-sdk|mcp-go|asking JOURNAL
//	peers client SCRIPT SERVER...
//
// The files, from the top: main, mcpgo, gosdk, client, asking, journal.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 2 && args[0] == "client" {
		return runClient(args[1:])
	}
	serve := map[string]func(*journal) error{"go-sdk": serveGoSDK, "mcp-go": serveMCPGo, "asking": serveAsking}
	if len(args) != 2 || serve[args[0]] == nil {
		return fmt.Errorf("want go-sdk, mcp-go or asking and the path of a journal, or client, a script and a server, got %q", args)
	}
	f, err := os.OpenFile(args[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening journal: %w", err)
	}
	defer f.Close()
	return serve[args[0]](&journal{file: f})
}

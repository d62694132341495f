// Command peers is an MCP server on one of two Go SDKs, for the tests: its
// tools note that they were executed, outside the process, before they answer.
// It is also a server that asks for approval, and a client that answers.
//
//	peers go-sdk|mcp-go|asking JOURNAL
//	peers client SCRIPT SERVER...
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// tools are the names that both servers know.
var tools = [...]string{"evil", "safe"}

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

// A journal outlives the server: one line for each call, a JSON list of the
// tool's name and its arguments.
type journal struct {
	// mu keeps lines whole: file may be a pipe, and a name longer than its
	// atomic write.
	mu   sync.Mutex
	file *os.File
}

func (j *journal) note(tool string, arguments any) error {
	if raw, ok := arguments.(json.RawMessage); ok && len(raw) > 0 && !json.Valid(raw) {
		arguments = "?" // arguments that only its SDK can read
	}
	if raw, ok := arguments.(json.RawMessage); ok && len(raw) == 0 {
		arguments = nil
	}
	line, err := json.Marshal([]any{tool, arguments})
	if err != nil {
		return fmt.Errorf("encoding %q: %w", tool, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("noting call: %w", err)
	}
	return nil
}

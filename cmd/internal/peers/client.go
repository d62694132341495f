package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A script is what a client does.
type script struct {
	Version string   // of the protocol
	Silent  bool     // the client does not declare that it can ask
	Answers []string // to questions, in order
	Own     string   // the answer to those of the server behind a proxy
	AtOnce  bool     `json:"at_once"` // all calls are made at once
	Calls   []struct {
		Tool      string
		Arguments json.RawMessage
	}
}

// A caller is a client on the Go SDK. It prints what it sees, a JSON object on a
// line.
type caller struct {
	script script

	mu    sync.Mutex
	asked int // questions so far, owned by mu
}

func runClient(args []string) error {
	c := new(caller)
	if err := json.Unmarshal([]byte(args[0]), &c.script); err != nil {
		return fmt.Errorf("parsing script: %w", err)
	}
	options := &mcp.ClientOptions{}
	if !c.script.Silent {
		options.ElicitationHandler = c.answer
	}
	server := exec.Command(args[1], args[2:]...)
	server.Stderr = os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options).
		Connect(context.Background(), &mcp.CommandTransport{Command: server, TerminateDuration: time.Minute}, &mcp.ClientSessionOptions{ProtocolVersion: c.script.Version})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	show(map[string]any{"event": "connected", "version": session.InitializeResult().ProtocolVersion})
	var calls sync.WaitGroup
	defer calls.Wait()
	for n, call := range c.script.Calls {
		one := func() { c.call(session, n, call.Tool, call.Arguments) }
		if c.script.AtOnce {
			calls.Go(one)
		} else {
			one()
		}
	}
	// A question may still be open, so the session is not closed: the server's
	// input ends with this process.
	return nil
}

func (c *caller) call(session *mcp.ClientSession, n int, tool string, arguments json.RawMessage) {
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		show(map[string]any{"event": "failed", "call": n, "text": err.Error()})
	} else {
		text := ""
		for _, part := range result.Content {
			if t, ok := part.(*mcp.TextContent); ok {
				text += t.Text
			}
		}
		show(map[string]any{"event": "answered", "call": n, "text": text, "is_error": result.IsError})
	}
}

func show(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		text = []byte(`{"event":"failed"}`)
	}
	fmt.Printf("%s\n", text)
}

// answer answers a question as the script says.
func (c *caller) answer(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	how := "never"
	if r.Params.Message == "The server asks." && c.script.Own != "" {
		how = c.script.Own
	} else {
		c.mu.Lock()
		if c.asked < len(c.script.Answers) {
			how = c.script.Answers[c.asked]
		}
		c.asked++
		c.mu.Unlock()
	}
	show(map[string]any{"event": "asked", "message": r.Params.Message, "how": how})
	accept := func(decision string) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
	}
	switch how {
	case "once":
		return accept("allow once")
	case "session":
		return accept("allow for this session")
	case "deny":
		return accept("deny")
	case "empty":
		return &mcp.ElicitResult{Action: "accept"}, nil // content without a choice does not pass the SDK
	case "decline", "cancel":
		return &mcp.ElicitResult{Action: how}, nil
	case "error":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
	case "late":
		bufio.NewReader(os.Stdin).ReadBytes('\n') // the test writes a line, or ends
		return accept("allow once")
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

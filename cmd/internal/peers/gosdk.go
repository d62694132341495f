package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func serveGoSDK(j *journal) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	for _, name := range tools {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				answer, ask := asks(r.Params)
				if ask != nil {
					return ask, nil
				}
				if err := j.note(name, r.Params.Arguments); err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done" + answer}}}, nil
			})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// asks has a call with the argument ask wait for what the client's user answers
// to the server itself. It returns the answer, or the result that asks.
func asks(p *mcp.CallToolParamsRaw) (answer string, ask *mcp.CallToolResult) {
	var args struct{ Ask bool }
	if json.Unmarshal(p.Arguments, &args) != nil || !args.Ask {
		return "", nil
	}
	if r, ok := p.InputResponses["own"].(*mcp.ElicitResult); ok {
		return fmt.Sprintf(": %s %v in state %q", r.Action, r.Content["decision"], p.RequestState), nil
	}
	return "", &mcp.CallToolResult{RequestState: "OWN", InputRequests: mcp.InputRequestMap{"own": &mcp.ElicitParams{
		Message:         "The server asks.",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"decision":{"type":"string"}}}`),
	}}}
}

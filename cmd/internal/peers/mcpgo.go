package main

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func serveMCPGo(j *journal) error {
	s := server.NewMCPServer("peer", "1")
	for _, name := range tools {
		s.AddTool(mcp.NewTool(name), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := j.note(name, r.Params.Arguments); err != nil {
				return nil, err
			}
			return mcp.NewToolResultText("done"), nil
		})
	}
	return server.ServeStdio(s)
}

package main

import (
	"bytes"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
)

func newUnwrapCmd(a *app) *cobra.Command {
	r := unwrapRewrite()
	r.app = a
	cmd := &cobra.Command{
		Use:   "unwrap [FILE...]",
		Short: "take the proxy out of an MCP client's configuration again",
		Long: `Give the servers in the configuration of MCP clients their own commands back.

The way back is read from the wrapped servers themselves, not from a backup: a
file that was only wrapped gets its original bytes, and whatever was edited
since stays as it is. Without FILE the same configurations are changed as by
"auditproxy wrap".`,
		Example: `  auditproxy unwrap
  auditproxy unwrap --server tmux .mcp.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(args) },
	}
	r.addFlags(cmd)
	return cmd
}

func unwrapRewrite() *rewrite {
	return &rewrite{
		verb:     "unwrap",
		done:     "unwrapped",
		concerns: func(s clientServer) bool { return s.Wrapped },
		remark:   notUnwrapped,
		edits:    unwrapEdits,
	}
}

// notUnwrapped says why unwrap leaves s alone, where that can be a surprise.
func notUnwrapped(s clientServer) string {
	if s.Problem == "" {
		return ""
	}
	return "is not unwrapped: " + s.Problem
}

// unwrapEdits reverses wrapEdits, also where the server has been edited since:
// flags of the proxy, or the server's arguments changed, added or removed.
func unwrapEdits(data []byte, s clientServer, _ string) []udiff.Edit {
	if s.Remote {
		return unwrapRemoteEdits(data, s)
	}
	args := s.elements()
	old := args[s.dashes+1]
	command := data[old.StartOffset:old.EndOffset]
	restore := udiff.Edit{Start: s.command.StartOffset, End: s.command.EndOffset, New: string(command)}
	remove := udiff.Edit{Start: args[0].StartOffset}
	last := s.dashes+2 == len(args)
	added := newArgs(data, s, string(command))
	switch {
	case !last:
		remove.End = args[s.dashes+2].StartOffset
	case bytes.HasPrefix(data[s.command.EndOffset:], []byte(added)):
		remove.Start, remove.End = s.command.EndOffset, s.command.EndOffset+len(added)
	default:
		remove.Start, remove.End = emptied(data, s)
	}
	return []udiff.Edit{restore, remove}
}

// emptied returns the part of the list of arguments to remove if nothing of it
// is the server's own: all but comments, and space that was there before.
func emptied(data []byte, s clientServer) (start, end int) {
	args := s.elements()
	first, last := args[0], args[len(args)-1]
	start, end = first.StartOffset, last.EndOffset
	closing := s.args.EndOffset - len("]")
	if last.AfterExtra != nil { // a trailing comma cannot stand alone
		end += len(last.AfterExtra) + len(",")
	}
	if len(bytes.TrimSpace(first.BeforeExtra)) > 0 {
		return start, end
	}
	start = s.args.StartOffset + len("[")
	if bytes.ContainsRune(first.BeforeExtra, '\n') && len(bytes.TrimSpace(data[end:closing])) == 0 {
		end = closing // a list on lines of its own becomes []
	}
	return start, end
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"
)

func newWrapCmd(a *app) *cobra.Command {
	r := wrapRewrite()
	r.app = a
	cmd := &cobra.Command{
		Use:   "wrap [FILE...]",
		Short: "put the proxy in front of the servers of an MCP client",
		Long: `Put the proxy in front of the servers in the configuration of MCP clients, so
that their calls are recorded from the client's next start.

Without FILE these configurations are changed where they exist: .mcp.json and
~/.claude.json of Claude Code (its projects too), Claude Desktop, Cursor and
VS Code. Any other file with "mcpServers" or "servers" can be named.

Each server's command becomes this program and its old command an argument;
everything else in the file stays as it is, byte for byte. The change is shown
first and made when you agree to it, with a backup beside the file;
"auditproxy unwrap" reverses it.

Servers with a URL are only named, unless you give --remote: then npx runs
` + mcpRemote + ` for each of them, which speaks to the URL. Headers move to the
environment of the entry. Servers that ask for a login ask once more, in the
browser; that login is kept in ~/.mcp-auth.`,
		Example: `  auditproxy wrap
  auditproxy wrap --server tmux ~/.cursor/mcp.json
  auditproxy wrap --dry-run
  auditproxy wrap --remote`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(args) },
	}
	r.addFlags(cmd)
	cmd.Flags().BoolVar(&r.remote, "remote", false, "wrap servers with a URL too, through mcp-remote")
	return cmd
}

func wrapRewrite() *rewrite {
	r := &rewrite{verb: "wrap", done: "wrapped", edits: wrapEdits}
	r.concerns = func(s clientServer) bool { return !s.Wrapped && (!s.Remote || r.remote && s.refusal == "") }
	r.remark = func(s clientServer) string { return notWrapped(s, r.remote) }
	return r
}

// notWrapped says why wrap leaves s alone, with or without --remote.
func notWrapped(s clientServer, remote bool) string {
	switch {
	case s.Wrapped:
		return "is already wrapped"
	case s.Remote && remote:
		return "is not wrapped, and its calls are not recorded: " + s.refusal
	case s.Remote:
		return "is not wrapped: it is a remote server, reached by URL, and its calls are not recorded; use --remote"
	}
	return "is not wrapped: " + s.Problem
}

// selfPath returns the path under which clients are to start this program:
// absolute, because desktop clients have no PATH, and as it was called if that
// leads here, because a package manager's link outlives the version behind it.
func selfPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil {
		if called, err := filepath.Abs(called); err == nil && sameFile(called, self) {
			self = called
		}
	}
	if !utf8.ValidString(self) {
		return "", fmt.Errorf("the path of this program, %q, is not UTF-8 and cannot stand in a JSON file", self)
	}
	return self, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// wrapEdits puts the program at self in front of s. It is made so that
// unwrapEdits can find the way back from its result alone: the old command is
// moved as it is written, and a list of arguments that was empty, one that was
// not there and one that had elements are left in three different shapes.
func wrapEdits(data []byte, s clientServer, self string) []udiff.Edit {
	if s.Remote {
		return wrapRemoteEdits(data, s, self)
	}
	command := string(data[s.command.StartOffset:s.command.EndOffset])
	edits := []udiff.Edit{{Start: s.command.StartOffset, End: s.command.EndOffset, New: string(hujson.String(self))}}
	switch args := s.elements(); {
	case s.args.Value == nil:
		at := s.command.EndOffset
		return append(edits, udiff.Edit{Start: at, End: at, New: newArgs(data, s, command)})
	case len(args) == 0:
		at := s.args.StartOffset + len("[")
		return append(edits, udiff.Edit{Start: at, End: at, New: ` "--", ` + command})
	default:
		at := args[0].StartOffset
		sep := "," + gap(data, at)
		return append(edits, udiff.Edit{Start: at, End: at, New: `"--"` + sep + command + sep})
	}
}

// newArgs is the member that a server without arguments gets after its command.
func newArgs(data []byte, s clientServer, command string) string {
	return "," + gap(data, s.commandName) + `"args": ["--", ` + command + `]`
}

// gap returns the space that belongs before another value like the one at off:
// a line end and the same indentation if that value begins its line.
func gap(data []byte, off int) string {
	line := bytes.LastIndexByte(data[:off], '\n') + 1
	indent := data[line:off]
	if line == 0 || len(bytes.Trim(indent, " \t")) > 0 {
		return " "
	}
	if bytes.HasSuffix(data[:line], []byte("\r\n")) {
		return "\r\n" + string(indent)
	}
	return "\n" + string(indent)
}

package main

import (
	"crypto/rand"
	"sync"

	"auditproxy/cmd/internal/clients"
	"auditproxy/redact"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
)

func newWrapCmd(a *app) *cobra.Command {
	cfg := a.clientsConfig()
	cmd := &cobra.Command{
		Use:   "wrap [FILE...]",
		Short: "put the proxy in front of the servers of an MCP client",
		Long: `Put the proxy in front of the servers in the configuration of MCP clients, so
that their calls are recorded from the client's next start.

Without FILE these configurations are changed where they exist: .mcp.json and
~/.claude.json of Claude Code (its projects too), Amazon Q, Amp, Antigravity,
Claude Desktop, Cline, Codex, Crush, Cursor, Factory, Gemini CLI, GitHub
Copilot, Junie, Kilo Code, Kiro, LM Studio, opencode, Qwen Code, Roo Code, VS
Code, Windsurf and Zed. Any other JSON file with "mcpServers", "servers" or
"context_servers" can be named, and any TOML file with [mcp_servers.NAME].
Servers in YAML, of goose and Continue, are only named: edit these by hand.

Each server's command becomes this program and its old command an argument;
everything else in the file stays as it is, byte for byte. The change is shown
first and made when you agree to it, with a backup beside the file;
"auditproxy unwrap" reverses it.

Servers with a URL are only named, unless you give --remote: then npx runs
` + clients.RemotePackage + ` for each of them, which speaks to the URL. Headers move to the
environment of the entry. Servers that ask for a login ask once more, in the
browser; that login is kept in ~/.mcp-auth.`,
		Example: `  auditproxy wrap
  auditproxy wrap --server tmux ~/.cursor/mcp.json
  auditproxy wrap --dry-run
  auditproxy wrap --remote`,
		RunE: func(cmd *cobra.Command, args []string) error { return clients.Wrap(cfg, args) },
	}
	addRewriteFlags(cmd, &cfg)
	cmd.Flags().BoolVar(&cfg.Remote, "remote", false, "wrap servers with a URL too, through mcp-remote")
	return cmd
}

func newUnwrapCmd(a *app) *cobra.Command {
	cfg := a.clientsConfig()
	cmd := &cobra.Command{
		Use:   "unwrap [FILE...]",
		Short: "remove the proxy from an MCP client's configuration",
		Long: `Give the servers in the configuration of MCP clients their own commands back.

The way back is read from the wrapped servers themselves, not from a backup: a
file that was only wrapped gets its original bytes, and whatever was edited
since stays as it is. Without FILE the same configurations are changed as by
"auditproxy wrap".`,
		Example: `  auditproxy unwrap
  auditproxy unwrap --server tmux .mcp.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return clients.Unwrap(cfg, args) },
	}
	addRewriteFlags(cmd, &cfg)
	return cmd
}

func (a *app) clientsConfig() clients.Config {
	check := func(s clients.Server) (flaws []string) {
		cfg, problems := a.tryLoad()
		for _, f := range a.flaws(cfg, problems.Err(), s) {
			if f.kind != asConfigured && f.kind != notDetermined {
				flaws = append(flaws, f.text)
			}
		}
		return flaws
	}
	shown := sync.OnceValue(func() *redact.Redactor {
		key := make([]byte, spool.KeySize)
		rand.Read(key) // never fails, see crypto/rand
		// Commands are what the change is about.
		red, _ := redact.New(redact.Config{Key: key, ClearNames: []string{"command", "cmd"}}) // which only needs the key
		return red
	})
	clean := func(file []byte) []byte { return shown().AppendWhole(nil, file) }
	return clients.Config{Check: check, Clean: clean, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Getenv: a.getenv, Say: a.say, Colour: a.colours(a.stdout)}
}

func addRewriteFlags(cmd *cobra.Command, cfg *clients.Config) {
	flags := cmd.Flags()
	flags.BoolVar(&cfg.DryRun, "dry-run", false, "show the change and make none")
	flags.BoolVarP(&cfg.Yes, "yes", "y", false, "make the change without asking")
	flags.StringArrayVar(&cfg.Servers, "server", nil, "change only the server called `NAME`; may be given more than once")
}

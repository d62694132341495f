package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/clients"
	"auditproxy/mcpproxy"

	"github.com/spf13/cobra"
)

// A launch is what a command line that wraps a server starts.
type launch struct {
	cfg  config
	args []string // the command, not looked up yet, and its arguments
	dir  string   // its working directory; "" for this one
}

// newProxyCmd returns the command that wraps a server, without subcommands. It
// calls start with what it has read.
func newProxyCmd(a *app, start func(context.Context, launch) error) *cobra.Command {
	proxy := &cobra.Command{
		Use:  "auditproxy [flags] -- COMMAND [ARGUMENT...]\n  auditproxy COMMAND",
		Args: cobra.ArbitraryArgs,

		RunE: func(cmd *cobra.Command, args []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version {
				return cli.PrintVersion(a.stdout, cmd.Name())
			}
			l, err := a.readLaunch(cmd, args)
			if err != nil {
				return err
			}
			return start(cmd.Context(), l)
		},
	}
	proxy.Flags().Bool("version", false, "print the version and exit")
	addRemoteFlags(proxy)
	// In the order of the table, which groups related commands.
	proxy.Flags().SortFlags = false
	proxy.PersistentFlags().SortFlags = false
	cli.AddFlags(proxy.PersistentFlags(), a.keys)
	a.flags = proxy.PersistentFlags()
	return proxy
}

func addRemoteFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.String(clients.RemoteFlag, "", "the entry that \"wrap --remote\" replaced, as `MEMBER[:TYPE]`")
	flags.StringArray(clients.RemoteHeaderFlag, nil, "pass a header to mcp-remote from a variable, as `NAME=VARIABLE`")
	for _, name := range []string{clients.RemoteFlag, clients.RemoteHeaderFlag} {
		flags.MarkHidden(name)
	}
}

func (a *app) readLaunch(cmd *cobra.Command, args []string) (launch, error) {
	if err := checkCommandLine(cmd.ArgsLenAtDash(), args, cli.Commands(cmd)); err != nil {
		return launch{}, err
	}
	cfg, err := a.load()
	if err != nil {
		return launch{}, err
	}
	remote, _ := cmd.Flags().GetString(clients.RemoteFlag)
	headers, _ := cmd.Flags().GetStringArray(clients.RemoteHeaderFlag)
	args, dir, err := clients.RemoteCommand(remote, headers, args, mcpproxy.ChildEnv(a.env, cfg.hideEnv))
	return launch{cfg, args, dir}, err
}

// checkCommandLine returns the problem with a command line that wraps a server.
// before is how many of args precede the two dashes, -1 without dashes.
func checkCommandLine(before int, args, commands []string) error {
	switch {
	case len(args) == 0:
		return errors.New("there is no server to wrap; write its command after two dashes: auditproxy -- COMMAND [ARGUMENT...]")
	case before < 0 && strings.HasSuffix(args[0], ".json"):
		return fmt.Errorf("unknown command %q for auditproxy; to wrap the servers of a client's configuration: auditproxy wrap %[1]s", args[0])
	case before < 0:
		return fmt.Errorf("unknown command %q for auditproxy; %sto wrap a server put two dashes in front of it: auditproxy -- %[1]s", args[0], cli.DidYouMean(args[0], commands))
	case before > 0:
		return fmt.Errorf("unexpected argument %q before \"--\"; the server's command comes after it", args[0])
	case args[0] == "":
		return errors.New("the command after the two dashes is empty; write the server's command there")
	}
	return checkExpanded(args)
}

// checkExpanded finds a ${NAME} that the client should have expanded. An
// argument with white space in it is a script or a text for another program,
// which may expand it, unless it is the command itself. The argument is not
// quoted: the rest of it may be a secret.
func checkExpanded(args []string) error {
	for i, arg := range args {
		placeholder := cli.Placeholder(arg)
		if placeholder == "" || i > 0 && strings.ContainsAny(arg, " \t\r\n") {
			continue
		}
		where := "the command"
		if i > 0 {
			where = fmt.Sprintf("argument %d of %q", i, args[0])
		}
		return fmt.Errorf("%s contains %q, which the MCP client did not fill in; write the value itself into the client's configuration, or let a shell fill it in: auditproxy -- sh -c 'exec COMMAND %s'", where, placeholder, placeholder)
	}
	return nil
}

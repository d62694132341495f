package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/clients"
	"auditproxy/mcpproxy"

	"github.com/spf13/cobra"
)

const rootLong = `auditproxy runs between an MCP client and a server that uses standard input and
output. It forwards every byte unchanged and writes one record of every call,
with secrets replaced by digests, to this machine's disk.

Values come from /etc/auditproxy/config.yaml, then from --config or
~/.config/auditproxy/config.yaml, then from variables such as
AUDITPROXY_REDACT_PROFILE, then from flags; later ones win, except over what
/etc/auditproxy/config.yaml lists under "enforce". "auditproxy doctor" shows
the effective configuration. Lists are separated by commas.`

const rootExample = `  auditproxy wrap                        wrap your clients' servers
  auditproxy -- libtmux-mcp              what a client's configuration then runs
  auditproxy --durability always -- npx -y @example/server
  auditproxy log -f                      watch the calls
  auditproxy doctor                      see what is wrapped, and problems`

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:     "auditproxy [flags] -- COMMAND [ARGUMENT...]",
		Short:   "wrap an MCP server and keep a record of every call",
		Long:    rootLong,
		Example: rootExample,
		Args:    cobra.ArbitraryArgs,

		RunE: func(cmd *cobra.Command, args []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version {
				cli.PrintVersion(a.stdout, cmd.Name())
				return nil
			}
			return a.wrapServer(cmd, args)
		},
	}
	root.Flags().Bool("version", false, "print the version and exit")
	addRemoteFlags(root)
	// In the order of the table, which groups related commands.
	root.Flags().SortFlags = false
	root.PersistentFlags().SortFlags = false
	cli.AddFlags(root.PersistentFlags(), a.keys)
	cli.CompleteFlags(root, a.keys)
	a.flags = root.PersistentFlags()
	root.AddCommand(newLogCmd(a), newShowCmd(a), newVerifyCmd(a), newProveCmd(a), newVerifyProofCmd(a), newEvidenceCmd(a), newDigestCmd(a), newDoctorCmd(a), newRecoverCmd(a),
		newShipCmd(a), newWrapCmd(a), newUnwrapCmd(a), newPolicyCmd(a), newApprovalsCmd(a), cli.NewVersionCmd(a.stdout))
	cli.SetUsage(root, a.keys)
	return root
}

// wrapServer does the main job: auditproxy [flags] -- COMMAND [ARGUMENT...].
func (a *app) wrapServer(cmd *cobra.Command, args []string) error {
	if err := checkCommandLine(cmd.ArgsLenAtDash(), args, cli.Commands(cmd)); err != nil {
		return err
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	remote, _ := cmd.Flags().GetString(clients.RemoteFlag)
	headers, _ := cmd.Flags().GetStringArray(clients.RemoteHeaderFlag)
	args, dir, err := clients.RemoteCommand(remote, headers, args, mcpproxy.ChildEnv(a.env, cfg.hideEnv))
	if err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return cannotStart(args[0], err)
	}
	return runProxy(cmd.Context(), a, cfg, path, dir, args)
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

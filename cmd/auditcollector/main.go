// Command auditcollector brings the records of auditproxy into ClickHouse, from
// Kafka or from the spools of this machine, and asks for them there.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// systemConfig is the administrator's file. No flag and no variable moves it.
const systemConfig = "/etc/auditcollector/config.yaml"

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), systemConfig: systemConfig}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// An app is all that this program touches of the world outside.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string // as os.Environ
	systemConfig   string   // the administrator's file
	systemUID      int      // who may own it beside root; not 0 in tests alone

	// Owned by run, which fills them in before any command runs.
	keys  []cli.Key
	flags *pflag.FlagSet // those of the configuration
}

// run does what args say and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.keys = collectorKeys(a.defaultLocalDir(), a.defaultSpoolDir())
	root := newRootCmd(a)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return cli.Execute(ctx, root, args, func(message error) {
		fmt.Fprintln(a.stderr, terminal.EscapeMessage("auditcollector: "+message.Error()))
	})
}

func (a *app) getenv(name string) string { return cli.Getenv(a.env, name) }

// defaultSpoolDir is where the proxy of the same user puts its records, "" if
// there is no place for them.
func (a *app) defaultSpoolDir() string {
	// systemd's directory is this program's own, not the proxy's.
	getenv := func(name string) string {
		if name == "STATE_DIRECTORY" {
			return ""
		}
		return a.getenv(name)
	}
	dir, err := spool.DefaultDir(getenv, os.Getuid())
	if err != nil {
		return ""
	}
	return dir
}

// defaultLocalDir is where the local engine keeps its data, "" if there is no
// place for it.
func (a *app) defaultLocalDir() string {
	// systemd.exec(5): several directories are separated by colons.
	if dir, _, _ := strings.Cut(a.getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir
	}
	if os.Getuid() == 0 {
		return "/var/lib/auditcollector"
	}
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "auditcollector")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "auditcollector")
	}
	return ""
}

const rootLong = `auditcollector takes the records of auditproxy to ClickHouse: from Kafka, or with
no brokers configured from the spools on this machine. With no ClickHouse
configured it starts an engine of its own.

Values come from /etc/auditcollector/config.yaml, then from --config or
~/.config/auditcollector/config.yaml, then from variables such as
AUDITCOLLECTOR_KAFKA_BROKERS, then from flags; later ones win, except over what
/etc/auditcollector/config.yaml lists under "enforce". Lists are separated by
commas.`

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "auditcollector COMMAND",
		Short: "bring the records of auditproxy into ClickHouse",
		Long:  rootLong,

		SuggestionsMinimumDistance: 2, // letters that a word may be off a command
	}
	// In the order of the table: what belongs together stands together.
	root.Flags().SortFlags = false
	root.PersistentFlags().SortFlags = false
	cli.AddFlags(root.PersistentFlags(), a.keys)
	cli.CompleteFlags(root, a.keys)
	a.flags = root.PersistentFlags()
	root.AddCommand(newRunCmd(a), newMigrateCmd(a), newDeadLettersCmd(a), newQueryCmd(a), newReviewCmd(a), newRulesCmd(a), newEngineCmd(a), cli.NewVersionCmd(a.stdout))
	for _, cmd := range append(root.Commands(), root) {
		if !cmd.Runnable() { // cobra would answer a word that it does not know with help and exit code 0
			cmd.Args, cmd.RunE = cli.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	cli.SetUsage(root, a.keys)
	return root
}

// configured loads the configuration and calls do, whose context ends with
// SIGINT or SIGTERM.
func (a *app) configured(ctx context.Context, do func(context.Context, config) error) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	ctx, cancel := cli.Interruptible(ctx)
	defer cancel()
	return do(ctx, cfg)
}

// oneArg is the Args of a command that takes one, which its Use names.
func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	_, name, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s takes one argument, %s, in quotes if it has spaces, got %d; see %s --help", cmd.Name(), name, len(args), cmd.CommandPath())
}

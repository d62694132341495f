// Command auditcollector brings the records of auditproxy into ClickHouse, from
// Kafka or from the spools of this machine, and asks for them there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"auditproxy/cmd/internal/cli"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// systemConfig is the administrator's file. No flag and no variable moves it.
const systemConfig = "/etc/auditcollector/config.yaml"

// The exit codes of this program.
const (
	exitFound   = 1  // what a command was asked to look for is there
	exitUnclear = 2  // it could not tell, or was not understood
	exitConfig  = 78 // EX_CONFIG of sysexits.h: no start with this configuration
)

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

	// Owned by run, which fills them in before any command runs.
	keys  []cli.Key
	flags *pflag.FlagSet // those of the configuration
}

// run does what args say and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.keys = collectorKeys(a.defaultLocalDir(), a.defaultSpoolDir())
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		exit = exitError{exitUnclear, err}
	}
	if exit.err != nil {
		fmt.Fprintln(a.stderr, printable("auditcollector: "+exit.err.Error()))
	}
	return exit.code
}

// printable escapes what would steer a terminal in a message. What the message
// quotes is escaped already, so a backslash stays as it is.
func printable(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(cli.Escape(line), `\\`, `\`)
	}
	return strings.Join(lines, "\n")
}

// An exitError ends the program with a code. Its cause is printed unless nil.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// getenv is os.Getenv for the environment that a was given. Of a name that
// stands twice the last counts, as in os/exec.
func (a *app) getenv(name string) string {
	for _, kv := range slices.Backward(a.env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

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

// interruptible returns a context that ends with SIGINT or SIGTERM.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
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
		Use:           "auditcollector COMMAND",
		Short:         "bring the records of auditproxy into ClickHouse",
		Long:          rootLong,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// In the order of the table: what belongs together stands together.
	root.PersistentFlags().SortFlags = false
	cli.AddFlags(root.PersistentFlags(), a.keys)
	a.flags = root.PersistentFlags()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newRunCmd(a), newMigrateCmd(a), newDeadLettersCmd(a), newQueryCmd(a), newEngineCmd(a), newVersionCmd(a))
	return root
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(a.stdout, "auditcollector %s\n", cli.Version())
		},
	}
}

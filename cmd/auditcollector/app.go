package main

import (
	"fmt"
	"io"
	"strings"

	"auditproxy/cmd/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An app holds what the program uses of its surroundings.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string // as os.Environ
	systemConfig   string   // the administrator's file
	systemUID      int      // another owner allowed besides root; not 0 only in tests

	// Owned by run, which fills them in before any command runs.
	keys  []cli.Key
	flags *pflag.FlagSet // those of the configuration
}

func (a *app) getenv(name string) string { return cli.Getenv(a.env, name) }

// oneArg is the Args of a command that takes one, which its Use names.
func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	_, name, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s takes one argument, %s, in quotes if it has spaces, got %d; see %s --help", cmd.Name(), name, len(args), cmd.CommandPath())
}

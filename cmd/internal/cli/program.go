package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of all programs.
const (
	ExitFound   = 1  // a command found what it looked for
	ExitUnclear = 2  // the command failed, or was not understood
	ExitConfig  = 78 // EX_CONFIG of sysexits.h: no start with this configuration
)

// An ExitError ends a program with a code. Err is printed for the user unless
// nil.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of Err or, without one, names the code.
func (e ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e ExitError) Unwrap() error { return e.Err }

// NoArgs is the Args of a command that takes none.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return fmt.Errorf("%s takes no arguments, got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %s; %ssee %[2]s --help", args[0], cmd.CommandPath(), DidYouMean(args[0], Commands(cmd)))
}

// Commands returns the names of a command's subcommands.
func Commands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError reports the value that a flag wants, in the form of all other
// messages.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		want := map[string]string{"int": "a whole number", "bool": "true or false"}
		if f := invalid.GetFlag(); want[f.Value.Type()] != "" {
			err = fmt.Errorf("--%s is %q, want %s", f.Name, invalid.GetValue(), want[f.Value.Type()])
		}
	}
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if name := meant(unknown.GetSpecifiedName(), flags(cmd)); name != "" {
			hint = fmt.Sprintf("did you mean --%s? ", name)
		}
	}
	return fmt.Errorf("%w; %ssee %s --help", err, hint, cmd.CommandPath())
}

// flags returns the names of a command's flags.
func flags(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// Execute runs root with args and returns the exit code: 0, that of an
// ExitError, or ExitUnclear for any other error. It reports errors with say. It removes
// $USER from the environment.
func Execute(ctx context.Context, root *cobra.Command, args []string, say func(error)) int {
	// Where /etc/passwd does not have the user who runs a static program, os/user takes
	// the name in $USER for this user's, even if it is another one's. Who starts the
	// program would choose the user of its records, and whose answers count.
	os.Unsetenv("USER")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...) // now, so that refuseUnknown finds both
	root.InitDefaultHelpCmd()
	refuseUnknown(root)
	refuseEmpty(root)
	var unprinted error
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { unprinted = printHelp(cmd) })
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = unprinted
	}
	if err == nil {
		return 0
	}
	exit := ExitError{ExitUnclear, err}
	errors.As(err, &exit)
	if exit.Err != nil {
		say(exit.Err)
	}
	return exit.Code
}

// refuseUnknown has help, and commands that have only commands, refuse any other word,
// which cobra answers with help and exit code 0.
func refuseUnknown(cmd *cobra.Command) {
	if cmd.HasParent() && cmd.Name() == "help" {
		cmd.Args = func(_ *cobra.Command, args []string) error {
			about, rest, _ := cmd.Root().Find(args)
			return NoArgs(about, rest)
		}
	}
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.Args, cmd.RunE = NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
}

// MayBeEmpty marks flags that mean something without a value, or that their command checks.
func MayBeEmpty(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().SetAnnotation(name, mayBeEmpty, []string{"true"})
	}
}

const mayBeEmpty = "may be empty"

// refuseEmpty has the commands below root refuse a flag without a value. It is as of a
// shell's variable that is not set: without it, a command would do more than was asked
// for, or look elsewhere.
func refuseEmpty(root *cobra.Command) {
	for _, c := range root.Commands() {
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				var names []string
				cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
					if f.Annotations[mayBeEmpty] == nil {
						names = append(names, f.Name)
					}
				})
				if err := CheckEmpty(cmd, names...); err != nil {
					return err
				}
				return run(cmd, args)
			}
		}
		refuseEmpty(c)
	}
}

// CheckEmpty reports those of these flags that are given without a value.
func CheckEmpty(cmd *cobra.Command, names ...string) error {
	var empty []error
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		list, ok := f.Value.(pflag.SliceValue)
		if f.Changed && (f.Value.Type() == "string" && f.Value.String() == "" || ok && strings.Join(list.GetSlice(), "") == "") {
			empty = append(empty, fmt.Errorf("--%s is empty: give it a value, or leave it out", name))
		}
	}
	return errors.Join(empty...)
}

// NewVersionCmd returns the command that prints the program's name and version
// to w.
func NewVersionCmd(w io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return PrintVersion(w, cmd.Root().Name()) },
	}
}

// PrintVersion prints a line with a program's name and its version to w.
func PrintVersion(w io.Writer, program string) error {
	if _, err := fmt.Fprintf(w, "%s %s\n", program, Version()); err != nil {
		return fmt.Errorf("printing the version: %w", err)
	}
	return nil
}

// Interruptible returns a context that ends with SIGINT or SIGTERM.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

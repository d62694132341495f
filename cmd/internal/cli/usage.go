package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// usageWidth is the width of the text about flags, in columns.
const usageWidth = 100

// SetUsage makes root and its commands print help in one form. The help of root
// lists every key: with its flag, or for a secret with its variable.
//
// It is code, not a template of cobra's: with package text/template, which finds
// methods by name, the linker keeps every method of every type.
func SetUsage(root *cobra.Command, keys []Key) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		text := commandUsage(cmd)
		if cmd == root {
			text = rootUsage(root, keys)
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), text)
		return err
	})
}

// printHelp prints what a command does, and its usage.
func printHelp(cmd *cobra.Command) error {
	text := strings.TrimRight(cmp.Or(cmd.Long, cmd.Short), " \n")
	if text != "" {
		text += "\n\n"
	}
	if cmd.Runnable() || cmd.HasSubCommands() {
		text += cmd.UsageString()
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	return nil
}

// rootUsage is the usage of a program.
func rootUsage(cmd *cobra.Command, keys []Key) string {
	flags := flagUsage(cmd)
	return "Usage:\n  " + cmd.UseLine() + exampleUsage(cmd) + "\n\nCommands:" + commandList(cmd) + flags + "\n\n" +
		secretUsage(cmd.Name(), keys) + "More about a command: " + cmd.CommandPath() + " COMMAND --help\n"
}

// commandUsage is the usage of a command. It omits the flags of the configuration,
// which all commands take and few need.
func commandUsage(cmd *cobra.Command) string {
	flags := flagUsage(cmd)
	text := "Usage:\n  " + cmd.UseLine() + exampleUsage(cmd)
	if cmd.HasAvailableSubCommands() {
		text += "\n\nCommands:" + commandList(cmd)
	}
	return text + flags + "\n\nThe flags of the configuration work here too: " + cmd.Root().CommandPath() + " --help\n"
}

func exampleUsage(cmd *cobra.Command) string {
	if !cmd.HasExample() {
		return ""
	}
	return "\n\nExamples:\n" + cmd.Example
}

// commandList has a line for each command of cmd.
func commandList(cmd *cobra.Command) string {
	var text strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&text, "\n  %-*s %s", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return text.String()
}

// flagUsage is to be called before cmd.UseLine: it adds what cmd inherits to its flags.
func flagUsage(cmd *cobra.Command) string {
	if !cmd.HasAvailableLocalFlags() {
		return ""
	}
	return "\n\nFlags:\n" + strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(usageWidth), " \n")
}

// secretUsage lists the keys that have no flag.
func secretUsage(program string, keys []Key) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, k := range keys {
		if !k.HasFlag() {
			fmt.Fprintf(w, "  %s\t%s\n", k.Variable(program), k.Usage)
		}
	}
	w.Flush()
	if text.Len() == 0 {
		return ""
	}
	return "Variables without a flag, because other users can read a command line:\n" + text.String() + "\n"
}

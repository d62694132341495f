package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The usage templates are cobra's, narrower, and in the order of its help. A
// command omits the flags of the configuration, which all commands take and
// few need.
const (
	rootUsage = `Usage:{{if .Runnable}}
  {{.UseLine}}
  {{.CommandPath}} COMMAND{{else}}
  {{.UseLine}} [flags]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}

`
	commandUsage = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}

The flags of the configuration work here too: {{.Root.CommandPath}} --help
`
)

// SetUsage makes root and its commands print help in one form. The help of root
// lists every key: with its flag, or for a secret with its variable.
func SetUsage(root *cobra.Command, keys []Key) {
	root.SetUsageTemplate(rootUsage + secretUsage(root.Name(), keys) + "More about a command: {{.CommandPath}} COMMAND --help\n")
	root.InitDefaultCompletionCmd() // so that it has this form too
	for _, cmd := range root.Commands() {
		cmd.SetUsageTemplate(commandUsage)
	}
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

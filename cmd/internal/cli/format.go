package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// AddFormat adds --format to a command that scripts may read.
func AddFormat(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "text", "`form` of the output: text or json")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// CheckFormat checks the value of --format.
func CheckFormat(format string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("--format is %q, want text or json", format)
	}
	return nil
}

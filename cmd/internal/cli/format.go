package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// AddFormat adds --format to a command that scripts may read, and --json for short.
func AddFormat(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "text", "`form` of the output: text or json")
	cmd.Flags().VarPF(asJSON{format}, "json", "", "the same as --format json").NoOptDefVal = "true"
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// asJSON is --json, as a flag that sets another one's variable.
type asJSON struct{ format *string }

func (j asJSON) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err == nil && on {
		*j.format = "json"
	}
	return err
}

func (asJSON) String() string { return "false" }
func (asJSON) Type() string   { return "bool" }

// CheckFormat checks the value of --format.
func CheckFormat(format string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("--format is %q, want text or json", format)
	}
	return nil
}

package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// AddFormat adds --format to a command that scripts may read, and --json for short.
func AddFormat(cmd *cobra.Command, format *string) {
	AddFormats(cmd, format, "text", "json")
}

// AddFormats adds --format with these forms, of which the first is the default and one
// json, and --json for short.
func AddFormats(cmd *cobra.Command, format *string, forms ...string) {
	last := len(forms) - 1
	cmd.Flags().StringVar(format, "format", forms[0], "`form` of the output: "+strings.Join(forms[:last], ", ")+" or "+forms[last])
	cmd.Flags().VarPF(asJSON{format}, "json", "", "the same as --format json").NoOptDefVal = "true"
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
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

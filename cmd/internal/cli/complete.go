package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CompleteFlags makes a shell offer the values of AddFlags' flags, on root and
// its commands, and files only where a command takes some. It does nothing unless
// args are what a shell asks: a proxy's start would wait most of a millisecond for it.
func CompleteFlags(root *cobra.Command, keys []Key, args []string) {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}
	for _, k := range keys {
		words, files := k.Choices, cobra.ShellCompDirectiveNoFileComp
		switch {
		case k.Kind == Path:
			files = cobra.ShellCompDirectiveDefault
		case k.Kind == Bool:
			words = []string{"true", "false"}
		}
		// It fails for a key without a flag, which needs none.
		_ = root.RegisterFlagCompletionFunc(k.Flag(), cobra.FixedCompletions(words, files))
	}
	for _, cmd := range root.Commands() {
		completeFiles(cmd)
	}
}

// completeFiles leaves the shell's own offer, which are files, to what the help calls
// FILE or DIR.
func completeFiles(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && !strings.Contains(cmd.Use, "FILE") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if name, _ := pflag.UnquoteUsage(f); name != "FILE" && name != "DIR" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // fails where there are words to offer
		}
	})
	for _, sub := range cmd.Commands() {
		completeFiles(sub)
	}
}
